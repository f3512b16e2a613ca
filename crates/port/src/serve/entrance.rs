//! The ways into the port: its own listener, and the web server. A way says which tokens a client
//! shows, and what they open.

use std::io;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::io::{AsyncRead, DuplexStream, Interest, ReadHalf};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

use super::rights::{permit_params, permit_scope};
use super::shared::Shared;
use super::token::Caller;
use super::web_access::OpenedOnWeb;
use super::{Refused, rpc};
use crate::model::WebScope;

/// The incoming half of a connection.
pub(super) trait ClientInput: AsyncRead + Unpin + Send + 'static {
    /// Waits until the client is gone, after it has ended its side.
    fn gone(&self) -> impl Future<Output = io::Error> + Send;
}

impl ClientInput for OwnedReadHalf {
    async fn gone(&self) -> io::Error {
        let stream: &TcpStream = self.as_ref();
        match stream.ready(Interest::ERROR).await {
            Ok(_) => io::ErrorKind::ConnectionReset.into(),
            Err(error) => error,
        }
    }
}

/// A WebSocket ends both sides at once.
impl ClientInput for ReadHalf<DuplexStream> {
    async fn gone(&self) -> io::Error {
        io::ErrorKind::ConnectionReset.into()
    }
}

/// Finds what a token of the web opens.
pub type ScopeOfToken = Arc<dyn Fn(&str) -> Result<OpenedOnWeb, Refused> + Send + Sync>;

/// How a client came in.
pub(super) enum Entrance {
    /// By the port's listener: it shows the port's tokens.
    Port,
    /// By the web server: it shows the token of its credential. [`rpc`] holds the holder of a token of the
    /// team's to its rights.
    Web { scope_of: ScopeOfToken, shown: Option<OpenedOnWeb> },
}

impl Entrance {
    /// Finds whose token a client shows.
    pub(super) fn show(&mut self, token: &str, shared: &Shared) -> Result<Caller, Refused> {
        match self {
            Self::Port => {
                let scoped = || shared.scoped.as_ref()?.holder(token).map(Caller::Holder);
                shared.tokens.caller(token).or_else(scoped).ok_or_else(wrong_token)
            }
            Self::Web { scope_of, shown } => {
                let opened = shown.insert(scope_of(token)?);
                Ok(match opened {
                    OpenedOnWeb::Scope(scope) => Caller::Web(*scope),
                    OpenedOnWeb::Holder(holder) => Caller::Holder(holder.clone()),
                })
            }
        }
    }

    /// Why a method can't be called by this way, if it can't.
    pub(super) fn refusal(&self, method: &str, params: Option<&RawValue>) -> Option<Refused> {
        match self {
            Self::Port => None,
            Self::Web { shown: Some(OpenedOnWeb::Holder(_)), .. } => {
                permit_scope(method, rpc::by_web(method), WebScope::Control).err()
            }
            Self::Web { shown: Some(OpenedOnWeb::Scope(scope)), .. } => {
                permit_scope(method, rpc::by_web(method), *scope)
                    .and_then(|()| permit_params(*scope, params))
                    .err()
            }
            Self::Web { shown: None, .. } => Some(Refused::new(401, "`auth` first")),
        }
    }

    pub(super) fn is_web(&self) -> bool {
        matches!(self, Self::Web { .. })
    }
}

/// The refusal of a token that nobody has.
pub(super) fn wrong_token() -> Refused {
    Refused::new(401, "wrong token")
}
