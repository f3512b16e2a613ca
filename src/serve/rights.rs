//! Owns the rights of callers on the port; the table in [`super::rpc`] has each method's right.
//! Pure.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Caller;
use super::wire::RpcError;
use crate::model::{AgentId, BlockedAccess, TaskReport, Topic, WebScope};
use crate::routing::Decider;

/// The right that a method requires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Right {
    /// Any client.
    Anyone,
    /// Any client; for sessions of the team's agents, clients with a token that opens them.
    Register,
    /// Any token; an agent's opens its own sessions only.
    Reader,
    /// The orchestrator agent and a person.
    Lead,
    /// A person only: an agent could change the team to leave its zone, or its budget.
    Person,
}

impl Right {
    /// Whether the method requires a token.
    pub(super) fn needs_token(self) -> bool {
        self == Self::Reader || self.steers()
    }

    /// Whether the method acts on agents. It then requires a token, and may take as long as the
    /// agent does.
    pub(super) fn steers(self) -> bool {
        matches!(self, Self::Lead | Self::Person)
    }
}

/// Checks a call before its params are read.
pub(super) fn permit(method: &str, right: Right, caller: Option<&Caller>) -> Result<(), RpcError> {
    match (right, caller) {
        (Right::Anyone | Right::Register, _)
        | (Right::Reader, Some(_))
        | (_, Some(Caller::Person))
        | (Right::Lead, Some(Caller::Lead(_))) => Ok(()),
        (Right::Reader | Right::Lead | Right::Person, None) => {
            Err(RpcError::new(401, format!("`{method}` needs `auth` first")))
        }
        (Right::Person, Some(Caller::Lead(_) | Caller::Member(_))) => {
            let message = format!(
                "`{method}` takes the control token of a person: an agent could leave its zone or \
                 its budget by it. The orchestrator agent may list, prompt and cancel other agents, open sessions \
                 in them, and decide their accesses"
            );
            Err(RpcError::new(403, message))
        }
        (Right::Lead, Some(Caller::Member(agent))) => {
            let message = format!(
                "`{method}` is for the orchestrator agent and for a person with the control token, \
                 and `{agent}` is neither"
            );
            Err(RpcError::new(403, message))
        }
    }
}

/// Methods that show a team to whoever may read it, beside those that any client may call.
const READS: [&str; 7] = [
    "list_events",
    "get_event",
    "search_events",
    "get_diff",
    "blame",
    "replay_session",
    "check_tasks",
];

/// Methods that decide what waits for a person.
const DECIDES: [&str; 3] = ["show_blocked", "resolve_blocked", "resolve_conflict"];

/// Methods that a client of the web never calls: they give away credentials, or take the connection.
const NOT_BY_WEB: [&str; 4] = ["attach", "web_link", "web_token", "web_revoke"];

/// Checks a call of a client of the web by the scope of its credential. A method without a right is
/// unknown, and refused as such.
pub(super) fn permit_scope(
    method: &str,
    right: Option<Right>,
    scope: WebScope,
) -> Result<(), RpcError> {
    let needed = match right {
        None => return Ok(()),
        Some(_) if NOT_BY_WEB.contains(&method) => {
            return Err(RpcError::new(403, format!("`{method}` is not for clients of the web")));
        }
        Some(Right::Anyone) => WebScope::Read,
        Some(_) if READS.contains(&method) => WebScope::Read,
        Some(_) if DECIDES.contains(&method) => WebScope::Decide,
        Some(_) => WebScope::Control,
    };
    if needed <= scope {
        return Ok(());
    }
    let (needed, scope) = (needed.as_str(), scope.as_str());
    let message =
        format!("`{method}` takes the scope `{needed}`, and this credential has `{scope}`");
    Err(RpcError::new(403, message))
}

/// Checks the params of a client of the web: what a zone denies is opened by the scope `control` only.
/// Params that can't be read don't pass.
pub(super) fn permit_params(scope: WebScope, params: Option<&RawValue>) -> Result<(), RpcError> {
    #[derive(Deserialize)]
    struct Beyond {
        #[serde(default)]
        even_denied: bool,
    }
    let params = params.map(RawValue::get).filter(|params| *params != "null");
    let beyond = params.map(serde_json::from_str::<Beyond>);
    if scope == WebScope::Control || beyond.is_none_or(|it| it.is_ok_and(|it| !it.even_denied)) {
        return Ok(());
    }
    let scope = scope.as_str();
    let message =
        format!("`even_denied` takes the scope `control`, and this credential has `{scope}`");
    Err(RpcError::new(403, message))
}

/// Checks a change of a registry entry of the team's own agents.
pub(super) fn permit_session(agent: &AgentId, caller: Option<&Caller>) -> Result<(), RpcError> {
    match caller {
        Some(caller) if opens(caller, agent) => Ok(()),
        Some(_) => {
            let message = format!("the sessions of `{agent}` are not this agent's to change");
            Err(RpcError::new(403, message))
        }
        None => {
            let message = format!("the sessions of `{agent}` are a running team's: `auth` first");
            Err(RpcError::new(401, message))
        }
    }
}

/// The refusal of a change of a session that another team recorded.
pub(super) fn of_another_team(team: &str, caller: Option<&Caller>) -> RpcError {
    let code = if caller.is_none() { 401 } else { 403 };
    let message = format!(
        "the session is one of the team `{team}`: a change takes the control token, or a token of that \
         team on its own port"
    );
    RpcError::new(code, message)
}

/// Checks a subscription.
pub(super) fn permit_topic(topic: Topic, caller: Option<&Caller>) -> Result<(), RpcError> {
    // The other topics name paths and symbols; these have the words of agents.
    if matches!(topic, Topic::SessionUpdate | Topic::Report) && caller.is_none() {
        let topic = topic.as_str();
        let message = format!("`{topic}` has what agents say and read, and needs `auth` first");
        return Err(RpcError::new(401, message));
    }
    Ok(())
}

/// Whether a token opens the content of an agent's sessions.
pub(super) fn opens(caller: &Caller, agent: &AgentId) -> bool {
    match caller {
        Caller::Person | Caller::Lead(_) => true,
        Caller::Member(own) => own == agent,
    }
}

/// Returns an access as a caller may see it: the agent's words are content, which needs a token
/// that opens the agent's sessions.
pub(super) fn shown<'a>(
    caller: Option<&Caller>,
    access: &'a BlockedAccess,
) -> Cow<'a, BlockedAccess> {
    let may_read = caller.is_some_and(|caller| opens(caller, &access.key.agent));
    match access.reason {
        Some(_) if !may_read => Cow::Owned(BlockedAccess { reason: None, ..access.clone() }),
        _ => Cow::Borrowed(access),
    }
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
pub(super) const PROGRAM: &str = "orchestrator";

/// Returns the agent whose tasks alone a token opens; None: the tasks of all.
pub(super) fn own_only(caller: Option<&Caller>) -> Option<&AgentId> {
    caller.and_then(Caller::agent)
}

/// Returns the decider of a blocked access, by the caller's token.
pub(super) fn decider(caller: Option<&Caller>, even_denied: bool, at_terminal: bool) -> Decider {
    match caller.and_then(Caller::agent) {
        Some(agent) => Decider::Agent(agent.clone()),
        None if even_denied => Decider::Insistent,
        None if at_terminal => Decider::Person,
        None => Decider::Program,
    }
}
