//! Tasks that agents were given: `invoke_workflow` spans below the giver's turn, with the turn of the
//! task's agent in them.

use super::{MOST_TASKS, SpanFold};
use crate::model::{AgentId, SessionKey, TaskReport, TaskState, TimestampMs};
use crate::telemetry::names;
use crate::telemetry::span::SpanDraft;
use crate::telemetry::traceparent::Traceparent;

pub(super) struct OpenTask {
    pub(super) span: SpanDraft,
    began: TimestampMs,
    /// The session of its turn, once that is known.
    session: Option<SessionKey>,
}

impl SpanFold {
    pub(super) fn task(&mut self, report: &TaskReport) {
        let at = report.timestamp_ms;
        if report.state.is_ended() {
            return self.task_ended(report, at);
        }
        if !self.tasks.contains_key(&report.id) {
            self.task_began(report, at);
        }
        self.adopt(report, at);
    }

    fn task_began(&mut self, report: &TaskReport, at: TimestampMs) {
        if self.tasks.len() >= MOST_TASKS
            && let Some((_, oldest)) = self.tasks.shift_remove_index(0)
        {
            self.incomplete(oldest.span, at);
        }
        let (operation, team) = (names::INVOKE_WORKFLOW, self.settings.team.clone());
        let span = match self.giver(&report.by) {
            Some(giver) => {
                let place = self.child_of(giver);
                SpanDraft::new(operation, &team, place, Some(giver), at)
            }
            None => self.root_span(operation, &team, at),
        };
        let mut span = span.operation(operation);
        span.put(names::AGENT_NAME, &team);
        span.put(names::TASK_ID, report.id.as_str());
        span.put(names::TASK_BY, report.by.as_str());
        self.tasks.insert(report.id.clone(), OpenTask { span, began: at, session: None });
    }

    /// The span that gives a task: the call of the tool, else the turn, if one runs alone.
    fn giver(&mut self, by: &AgentId) -> Option<Traceparent> {
        let open = self.sessions.iter_mut().filter(|(key, _)| key.agent == *by);
        let open = open.filter_map(|(key, session)| Some((key, session.turn.as_mut()?)));
        let (mut keys, mut calls) = (Vec::new(), Vec::new());
        for (key, turn) in open {
            keys.push(key.clone());
            let giving = turn.tools.values_mut().filter(|tool| tool.delegates());
            calls.extend(giving.map(|tool| (key.clone(), tool)));
        }
        // Of calls that run at once, each gives a task.
        let next = calls.iter().position(|(_, tool)| !tool.has_given);
        let call = next.or(calls.len().checked_sub(1)).map(|at| {
            let (key, tool) = calls.swap_remove(at);
            tool.has_given = true;
            (key, Some(tool.id))
        });
        let alone = || <[SessionKey; 1]>::try_from(keys).ok().map(|[key]| (key, None));
        let (key, call) = call.or_else(alone)?;
        let agent = self.turn_spans(&key)?.agent;
        Some(call.map_or(agent, |id| agent.with_span(id)))
    }

    /// Makes the turn that a task is for a part of it, once the task's session is known.
    fn adopt(&mut self, report: &TaskReport, at: TimestampMs) {
        let Some(session) = &report.session else { return };
        let Some(task) = self.tasks.get_mut(&report.id).filter(|task| task.session.is_none())
        else {
            return;
        };
        task.span.put(names::CONVERSATION_ID, session.as_str());
        let (place, began) = (task.span.place, task.began);
        let key = SessionKey::new(report.agent.clone(), session.clone());
        task.session = Some(key.clone());
        let session = self.session(&key, at);
        // A turn from before belongs to another prompt, whose end is on its way.
        match session.turn.as_mut().filter(|turn| turn.task.is_none() && turn.began >= began) {
            Some(turn) if turn.is_placed() => turn.late_task = Some(place),
            Some(turn) => turn.task = Some(report.id.clone()),
            None => session.task = Some(report.id.clone()),
        }
    }

    fn task_ended(&mut self, report: &TaskReport, at: TimestampMs) {
        let key = self.tasks.get(&report.id).and_then(|task| task.session.clone());
        if let Some(key) = key {
            // The end of its turn may be told of later: it is below the task all the same.
            self.turn_spans(&key);
        }
        let Some(OpenTask { mut span, .. }) = self.tasks.shift_remove(&report.id) else { return };
        span.put(names::TASK_STATE, report.state.as_str());
        let error = match report.state {
            TaskState::Failed => Some(names::TASK_FAILED),
            TaskState::Lost => Some(names::TASK_LOST),
            _ => None,
        };
        if let Some(error) = error {
            let why = report.reason.as_deref().filter(|_| self.settings.contents);
            span.fail(error, why.unwrap_or_default());
        }
        self.done.push(span.end(at));
    }
}
