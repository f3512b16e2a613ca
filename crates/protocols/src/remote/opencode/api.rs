//! The requests that OpenCode's server takes, and its stream of events. Bounded in time and size.

use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Client, Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::shapes::{ServerHealth, ServerMessage};
use super::sse::{Cut, Cutter, MOST_EVENT};
use crate::line;
use crate::remote::cause;

/// Bytes of the longest answer that is read.
const MOST_ANSWER: usize = 64 * 1024 * 1024;
/// Bytes of an error's text.
const MOST_SAID: usize = 2000;
/// How long a request may take. A prompt is accepted at once; its turn is told by events.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// How long, and how often, it is asked how it is: that takes it no time.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);
const HEALTH_TRIES: u32 = 3;
/// A server says something every 10 s; one that says nothing for so long is gone.
const SILENCE: Duration = Duration::from_secs(45);
/// Waits before the stream of events is opened anew. Past the last one the server is gone.
const RETRIES: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];
/// A stream that held for so long begins the waits anew.
const HELD: Duration = Duration::from_secs(5);
/// Messages of a session that are read; if they are too long, fewer.
const MESSAGES: [usize; 4] = [1000, 200, 40, 8];

const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'-').remove(b'.');

#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum ApiError {
    #[error("cannot reach the server: {0}")]
    Unreachable(String),
    #[error("the server answered {status}: {said}")]
    Refused { status: u16, said: String },
    #[error("the server's answer is longer than {MOST_ANSWER} bytes")]
    TooLong,
    #[error("the server's answer can't be read: {0}")]
    Malformed(String),
}

/// News from the stream of one folder's events.
#[derive(Debug)]
pub(super) enum News {
    /// Events come from now on; earlier ones may be lost.
    Connected,
    Event(Vec<u8>),
    /// An event was too long.
    LeftOut,
    Lost,
    /// The server is not there any more.
    Gone(String),
}

#[derive(Clone, Debug)]
pub(super) struct Api {
    http: Client,
    base: String,
}

impl Api {
    pub(super) fn new(http: Client, base: &str) -> Self {
        Self { http, base: base.trim_end_matches('/').to_owned() }
    }

    /// The server's version. One that is about to listen may leave its first request without an answer.
    pub(super) async fn health(&self) -> Result<Option<String>, ApiError> {
        let late = || ApiError::Unreachable("it did not answer in time".to_owned());
        let mut health = Err(late());
        for _ in 0..HEALTH_TRIES {
            let asked = self.get::<ServerHealth>("global/health", "", &[]);
            if let Ok(answer) = timeout(HEALTH_TIMEOUT, asked).await {
                health = answer;
                break;
            }
        }
        match health {
            Ok(health) => Ok(health.version),
            // Older ones don't have it.
            Err(ApiError::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        cwd: &str,
        query: &[(&str, &str)],
    ) -> Result<T, ApiError> {
        self.ask(Method::GET, path, cwd, query, None).await
    }

    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        cwd: &str,
        body: &Value,
    ) -> Result<T, ApiError> {
        self.ask(Method::POST, path, cwd, &[], Some(body)).await
    }

    pub(super) async fn prompt(
        &self,
        session: &str,
        cwd: &str,
        body: &Value,
    ) -> Result<(), ApiError> {
        let path = format!("session/{}/prompt_async", segment(session));
        self.bytes(Method::POST, &path, cwd, &[], Some(body)).await.map(drop)
    }

    pub(super) async fn abort(&self, session: &str, cwd: &str) -> Result<(), ApiError> {
        let path = format!("session/{}/abort", segment(session));
        self.bytes(Method::POST, &path, cwd, &[], Some(&json!({}))).await.map(drop)
    }

    pub(super) async fn reply(
        &self,
        permission: &str,
        cwd: &str,
        body: &Value,
    ) -> Result<(), ApiError> {
        let path = format!("permission/{}/reply", segment(permission));
        self.bytes(Method::POST, &path, cwd, &[], Some(body)).await.map(drop)
    }

    /// Adds rules to a session: the last one that matches counts.
    pub(super) async fn add_rules(
        &self,
        session: &str,
        cwd: &str,
        rules: &[Value],
    ) -> Result<(), ApiError> {
        let path = format!("session/{}", segment(session));
        let body = json!({ "permission": rules });
        self.bytes(Method::PATCH, &path, cwd, &[], Some(&body)).await.map(drop)
    }

    /// The newest messages of a session, oldest first; as many as are short enough, and at most `most`.
    pub(super) async fn messages(
        &self,
        session: &str,
        cwd: &str,
        most: usize,
    ) -> Result<Vec<ServerMessage>, ApiError> {
        let path = format!("session/{}/message", segment(session));
        let mut answer = Err(ApiError::TooLong);
        for limit in MESSAGES.into_iter().filter(|limit| *limit <= most) {
            answer = self.get::<Vec<Value>>(&path, cwd, &[("limit", &limit.to_string())]).await;
            if !matches!(answer, Err(ApiError::TooLong)) {
                break;
            }
        }
        // One that can't be read does not hide the others.
        let read = |message| {
            let read = serde_json::from_value(message);
            read.inspect_err(|error| tracing::warn!(%error, session, "a message can't be read"))
                .ok()
        };
        Ok(answer?.into_iter().filter_map(read).collect())
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        cwd: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<T, ApiError> {
        let bytes = self.bytes(method, path, cwd, query, body).await?;
        line::read(&bytes).map_err(|error| ApiError::Malformed(error.to_string()))
    }

    async fn bytes(
        &self,
        method: Method,
        path: &str,
        cwd: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Vec<u8>, ApiError> {
        let mut request = self.http.request(method, self.url(path, cwd, query));
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let exchange = async {
            let response = request.send().await.map_err(|error| unreachable(&error))?;
            let status = response.status();
            let bytes = whole(response).await?;
            if status.is_success() { Ok(bytes) } else { Err(refused(status, &bytes)) }
        };
        let late = || ApiError::Unreachable("it did not answer in time".to_owned());
        timeout(REQUEST_TIMEOUT, exchange).await.map_err(|_| late())?
    }

    fn url(&self, path: &str, cwd: &str, query: &[(&str, &str)]) -> String {
        let mut url = format!("{}/{path}", self.base);
        let folder = Some(("directory", cwd)).filter(|_| !cwd.is_empty());
        for (at, (key, value)) in folder.iter().chain(query).enumerate() {
            url.push(if at == 0 { '?' } else { '&' });
            url.push_str(key);
            url.push('=');
            url.push_str(&segment(value));
        }
        url
    }

    /// Follows the events of a folder until the server is gone or nobody listens.
    pub(super) async fn follow(self, cwd: String, news: mpsc::Sender<(String, News)>) {
        let mut failures = 0;
        loop {
            let begun = tokio::time::Instant::now();
            let Err(why) = self.events(&cwd, &news).await else { return };
            if begun.elapsed() >= HELD {
                failures = 0;
            }
            let last = failures >= RETRIES.len();
            let what = if last { News::Gone(why.to_string()) } else { News::Lost };
            if news.send((cwd.clone(), what)).await.is_err() || last {
                return;
            }
            tracing::info!(%why, "the stream of events ended, and is opened anew");
            sleep(RETRIES[failures]).await;
            failures += 1;
        }
    }

    /// One stream. Ok: nobody listens any more.
    async fn events(&self, cwd: &str, news: &mpsc::Sender<(String, News)>) -> Result<(), ApiError> {
        let request =
            self.http.get(self.url("event", cwd, &[])).header("accept", "text/event-stream");
        let late = || ApiError::Unreachable("it said nothing for a while".to_owned());
        let response = timeout(SILENCE, request.send()).await.map_err(|_| late())?;
        let mut response = response.map_err(|error| unreachable(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(refused(status, &whole(response).await?));
        }
        let mut cutter = Cutter::default();
        let say = async |what| news.send((cwd.to_owned(), what)).await.is_ok();
        let mut is_connected = false;
        loop {
            let chunk = timeout(SILENCE, response.chunk()).await.map_err(|_| late())?;
            let Some(chunk) = chunk.map_err(|error| unreachable(&error))? else {
                return Err(ApiError::Unreachable("it ended the stream of events".to_owned()));
            };
            // The server has subscribed when it says the first thing.
            if !std::mem::replace(&mut is_connected, true) && !say(News::Connected).await {
                return Ok(());
            }
            for cut in cutter.feed(&chunk) {
                let what = match cut {
                    Cut::Data(data) => News::Event(data),
                    Cut::TooLong => {
                        tracing::warn!("an event of more than {MOST_EVENT} bytes is left out");
                        News::LeftOut
                    }
                };
                if !say(what).await {
                    return Ok(());
                }
            }
        }
    }
}

async fn whole(mut response: Response) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(&error))? {
        if bytes.len() + chunk.len() > MOST_ANSWER {
            return Err(ApiError::TooLong);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn unreachable(error: &reqwest::Error) -> ApiError {
    ApiError::Unreachable(cause::of(error))
}

/// The text that the server gives, in one line.
fn refused(status: StatusCode, bytes: &[u8]) -> ApiError {
    let said = serde_json::from_slice::<Value>(bytes).ok().and_then(|body| {
        let said = body["data"]["message"].as_str().or(body["message"].as_str())?;
        Some(said.to_owned())
    });
    let said = said.unwrap_or_else(|| {
        String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_SAID)]).into_owned()
    });
    let said: String =
        said.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MOST_SAID).collect();
    let said = if said.is_empty() {
        status.canonical_reason().unwrap_or("nothing").to_owned()
    } else {
        said
    };
    ApiError::Refused { status: status.as_u16(), said }
}

pub(super) fn segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}
