//! Ids of agents, sessions, blocked accesses, conflicts and tasks.

use std::fmt;
use std::sync::Arc;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(Arc<str>);

        impl $name {
            /// An id of this text, whatever it is.
            pub fn new(id: impl Into<Arc<str>>) -> Self {
                Self(id.into())
            }

            /// The text of the id.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// The id of an agent, as in `eisen.toml`.
    AgentId
}
id! {
    /// The agent's id of an ACP session; unique only together with the agent's id.
    SessionId
}
id! {
    /// The id of a blocked access of a running team: `b1`, `b2`, …
    BlockedId
}

id! {
    /// The id of a conflict of a running team: `c1`, `c2`, …
    ConflictId
}

id! {
    /// The id of a task that an agent was given: `t-` and eight hexadecimal digits.
    TaskId
}

/// Whether a name has the form `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`, as those of agents and owners have.
pub fn is_name(name: &str) -> bool {
    let head = name.starts_with(|char: char| char.is_ascii_alphanumeric());
    let tail = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    head && name.len() <= 64 && name.bytes().all(tail)
}

/// The unique key of a session in a team.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SessionKey {
    /// The agent whose session it is.
    pub agent: AgentId,
    /// The agent's id of the session.
    pub session: SessionId,
}

impl SessionKey {
    /// The key of an agent's session.
    pub fn new(agent: AgentId, session: SessionId) -> Self {
        Self { agent, session }
    }
}
