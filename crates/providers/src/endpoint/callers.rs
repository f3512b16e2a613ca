//! The endpoint's view of those who call: who they are, and whether a call is admitted.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::counting::{AskedSizes, CallReport};

/// A connection to the endpoint. The two addresses find the process that has the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AgentConnection {
    /// Counts connections, so that what is found for one may be kept.
    pub id: u64,
    /// The agent's end.
    pub peer: SocketAddr,
    /// The endpoint's end.
    pub local: SocketAddr,
}

/// A call that wants to be sent.
#[derive(Clone, Debug)]
pub struct ProviderCall {
    /// The name of the provider.
    pub provider: Arc<str>,
    /// The path below the provider's, without the query.
    pub path: Arc<str>,
    /// The path is one by which models are called. None of the others is known to spend; some do.
    pub is_known: bool,
    /// The model, as the agent names it.
    pub model: Option<Arc<str>>,
    /// The model as it will be sent, if it has another name at the provider.
    pub sent_model: Option<Arc<str>>,
    /// How large it can be.
    pub sizes: AskedSizes,
}

/// Why a call is not sent: the agent is answered that there is no credit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallRefusal {
    /// For the agent and its person: a sentence without a full stop at its end.
    pub why: String,
    /// When there may be room again.
    pub retry_after: Option<Duration>,
}

/// Whoever knows the agents and their budgets.
pub trait Callers: Send + Sync + 'static {
    /// An agent that called.
    type Caller: Send + Sync;
    /// A call that was admitted, with what it reserved.
    type Ticket: Send + 'static;

    /// Whose request it is, by its token and the process at the other end of its connection. None: nobody's that may
    /// use this provider. The token has at most 4096 bytes; it is to be compared in constant time.
    fn caller(
        &self,
        token: &str,
        from: &AgentConnection,
        provider: &str,
    ) -> impl Future<Output = Option<Self::Caller>> + Send;

    /// Admits a call before it is sent, or refuses it. The endpoint waits for it.
    fn admit(
        &self,
        caller: Self::Caller,
        call: &ProviderCall,
    ) -> impl Future<Output = Result<Self::Ticket, CallRefusal>> + Send;

    /// Takes what an admitted call took. It is called once for each ticket, also if the agent goes away; it must
    /// not block.
    fn counted(&self, ticket: Self::Ticket, report: CallReport);
}

/// A token that an agent shows. It is not shown to others.
pub(super) struct ShownToken(pub(super) String);

impl fmt::Debug for ShownToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
