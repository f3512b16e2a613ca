//! The wishes of keys: a typed line, a request to the team, and its outcome.

use crate::serve::client::PreparedCall;
use crate::view::CardId;
use crate::wire::{
    AgentParams, Cancel, CancelParams, DecisionParam, GrantScope, RestartAgent, StartAgent,
    StopAgent,
};

/// The purpose of the typed line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Asking {
    /// A prompt for this agent.
    Prompt(String),
    /// Content in place of this access.
    Answer(CardId),
    /// The message of a denial.
    Denial(CardId),
    /// The pattern of all that is allowed with this access.
    Pattern(CardId, PatternSpan),
    /// A new total of a budget: of `tokens`, `cost`, `turns` or `minutes`.
    Total(CardId, &'static str),
    /// Whether to do this with an agent.
    Sure(AgentOrder, String),
}

/// How long what a pattern matches is allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PatternSpan {
    Session,
    Team,
}

impl PatternSpan {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Session => "for the session",
            Self::Team => "for the team",
        }
    }

    /// The decision that allows a pattern, or without one the path alone.
    pub(super) fn allowing(self, pattern: Option<String>) -> DecisionParam {
        let scope = Some(match self {
            Self::Session => GrantScope::Session,
            Self::Team => GrantScope::Team,
        });
        DecisionParam::Allow { scope, ttl_s: None, pattern, even_denied: false, tell: false }
    }
}

/// The request to an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AgentOrder {
    Cancel,
    Start,
    Stop,
    Restart,
}

impl AgentOrder {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
        }
    }

    pub(super) fn of(self, agent: &str) -> PreparedCall {
        let agent_id = agent.to_owned().into();
        match self {
            Self::Cancel => {
                let params = CancelParams { agent_id, session_id: None, queued: None };
                PreparedCall::of::<Cancel>(&params)
            }
            Self::Start => PreparedCall::of::<StartAgent>(&AgentParams { agent_id }),
            Self::Stop => PreparedCall::of::<StopAgent>(&AgentParams { agent_id }),
            Self::Restart => PreparedCall::of::<RestartAgent>(&AgentParams { agent_id }),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Input {
    pub(super) asking: Asking,
    pub(super) text: String,
}

impl Input {
    pub(super) fn empty(asking: Asking) -> Self {
        Self { asking, text: String::new() }
    }
}

/// The wish of a key.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Wish {
    Quit,
    /// A request to the team.
    Call(TeamCall),
}

#[derive(Clone, PartialEq, Debug)]
pub(super) struct TeamCall {
    pub(super) call: PreparedCall,
    /// The effect of the call, in words.
    pub(super) what: String,
    /// The card that it decides.
    pub(super) card: Option<CardId>,
}

/// A line of the last request's outcome.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct StatusLine {
    pub(super) text: String,
    pub(super) is_error: bool,
}

impl StatusLine {
    pub(super) fn done(text: String) -> Self {
        Self { text, is_error: false }
    }

    pub(super) fn error(text: String) -> Self {
        Self { text, is_error: true }
    }
}
