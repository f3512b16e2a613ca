//! The checks that every request passes: the exact host, the origin, and a credential. Also the headers of
//! every answer.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::{
    self, AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, WWW_AUTHENTICATE,
};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::connection::WebConnection;
use super::credential::{Credential, ShownBy};
use super::credentials::Credentials;
use super::served::Served;
use super::site::WebSite;
use crate::model::WebScope;
use crate::serve::OpenedOnWeb;

/// The token that only the page knows, beside its cookie.
const PAGE_TOKEN: &str = "x-eisen-token";

/// The refusal of a credential while too many others fail.
pub(super) const TOO_MANY_ATTEMPTS: &str = "too many failed attempts; wait a minute";

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const HEADERS: [(HeaderName, &str); 8] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), microphone=(), geolocation=()"),
];

/// Lets a request pass that is meant for this site and comes from no other one.
pub(super) async fn pass(
    State(served): State<Arc<Served>>,
    request: Request,
    next: Next,
) -> Response {
    let mut answer = match refusal(&served.site, &request) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    };
    for (name, value) in HEADERS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// Why a request is refused.
pub(super) enum HttpRefusal {
    /// The request names another host: a rebinding name comes in here.
    Host,
    /// A page of another site sends it.
    ForeignSite,
    /// A script asks for what a person opens.
    Script,
    /// The request changes something, and does not say that the page sends it.
    NotPage,
    NoCredential,
    /// Too many attempts failed.
    Attempts,
    /// There are too many connections, of its credential or in all.
    Connections,
    /// The token with a scope lacks a right, or is for some agents only.
    Right,
    /// The credential is not a token of a program that may do all that a person may.
    Control,
}

impl IntoResponse for HttpRefusal {
    fn into_response(self) -> Response {
        let (status, why) = match self {
            Self::Host => (
                StatusCode::MISDIRECTED_REQUEST,
                "this team is not served under that host: open the address that `eisen-core web` prints",
            ),
            Self::ForeignSite => (StatusCode::FORBIDDEN, "requests of other sites are refused"),
            Self::Script => (
                StatusCode::FORBIDDEN,
                "a script asked for this link: something else was served at this address before, and its \
                 service worker is still in this browser. The link is no longer good. Clear the data of this \
                 site in the browser, or serve the page at another port (`eisen-core up --web=127.0.0.1:0`)",
            ),
            Self::NotPage => {
                (StatusCode::FORBIDDEN, "the request does not come from the team's page")
            }
            Self::NoCredential => (
                StatusCode::UNAUTHORIZED,
                "this takes a credential: open the link that `eisen-core web` prints, or send a token \
                 of `eisen-core web token` as `Authorization: Bearer TOKEN`",
            ),
            Self::Right => {
                (StatusCode::FORBIDDEN, "this takes a token with the right `read`, for all agents")
            }
            Self::Control => (
                StatusCode::FORBIDDEN,
                "this takes a token of `eisen-core web token --scope control`, as `Authorization: Bearer TOKEN`",
            ),
            Self::Attempts => (StatusCode::TOO_MANY_REQUESTS, TOO_MANY_ATTEMPTS),
            Self::Connections => (
                StatusCode::SERVICE_UNAVAILABLE,
                "too many connections are open, of this credential or in all",
            ),
        };
        let mut answer = (status, why).into_response();
        if status == StatusCode::UNAUTHORIZED {
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
    }
}

fn refusal(site: &WebSite, request: &Request) -> Option<HttpRefusal> {
    let headers = request.headers();
    let is_ours = |host: &HeaderValue| host.to_str().is_ok_and(|host| site.has_host(host));
    let authority = request.uri().authority().map(axum::http::uri::Authority::as_str);
    let has_host = one(headers, &HOST).is_some_and(is_ours)
        && authority.is_none_or(|authority| site.has_host(authority));
    if !has_host {
        return Some(HttpRefusal::Host);
    }
    let is_foreign = headers.contains_key(ORIGIN) && !is_from(site, headers);
    (is_foreign || !may_fetch(request)).then_some(HttpRefusal::ForeignSite)
}

/// The value of a header that is there exactly once.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// Whether a request says that it comes from a page of this site.
fn is_from(site: &WebSite, headers: &HeaderMap) -> bool {
    one(headers, &ORIGIN).is_some_and(|origin| origin.as_bytes() == site.origin().as_bytes())
}

/// Whether a browser sends the request for this site's page, for a person who opens an address, or
/// because another site links here. Programs don't say.
fn may_fetch(request: &Request) -> bool {
    let said = |name: &str| request.headers().get(name).map(HeaderValue::as_bytes);
    match said("sec-fetch-site") {
        None | Some(b"same-origin" | b"none") => true,
        Some(_) => {
            request.method() == Method::GET
                && said("sec-fetch-mode") == Some(b"navigate")
                && said("sec-fetch-dest") == Some(b"document")
        }
    }
}

/// Whether a person opens an address. What a service worker fetches says otherwise, also if it passes a
/// person's request on. Programs don't say.
pub(super) fn is_opened(headers: &HeaderMap) -> bool {
    let says = |name: &str, wanted: &str| headers.get(name).is_none_or(|said| said == wanted);
    says("sec-fetch-mode", "navigate") && says("sec-fetch-dest", "document")
}

/// A request with a valid credential, for a file of the page: these say nothing of the team.
pub(super) struct Admitted;

impl FromRequestParts<Arc<Served>> for Admitted {
    type Rejection = HttpRefusal;

    async fn from_request_parts(
        parts: &mut Parts,
        served: &Arc<Served>,
    ) -> Result<Self, HttpRefusal> {
        admit(served, parts).map(|_| Self)
    }
}

fn admit(served: &Served, parts: &Parts) -> Result<Credential, HttpRefusal> {
    let credential = find(served, &parts.headers)?;
    let connection = parts.extensions.get::<WebConnection>();
    if connection.is_some_and(|connection| !connection.take_place(&credential)) {
        return Err(HttpRefusal::Connections);
    }
    Ok(credential)
}

/// A request with a valid credential. That a token with a scope was used is in the journal.
pub(super) struct Known(pub(super) Credential);

impl FromRequestParts<Arc<Served>> for Known {
    type Rejection = HttpRefusal;

    async fn from_request_parts(
        parts: &mut Parts,
        served: &Arc<Served>,
    ) -> Result<Self, HttpRefusal> {
        let credential = admit(served, parts)?;
        if let Some(holder) = credential.holder() {
            served.gateway.record_use(holder, parts.uri.path()).await;
        }
        Ok(Self(credential))
    }
}

/// A request of a program that may do all that a person may: its token has the scope `control`. A browser
/// sends its cookie by itself, so that one is not enough.
pub(super) struct Program(pub(super) Credential);

impl FromRequestParts<Arc<Served>> for Program {
    type Rejection = HttpRefusal;

    async fn from_request_parts(
        parts: &mut Parts,
        served: &Arc<Served>,
    ) -> Result<Self, HttpRefusal> {
        let Known(credential) = Known::from_request_parts(parts, served).await?;
        let is_control = credential.opens == OpenedOnWeb::Scope(WebScope::Control);
        if is_control && credential.shown == ShownBy::Bearer {
            Ok(Self(credential))
        } else {
            Err(HttpRefusal::Control)
        }
    }
}

/// A request that may change something: a page's has the token, and comes from the page.
pub(super) struct Changing(pub(super) Credential);

impl FromRequestParts<Arc<Served>> for Changing {
    type Rejection = HttpRefusal;

    async fn from_request_parts(
        parts: &mut Parts,
        served: &Arc<Served>,
    ) -> Result<Self, HttpRefusal> {
        let Known(credential) = Known::from_request_parts(parts, served).await?;
        if matches!(credential.shown, ShownBy::Cookie { .. }) {
            may_change(&served.site, &parts.headers)?;
            let token = parts.headers.get(PAGE_TOKEN).and_then(|token| token.to_str().ok());
            if token.and_then(|token| credential.opened_by(token)).is_none() {
                return Err(failed(&served.credentials, token.is_some()));
            }
        }
        Ok(Self(credential))
    }
}

/// Refuses a page's request that does not say that it is the page's.
pub(super) fn may_change(site: &WebSite, headers: &HeaderMap) -> Result<(), HttpRefusal> {
    if is_from(site, headers) { Ok(()) } else { Err(HttpRefusal::NotPage) }
}

/// Finds the credential of a request.
fn find(served: &Served, headers: &HeaderMap) -> Result<Credential, HttpRefusal> {
    let credentials = &served.credentials;
    // A proxy may have a use of its own for other schemes.
    let shown = headers.get(AUTHORIZATION).and_then(|shown| shown.to_str().ok()?.split_once(' '));
    if let Some((_, token)) = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")) {
        let token = token.trim();
        let of_team = || Some(Credential::of_holder(token, served.gateway.holder(token)?));
        let found = credentials.by_bearer(token).or_else(of_team);
        return found.ok_or_else(|| failed(credentials, true));
    }
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.split_once('='));
    let ours = pairs
        .filter(|(name, _)| name.trim() == credentials.cookie())
        .map(|(_, value)| value.trim());
    let mut is_shown = false;
    for cookie in ours {
        is_shown = true;
        if let Some(credential) = credentials.by_cookie(cookie) {
            return Ok(credential);
        }
    }
    Err(failed(credentials, is_shown))
}

/// The refusal of a request without a valid credential; `is_shown`: it has another one, which counts
/// as an attempt.
pub(super) fn failed(credentials: &Credentials, is_shown: bool) -> HttpRefusal {
    if is_shown && credentials.failed() { HttpRefusal::Attempts } else { HttpRefusal::NoCredential }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_worker_that_passes_a_request_on_opens_nothing() {
        let is_opened = |mode: Option<&'static str>, dest: Option<&'static str>| {
            let said = [("sec-fetch-mode", mode), ("sec-fetch-dest", dest)].into_iter();
            let said = said.filter_map(|(name, value)| Some((name, value?)));
            let headers = said.map(|(name, value)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            });
            is_opened(&headers.collect())
        };
        assert!(is_opened(Some("navigate"), Some("document")));
        assert!(is_opened(None, None), "programs don't say");
        // As Chromium sends what a service worker passes on, or fetches itself.
        assert!(!is_opened(Some("navigate"), Some("empty")));
        assert!(!is_opened(Some("cors"), Some("empty")));
        assert!(!is_opened(Some("navigate"), Some("iframe")));
        assert!(!is_opened(Some("no-cors"), Some("script")));
    }
}
