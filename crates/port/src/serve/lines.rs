//! Owns the lines that the port sends, borrowed from the model and encoded as in `docs/wire.md`.

mod map;

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::model::{
    AgentStatus, BlockedAccess, BudgetReport, Conflict, Event, GraphSnapshot, Overlap, SessionId,
    SessionKey, TaskReport, TurnEnd, UsageReport,
};
use crate::serve::Refused;
use crate::wire::{
    Cost, ErrorLine, LaggedLine, MapOverlap, ProgressLine, ReportLine, ResultLine, RpcError,
    ServerLine, SessionHeader, Spent, SymbolCaller, Target, TurnLine, UpdateLine, UsageLine,
};

pub(super) use map::snapshot;

/// Encodes an event; empty if an agent's update is not JSON.
pub fn encode(event: &Event) -> Bytes {
    match event {
        Event::Snapshot(shown) => snapshot(shown),
        Event::Delta(delta) => map::delta(delta),
        Event::Usage(report) => usage(report),
        Event::Turn(end) => turn(end),
        Event::Overlap(found) => overlap(found),
        Event::Blocked(access) => blocked(access),
        Event::Agent(status) => agent(status),
        Event::Budget(report) => budget(report),
        Event::Chosen(report) => line(&ServerLine::Options(report.into())),
        Event::Loop(report) => line(&ServerLine::Loop(report.into())),
        Event::SessionUpdate { key, update, .. } => session_update(key, update),
        Event::Graph(shown) => graph(shown),
        Event::GraphDelta(delta) => line(&ServerLine::GraphDelta(delta.into())),
        Event::Conflict(found) => conflict(found),
        Event::Task(report) => task(report),
        Event::Report(report) => line(&ServerLine::Report(ReportLine {
            agent_id: report.agent.as_str().into(),
            text: (&*report.text).into(),
            timestamp_ms: report.timestamp_ms,
        })),
        Event::Stream(report) => line(&ServerLine::Stream(report.into())),
        Event::Relayed(relayed) => Bytes::copy_from_slice(relayed.line.as_bytes()),
        // Records are for the journal, and have no line.
        Event::Record { .. } => Bytes::new(),
    }
}

pub(super) fn graph(graph: &GraphSnapshot) -> Bytes {
    line(&ServerLine::Graph(graph.into()))
}

pub(super) fn blocked(access: &BlockedAccess) -> Bytes {
    line(&ServerLine::Blocked(access.into()))
}

pub(super) fn agent(status: &AgentStatus) -> Bytes {
    line(&ServerLine::Agent(status.into()))
}

pub(super) fn budget(report: &BudgetReport) -> Bytes {
    line(&ServerLine::Budget(report.into()))
}

pub(super) fn conflict(found: &Conflict) -> Bytes {
    line(&ServerLine::Conflict(found.into()))
}

pub(super) fn task(report: &TaskReport) -> Bytes {
    line(&ServerLine::Task(report.into()))
}

pub(super) fn usage(report: &UsageReport) -> Bytes {
    let usage = report.usage.as_ref();
    line(&ServerLine::Usage(UsageLine {
        session: SessionHeader::new(&report.key, report.mode),
        used: usage.map(|usage| usage.used),
        size: usage.map_or(0, |usage| usage.size),
        cost: usage.and_then(|usage| usage.cost.as_ref()).map(Cost::from),
        spent: Spent::of(&report.spent),
    }))
}

fn turn(end: &TurnEnd) -> Bytes {
    line(&ServerLine::Turn(TurnLine {
        agent_id: end.key.agent.as_str().into(),
        session_id: end.key.session.as_str().into(),
        turn: end.turn,
        stop_reason: (&*end.stop_reason).into(),
        reason: end.reason.as_deref().map(Cow::from),
        spent: Spent::of(&end.spent).filter(|_| end.spent.is_known()),
    }))
}

fn overlap(found: &Overlap) -> Bytes {
    line(&ServerLine::Overlap(MapOverlap {
        kind: found.kind.into(),
        agents: found.between.each_ref().map(Target::from),
        symbol: (&*found.symbol).into(),
        path: (&*found.path).into(),
        callers: found.callers.iter().map(|(symbol, key)| SymbolCaller::new(symbol, key)).collect(),
        timestamp_ms: found.timestamp_ms,
    }))
}

fn session_update(key: &SessionKey, update: &str) -> Bytes {
    serde_json::from_str::<&RawValue>(update).map_or_else(
        |_| Bytes::new(),
        |update| {
            line(&ServerLine::SessionUpdate(UpdateLine {
                agent_id: key.agent.as_str().into(),
                session_id: key.session.as_str().into(),
                update: Cow::Borrowed(update),
            }))
        },
    )
}

/// Encodes that the client missed `missed` events.
pub(super) fn lagged(missed: u64) -> Bytes {
    line(&ServerLine::Lagged(LaggedLine { missed }))
}

/// Encodes the progress of a turn that a request waits for.
pub(super) fn progress(id: &RawValue, session: &SessionId, text: &str) -> Bytes {
    let (id, session_id) = (Cow::Borrowed(id), session.as_str().into());
    line(&ServerLine::RpcProgress(ProgressLine { id, session_id, text: text.into() }))
}

/// Encodes an answer; `id` is None if the request's id was not readable.
pub(super) fn answer(id: Option<&RawValue>, outcome: Result<&RawValue, &Refused>) -> Bytes {
    let id = id.map(Cow::Borrowed);
    line(&match outcome {
        Ok(result) => ServerLine::RpcResult(ResultLine { id, result: Cow::Borrowed(result) }),
        Err(refused) => {
            let error = RpcError::new(refused.code, &*refused.message);
            ServerLine::RpcError(ErrorLine { id, error: Cow::Owned(error) })
        }
    })
}

/// The error for requests of the graph while it is off.
pub(super) const GRAPH_IS_OFF: &str = "the code graph is switched off: `graph.enabled` is false";

/// Bytes that most lines fit into.
const USUAL_LINE: usize = 512;

#[expect(clippy::expect_used, reason = "string keys and no serializer of our own that could fail")]
fn line(message: &ServerLine<'_>) -> Bytes {
    let mut line = Vec::with_capacity(USUAL_LINE);
    serde_json::to_writer(&mut line, message).expect("wire messages always serialize");
    line.push(b'\n');
    line.into()
}
