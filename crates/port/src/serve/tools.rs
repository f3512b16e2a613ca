//! Serves the tools of the team on a connection: they call the methods of the port, with the
//! authority of the connection's token.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use eisen_base::task;
use futures_util::FutureExt as _;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::progress::Progress;
use super::rights::PROGRAM;
use super::rpc;
use super::shared::Shared;
use super::{BoxFuture, Caller, Refused};
use crate::mcp::{self, HttpTools, Operations, ToolError};
use crate::model::AgentId;
use crate::wire::Audience;

/// Bytes buffered to and from the server of the tools, each way.
const DUPLEX: usize = 64 * 1024;

/// Serves the tools for a caller; the stream carries MCP.
pub(super) fn serve(
    shared: &Arc<Shared>,
    caller: Caller,
    cancel: CancellationToken,
) -> DuplexStream {
    let (audience, operations) = of(shared, caller);
    let connection = shared.tool_uses.connect(operations.agent.clone());
    let (near, far) = tokio::io::duplex(DUPLEX);
    // It ends with the stream.
    task::spawn(mcp::serve(tokio::io::split(far), audience, operations, connection, cancel));
    near
}

/// The tools for a caller over HTTP.
pub(super) fn over_http(
    shared: &Arc<Shared>,
    caller: Caller,
    cancel: CancellationToken,
) -> HttpTools {
    let (audience, operations) = of(shared, caller);
    let connection = shared.tool_uses.connect(operations.agent.clone());
    HttpTools::new(audience, operations, connection, cancel)
}

fn of(shared: &Arc<Shared>, caller: Caller) -> (Audience, PortOperations) {
    let caller = match caller {
        Caller::Person => Caller::Lead(AgentId::new(PROGRAM)),
        agent => agent,
    };
    let audience = match &caller {
        Caller::Member(_) => Audience::Member,
        Caller::Lead(_) | Caller::Person | Caller::Holder(_) | Caller::Web(_) => Audience::Lead,
    };
    let agent = caller.agent().filter(|agent| agent.as_str() != PROGRAM).cloned();
    (audience, PortOperations { shared: Arc::clone(shared), caller, agent })
}

struct PortOperations {
    shared: Arc<Shared>,
    caller: Caller,
    /// The agent that calls.
    agent: Option<AgentId>,
}

impl Operations for PortOperations {
    fn call(
        &self,
        method: &'static str,
        params: Map<String, Value>,
    ) -> BoxFuture<'_, Result<Value, ToolError>> {
        Box::pin(async move {
            if let Some(agent) = &self.agent
                && !self.shared.team.agents().iter().any(|status| status.agent == *agent)
            {
                let message = format!("`{agent}` is no longer in the team");
                return Err(ToolError { code: 403, message });
            }
            let wrong =
                |error: &dyn std::fmt::Display| ToolError { code: 500, message: error.to_string() };
            let params = to_raw_value(&params).map_err(|error| wrong(&error))?;
            // Lines of progress have no reader here.
            let (commands, _) = mpsc::channel(1);
            let progress = Progress::new(Box::default(), commands);
            let caller = Some(&self.caller);
            let call = rpc::call(&self.shared, caller, method, Some(&params), &progress);
            let result = AssertUnwindSafe(call)
                .catch_unwind()
                .await
                .unwrap_or_else(|_| Err(Refused::new(500, "the request failed; see the log")));
            let result = result
                .map_err(|error| ToolError { code: error.code, message: error.message.clone() })?;
            serde_json::from_str(result.get()).map_err(|error| wrong(&error))
        })
    }
}
