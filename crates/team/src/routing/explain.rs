//! Why an agent wants an access, as far as others know it.

use std::fmt::Debug;

use futures_util::future::BoxFuture;

use crate::model::{AgentId, BlockedAccess};

/// The words and acts of an agent before an access.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct AccessReason {
    /// Its last sentence, in the same turn.
    pub said: Option<String>,
    /// The title of the tool call.
    pub call: Option<String>,
    /// The command line of the program whose call waits.
    pub program: Option<String>,
}

/// Knows reasons.
pub trait Explain: Debug + Send + Sync {
    /// Says why an agent wants an access, whose system call the process `caller` makes, to a person or to an agent.
    fn explain(
        &self,
        access: BlockedAccess,
        caller: Option<u32>,
        reader: Option<AgentId>,
    ) -> BoxFuture<'static, AccessReason>;
}

impl AccessReason {
    /// Each part with its name.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let parts = [
            ("said", self.said.as_deref()),
            ("tool call", self.call.as_deref()),
            ("program", self.program.as_deref()),
        ];
        parts.into_iter().filter_map(|(name, part)| Some((name, part?)))
    }
}
