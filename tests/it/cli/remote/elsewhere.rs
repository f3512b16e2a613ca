//! A host with a scripted agent, for each client another one, by ACP's transports over HTTP: a WebSocket, or
//! requests with server-sent events, of which one stream has all that the agent says.

use std::collections::HashMap;
use std::convert::Infallible;
use std::process::Stdio;
use std::sync::Arc;

use async_tungstenite::WebSocketStream;
use async_tungstenite::tokio::TokioAdapter;
use async_tungstenite::tungstenite::Message;
use async_tungstenite::tungstenite::handshake::server::create_response_with_body;
use async_tungstenite::tungstenite::protocol::Role;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use futures_util::StreamExt as _;
use futures_util::stream::{pending, unfold};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

use crate::harness::{Stage, agent};

const CONNECTION: &str = "acp-connection-id";
const SESSION: &str = "acp-session-id";

/// Its connections end with it.
pub(super) struct Elsewhere {
    runtime: Option<Runtime>,
    pub(super) address: String,
}

impl Elsewhere {
    /// `at`: port 0 takes a free one.
    pub(super) fn start(stage: &Stage, at: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let words = stage.command(&agent("cloud").loads(""));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(stage.path("shop")).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let listener = runtime.block_on(TcpListener::bind(at)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let host = Host(Arc::new(Mutex::new((command, HashMap::new()))));
        let app = Router::new().route("/acp", post(take).get(tell).delete(leave)).with_state(host);
        let app = app.layer(from_fn(with_token));
        runtime.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { runtime: Some(runtime), address }
    }

    pub(super) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}/acp", self.address)
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Starts agents, and has those of the clients that send requests.
#[derive(Clone)]
struct Host(Arc<Mutex<(Command, HashMap<String, Hosted>)>>);

/// An agent that runs.
struct Hosted {
    _child: Child,
    stdin: ChildStdin,
    /// None: a stream reads them.
    said: Option<Lines<BufReader<ChildStdout>>>,
}

impl Host {
    async fn agent(&self) -> Hosted {
        let mut child = self.0.lock().await.0.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        Hosted { _child: child, stdin, said: Some(said) }
    }
}

impl Hosted {
    async fn hear(&mut self, line: &str) {
        // It may have ended.
        let _ = self.stdin.write_all(format!("{line}\n").as_bytes()).await;
    }
}

async fn with_token(request: Request, next: Next) -> Response {
    let token = request.headers().get("authorization");
    if token.is_some_and(|token| token == "Bearer secret") {
        return next.run(request).await;
    }
    StatusCode::UNAUTHORIZED.into_response()
}

/// Agrees on a WebSocket.
fn open(mut request: Request, host: Host) -> Response {
    let answer = create_response_with_body(&request, Body::empty).unwrap();
    let connection = request.extensions_mut().remove::<OnUpgrade>().unwrap();
    tokio::spawn(async move {
        let stream = TokioAdapter::new(TokioIo::new(connection.await.unwrap()));
        let socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
        carry(socket, host.agent().await).await;
    });
    answer
}

/// Carries lines until either side ends.
async fn carry<S>(mut socket: WebSocketStream<S>, mut agent: Hosted)
where
    S: futures_util::AsyncRead + futures_util::AsyncWrite + Unpin,
{
    let mut said = agent.said.take().unwrap();
    loop {
        tokio::select! {
            line = said.next_line() => match line {
                Ok(Some(line)) => drop(socket.send(Message::text(line)).await),
                _ => return,
            },
            message = socket.next() => match message {
                Some(Ok(Message::Text(line))) => agent.hear(&line).await,
                Some(Ok(_)) => {}
                _ => return,
            },
        }
    }
}

/// Takes a message. The first of a client starts an agent, and is answered at once.
async fn take(State(host): State<Host>, headers: HeaderMap, message: String) -> Response {
    if let Some(agent) = of(&headers, &mut host.0.lock().await.1) {
        agent.hear(&message).await;
        return StatusCode::ACCEPTED.into_response();
    }
    let mut agent = host.agent().await;
    agent.hear(&message).await;
    let answer = agent.said.as_mut().unwrap().next_line().await.unwrap().unwrap();
    let agents = &mut host.0.lock().await.1;
    let name = format!("c{}", agents.len());
    agents.insert(name.clone(), agent);
    ([("content-type", "application/json".to_owned()), (CONNECTION, name)], answer).into_response()
}

/// Streams what the agent says. The stream of a session stays silent.
async fn tell(State(host): State<Host>, request: Request) -> Response {
    let headers = request.headers();
    if headers.contains_key("upgrade") {
        return open(request, host);
    }
    let said = match of(headers, &mut host.0.lock().await.1) {
        Some(agent) if !headers.contains_key(SESSION) => agent.said.take().unwrap(),
        Some(_) => return events(Body::from_stream(pending::<Result<String, Infallible>>())),
        None => return StatusCode::NOT_FOUND.into_response(),
    };
    let stream = unfold(said, async |mut said| {
        let line = said.next_line().await.ok()??;
        Some((Ok::<_, Infallible>(format!("data: {line}\n\n")), said))
    });
    events(Body::from_stream(stream))
}

async fn leave(State(host): State<Host>, headers: HeaderMap) -> StatusCode {
    if let Some(name) = headers.get(CONNECTION) {
        host.0.lock().await.1.remove(name.to_str().unwrap());
    }
    StatusCode::ACCEPTED
}

fn of<'a>(headers: &HeaderMap, agents: &'a mut HashMap<String, Hosted>) -> Option<&'a mut Hosted> {
    agents.get_mut(headers.get(CONNECTION)?.to_str().unwrap())
}

fn events(body: Body) -> Response {
    ([("content-type", "text/event-stream")], body).into_response()
}
