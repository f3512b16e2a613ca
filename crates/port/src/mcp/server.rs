//! Owns the MCP server of one connection: lists the tools, checks calls, and puts results into
//! pages.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities,
    ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::{Instant, interval_at};

use super::bounded::is_short;
use super::pages::{page_of_list, page_of_text, page_within};
use super::{Operations, ToolConnection, ToolError};
use crate::wire::{self, Audience, PAGE, TeamTool, tools_of};

/// Calls of one connection at once; one more is refused.
const CALLS: usize = 32;

/// How often a long call reports progress, if its client asked for that.
const PROGRESS: Duration = Duration::from_secs(5);

/// Bytes of a result. Clients cut results at 25,000 tokens; the structured form repeats the text.
const LONGEST_RESULT: usize = 48 * 1024;

const LEADS: &str = "Tools of the team of coding agents that you lead. Each agent may only access the files \
                     of its zone; accesses outside are blocked until they are decided.";
const WORKS: &str = "Tools of the team of coding agents that you belong to. Each agent may only access the \
                     files of its zone.";

/// A server; clones share the bound of calls.
#[derive(Clone)]
pub(super) struct ToolServer {
    audience: Audience,
    operations: Arc<dyn Operations>,
    connection: Arc<ToolConnection>,
    calls: Arc<Semaphore>,
}

impl ToolServer {
    pub(super) fn new(
        audience: Audience,
        operations: impl Operations,
        connection: ToolConnection,
    ) -> Self {
        let (operations, connection) = (Arc::new(operations), Arc::new(connection));
        Self { audience, operations, connection, calls: Arc::new(Semaphore::new(CALLS)) }
    }

    async fn answer(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ToolError> {
        let Some(tool) = tools_of(self.audience).find(|tool| *tool.name == *request.name) else {
            let known: Vec<_> = tools_of(self.audience).map(|tool| tool.name).collect();
            let name: String = request.name.chars().take(64).collect();
            let message = format!("there is no tool `{name}`; there are {}", known.join(", "));
            return Err(ToolError { code: 404, message });
        };
        self.connection.called();
        let Ok(_place) = self.calls.try_acquire() else {
            let message = format!("{CALLS} calls of yours are under way: wait until one has ended");
            return Err(ToolError { code: 409, message });
        };
        let arguments = request.arguments.unwrap_or_default();
        let checked = wire::check(&tool.parameters, arguments);
        let mut params = checked.map_err(|message| ToolError { code: 400, message })?;
        let page = if tool.list.or(tool.text).is_some() { params.shift_remove(PAGE) } else { None };
        let call = self.operations.call(tool.method.name, params);
        let result = with_progress(call, context).await?;
        shown(tool, result, page.as_ref().and_then(Value::as_u64).unwrap_or(1))
    }
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let about = if self.audience == Audience::Lead { LEADS } else { WORKS };
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("eisen-core", env!("CARGO_PKG_VERSION")))
            .with_instructions(about)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.connection.listed();
        Ok(ListToolsResult::with_all_items(tools_of(self.audience).map(described).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let answer = tokio::select! {
            answer = self.answer(request, &context) => answer,
            // The client does not wait for the answer any more.
            () = context.ct.cancelled() => {
                Err(ToolError { code: 409, message: "the call was cancelled".to_owned() })
            }
        };
        Ok(match answer {
            Ok(result) => {
                let text = ContentBlock::text(result.to_string());
                let mut shown = CallToolResult::success(vec![text]);
                shown.structured_content = Some(result);
                shown
            }
            Err(ToolError { code, message }) => {
                CallToolResult::error(vec![ContentBlock::text(format!("{message} (code {code})"))])
            }
        }
        .into())
    }
}

fn described(tool: &TeamTool) -> Tool {
    let hints = ToolAnnotations::new().read_only(tool.only_reads).open_world(false);
    let hints = if tool.only_reads { hints } else { hints.destructive(false) };
    Tool::new(tool.name, tool.description, wire::schema(&tool.parameters)).with_annotations(hints)
}

/// Awaits a call, and reports its progress meanwhile.
async fn with_progress<T>(
    call: impl Future<Output = T>,
    context: &RequestContext<RoleServer>,
) -> T {
    let token = context.meta.get_progress_token().filter(|token| is_short(&token.0));
    let Some(token) = token else { return call.await };
    let reporting = async {
        let start = Instant::now();
        let mut ticks = interval_at(start + PROGRESS, PROGRESS);
        loop {
            ticks.tick().await;
            let seconds = start.elapsed().as_secs_f64();
            let progress = ProgressNotificationParam::new(token.clone(), seconds);
            if context.peer.notify_progress(progress).await.is_err() {
                break;
            }
        }
        // The client is gone, and the call is about to be dropped, too.
        std::future::pending().await
    };
    tokio::select! {
        biased;
        done = call => done,
        done = reporting => done,
    }
}

/// Returns a result as the client gets it: one page of a list or text, and at most as long as
/// clients take.
fn shown(tool: &TeamTool, result: Value, page: u64) -> Result<Value, ToolError> {
    let result = match (tool.list, result) {
        (Some(name), Value::Array(entries)) => page_of_list(name, entries, page)?,
        (_, Value::Object(result)) => match tool.text {
            Some(name) => page_of_text(name, result, page)?,
            None => match tool.list {
                Some(name) => page_within(name, result, page)?,
                None => result.into(),
            },
        },
        (_, result) => result,
    };
    let length = result.to_string().len();
    if length > LONGEST_RESULT {
        let message = format!(
            "the result has {length} bytes, and clients take {LONGEST_RESULT}: ask for less of it"
        );
        return Err(ToolError { code: 400, message });
    }
    Ok(result)
}
