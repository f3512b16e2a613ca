//! The team as MCP tools: the MCP server that offers them on one stream, or over HTTP. Each tool calls a method
//! of the port.

mod bounded;
mod http;
mod pages;
mod server;
#[cfg(test)]
mod tests;
mod used;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::wire::Audience;
use bounded::BoundedTransport;
use server::ToolServer;

pub use http::HttpTools;
pub use pages::text_pages;
pub use used::{ToolConnection, ToolUse, ToolUses};

/// The methods behind the tools, with the authority of their caller.
pub trait Operations: Send + Sync + 'static {
    /// Calls a method of the port. Dropping the future gives up the call.
    fn call(
        &self,
        method: &'static str,
        params: Map<String, Value>,
    ) -> BoxFuture<'_, Result<Value, ToolError>>;
}

/// Why an operation was refused, with a code of the port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolError {
    pub code: u16,
    pub message: String,
}

/// Serves the tools for `audience` on a stream, until its end or `cancel`.
pub async fn serve<R, W>(
    (reader, writer): (R, W),
    audience: Audience,
    operations: impl Operations,
    connection: ToolConnection,
    cancel: CancellationToken,
) where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let transport = BoundedTransport::new(reader, writer);
    let server = ToolServer::new(audience, operations, connection);
    // The service cancels its token when it ends.
    let cancel = cancel.child_token();
    match rmcp::service::serve_server_with_ct(server, transport, cancel).await {
        Ok(running) => drop(running.waiting().await),
        // A client may leave before it begins.
        Err(error) => tracing::debug!(%error, "an MCP client did not begin"),
    }
}
