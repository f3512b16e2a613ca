//! Accesses to paths: the action, the channel it came through, and blocked accesses.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::Arc;

use super::named::named;
use super::shown::quoted;
use super::{AgentId, BlockedId, SessionKey, SessionMode, TimestampMs, is_aside};

named! {
    /// The action of an access; a zone has separate rules for the two.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum Action {
        Read = "read",
        Write = "write",
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

named! {
    /// The channel of a blocked access.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Via {
        /// `fs/read_text_file` or `fs/write_text_file`.
        Fs = "fs",
        /// `terminal/create`.
        Terminal = "terminal",
        /// `session/request_permission`.
        Permission = "permission",
        /// A system call stopped by the kernel.
        Kernel = "kernel",
        /// A tool call, seen after the fact.
        Tool = "tool",
        /// The agent asked for it, by `request_access`.
        Request = "request",
    }
}

impl Via {
    /// Whether content can answer a read that comes this way.
    pub fn is_answerable(self) -> bool {
        matches!(self, Self::Fs | Self::Request)
    }
}

named! {
    /// The state of a blocked access.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum BlockedStatus {
        /// The agent got the error.
        Denied = "denied",
        /// The request waits for a decision.
        Pending = "pending",
        Allowed = "allowed",
        /// The orchestrator, an owner or a person gave the content itself.
        Answered = "answered",
        /// Its turn, session or agent ended before a decision.
        Expired = "expired",
        /// Seen after the fact, too late to stop.
        Observed = "observed",
    }
}

named! {
    /// The decider of an access that a rule of `[[routing]]` matches.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Decide {
        /// The rule: it is allowed.
        Allow = "allow",
        /// The rule: it is denied.
        Deny = "deny",
        Orchestrator = "orchestrator",
        /// The agent that owns the path, which answers.
        Owner = "owner",
        /// A person, and no agent.
        Person = "person",
    }
}

impl Decide {
    /// Whether no agent's decision counts.
    pub fn excludes_agents(self) -> bool {
        matches!(self, Self::Deny | Self::Person)
    }
}

/// One rule of `[[routing]]`. An empty list, and no action, match all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleSpec {
    /// As those of zones.
    pub paths: Vec<String>,
    /// The agents that make the access; in the rules of a running team also their helpers.
    pub agents: Vec<AgentId>,
    /// The channels that the access comes through.
    pub via: Vec<Via>,
    /// The action of the access; None: both.
    pub action: Option<Action>,
    /// The decider of the accesses that match.
    pub decide: Decide,
}

impl RuleSpec {
    /// Describes the rule in one line.
    pub fn describe(&self) -> String {
        let mut parts = vec![self.decide.as_str().to_owned()];
        if !self.paths.is_empty() {
            parts.push(self.paths.join(", "));
        }
        if !self.agents.is_empty() {
            let agents: Vec<_> = self.agents.iter().map(AgentId::as_str).collect();
            parts.push(format!("agents {}", agents.join(", ")));
        }
        if !self.via.is_empty() {
            let via: Vec<_> = self.via.iter().map(|via| via.as_str()).collect();
            parts.push(format!("via {}", via.join(", ")));
        }
        parts.extend(self.action.map(|action| format!("action {action}")));
        parts.join("; ")
    }
}

/// The rule of `[[routing]]` that matches an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccessRule {
    /// Its place in the file.
    pub number: NonZeroU32,
    /// The decider, by this rule.
    pub decide: Decide,
}

impl AccessRule {
    /// Whether no agent's decision counts.
    pub fn excludes_agents(self) -> bool {
        self.decide.excludes_agents()
    }
}

/// The author of a decision about an access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DecidedBy {
    /// An agent of the team: the orchestrator, or the owner of the path.
    Agent(AgentId),
    /// Whoever showed the control token.
    Person,
    /// Whoever showed a credential of the web.
    Web,
    /// The owner of a token with a scope.
    Token(String),
    /// A rule of `[[routing]]`.
    Rule,
}

impl DecidedBy {
    /// Names who decided, behind what was decided; empty if nobody did.
    pub fn behind(by: Option<&Self>) -> String {
        match by {
            Some(Self::Agent(agent)) => format!(" by `{agent}`"),
            Some(Self::Person) => " by a person".to_owned(),
            Some(Self::Web) => " by a person on the web".to_owned(),
            Some(Self::Token(owner)) => format!(" by `{owner}`"),
            Some(Self::Rule) => " by a rule".to_owned(),
            None => String::new(),
        }
    }
}

impl fmt::Display for DecidedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(agent) => write!(f, "agent:{agent}"),
            Self::Person => f.write_str("person"),
            Self::Web => f.write_str("web"),
            Self::Token(owner) => write!(f, "token:{owner}"),
            Self::Rule => f.write_str("rule"),
        }
    }
}

impl FromStr for DecidedBy {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Ok(match (text, text.split_once(':')) {
            // Earlier versions told persons from programs by what these said of themselves.
            ("person" | "program", _) => Self::Person,
            ("web", _) => Self::Web,
            ("rule", _) => Self::Rule,
            (_, Some(("agent", agent))) => Self::Agent(AgentId::new(agent)),
            (_, Some(("token", owner))) => Self::Token(owner.to_owned()),
            _ => return Err(()),
        })
    }
}

/// Where an answer about an access came from, other than from a decision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnerAnswer {
    /// The agent that answered, an owner of the path.
    pub owner: AgentId,
    /// The tokens that the question would have cost again; None: it was put to the owner.
    pub saved: Option<TokensSaved>,
}

/// The tokens that a kept answer saved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TokensSaved {
    /// The tokens that the question had cost in the owner's session.
    pub tokens: u64,
    /// Whether the tokens are estimated, at least in part.
    pub is_estimated: bool,
}

/// Stands for the status of a refusal that does no harm, where people read it.
pub const HARMLESS: &str = "harmless";

/// The cause that denies a socket of the zone whose server no wall holds.
pub const SERVER: &str = "the socket's server outside the team";

/// Returns the cause of a denial, for people and models: the pattern of `denied`, or the server of a socket.
pub fn denial(by: &str) -> String {
    if by == SERVER {
        return by.to_owned();
    }
    format!("the pattern {} in `denied`", quoted(by))
}

/// An access outside the agent's zone, in its current state.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockedAccess {
    /// The id by which decisions name the access.
    pub id: BlockedId,
    /// The session that made the access. Its session id is empty if no turn or several turns ran.
    pub key: SessionKey,
    /// Mode of the session that made the access.
    pub mode: SessionMode,
    /// Relative to the workspace; absolute if outside.
    pub path: Arc<str>,
    /// The action that was blocked; of a sweep `Write` if any of its accesses is one.
    pub action: Action,
    /// The channel that the access came through first.
    pub via: Via,
    /// The present state; each change of it is published.
    pub status: BlockedStatus,
    /// Agents whose zone contains the path.
    pub owners: Vec<AgentId>,
    /// The orchestrator's session that it was routed to.
    pub orchestrator: Option<SessionKey>,
    /// The number of incidental accesses that it stands for; `path` is their common prefix.
    pub sweep: Option<u64>,
    /// A sweep of accesses that the agent makes by itself, and whose refusal does no harm.
    pub harmless: bool,
    /// The cause for which no agent can allow it: the `denied` pattern that matches it, or [`SERVER`].
    pub denied_by: Option<Arc<str>>,
    /// The rule that matched it.
    pub rule: Option<AccessRule>,
    /// The decider; None: nobody decided so far.
    pub decided_by: Option<DecidedBy>,
    /// The beginning of the message that the agent got with the denial.
    pub message: Option<Arc<str>>,
    /// The owner's answer, if a rule put it before the owner.
    pub owner_answer: Option<OwnerAnswer>,
    /// Why the agent asks for it, if it does.
    pub reason: Option<Arc<str>>,
    /// The tool call that it belongs to, as far as that is certain.
    pub tool_call: Option<Arc<str>>,
    /// While it is pending: the narrowest pattern of what its agent waits for.
    pub offered: Option<Arc<str>>,
    /// When nobody waits for a decision any more, while it is pending.
    pub until_ms: Option<TimestampMs>,
    /// Why the wait for a decision ended without one.
    pub ended: Option<Arc<str>>,
    /// The access was denied, but its tool call reported completion.
    pub completed: bool,
    /// The time when it was blocked; of a sweep the time of the last access that was counted.
    pub timestamp_ms: TimestampMs,
}

impl BlockedAccess {
    /// Whether it waits for somebody's decision, and not for the owner's answer alone.
    pub fn needs_decision(&self) -> bool {
        self.status == BlockedStatus::Pending
            && self.rule.is_none_or(|rule| rule.decide != Decide::Owner)
    }

    /// Whether it kept the agent from what it meant to do: a write, a command or a connection that was blocked
    /// and not allowed. Sweeps, reads and what `denied` names are no such thing.
    pub fn stops_work(&self) -> bool {
        let is_connection = self.denied_by.as_deref() == Some(SERVER);
        let is_work = self.action == Action::Write || self.via == Via::Terminal || is_connection;
        self.is_refused()
            && self.sweep.is_none()
            && is_work
            && (self.denied_by.is_none() || is_connection)
    }

    /// Whether it is one of those that views fold: harmless, or in passing outside of turns, and aside.
    pub fn is_noise(&self) -> bool {
        let is_of_no_turn = self.sweep.is_some() && self.key.session.as_str().is_empty();
        self.harmless || is_of_no_turn && is_aside(&self.path)
    }

    /// Whether it was blocked, and not allowed so far.
    pub fn is_refused(&self) -> bool {
        matches!(
            self.status,
            BlockedStatus::Denied | BlockedStatus::Pending | BlockedStatus::Expired
        )
    }

    /// Whether content can answer the access: only for `fs/read_text_file`, and where the agent
    /// asks.
    pub fn is_answerable(&self) -> bool {
        self.via.is_answerable() && self.action == Action::Read
    }
}

named! {
    /// The reaction to an access outside the zone that a tool call reports after the fact, besides the
    /// report.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub enum OnViolation {
        #[default]
        Report = "report",
        /// The end of the turn, as its client would cancel it.
        Cancel = "cancel",
        /// The end of the agent.
        Stop = "stop",
    }
}
