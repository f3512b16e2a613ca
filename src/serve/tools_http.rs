//! Owns the tools over HTTP, for agents whose clients take MCP servers that way: one address on this
//! machine, where each request shows its agent's token.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, WWW_AUTHENTICATE};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::shared::Shared;
use super::{Caller, tools};
use crate::mcp::HttpTools;
use crate::model::AgentId;

/// The path of the tools.
pub const TOOLS_PATH: &str = "/mcp";

/// Connections at once: clients keep a few each. One more is closed.
const MOST_CONNECTIONS: usize = 256;

/// How long a client may take to send the head of a request, or stay without one.
const HEAD_DEADLINE: Duration = Duration::from_secs(300);

/// Bytes of the head of a request, and its fields.
const LONGEST_HEAD: usize = 64 * 1024;
const MOST_HEADERS: usize = 64;

/// How long to rest if no client can be accepted.
const REST: Duration = Duration::from_millis(100);

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// The tools of the last run of each agent.
#[derive(Default)]
struct ToolsOfRuns(Mutex<HashMap<AgentId, ToolsOfRun>>);

/// The process of a run, and its tools.
type ToolsOfRun = (Option<u32>, Arc<HttpTools>);

/// Serves the tools on a listener, until `cancel`.
pub(super) async fn serve(shared: Arc<Shared>, listener: TcpListener, cancel: CancellationToken) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let known = Arc::new(ToolsOfRuns::default());
    loop {
        let accepted = tokio::select! {
            () = cancel.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            sleep(REST).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            tracing::warn!("a client of the tools refused: there are {MOST_CONNECTIONS}");
            continue;
        };
        let (shared, known, cancel) = (Arc::clone(&shared), Arc::clone(&known), cancel.clone());
        tokio::spawn(async move {
            let serving = connection(&shared, &known, stream, &cancel);
            let _ = cancel.run_until_cancelled(serving).await;
            drop(place);
        });
    }
}

async fn connection(
    shared: &Arc<Shared>,
    known: &ToolsOfRuns,
    stream: TcpStream,
    cancel: &CancellationToken,
) {
    let service = service_fn(|request| async {
        Ok::<_, Infallible>(answer(shared, known, request, cancel).await)
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_DEADLINE)
        .max_buf_size(LONGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a client of the tools was cut off");
    }
}

async fn answer(
    shared: &Arc<Shared>,
    known: &ToolsOfRuns,
    request: Request<Incoming>,
    cancel: &CancellationToken,
) -> Answer {
    if request.uri().path() != TOOLS_PATH {
        return refusal(StatusCode::NOT_FOUND, "the tools are at /mcp");
    }
    if !request.headers().contains_key(HOST) {
        return refusal(StatusCode::BAD_REQUEST, "a request names its host");
    }
    let shown = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = shown.and_then(|value| value.split_once(' '));
    let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let Some(caller) = token.and_then(|(_, token)| shared.tokens.tool_bearer(token.trim())) else {
        let mut refused = refusal(
            StatusCode::UNAUTHORIZED,
            "no token of an agent for its tools: use the entry as it is",
        );
        refused.headers_mut().insert(WWW_AUTHENTICATE, http::HeaderValue::from_static("Bearer"));
        return refused;
    };
    known.of(shared, caller, cancel).answer(request).await
}

impl ToolsOfRuns {
    fn of(
        &self,
        shared: &Arc<Shared>,
        caller: Caller,
        cancel: &CancellationToken,
    ) -> Arc<HttpTools> {
        let make = |caller| Arc::new(tools::over_http(shared, caller, cancel.clone()));
        let Some(agent) = caller.agent().cloned() else { return make(caller) };
        let status = shared.team.agents().into_iter().find(|status| status.agent == agent);
        let Some(pid) = status.map(|status| status.pid) else { return make(caller) };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&agent) {
            Some((of, tools)) if *of == pid => Arc::clone(tools),
            _ => {
                let tools = make(caller);
                known.insert(agent, (pid, Arc::clone(&tools)));
                tools
            }
        }
    }
}

fn refusal(status: StatusCode, message: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(message.as_bytes())).boxed());
    *answer.status_mut() = status;
    let plain = http::HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    answer
}
