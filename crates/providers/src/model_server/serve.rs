//! The listener, and what is answered to each request.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use eisen_base::task;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, RETRY_AFTER, USER_AGENT};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::answer::{Piece, PlayedAnswer};
use super::api::{ModelApi, ModelRoute};
use super::asked::ModelAsk;
use super::body::{self, Closable, Closing, PlayedBody};
use super::frames::{self, Form, Frame};
use super::ids;
use super::keys::{ExpectedKey, ShownKey};
use super::log::{LoggedRequest, RequestLog};
use super::play::Play;
use super::script::ModelScript;
use super::tally::{ModelCount, PlayedEnd, RunningCall, Tally};
use super::troubles::{ModelRefusal, ModelTrouble};
use super::voice::Speech;
use crate::model::now_ms;

/// Connections at once. One more waits until another ends.
const MOST_CONNECTIONS: usize = 1024;

/// How long a client may take to send the head of a request, or stay without one.
const HEAD_DEADLINE: Duration = Duration::from_secs(600);

/// Bytes of the head of a request, and its fields.
const LONGEST_HEAD: usize = 64 * 1024;
const MOST_HEADERS: usize = 128;

/// How long to rest if no client can be accepted.
const REST: Duration = Duration::from_millis(100);

/// The number of tokens that a request for a count gets.
const COUNTED: u64 = 1000;

/// The script of a server, and where it is played.
#[derive(Clone, Debug, Default)]
pub struct ModelServerSettings {
    pub script: ModelScript,
    /// The port on 127.0.0.1; 0 is any free one.
    pub port: u16,
    /// The file that gets a line for each request.
    pub log: Option<PathBuf>,
    /// The key that requests must show.
    pub key: Option<ExpectedKey>,
}

/// A server of model APIs.
pub struct ModelServer {
    listener: TcpListener,
    address: SocketAddr,
    desk: Arc<Desk>,
}

/// The things that all connections have in common.
struct Desk {
    play: Play,
    tally: Arc<Tally>,
    log: RequestLog,
    key: Option<ExpectedKey>,
}

type Answered = Response<PlayedBody>;

impl ModelServer {
    pub async fn bind(settings: ModelServerSettings) -> io::Result<Self> {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, settings.port));
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot listen on {at}: {error}"))
        };
        let listener = TcpListener::bind(at).await.map_err(named)?;
        let address = listener.local_addr()?;
        let desk = Desk {
            play: Play::new(settings.script),
            tally: Arc::default(),
            log: RequestLog::open(settings.log.as_deref())?,
            key: settings.key,
        };
        Ok(Self { listener, address, desk: Arc::new(desk) })
    }

    /// The base URL, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Serves until `stop` is done; returns what was counted.
    pub async fn run(self, stop: impl Future<Output = ()>) -> ModelCount {
        let cancel = CancellationToken::new();
        let _ends_connections = cancel.clone().drop_guard();
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let accepting = async {
            loop {
                // The semaphore is never closed.
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                let Ok((stream, _)) = self.listener.accept().await else {
                    sleep(REST).await;
                    continue;
                };
                let (desk, cancel) = (Arc::clone(&self.desk), cancel.clone());
                task::spawn(async move {
                    cancel.run_until_cancelled(connect(stream, desk)).await;
                    drop(place);
                });
            }
        };
        tokio::select! {
            () = accepting => {}
            () = stop => {}
        }
        self.desk.tally.count()
    }
}

async fn connect(stream: TcpStream, desk: Arc<Desk>) {
    let _ = stream.set_nodelay(true);
    let closing = Closing::default();
    let stream = Closable::new(stream, closing.clone());
    let service = service_fn(|request| {
        let (desk, closing) = (Arc::clone(&desk), closing.clone());
        async move { Ok::<_, Infallible>(desk.answer(request, closing).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_DEADLINE)
        .max_buf_size(LONGEST_HEAD)
        .max_headers(MOST_HEADERS)
        // The same request gets the same bytes.
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection of the model server was cut off");
    }
}

impl Desk {
    async fn answer(&self, request: Request<Incoming>, closing: Closing) -> Answered {
        let (head, body) = request.into_parts();
        let route = ModelRoute::of(head.uri.path());
        if route == ModelRoute::Tally {
            return json_answer(StatusCode::OK, &json!(self.tally.count()));
        }
        let shown = ShownKey::of(&head.headers, head.uri.query());
        let api = route.api(head.headers.contains_key("anthropic-version"));
        let is_known = self.key.as_ref().is_none_or(|key| key.is(shown.as_ref()));
        let read = body::read(&head.headers, body).await;
        let is_post = head.method == Method::POST;
        match (route, read) {
            (ModelRoute::Generate { api, streams, model }, Ok(body)) if is_known && is_post => {
                let asked = ModelAsk::read(api, &body).map(|asked| ModelAsk {
                    streams: streams.unwrap_or(asked.streams),
                    model: model.unwrap_or_else(|| asked.model.clone()),
                    ..asked
                });
                match asked {
                    Ok(asked) => self.call(&head, shown.as_ref(), api, &asked, closing).await,
                    Err(why) => {
                        self.refuse(&head, shown.as_ref(), api, ModelTrouble::Invalid, &why)
                    }
                }
            }
            (_, Err(why)) => self.refuse(&head, shown.as_ref(), api, ModelTrouble::Invalid, &why),
            (_, Ok(_)) if !is_known => {
                let why =
                    if shown.is_some() { "the key is not the expected one" } else { "no key" };
                self.refuse(&head, shown.as_ref(), api, ModelTrouble::Auth, why)
            }
            (route, Ok(_)) => self.other(&head, shown.as_ref(), &route),
        }
    }

    /// An answer of the model.
    async fn call(
        &self,
        head: &Parts,
        key: Option<&ShownKey>,
        api: ModelApi,
        asked: &ModelAsk,
        closing: Closing,
    ) -> Answered {
        let mut call =
            RunningCall::begin(Arc::clone(&self.tally), api, &asked.model, asked.streams);
        let mut answer = self.play.answer(api, asked, call.n);
        self.log.write(&LoggedRequest {
            n: Some(call.n),
            api: Some(api),
            model: Some(&asked.model),
            stream: Some(asked.streams),
            rule: answer.rule,
            round: Some(asked.round),
            tools: asked.tools.iter().map(|tool| tool.name.as_str()).collect(),
            messages: Some(&asked.messages),
            ..logged(head, key)
        });
        // Waits before the first words are waits for the head, too.
        let waits = |piece: &Piece| matches!(piece, Piece::Wait(_) | Piece::Hang);
        let words = answer.pieces.iter().position(|piece| !waits(piece));
        let words = words.unwrap_or(answer.pieces.len());
        for piece in answer.pieces.drain(..words) {
            match piece {
                Piece::Wait(time) => sleep(time).await,
                _ => std::future::pending().await,
            }
        }
        let failed = answer.pieces.iter().enumerate().find_map(|(at, piece)| match piece {
            Piece::Fail(refusal) if at == 0 || !asked.streams => Some(refusal.clone()),
            _ => None,
        });
        if let Some(refusal) = failed {
            call.answers(answer.rule, refusal.status(api));
            call.end(PlayedEnd::Refused);
            return refused(&refusal, api, call.n);
        }
        call.answers(answer.rule, 200);
        let speech = Speech {
            api,
            answer: &answer,
            model: &asked.model,
            wants_usage: asked.wants_usage,
            chat_usage: self.play.script().server.chat_usage,
        };
        if asked.streams {
            streamed(&speech, is_array(head, api), call, closing)
        } else {
            whole(&speech, call, closing).await
        }
    }

    /// Lists of models, counts of tokens, and what else agents ask a provider for.
    fn other(&self, head: &Parts, key: Option<&ShownKey>, route: &ModelRoute) -> Answered {
        self.count_other(head);
        self.log.write(&logged(head, key));
        let models = &self.play.script().server.models;
        let is_anthropic = head.headers.contains_key("anthropic-version");
        match (route, head.method.as_str()) {
            (ModelRoute::Models(None), "GET") if is_gemini(head) => {
                let models: Vec<_> = models.iter().map(|name| gemini_model(name)).collect();
                json_answer(StatusCode::OK, &json!({ "models": models }))
            }
            (ModelRoute::Models(None), "GET") => {
                let models: Vec<_> = models.iter().map(|name| model(name)).collect();
                let list = json!({ "object": "list", "data": models, "has_more": false });
                json_answer(StatusCode::OK, &list)
            }
            (ModelRoute::Models(Some(name)), "GET") if is_gemini(head) => {
                json_answer(StatusCode::OK, &gemini_model(name))
            }
            (ModelRoute::Models(Some(name)), "GET") => json_answer(StatusCode::OK, &model(name)),
            (ModelRoute::CountTokens(ModelApi::Gemini), "POST") => {
                json_answer(StatusCode::OK, &json!({ "totalTokens": COUNTED }))
            }
            (ModelRoute::CountTokens(_), "POST") => {
                let object = "response.input_tokens";
                json_answer(StatusCode::OK, &json!({ "object": object, "input_tokens": COUNTED }))
            }
            (ModelRoute::Embed(ModelApi::Gemini), "POST") => {
                let values = json!({ "values": [0.0, 0.0, 1.0] });
                let both = json!({ "embedding": values, "embeddings": [values] });
                json_answer(StatusCode::OK, &both)
            }
            (ModelRoute::Embed(_), "POST") => {
                let item =
                    json!({ "object": "embedding", "index": 0, "embedding": [0.0, 0.0, 1.0] });
                let usage = json!({ "prompt_tokens": COUNTED, "total_tokens": COUNTED });
                let list = json!({ "object": "list", "data": [item], "usage": usage });
                json_answer(StatusCode::OK, &list)
            }
            (_, "HEAD") => json_answer(StatusCode::OK, &json!({})),
            (route, method) => {
                let why = format!("model server: there is no {method} {}", head.uri.path());
                refused(&ModelRefusal::new(ModelTrouble::NotFound, why), route.api(is_anthropic), 0)
            }
        }
    }

    fn refuse(
        &self,
        head: &Parts,
        key: Option<&ShownKey>,
        api: ModelApi,
        trouble: ModelTrouble,
        why: &str,
    ) -> Answered {
        self.count_other(head);
        let error = Some(why.to_owned());
        self.log.write(&LoggedRequest { api: Some(api), error, ..logged(head, key) });
        let refusal = match trouble {
            // The vendor's own words, by which agents know what is wrong.
            ModelTrouble::Auth => {
                ModelRefusal { trouble, status: None, message: None, retry_after_s: None }
            }
            _ => ModelRefusal::new(trouble, format!("model server: {why}")),
        };
        refused(&refusal, api, 0)
    }

    fn count_other(&self, head: &Parts) {
        self.tally.other(format!("{} {}", head.method, head.uri.path()));
    }
}

fn logged<'a>(head: &'a Parts, key: Option<&'a ShownKey>) -> LoggedRequest<'a> {
    LoggedRequest {
        n: None,
        time_ms: now_ms(),
        method: head.method.as_str(),
        path: head.uri.path(),
        api: None,
        model: None,
        stream: None,
        user_agent: head.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()),
        key,
        rule: None,
        round: None,
        tools: Vec::new(),
        messages: None,
        error: None,
    }
}

/// Whether Gemini's stream is a JSON array: events come only with `alt=sse`.
fn is_array(head: &Parts, api: ModelApi) -> bool {
    let query = head.uri.query().unwrap_or_default();
    api == ModelApi::Gemini && !query.split('&').any(|it| it == "alt=sse")
}

fn is_gemini(head: &Parts) -> bool {
    head.uri.path().contains("/v1beta/") && !head.uri.path().contains("/openai/")
}

fn streamed(speech: &Speech<'_>, is_array: bool, call: RunningCall, closing: Closing) -> Answered {
    let form = if is_array { Form::Array } else { Form::Events };
    let frames = broken(speech.streamed(form), speech.answer);
    let mut answered = Response::new(PlayedBody::of_call(frames, call, PlayedEnd::Whole, closing));
    let kind = if is_array { "application/json" } else { "text/event-stream" };
    let headers = answered.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answered
}

/// The whole answer, after all waits: where the script cuts, its first half.
async fn whole(speech: &Speech<'_>, call: RunningCall, closing: Closing) -> Answered {
    let mut is_cut = false;
    for piece in &speech.answer.pieces {
        match piece {
            Piece::Wait(time) => sleep(*time).await,
            Piece::Hang => std::future::pending().await,
            Piece::Cut => is_cut = true,
            _ => {}
        }
    }
    let text = speech.whole().to_string();
    let length = text.len() as u64;
    let frames = vec![Frame::Send(text.into(), Some(speech.answer.tokens))];
    let mut frames = broken(frames, speech.answer);
    if is_cut {
        frames = frames::cut_after(frames, length / 2);
    }
    let body = PlayedBody::of_call(frames, call, PlayedEnd::Whole, closing).with_length(length);
    let mut answered = Response::new(body);
    answered.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answered
}

fn broken(frames: Vec<Frame>, answer: &PlayedAnswer) -> Vec<Frame> {
    match answer.cut_after {
        Some(bytes) => frames::cut_after(frames, bytes),
        None => frames,
    }
}

fn refused(refusal: &ModelRefusal, api: ModelApi, n: u64) -> Answered {
    let status = StatusCode::from_u16(refusal.status(api));
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answered = json_answer(status, &refusal.body(api, n));
    if let Some(seconds) = refusal.retry_after_s.filter(|_| api != ModelApi::Gemini) {
        answered.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if api == ModelApi::Anthropic {
        let id = HeaderValue::from_str(&format!("req_{n:06}"));
        let name = HeaderName::from_static("request-id");
        answered.headers_mut().extend(id.ok().map(|id| (name, id)));
    }
    answered
}

fn json_answer(status: StatusCode, value: &Value) -> Answered {
    let mut answered = Response::new(PlayedBody::whole(value.to_string().into()));
    *answered.status_mut() = status;
    answered.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answered
}

/// A model with the members that clients of Anthropic and OpenAI read.
fn model(name: &str) -> Value {
    json!({
        "id": name, "object": "model", "type": "model", "display_name": name,
        "created": ids::CREATED, "created_at": "2023-11-14T22:13:20Z", "owned_by": "model-server",
        "context_length": 200_000,
    })
}

fn gemini_model(name: &str) -> Value {
    json!({
        "name": format!("models/{name}"), "displayName": name,
        "inputTokenLimit": 1_000_000, "outputTokenLimit": 64_000,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    })
}
