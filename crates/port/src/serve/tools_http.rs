//! Owns the tools over HTTP, for agents whose clients take MCP servers that way: one address on this
//! machine, where each request shows its agent's token.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use eisen_base::task;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, WWW_AUTHENTICATE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::shared::Shared;
use super::unauthenticated::{Arrival, Unauthenticated};
use super::{Caller, tools};
use crate::mcp::HttpTools;
use crate::model::AgentId;

/// The path of the tools.
pub const TOOLS_PATH: &str = "/mcp";

/// Connections of one agent at once: clients keep a few. One more is answered with 429.
const MOST_OF_ONE: usize = 32;

/// How long a client may take to send the head of a request, or stay without one.
const HEAD_DEADLINE: Duration = Duration::from_secs(60);

/// Bytes of the head of a request, and its fields.
const LONGEST_HEAD: usize = 64 * 1024;
const MOST_HEADERS: usize = 64;

/// How long to rest if no client can be accepted.
const REST: Duration = Duration::from_millis(100);

type HttpAnswer = Response<BoxBody<Bytes, Infallible>>;

/// The tools of the last run of each agent.
#[derive(Default)]
struct ToolsOfRuns(Mutex<HashMap<AgentId, ToolsOfRun>>);

#[derive(Clone)]
struct ToolsOfRun {
    /// The process of the run.
    pid: Option<u32>,
    tools: Arc<HttpTools>,
    /// A permit for each further connection.
    places: Arc<Semaphore>,
}

/// One connection.
struct HttpConnection {
    arrival: Arrival,
    /// Its agent, with its place, once a request has shown a token.
    of: OnceLock<(AgentId, OwnedSemaphorePermit)>,
}

/// Serves the tools on a listener, until `cancel`.
pub(super) async fn serve(shared: Arc<Shared>, listener: TcpListener, cancel: CancellationToken) {
    let (known, strangers) =
        (Arc::new(ToolsOfRuns::default()), Arc::new(Unauthenticated::default()));
    loop {
        let accepted = tokio::select! {
            () = cancel.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            sleep(REST).await;
            continue;
        };
        let (shared, known, strangers) =
            (Arc::clone(&shared), Arc::clone(&known), Arc::clone(&strangers));
        let cancel = cancel.clone();
        let closed = cancel.child_token();
        let arrival = strangers.arrived(closed.clone());
        task::spawn(async move {
            let this = HttpConnection { arrival, of: OnceLock::new() };
            let serving = this.serve(&shared, &known, &strangers, stream, &cancel);
            let _ = closed.run_until_cancelled(serving).await;
            strangers.left(arrival);
        });
    }
}

impl HttpConnection {
    async fn serve(
        &self,
        shared: &Arc<Shared>,
        known: &ToolsOfRuns,
        strangers: &Unauthenticated,
        stream: TcpStream,
        cancel: &CancellationToken,
    ) {
        let service = service_fn(|request| async {
            let tools = self.tools(shared, known, strangers, &request, cancel);
            Ok::<_, Infallible>(match tools {
                Ok(tools) => tools.answer(request).await,
                Err(refused) => *refused,
            })
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

    /// The tools of the agent whose token a request shows.
    fn tools(
        &self,
        shared: &Arc<Shared>,
        known: &ToolsOfRuns,
        strangers: &Unauthenticated,
        request: &Request<Incoming>,
        cancel: &CancellationToken,
    ) -> Result<Arc<HttpTools>, Box<HttpAnswer>> {
        let refuse = |status, message| Err(Box::new(refusal(status, message)));
        if request.uri().path() != TOOLS_PATH {
            return refuse(StatusCode::NOT_FOUND, "the tools are at /mcp");
        }
        if !request.headers().contains_key(HOST) {
            return refuse(StatusCode::BAD_REQUEST, "a request names its host");
        }
        let shown = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = shown.and_then(|value| value.split_once(' '));
        let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let caller = token.and_then(|(_, token)| shared.tokens.tool_bearer(token.trim()));
        let agent = caller.as_ref().and_then(Caller::agent).cloned();
        let (Some(caller), Some(agent)) = (caller, agent) else {
            let why = "no token of an agent for its tools: use the entry of the session as it is";
            let mut refused = refusal(StatusCode::UNAUTHORIZED, why);
            refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return Err(Box::new(refused));
        };
        let run = known.of(shared, caller, &agent, cancel);
        match self.of.get() {
            Some((of, _)) if *of == agent => {}
            Some(_) => return refuse(StatusCode::FORBIDDEN, "this connection is another agent's"),
            None => {
                let Ok(place) = Arc::clone(&run.places).try_acquire_owned() else {
                    return refuse(StatusCode::TOO_MANY_REQUESTS, "too many connections of yours");
                };
                let _ = self.of.set((agent, place));
                strangers.left(self.arrival);
            }
        }
        Ok(run.tools)
    }
}

impl ToolsOfRuns {
    fn of(
        &self,
        shared: &Arc<Shared>,
        caller: Caller,
        agent: &AgentId,
        cancel: &CancellationToken,
    ) -> ToolsOfRun {
        let status = shared.team.agents().into_iter().find(|status| status.agent == *agent);
        let pid = status.and_then(|status| status.pid);
        // The agents are those that have a token.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = known.get(agent).filter(|run| run.pid == pid) {
            return run.clone();
        }
        let tools = Arc::new(tools::over_http(shared, caller, cancel.clone()));
        let run = ToolsOfRun { pid, tools, places: Arc::new(Semaphore::new(MOST_OF_ONE)) };
        known.insert(agent.clone(), run.clone());
        run
    }
}

fn refusal(status: StatusCode, message: &'static str) -> HttpAnswer {
    let mut answer = Response::new(Full::new(Bytes::from_static(message.as_bytes())).boxed());
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    answer
}
