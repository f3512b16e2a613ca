//! Owns the rights of callers on the port; the table in [`super::rpc`] has each method's right.
//! Pure.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Caller, Refused, ownership};
use crate::model::{AgentId, BlockedAccess, DecidedBy, Event, TaskReport, Topic, WebScope};
use crate::routing::Decider;
use crate::tokens::TokenRight;
use crate::wire::{ByWeb, Right};

/// Checks a call before its params are read.
pub(super) fn permit(method: &str, right: Right, caller: Option<&Caller>) -> Result<(), Refused> {
    match (right, caller) {
        (Right::Person, Some(Caller::Holder(holder))) if holder.agent_elsewhere().is_some() => {
            let message = format!("`{method}` is for persons, and an agent of another host asks");
            Err(Refused::new(403, message))
        }
        (Right::Anyone | Right::Register, _)
        | (Right::Reader, Some(_))
        // What a token with a scope opens is judged by `rpc::openings`.
        // And that of the web by `permit_scope`.
        | (_, Some(Caller::Person | Caller::Holder(_) | Caller::Web(_)))
        | (Right::Lead, Some(Caller::Lead(_))) => Ok(()),
        (Right::Reader | Right::Lead | Right::Person, None) => {
            Err(Refused::new(401, format!("`{method}` needs `auth` first")))
        }
        (Right::Person, Some(Caller::Lead(_) | Caller::Member(_))) => {
            let message = format!(
                "`{method}` takes the control token of a person: an agent could leave its zone or \
                 its budget by it. The orchestrator agent may list, prompt and cancel other agents, open sessions \
                 in them, and decide their accesses"
            );
            Err(Refused::new(403, message))
        }
        (Right::Lead, Some(Caller::Member(agent))) => {
            let message = format!(
                "`{method}` is for the orchestrator agent and for a person with the control token, \
                 and `{agent}` is neither"
            );
            Err(Refused::new(403, message))
        }
    }
}

/// Checks a call of a client of the web by the scope of its credential. A method of which nothing is
/// known is unknown, and refused as such.
pub(super) fn permit_scope(
    method: &str,
    web: Option<ByWeb>,
    scope: WebScope,
) -> Result<(), Refused> {
    let needed = match web {
        None => return Ok(()),
        Some(ByWeb::Never) => {
            return Err(Refused::new(403, format!("`{method}` is not for clients of the web")));
        }
        Some(ByWeb::Read) => WebScope::Read,
        Some(ByWeb::Decide) => WebScope::Decide,
        Some(ByWeb::Control) => WebScope::Control,
    };
    if needed <= scope {
        return Ok(());
    }
    Err(needs(method, needed, scope))
}

fn needs(what: &str, needed: WebScope, scope: WebScope) -> Refused {
    let (needed, scope) = (needed.as_str(), scope.as_str());
    let message = format!("`{what}` takes the scope `{needed}`, and this credential has `{scope}`");
    Refused::new(403, message)
}

/// Checks the params of a client of the web: with some, a method does more than its scope has. What a
/// zone denies is opened by the scope `control` only, and so is a result of a task given up. Params that
/// can't be read don't pass.
pub(super) fn permit_params(scope: WebScope, params: Option<&RawValue>) -> Result<(), Refused> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Beyond {
        even_denied: bool,
        ack: bool,
        scope: Option<Box<RawValue>>,
    }
    let Some(params) = params.map(RawValue::get).filter(|params| *params != "null") else {
        return Ok(());
    };
    if scope == WebScope::Control {
        return Ok(());
    }
    let beyond = match serde_json::from_str(params) {
        Ok(Beyond { scope: Some(scope), .. }) if !is_brief(&scope) => "scope",
        Ok(Beyond { even_denied: false, ack: false, .. }) => return Ok(()),
        Ok(Beyond { even_denied: false, ack: true, .. }) => "ack",
        Ok(_) | Err(_) => "even_denied",
    };
    Err(needs(beyond, WebScope::Control, scope))
}

/// Whether an access is allowed for no longer than its session.
fn is_brief(scope: &RawValue) -> bool {
    ["null", "\"once\"", "\"session\""].contains(&scope.get())
}

/// Checks a change of a registry entry of the team's own agents.
pub(super) fn permit_session(agent: &AgentId, caller: Option<&Caller>) -> Result<(), Refused> {
    match caller {
        Some(caller) if opens(caller, agent) => Ok(()),
        Some(_) => {
            let message = format!("the sessions of `{agent}` are not this agent's to change");
            Err(Refused::new(403, message))
        }
        None => {
            let message = format!("the sessions of `{agent}` are a running team's: `auth` first");
            Err(Refused::new(401, message))
        }
    }
}

/// The refusal of a change of a session that another team recorded.
pub(super) fn of_another_team(team: &str, caller: Option<&Caller>) -> Refused {
    let code = if caller.is_none() { 401 } else { 403 };
    let message = format!(
        "the session is one of the team `{team}`: a change takes the control token, or a token of that \
         team on its own port"
    );
    Refused::new(code, message)
}

/// Checks a subscription.
pub(super) fn permit_topic(topic: Topic, caller: Option<&Caller>) -> Result<(), Refused> {
    // The other topics name paths and symbols; these have the words of agents.
    if matches!(topic, Topic::SessionUpdate | Topic::Report) && caller.is_none() {
        let topic = topic.as_str();
        let message = format!("`{topic}` has what agents say and read, and needs `auth` first");
        return Err(Refused::new(401, message));
    }
    Ok(())
}

/// Whether a token opens the content of an agent's sessions.
pub(super) fn opens(caller: &Caller, agent: &AgentId) -> bool {
    match caller {
        Caller::Person | Caller::Web(_) | Caller::Lead(_) => true,
        Caller::Member(own) => own == agent,
        Caller::Holder(holder) => holder.may(TokenRight::Read) && holder.covers(agent),
    }
}

/// Whether a client may see anything of an agent: a token for some agents shows only these.
pub(super) fn covers(caller: Option<&Caller>, agent: &AgentId) -> bool {
    match caller {
        Some(Caller::Holder(holder)) => holder.covers(agent),
        _ => true,
    }
}

/// Whether a client may see the stream: a token with a scope may not open it.
pub(super) fn may_see(caller: Option<&Caller>) -> bool {
    match caller {
        Some(Caller::Holder(holder)) => holder.may(TokenRight::Read),
        _ => true,
    }
}

/// Whether a client may see an event, as [`covers`] has it. What is about several agents, or about the
/// workspace, is not for a token for some agents.
pub(super) fn covers_event(caller: Option<&Caller>, event: &Event) -> bool {
    let Some(Caller::Holder(holder)) = caller else { return true };
    if !holder.is_limited() {
        return true;
    }
    match event {
        Event::Snapshot(snapshot) => holder.covers(&snapshot.key.agent),
        Event::Delta(delta) => holder.covers(&delta.key.agent),
        Event::Usage(report) => holder.covers(&report.key.agent),
        Event::Turn(turn) => holder.covers(&turn.key.agent),
        Event::Chosen(report) => holder.covers(&report.key.agent),
        Event::Loop(report) => holder.covers(&report.key.agent),
        Event::SessionUpdate { key, .. } => holder.covers(&key.agent),
        Event::Blocked(access) => holder.covers(&access.key.agent),
        Event::Agent(status) => holder.covers(&status.agent),
        Event::Budget(report) => report.agent.as_ref().is_some_and(|agent| holder.covers(agent)),
        Event::Task(task) => holder.covers(&task.agent),
        Event::Report(report) => holder.covers(&report.agent),
        Event::Relayed(relayed) => relayed.agent.as_ref().is_some_and(|it| holder.covers(it)),
        Event::Conflict(_)
        | Event::Overlap(_)
        | Event::Graph(_)
        | Event::GraphDelta(_)
        | Event::Record { .. }
        | Event::Stream(_) => false,
    }
}

/// Returns an access as a caller may see it: the agent's words, and those that it was told, are content, which needs a
/// token that opens the agent's sessions.
pub(super) fn shown<'a>(
    caller: Option<&Caller>,
    access: &'a BlockedAccess,
) -> Cow<'a, BlockedAccess> {
    let may_read = caller.is_some_and(|caller| opens(caller, &access.key.agent));
    if may_read || access.reason.is_none() && access.message.is_none() {
        return Cow::Borrowed(access);
    }
    Cow::Owned(BlockedAccess { reason: None, message: None, ..access.clone() })
}

/// Returns a task as a caller may see it: why it ended is in the words of its agent, as above.
pub(super) fn shown_task<'a>(caller: Option<&Caller>, task: &'a TaskReport) -> Cow<'a, TaskReport> {
    let may_read = caller.is_some_and(|caller| opens(caller, &task.agent));
    match task.reason {
        Some(_) if !may_read => Cow::Owned(TaskReport { reason: None, ..task.clone() }),
        _ => Cow::Borrowed(task),
    }
}

/// The name of a program that leads over the tools with the control token; it may not do what only
/// a person may. No agent can have this name.
pub const PROGRAM: &str = "orchestrator";

/// Returns the agent whose tasks alone a token opens; None: the tasks of all.
pub(super) fn own_only(caller: Option<&Caller>) -> Option<&AgentId> {
    caller.and_then(Caller::agent)
}

/// Returns the decider of a blocked access, by the caller's token.
pub(super) fn decider(caller: Option<&Caller>, even_denied: bool) -> Decider {
    match decided_by(caller) {
        DecidedBy::Agent(agent) => Decider::Agent(agent),
        DecidedBy::Person if even_denied => Decider::Insistent,
        DecidedBy::Person => Decider::Person,
        by => Decider::Holder { by, insists: even_denied },
    }
}

/// Whose decision it is, by the caller's token, whatever the client says of itself.
pub(super) fn decided_by(caller: Option<&Caller>) -> DecidedBy {
    match caller {
        Some(Caller::Lead(agent) | Caller::Member(agent)) => DecidedBy::Agent(agent.clone()),
        Some(Caller::Holder(holder)) => match holder.agent_elsewhere() {
            Some(agent) => DecidedBy::Agent(agent.clone()),
            None if ownership::is_persons(holder) => DecidedBy::Person,
            None => DecidedBy::Token(holder.owner.clone()),
        },
        Some(Caller::Web(_)) => DecidedBy::Web,
        // Without a token nothing is decided.
        Some(Caller::Person) | None => DecidedBy::Person,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::serve::rpc;

    fn opens(scope: WebScope, method: &str) -> bool {
        permit_scope(method, rpc::by_web(method), scope).is_ok()
    }

    #[test]
    fn a_scope_opens_what_those_before_it_open_and_none_opens_all() {
        for facts in rpc::METHODS.iter().map(|row| &row.facts) {
            let (method, right) = (facts.name, facts.port);
            let opened = WebScope::ALL.map(|scope| opens(scope, method));
            assert!(opened.is_sorted(), "{method}: {opened:?}");
            // What anyone may call without a token only reads.
            assert!(right != Right::Anyone || opened[0], "{method}");
            assert!(!opened[0] || !right.steers(), "{method} acts on agents");
        }
        let seen = ["task_result", "wait_for_tasks", "check_tasks", "whose", "get_diff"];
        assert!(seen.iter().all(|method| opens(WebScope::Read, method)));
        for (method, opened) in [
            ("show_blocked", [false, true, true]),
            ("resolve_conflict", [false, true, true]),
            ("cancel_task", [false, false, true]),
            ("close_session", [false, false, true]),
            ("attach", [false; 3]),
            ("web_token", [false; 3]),
        ] {
            assert_eq!(WebScope::ALL.map(|scope| opens(scope, method)), opened, "{method}");
        }
    }

    #[test]
    fn params_that_go_beyond_a_scope_take_control() {
        let may = |scope, text: &str| {
            let params = RawValue::from_string(text.to_owned()).unwrap();
            permit_params(scope, Some(&params)).is_ok()
        };
        for beyond in [
            r#"{"id":"b1","even_denied":true}"#,
            r#"{"id":"t1","ack":true}"#,
            r#"{"even_denied":1}"#,
            r#"{"id":"b1","scope":"team"}"#,
            r#"{"id":"b1","scope":"te\u0061m"}"#,
            r#"{"id":"b1","scope":"once","scope":"team"}"#,
            r#"{"ack":false,"ack":true}"#,
            "[true,true]",
        ] {
            assert!(!may(WebScope::Read, beyond) && !may(WebScope::Decide, beyond), "{beyond}");
            assert!(may(WebScope::Control, beyond), "{beyond}");
        }
        for plain in ["null", "{}", r#"{"id":"t1","ack":false,"even_denied":false}"#] {
            assert!(may(WebScope::Read, plain), "{plain}");
        }
        assert!(permit_params(WebScope::Read, None).is_ok());
    }
}
