//! Owns how reports of the model become lines and rows of answers.

use std::borrow::Cow;

use crate::model::{
    self, AgentStatus, BlockedAccess, BudgetReport, Conflict, FileNode, LoopReport, SessionKey,
    SessionMode, StreamReport, TaskReport, WebScope,
};
use crate::wire::{
    Agent, AskedScope, Blocked, Budget, BudgetCost, BudgetMinutes, BudgetTokens, BudgetTurns,
    Candidate, ChosenOptions, ConflictLine, Looped, Node, SessionHeader, StreamStatus,
    SymbolCaller, Target, TaskLine, TaskRow,
};

impl<'a> SessionHeader<'a> {
    pub fn new(key: &'a SessionKey, mode: SessionMode) -> Self {
        Self {
            agent_id: key.agent.as_str().into(),
            session_id: key.session.as_str().into(),
            session_mode: mode.into(),
        }
    }
}

impl<'a> From<&'a SessionKey> for Target<'a> {
    fn from(key: &'a SessionKey) -> Self {
        Self { agent_id: key.agent.as_str().into(), session_id: key.session.as_str().into() }
    }
}

impl<'a> SymbolCaller<'a> {
    pub fn new(symbol: &'a str, key: &'a SessionKey) -> Self {
        Self { symbol: symbol.into(), session: key.into() }
    }
}

impl<'a> From<&'a AgentStatus> for Agent<'a> {
    fn from(status: &'a AgentStatus) -> Self {
        Self {
            agent_id: status.agent.as_str().into(),
            state: status.state.into(),
            pid: status.pid,
            reason: status.reason.as_deref().map(Cow::from),
            restarts: status.restarts,
            timestamp_ms: status.timestamp_ms,
            candidate: status.candidate.as_ref().map(|taken| Candidate {
                tier: (&*taken.tier).into(),
                profile: (&*taken.profile).into(),
                model: taken.model.as_deref().map(Cow::from),
            }),
        }
    }
}

impl<'a> From<&'a BlockedAccess> for Blocked<'a> {
    fn from(access: &'a BlockedAccess) -> Self {
        let answer = access.owner_answer.as_ref();
        let saved = answer.and_then(|answer| answer.saved);
        Self {
            session: SessionHeader::new(&access.key, access.mode),
            path: (&*access.path).into(),
            action: access.action.into(),
            timestamp_ms: access.timestamp_ms,
            id: access.id.as_str().into(),
            status: access.status.into(),
            owners: access.owners.iter().map(|owner| owner.as_str().into()).collect(),
            orchestrator: access.orchestrator.as_ref().map(Target::from),
            via: access.via.into(),
            sweep: access.sweep,
            harmless: access.harmless,
            denied_by: access.denied_by.as_deref().map(Cow::from),
            rule: access.rule.map(|rule| rule.number.get()),
            decide: access.rule.map(|rule| rule.decide.into()),
            decided_by: access.decided_by.as_ref().map(|by| by.to_string().into()),
            answered_by: answer.map(|answer| answer.owner.as_str().into()),
            tokens_saved: saved.map(|saved| saved.tokens),
            tokens_estimated: saved.is_some_and(|saved| saved.is_estimated),
            message: access.message.as_deref().map(Cow::from),
            reason: access.reason.as_deref().map(Cow::from),
            tool_call: access.tool_call.as_deref().map(Cow::from),
            offered: access.offered.as_deref().map(Cow::from),
            until_ms: access.until_ms,
            ended: access.ended.as_deref().map(Cow::from),
            completed: access.completed,
        }
    }
}

impl<'a> From<&'a BudgetReport> for Budget<'a> {
    fn from(report: &'a BudgetReport) -> Self {
        let limits = report.limits;
        Self {
            agent_id: report.agent.as_ref().map(|agent| agent.as_str().into()),
            state: report.state.into(),
            tokens: BudgetTokens {
                used: report.tokens.known,
                limit: limits.tokens,
                reserved: report.reserved_tokens,
                largest: report.largest_tokens,
                estimated: report.tokens.is_estimated,
                unknown: report.tokens.unknown,
            },
            cost: BudgetCost {
                used: report.cost,
                limit: limits.cost,
                currency: (&*report.currency).into(),
                reserved: report.reserved_cost,
                largest: report.largest_cost,
                unknown: report.cost_unknown,
            },
            turns: BudgetTurns { used: report.turns, limit: limits.turns },
            minutes: BudgetMinutes {
                used: (report.minutes * 100.0).round() / 100.0,
                limit: limits.minutes,
            },
            running: report.running,
            window_s: report.window_s,
            on_exceed: report.on_exceed.into(),
            reason: report.reason.as_deref().map(Cow::from),
            timestamp_ms: report.timestamp_ms,
        }
    }
}

impl<'a> From<&'a Conflict> for ConflictLine<'a> {
    fn from(conflict: &'a Conflict) -> Self {
        Self {
            id: conflict.id.as_str().into(),
            path: (&*conflict.path).into(),
            kind: conflict.kind.into(),
            agents: conflict.agents.iter().map(|agent| agent.as_str().into()).collect(),
            session_id: conflict.session.as_str().into(),
            status: conflict.status.into(),
            message: (&*conflict.message).into(),
            decided_by: conflict.decided_by.as_ref().map(|by| by.to_string().into()),
            timestamp_ms: conflict.timestamp_ms,
        }
    }
}

impl<'a> From<&'a model::ChosenOptions> for ChosenOptions<'a> {
    fn from(report: &'a model::ChosenOptions) -> Self {
        Self {
            agent_id: report.key.agent.as_str().into(),
            session_id: report.key.session.as_str().into(),
            chosen: Cow::Borrowed(&report.chosen),
            timestamp_ms: report.timestamp_ms,
        }
    }
}

impl<'a> From<&'a LoopReport> for Looped<'a> {
    fn from(report: &'a LoopReport) -> Self {
        let found = &report.found;
        Self {
            session: SessionHeader::new(&report.key, report.mode),
            kind: found.kind.into(),
            times: found.times,
            calls: found.calls.iter().map(|title| (&**title).into()).collect(),
            action: found.action.map(Into::into),
            timestamp_ms: report.timestamp_ms,
        }
    }
}

impl<'a> From<&'a StreamReport> for StreamStatus<'a> {
    fn from(report: &'a StreamReport) -> Self {
        Self {
            name: (&*report.name).into(),
            kind: report.kind.into(),
            state: report.state.into(),
            reason: report.reason.as_deref().map(Cow::from),
            failures: report.failures,
            delivered: report.delivered,
            lost: report.lost,
            dead: report.dead,
            position: report.position,
            timestamp_ms: report.timestamp_ms,
        }
    }
}

impl<'a> From<&'a TaskReport> for TaskLine<'a> {
    fn from(task: &'a TaskReport) -> Self {
        Self {
            id: task.id.as_str().into(),
            by: task.by.as_str().into(),
            owner: task.owner.as_deref().map(Cow::from),
            agent_id: task.agent.as_str().into(),
            session_id: task.session.as_ref().map(|session| session.as_str().into()),
            state: task.state.into(),
            reason: task.reason.as_deref().map(Cow::from),
            timestamp_ms: task.timestamp_ms,
        }
    }
}

impl<'a> From<&'a FileNode> for Node<'a> {
    fn from(node: &'a FileNode) -> Self {
        Self {
            path: (&*node.path).into(),
            heat: node.heat,
            in_context: node.in_context,
            last_action: node.last_action.into(),
            turn_accessed: node.turn_accessed,
            timestamp_ms: node.timestamp_ms,
            symbols: node.symbols.as_deref().map(Cow::Borrowed),
            origin: node.origin.map(Into::into),
        }
    }
}

impl From<TaskReport> for TaskRow {
    fn from(task: TaskReport) -> Self {
        Self {
            id: task.id.to_string().into(),
            agent: task.agent.to_string().into(),
            owner: task.owner,
            state: task.state.into(),
            reason: task.reason,
        }
    }
}

impl From<AskedScope> for WebScope {
    fn from(asked: AskedScope) -> Self {
        match asked {
            AskedScope::Read => Self::Read,
            AskedScope::Decide => Self::Decide,
            AskedScope::Control => Self::Control,
        }
    }
}
