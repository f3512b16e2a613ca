//! One of each thing that goes over the wire, as `docs/wire.md` shows it.

mod blocked;
mod branch;
mod budget;
mod conflict;
mod prompting;
mod review;
mod spent;
mod stream;

use std::sync::Arc;

use expect_test::expect;

pub(in crate::serve) use self::branch::{branches, checked, merged, pull_request};
pub(in crate::serve) use self::prompting::{choices, chosen, waiting};
pub(in crate::serve) use self::review::review;
use self::spent::spent;
pub(in crate::serve) use self::spent::usage;
pub(in crate::serve) use self::stream::stream;
use crate::changes::{FileKind, FileState};
use crate::model::{
    AgentId, AgentReport, AgentState, AgentStatus, BlockedStatus, Delta, Event, FileNode,
    GraphCall, GraphDelta, GraphKind, GraphNode, GraphPart, GraphRemains, GraphSnapshot, OpenCalls,
    Origin, Overlap, OverlapKind, SessionId, SessionKey, SessionMode, Snapshot, Span, Spent,
    TaskId, TaskReport, TaskState, TeamUpdate, TerminalExit, Touch, TurnEnd,
};
use crate::serve::{AgentDetails, SessionDetails, lines};
use crate::undo;
use crate::wire::{Change, Kind, Reloaded, Restart, Tier};
pub(in crate::serve) use blocked::{VERSION, blocked, grant, resolved, show};
use blocked::{answered, completed, of_status, swept, written};
pub(in crate::serve) use budget::{budget, looped, raised_budget};
use conflict::{conflict, decided_conflict};
pub(in crate::serve) use conflict::{resolved_conflict, show_conflict};

pub(super) const NOW: u64 = 1_760_000_000_000;

pub(in crate::serve) fn key(agent: &str, session: &str) -> SessionKey {
    SessionKey::new(AgentId::new(agent), SessionId::new(session))
}

pub(in crate::serve) fn node(path: &str, heat: f64) -> FileNode {
    FileNode {
        path: path.into(),
        heat,
        in_context: heat > 0.9,
        last_action: Touch::Write,
        turn_accessed: 2,
        timestamp_ms: NOW,
        symbols: None,
        origin: None,
    }
}

pub(in crate::serve) fn snapshot() -> Snapshot {
    Snapshot {
        key: key("lead", "s-lead"),
        mode: SessionMode::Orchestrator,
        seq: 7,
        nodes: vec![node("src/ui/app.ts", 1.0), node("/etc/hosts", 0.25)],
        omitted: 0,
    }
}

pub(in crate::serve) fn other_snapshot() -> Snapshot {
    Snapshot {
        key: key("ui", "s-ui"),
        mode: SessionMode::SingleAgent,
        seq: 3,
        nodes: Vec::new(),
        omitted: 0,
    }
}

pub(in crate::serve) fn delta() -> Delta {
    Delta {
        key: key("ui", "s-ui"),
        mode: SessionMode::SingleAgent,
        seq: 4,
        updates: vec![FileNode {
            symbols: Some(["src/ui/app.ts::App::render".into()].into()),
            origin: Some(Origin::Claimed),
            ..node("src/ui/app.ts", 1.0)
        }],
        removed: vec!["src/ui/old.ts".into()],
    }
}

pub(in crate::serve) fn overlap() -> Overlap {
    Overlap {
        kind: OverlapKind::Context,
        between: [key("ui", "s-ui"), key("api", "s-api")],
        symbol: "src/ui/app.ts::App::render".into(),
        path: "src/ui/app.ts".into(),
        callers: vec![("src/main.ts::start".into(), key("api", "s-api"))],
        timestamp_ms: NOW,
    }
}

fn task(state: TaskState, reason: Option<&str>) -> TaskReport {
    TaskReport {
        id: TaskId::new("t-5f3a90c1"),
        by: AgentId::new("lead"),
        owner: reason.map(|_| "ada".to_owned()),
        agent: AgentId::new("ui"),
        session: Some(SessionId::new("s-ui")),
        state,
        reason: reason.map(str::to_owned),
        timestamp_ms: NOW,
    }
}

pub(in crate::serve) fn agent(name: &str) -> AgentStatus {
    AgentStatus {
        agent: AgentId::new(name),
        state: AgentState::Ready,
        pid: Some(4711),
        reason: None,
        restarts: 0,
        candidate: None,
        timestamp_ms: NOW,
    }
}

pub(in crate::serve) fn undone(request: &undo::UndoRequest) -> undo::Outcome {
    let state = |hash: &str, size: u64| {
        Some(FileState {
            hash: Some(hash.repeat(64)),
            size,
            mode: 0o644,
            kind: FileKind::File,
            stored: true,
        })
    };
    let (old, new) = (state("a", 27), state("b", 31));
    let is_redo = matches!(request.aim, undo::Aim::LastUndo { .. });
    let (before, after) = if is_redo { (old, new) } else { (new, old) };
    let diff = "diff --git a/src/ui/app.ts b/src/ui/app.ts\n";
    let path = undo::ShownPath { path: "src/ui/app.ts".to_owned(), path_bytes: None };
    let event = if is_redo { "0192f3a1-aaaa" } else { "0192f3a1-9999" };
    undo::Outcome {
        event_id: (!request.dry_run).then(|| event.to_owned()),
        agent_id: Some("ui".to_owned()),
        paths: vec![undo::UndonePath { path, before, after }],
        diff: request.dry_run.then(|| diff.into()),
        ..undo::Outcome::default()
    }
}

pub(super) fn reloaded() -> Reloaded {
    let change = |agent: Option<&str>, key: &str, change, restart| Change {
        agent_id: agent.map(|agent| agent.to_owned().into()),
        key: key.to_owned(),
        change,
        restart,
    };
    Reloaded {
        applied: vec![
            change(None, "orchestrator.on_block", Kind::Changed.into(), None),
            change(Some("ui"), "zone.allowed", Kind::Changed.into(), None),
            change(Some("docs"), "agents", Kind::Added.into(), None),
        ],
        needs_restart: vec![
            change(Some("ui"), "command", Kind::Changed.into(), Some(Restart::Agent.into())),
            change(None, "team.listen", Kind::Changed.into(), Some(Restart::Team.into())),
        ],
        notes: vec!["agent `api` stays away".to_owned()],
    }
}

pub(in crate::serve) fn failed_agent() -> AgentStatus {
    AgentStatus {
        agent: AgentId::new("api"),
        state: AgentState::Error,
        pid: None,
        reason: Some("exit status 1: no such model".to_owned()),
        restarts: 5,
        candidate: None,
        timestamp_ms: NOW,
    }
}

/// All that is known of an agent: much of one that runs.
pub(super) fn details(status: AgentStatus) -> AgentDetails {
    let runs = status.pid.is_some();
    let session = SessionDetails {
        session: SessionId::new("s-ui"),
        mode: SessionMode::SingleAgent,
        is_open: true,
        is_default: true,
        is_running: false,
        queued: 1,
        chosen: chosen().chosen,
        usage: usage().usage,
        spent: spent(),
    };
    AgentDetails {
        status,
        name: runs.then(|| "OpenCode".to_owned()),
        version: runs.then(|| "1.2.3".to_owned()),
        owner: runs.then(|| "ada".to_owned()),
        zone: Tier::Kernel,
        zone_missing: Vec::new(),
        is_observed: false,
        compress: None,
        shows_tools: None,
        provider: None,
        open_calls: OpenCalls::default(),
        sessions: if runs { vec![session] } else { Vec::new() },
        memory_bytes: runs.then_some(104_857_600),
        cpu_ms: runs.then_some(5230),
        // Of the last run, too.
        peak_memory_bytes: Some(209_715_200),
        peak_processes: Some(7),
    }
}

pub(in crate::serve) fn turn(reason: Option<Arc<str>>) -> TurnEnd {
    let stop_reason = if reason.is_some() { "error" } else { "end_turn" };
    let spent = if reason.is_some() { Spent::default() } else { spent() };
    TurnEnd {
        key: key("ui", "s-ui"),
        mode: SessionMode::SingleAgent,
        turn: 2,
        stop_reason: stop_reason.into(),
        reason,
        spent,
    }
}

pub(in crate::serve) fn update() -> Event {
    let text =
        r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done."}}"#;
    let (key, mode) = (key("ui", "s-ui"), SessionMode::SingleAgent);
    Event::SessionUpdate { key, mode, update: text.into() }
}

/// An update that the team makes.
fn of_team(update: &TeamUpdate<'_>) -> Event {
    let (key, mode) = (key("ui", "s-ui"), SessionMode::SingleAgent);
    Event::SessionUpdate { key, mode, update: update.to_json() }
}

fn file(lines: u32, last_write: Option<u64>) -> GraphNode {
    GraphNode {
        kind: GraphKind::File,
        lines: Span { start: 1, end: lines },
        tokens: Some(9 * lines),
        language: Some("rust"),
        last_write,
    }
}

fn function(start: u32, end: u32) -> GraphNode {
    let (kind, language) = (GraphKind::Function, None);
    GraphNode { kind, lines: Span { start, end }, language, ..file(end - start, None) }
}

pub(in crate::serve) fn graph() -> GraphSnapshot {
    let folder = GraphNode {
        kind: GraphKind::Folder,
        lines: Span { start: 0, end: 0 },
        tokens: None,
        language: None,
        last_write: None,
    };
    GraphSnapshot {
        seq: 3,
        nodes: vec![
            ("src".into(), folder),
            ("src/main.rs".into(), file(20, None)),
            ("src/main.rs::main".into(), function(3, 9)),
            ("src/main.rs::open".into(), function(11, 20)),
        ],
        calls: vec![call("main", "open")],
    }
}

pub(in crate::serve) fn graph_delta() -> GraphDelta {
    let added = ("src/main.rs::close".into(), function(14, 16));
    GraphDelta {
        seq: 4,
        added: GraphPart { nodes: vec![added], calls: vec![call("main", "close")] },
        changed: vec![("src/main.rs".into(), file(16, Some(NOW)))],
        removed: GraphRemains {
            nodes: vec!["src/main.rs::open".into()],
            calls: vec![call("main", "open")],
        },
    }
}

fn call(from: &str, to: &str) -> GraphCall {
    let id = |name| format!("src/main.rs::{name}").into();
    GraphCall { from: id(from), to: id(to) }
}

/// Every line that the server sends by itself, without its line feed.
pub(in crate::serve) fn lines() -> Vec<String> {
    let exited = TerminalExit { exit_code: Some(0), signal: None };
    let events = [
        Event::Snapshot(snapshot()),
        Event::Snapshot(Snapshot { key: key("", ""), seq: 0, ..other_snapshot() }),
        Event::Snapshot(other_snapshot()),
        Event::Delta(delta()),
        Event::Usage(usage()),
        of_status(BlockedStatus::Pending),
        written(),
        swept(),
        completed(),
        answered(),
        Event::Agent(agent("ui")),
        Event::Agent(failed_agent()),
        Event::Chosen(chosen()),
        Event::Budget(budget()),
        Event::Turn(turn(None)),
        Event::Turn(turn(Some("the agent ended: exit status 1".into()))),
        Event::Loop(looped()),
        update(),
        of_team(&TeamUpdate::prompt("Run the tests")),
        of_team(&TeamUpdate::terminal("term_1", "12 tests passed\n", false, Some(exited))),
        Event::Graph(graph()),
        Event::GraphDelta(graph_delta()),
        Event::Overlap(overlap()),
        Event::Conflict(conflict()),
        Event::Conflict(decided_conflict()),
        Event::Task(task(TaskState::NeedsApproval, None)),
        Event::Task(task(TaskState::Lost, Some("the agent ended: exit status 1"))),
        Event::Report(AgentReport {
            agent: AgentId::new("ui"),
            text: "The cart shows its total.".into(),
            timestamp_ms: NOW,
        }),
        Event::Stream(stream()),
        Event::Overlap(Overlap {
            kind: OverlapKind::Edit,
            between: [key("api", "s-api"), key("ui", "s-ui")],
            symbol: "README.md".into(),
            path: "README.md".into(),
            callers: Vec::new(),
            ..overlap()
        }),
    ];
    let lines = events.iter().map(lines::encode).chain([lines::lagged(4096)]);
    lines.map(|line| String::from_utf8(line.to_vec()).unwrap().trim_end().to_owned()).collect()
}

#[test]
fn each_line_is_exactly_that() {
    expect![[r#"
        {"type":"snapshot","agent_id":"lead","session_id":"s-lead","session_mode":"orchestrator","seq":7,"nodes":{"src/ui/app.ts":{"path":"src/ui/app.ts","heat":1.0,"in_context":true,"last_action":"write","turn_accessed":2,"timestamp_ms":1760000000000},"/etc/hosts":{"path":"/etc/hosts","heat":0.25,"in_context":false,"last_action":"write","turn_accessed":2,"timestamp_ms":1760000000000}}}
        {"type":"snapshot","agent_id":"","session_id":"","session_mode":"single_agent","seq":0,"nodes":{}}
        {"type":"snapshot","agent_id":"ui","session_id":"s-ui","session_mode":"single_agent","seq":3,"nodes":{}}
        {"type":"delta","agent_id":"ui","session_id":"s-ui","session_mode":"single_agent","seq":4,"updates":[{"path":"src/ui/app.ts","heat":1.0,"in_context":true,"last_action":"write","turn_accessed":2,"timestamp_ms":1760000000000,"symbols":["src/ui/app.ts::App::render"],"origin":"claimed"}],"removed":["src/ui/old.ts"]}
        {"type":"usage","agent_id":"ui","session_id":"s-ui","session_mode":"single_agent","used":12000,"size":200000,"cost":{"amount":0.042,"currency":"USD"},"spent":{"input":4000,"cached_read":36000,"cached_write":null,"output":1200,"reasoning":300,"total":41200,"cost":[{"amount":0.042,"currency":"USD"}],"estimated":[],"incomplete":["cached_write"]}}
        {"type":"blocked","agent_id":"ui","session_id":"s-ui","session_mode":"single_agent","path":"src/api/routes.ts","action":"read","timestamp_ms":1760000000000,"id":"b1","status":"pending","owners":["api"],"orchestrator":{"agent_id":"lead","session_id":"s-lead"},"via":"fs"}
        {"type":"blocked","agent_id":"ui","session_id":"s-ui","session_mode":"single_agent","path":"src/api/routes.ts","action":"write","timestamp_ms":1760000000000,"id":"b1","status":"denied","owners":[],"orchestrator":null,"via":"terminal"}
        {"type":"blocked","agent_id":"ui","session_id":"s-ui","session_mode":"single_agent","path":"src/api","action":"read","timestamp_ms":1760000000000,"id":"b1","status":"denied","owners":["api"],"orchestrator":null,"via":"kernel","sweep":12}
        {"type":"blocked","agent_id":"ui","session_id":"s-ui","session_mode":"single_agent","path":"src/api/routes.ts","action":"read","timestamp_ms":1760000000000,"id":"b1","status":"denied","owners":["api"],"orchestrator":{"agent_id":"lead","session_id":"s-lead"},"via":"fs","completed":true}
        {"type":"blocked","agent_id":"ui","session_id":"s-ui","session_mode":"single_agent","path":"src/api/routes.ts","action":"read","timestamp_ms":1760000000000,"id":"b1","status":"answered","owners":["api"],"orchestrator":null,"via":"fs","rule":1,"decide":"owner","decided_by":"agent:api","answered_by":"api","tokens_saved":5200}
        {"type":"agent","agent_id":"ui","state":"ready","pid":4711,"reason":null,"restarts":0,"timestamp_ms":1760000000000}
        {"type":"agent","agent_id":"api","state":"error","pid":null,"reason":"exit status 1: no such model","restarts":5,"timestamp_ms":1760000000000}
        {"type":"options","agent_id":"ui","session_id":"s-ui","chosen":{"mode":"plan","model":"large"},"timestamp_ms":1760000000000}
        {"type":"budget","agent_id":"ui","state":"exceeded","tokens":{"used":41200,"limit":40000,"reserved":0,"largest":9000,"estimated":false,"unknown":0},"cost":{"used":0.042,"limit":null,"currency":"USD","reserved":0.0,"largest":0.01,"unknown":0},"turns":{"used":3,"limit":50},"minutes":{"used":2.5,"limit":null},"running":1,"window_s":null,"on_exceed":"pause","reason":"the budget of `ui` is used up: 41200 of 40000 tokens are used; prompts are refused until `raise_budget`","timestamp_ms":1760000000000}
        {"type":"turn","agent_id":"ui","session_id":"s-ui","turn":2,"stop_reason":"end_turn","spent":{"input":4000,"cached_read":36000,"cached_write":null,"output":1200,"reasoning":300,"total":41200,"cost":[{"amount":0.042,"currency":"USD"}],"estimated":[],"incomplete":["cached_write"]}}
        {"type":"turn","agent_id":"ui","session_id":"s-ui","turn":2,"stop_reason":"error","reason":"the agent ended: exit status 1"}
        {"type":"loop","agent_id":"ui","session_id":"s-ui","session_mode":"single_agent","kind":"call","times":5,"calls":["npm test"],"action":"cancel","timestamp_ms":1760000000000}
        {"type":"session_update","agent_id":"ui","session_id":"s-ui","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done."}}}
        {"type":"session_update","agent_id":"ui","session_id":"s-ui","update":{"sessionUpdate":"_eisen/prompt","text":"Run the tests","truncated":false}}
        {"type":"session_update","agent_id":"ui","session_id":"s-ui","update":{"sessionUpdate":"_eisen/terminal","terminalId":"term_1","output":"12 tests passed\n","truncated":false,"exitStatus":{"exitCode":0}}}
        {"type":"graph","seq":3,"nodes":{"src":{"kind":"folder","lines":{"start":0,"end":0}},"src/main.rs":{"kind":"file","lines":{"start":1,"end":20},"tokens":180,"language":"rust"},"src/main.rs::main":{"kind":"function","lines":{"start":3,"end":9},"tokens":54},"src/main.rs::open":{"kind":"function","lines":{"start":11,"end":20},"tokens":81}},"calls":[{"from":"src/main.rs::main","to":"src/main.rs::open"}]}
        {"type":"graph_delta","seq":4,"added":{"nodes":{"src/main.rs::close":{"kind":"function","lines":{"start":14,"end":16},"tokens":18}},"calls":[{"from":"src/main.rs::main","to":"src/main.rs::close"}]},"changed":{"nodes":{"src/main.rs":{"kind":"file","lines":{"start":1,"end":16},"tokens":144,"language":"rust","lastWrite":1760000000000,"changed":true}}},"removed":{"nodes":["src/main.rs::open"],"calls":[{"from":"src/main.rs::main","to":"src/main.rs::open"}]}}
        {"type":"overlap","kind":"context","agents":[{"agent_id":"ui","session_id":"s-ui"},{"agent_id":"api","session_id":"s-api"}],"symbol":"src/ui/app.ts::App::render","path":"src/ui/app.ts","callers":[{"symbol":"src/main.ts::start","agent_id":"api","session_id":"s-api"}],"timestamp_ms":1760000000000}
        {"type":"conflict","id":"c1","path":"src/ui/app.ts","kind":"held","agents":["ui","api"],"session_id":"s-ui","status":"pending","message":"`api` has `src/ui/app.ts` locked, and `ui` waits to write it","timestamp_ms":1760000000000}
        {"type":"conflict","id":"c1","path":"src/ui/app.ts","kind":"held","agents":["ui","api"],"session_id":"s-ui","status":"allowed","message":"`api` has `src/ui/app.ts` locked, and `ui` waits to write it","decided_by":"person","timestamp_ms":1760000000000}
        {"type":"task","id":"t-5f3a90c1","by":"lead","agent_id":"ui","session_id":"s-ui","state":"needs_approval","timestamp_ms":1760000000000}
        {"type":"task","id":"t-5f3a90c1","by":"lead","owner":"ada","agent_id":"ui","session_id":"s-ui","state":"lost","reason":"the agent ended: exit status 1","timestamp_ms":1760000000000}
        {"type":"report","agent_id":"ui","text":"The cart shows its total.","timestamp_ms":1760000000000}
        {"type":"stream","name":"audit","kind":"file","state":"degraded","reason":"cannot write /logs/audit.ndjson: No space left on device (os error 28)","failures":5,"delivered":120,"lost":0,"dead":0,"position":131,"timestamp_ms":1760000000000}
        {"type":"overlap","kind":"edit","agents":[{"agent_id":"api","session_id":"s-api"},{"agent_id":"ui","session_id":"s-ui"}],"symbol":"README.md","path":"README.md","callers":[],"timestamp_ms":1760000000000}
        {"type":"lagged","missed":4096}"#]].assert_eq(&lines().join("\n"));
}

#[test]
fn usage_without_a_price_says_null() {
    let mut report = usage();
    report.usage.as_mut().unwrap().cost = None;
    report.spent = Spent::default();
    assert!(lines::usage(&report).ends_with(b"\"cost\":null}\n"));
}

#[test]
fn updates_are_passed_on_as_the_agent_wrote_them() {
    let line = |text: &str| {
        let (key, mode) = (key("ui", "s-ui"), SessionMode::SingleAgent);
        let update = Event::SessionUpdate { key, mode, update: text.into() };
        String::from_utf8(lines::encode(&update).to_vec()).unwrap()
    };
    for text in [
        r#"{ "b":1e999, "a" : "\ud800", "b":12345678901234567890123 }"#,
        &format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)),
    ] {
        let head = r#"{"type":"session_update","agent_id":"ui","session_id":"s-ui","update":"#;
        assert_eq!(line(text), format!("{head}{text}}}\n"));
    }
    assert_eq!(line("{"), "");
}
