use std::fmt;
use std::sync::Arc;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(id: impl Into<Arc<str>>) -> Self {
                Self(id.into())
            }

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
    /// Names an agent of the team, as `id` in `eisen.toml` does.
    AgentId
}
id! {
    /// Names an ACP session as its agent did; unique only beside the agent's id.
    SessionId
}
id! {
    /// Names one blocked access of a running team: `b1`, `b2`, …
    BlockedId
}

/// A session among all those of a team.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SessionKey {
    pub agent: AgentId,
    pub session: SessionId,
}

impl SessionKey {
    pub fn new(agent: AgentId, session: SessionId) -> Self {
        Self { agent, session }
    }
}
