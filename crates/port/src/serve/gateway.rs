//! The gateway through which the web server brings its clients to the port.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use eisen_base::task;
use futures_util::FutureExt as _;
use serde_json::value::RawValue;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::entrance::{Entrance, ScopeOfToken};
use super::places::ConnectionSlots;
use super::progress::Progress;
use super::shared::Shared;
use super::{Caller, Refused, reader, rpc, team_agent};
use crate::tokens::{TokenHolder, TokenRight, Visitor};
use crate::wire::TokenRevokeParams;

/// Bytes buffered to and from a client, each way.
const DUPLEX: usize = 256 * 1024;

/// Brings clients of the web server to the port.
#[derive(Clone)]
pub struct Gateway {
    pub(super) shared: Arc<Shared>,
    pub(super) places: Arc<ConnectionSlots>,
}

impl Gateway {
    /// Opens a connection, which carries the port's lines both ways; None: the port has no free one.
    /// Nothing is sent before a token is shown by `auth`.
    pub fn open(&self, scope_of: ScopeOfToken, cancel: CancellationToken) -> Option<DuplexStream> {
        let place = self.places.take()?;
        let (near, far) = tokio::io::duplex(DUPLEX);
        let (read, write) = tokio::io::split(far);
        let entrance = Entrance::Web { scope_of, shown: None };
        // It ends with the stream.
        task::spawn(reader::serve_client(
            (read, write),
            entrance,
            true,
            place,
            Arc::clone(&self.shared),
            cancel,
        ));
        Some(near)
    }

    /// Opens a connection to the team as one ACP agent, with the authority of a person; None: too many
    /// clients arrive at once.
    pub fn open_agent(&self) -> Option<DuplexStream> {
        team_agent::open(&self.shared).ok()
    }

    /// Performs a method for a visitor, as if the holder of a token of the team with the same rights had
    /// asked; what such a token may not do, it may not either. Without rights it has shown no token.
    pub async fn call(
        &self,
        visitor: Visitor,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Box<RawValue>, Refused> {
        let mut visitor = visitor;
        if visitor.agent.is_some() && visitor.agent != self.shared.sources.lead_elsewhere() {
            // Not the one that decides here.
            visitor.may.remove(&TokenRight::Decide);
        }
        let has_token = !visitor.may.is_empty();
        let caller = has_token.then(|| Caller::Holder(TokenHolder::of_visitor(visitor)));
        // Lines of progress have no reader here.
        let progress = Progress::new(Box::default(), mpsc::channel(1).0);
        let call = rpc::call(&self.shared, caller.as_ref(), method, params, &progress);
        let result = AssertUnwindSafe(call).catch_unwind().await;
        let failed = |_| Err(Refused::new(500, "the request failed; see the log"));
        result.unwrap_or_else(failed)
    }

    /// Returns the holder of one of the team's tokens with a scope.
    pub fn holder(&self, token: &str) -> Option<TokenHolder> {
        self.shared.scoped.as_ref()?.holder(token)
    }

    /// Records that a holder used a route of the web server.
    pub async fn record_use(&self, holder: &TokenHolder, route: &str) {
        rpc::record_use(&self.shared, holder, route, None, None).await;
    }

    /// A browser of a holder ended its access: a token that nothing else has ends with it.
    pub async fn browser_left(&self, holder: &TokenHolder) -> Result<(), Refused> {
        if holder.is_of_browser() {
            let params = TokenRevokeParams { id: holder.id.clone().into() };
            rpc::revoke(&self.shared, &params).await?;
        }
        Ok(())
    }

    /// The longest line that a client may send.
    pub fn max_line_bytes(&self) -> usize {
        self.shared.limits.max_line_bytes
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gateway")
    }
}
