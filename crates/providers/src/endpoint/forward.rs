//! The way of one request: who calls, what it asks for, whether it is admitted, and what comes back.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header, request};
use http_body::Body as _;
use http_body_util::Full;
use hyper::body::Incoming;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::answer::AnswerBody;
use super::asked::{AskedBody, Purpose};
use super::bodies::{self, LONGEST_STREAM, RequestBody, WholeBody};
use super::callers::{AgentConnection, Callers, ProviderCall};
use super::headers;
use super::open_call::OpenCall;
use super::provider_body::ProviderBody;
use super::route::{self, NoRoute, Route};
use super::shapes::{self, OwnAnswer};
use super::shared::EndpointParts;
use crate::counting::{AskedSizes, CallEnd};
use crate::provider::{ModelProvider, ProviderKind};

/// Characters of a model's name that are escaped in a path.
const IN_PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'@');

/// Answers one request.
pub(super) async fn answer<C: Callers>(
    shared: &Arc<EndpointParts<C>>,
    from: AgentConnection,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    let found = match route::route(&request, from.local.port()) {
        Ok(Route { provider, path }) => match shared.providers.get(provider) {
            Some(provider) => Ok((provider, path.to_owned())),
            None => Err(NoRoute(StatusCode::NOT_FOUND, "no provider of the team has this name")),
        },
        Err(none) => Err(none),
    };
    let (provider, path) = match found {
        Ok(found) => found,
        Err(NoRoute(status, why)) => {
            return shapes::unshaped(status, why).map(Full::new).map(AnswerBody::Own);
        }
    };
    let kind = provider.kind;
    match forward(shared, from, request, provider, path).await {
        Ok(answer) => answer,
        Err(own) => own.shaped(kind).map(Full::new).map(AnswerBody::Own),
    }
}

async fn forward<C: Callers>(
    shared: &Arc<EndpointParts<C>>,
    from: AgentConnection,
    request: Request<Incoming>,
    provider: Arc<ModelProvider>,
    path: String,
) -> Result<Response<AnswerBody>, OwnAnswer> {
    let kind = provider.kind;
    if request.headers().contains_key(header::UPGRADE) {
        return Err(OwnAnswer::NoUpgrade);
    }
    let query = request.uri().query();
    let token = headers::token(request.headers(), query, kind).ok_or(OwnAnswer::Stranger)?;
    let caller = shared.callers.caller(&token.0, &from, &provider.name).await;
    let caller = caller.ok_or(OwnAnswer::Stranger)?;
    let (head, body) = request.into_parts();
    let purpose = Purpose::of(kind, &head.method, &path, !body.is_end_stream());
    if purpose == Purpose::Free {
        let length = body.size_hint().exact().filter(|_| has_length(&head));
        let body = RequestBody::Passing(body, LONGEST_STREAM);
        let request = onward(&head, &provider, &path, body, length, false)?;
        let answer = shared.upstream.send(request).await.map_err(|none| none.answer)?;
        return Ok(back(answer, None));
    }
    let outgoing = Outgoing::read(&head, &provider, path, body, purpose, &shared.room).await?;
    let call = outgoing.asked_call(&provider, purpose);
    let ticket = shared.callers.admit(caller, &call).await.map_err(OwnAnswer::Refused)?;
    let callers = Arc::clone(&shared.callers);
    let settle = move |report| callers.counted(ticket, report);
    let mut open = OpenCall::new(&provider, call.model, call.sizes, outgoing.whole_body(), settle);
    let (path, body, length) = outgoing.into_parts();
    let request = match onward(&head, &provider, &path, body, length, true) {
        Ok(request) => request,
        Err(own) => {
            open.end(CallEnd::Unsent);
            return Err(own);
        }
    };
    match shared.upstream.send(request).await {
        Ok(answer) => {
            open.head(answer.status(), answer.headers());
            Ok(back(answer, Some(open)))
        }
        Err(none) => {
            open.end(none.end);
            Err(none.answer)
        }
    }
}

/// A call before it is sent.
struct Outgoing {
    /// With the model's name at the provider, where that stands in the path.
    path: String,
    asked_path: Arc<str>,
    body: OutgoingBody,
    asked: AskedBody,
    sent_model: Option<Arc<str>>,
}

enum OutgoingBody {
    Whole(WholeBody),
    Passing(Incoming),
}

impl Outgoing {
    /// Reads what is to be known of it. A call's body is read in whole: what it may write can stand behind all else,
    /// and it is admitted before it is sent.
    async fn read(
        head: &request::Parts,
        provider: &ModelProvider,
        path: String,
        body: Incoming,
        purpose: Purpose,
        room: &Arc<tokio::sync::Semaphore>,
    ) -> Result<Self, OwnAnswer> {
        let asked_path = path.as_str().into();
        if purpose == Purpose::Other && !is_json(head) {
            let body = OutgoingBody::Passing(body);
            let asked = AskedBody::default();
            return Ok(Self { path, asked_path, body, asked, sent_model: None });
        }
        let mut body = bodies::read(body, room).await?;
        let mut asked = match AskedBody::of(&body.bytes) {
            Ok(asked) => asked,
            Err(why) if purpose == Purpose::Call => return Err(OwnAnswer::Bad(why)),
            Err(_) => AskedBody::default(),
        };
        let mut path = path;
        let mut in_path = None;
        if provider.kind == ProviderKind::Gemini
            && let Some((name, at)) = AskedBody::model_of_path(&path)
        {
            asked.model = Some(percent_decode_str(name).decode_utf8_lossy().into_owned());
            in_path = Some(at);
        }
        let sent = asked.model.as_ref().and_then(|model| provider.models.get(model));
        if let Some(sent) = sent {
            if let Some(at) = in_path {
                path.replace_range(at, &utf8_percent_encode(sent, IN_PATH).to_string());
            } else if let Some(at) = &asked.model_at {
                let name = serde_json::Value::from(sent.as_str()).to_string();
                let parts = [&body.bytes[..at.start], name.as_bytes(), &body.bytes[at.end..]];
                body = {
                    let bytes = Bytes::from(parts.concat());
                    body.with(bytes)
                };
            }
        }
        let sent_model = sent.map(|sent| sent.as_str().into());
        Ok(Self { path, asked_path, body: OutgoingBody::Whole(body), asked, sent_model })
    }

    fn whole_body(&self) -> Option<&Bytes> {
        match &self.body {
            OutgoingBody::Whole(body) => Some(&body.bytes),
            OutgoingBody::Passing(_) => None,
        }
    }

    fn asked_call(&self, provider: &ModelProvider, purpose: Purpose) -> ProviderCall {
        let body = match &self.body {
            OutgoingBody::Whole(body) => body.bytes.len() as u64,
            OutgoingBody::Passing(body) => body.size_hint().exact().unwrap_or(LONGEST_STREAM),
        };
        ProviderCall {
            provider: Arc::clone(&provider.name),
            path: Arc::clone(&self.asked_path),
            is_known: purpose == Purpose::Call,
            model: self.asked.model.as_deref().map(Into::into),
            sent_model: self.sent_model.clone(),
            sizes: AskedSizes { body, most_output: self.asked.most_output },
        }
    }

    /// The path, the body, and its length if that is known.
    fn into_parts(self) -> (String, RequestBody, Option<u64>) {
        match self.body {
            OutgoingBody::Whole(body) => {
                let length = body.bytes.len() as u64;
                (self.path, body.into(), Some(length))
            }
            OutgoingBody::Passing(body) => {
                let length = body.size_hint().exact();
                (self.path, RequestBody::Passing(body, LONGEST_STREAM), length)
            }
        }
    }
}

fn is_json(head: &request::Parts) -> bool {
    let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    // A server that is not told the kind of a body reads JSON.
    kind.is_none_or(|kind| kind.to_ascii_lowercase().contains("json"))
}

fn has_length(head: &request::Parts) -> bool {
    head.headers.contains_key(header::CONTENT_LENGTH) || head.method == Method::POST
}

/// The request as it goes on: with the provider's host, path and key.
fn onward(
    head: &request::Parts,
    provider: &ModelProvider,
    path: &str,
    body: RequestBody,
    length: Option<u64>,
    is_counted: bool,
) -> Result<Request<RequestBody>, OwnAnswer> {
    const NO_ADDRESS: OwnAnswer = OwnAnswer::Bad("eisen-core: the path is none of an address");
    let query = head.uri.query().and_then(|it| headers::query_without_token(it, provider.kind));
    let uri = provider.url.at(path, query.as_deref()).ok_or(NO_ADDRESS)?;
    let host = HeaderValue::from_str(provider.url.authority().as_str()).map_err(|_| NO_ADDRESS)?;
    let mut request = Request::new(body);
    *request.method_mut() = head.method.clone();
    *request.uri_mut() = uri;
    *request.headers_mut() = headers::onward(&head.headers, provider, &host, length, is_counted);
    Ok(request)
}

/// The provider's answer as it goes back.
fn back(answer: Response<ProviderBody>, call: Option<OpenCall>) -> Response<AnswerBody> {
    let (head, body) = answer.into_parts();
    let mut back = Response::new(AnswerBody::passing(body, call));
    *back.status_mut() = head.status;
    *back.headers_mut() = headers::backward(&head.headers);
    back
}
