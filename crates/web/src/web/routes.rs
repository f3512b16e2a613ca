//! The routes of the web server.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, SET_COOKIE};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};

use super::connection::WebConnection;
use super::credential::ShownBy;
use super::credentials::Entered;
use super::guard::{self, Admitted, Changing, HttpRefusal, Known};
use super::served::Served;
use super::upgrade::WebSocketUpgrade;
use super::{acp, assets, socket};
use crate::metrics::Rendered;
use crate::serve::{self, OpenedOnWeb};
use crate::tokens::{TokenHolder, TokenRight};

/// The path of a link that is good once.
pub const ENTER: &str = "/enter";

pub(super) fn router(served: &Arc<Served>) -> Router {
    Router::new()
        .route("/healthz", get(|| async {}))
        .route(ENTER, get(enter))
        .route("/leave", post(leave))
        .route("/ws", get(web_socket))
        .route("/acp", acp::routes())
        .route("/schema.json", get(schema))
        .route("/metrics", get(metrics))
        .fallback(get(page))
        .layer(from_fn_with_state(Arc::clone(served), guard::pass))
        .with_state(Arc::clone(served))
}

/// The routes of a place that has the gateway alone.
pub(super) fn of_gateway(served: &Arc<Served>) -> Router {
    Router::new()
        .route("/acp", acp::routes())
        .layer(from_fn_with_state(Arc::clone(served), guard::pass))
        .with_state(Arc::clone(served))
}

/// The data of this origin that a browser forgets before it gets the page's token. Another program may have
/// had the port before, and left a service worker, or a page that the browser keeps for `/`. Scripts that a tab
/// has in memory are not forgotten: the page's own have addresses that nobody could foresee.
const FORGET: (HeaderName, &str) =
    (HeaderName::from_static("clear-site-data"), "\"cache\", \"storage\"");

/// Exchanges a link for a cookie and the page's token. The token goes into the storage of the page's
/// origin, which pages on other ports can't read.
async fn enter(
    State(served): State<Arc<Served>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let mut query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let link =
        query.find(|(name, _)| name == "link").map_or_else(String::new, |(_, link)| link.into());
    if method != Method::GET {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    if !guard::is_opened(&headers) {
        // Who sent it knows the link.
        if served.credentials.withdraw(&link) {
            tracing::warn!(
                "a script asked for a link of the web page: a service worker of another program, which had \
                 this address before, is in the browser. The link is no longer good"
            );
        }
        return HttpRefusal::Script.into_response();
    }
    let Entered { cookie, token, opens } = match served.credentials.enter(&link) {
        Ok(Some(entered)) => entered,
        Ok(None) => return guard::failed(&served.credentials, true).into_response(),
        Err(error) => {
            return (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response();
        }
    };
    if let OpenedOnWeb::Holder(holder) = &opens {
        served.gateway.record_use(holder, ENTER).await;
    }
    let page = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>eisen-core</title>\n\
         <meta name=\"eisen-token\" content=\"{token}\">\n<script src=\"/{}/enter.js\"></script>\n\
         <noscript>This page needs JavaScript.</noscript></html>\n",
        served.credentials.folder()
    );
    ([FORGET], [(SET_COOKIE, set_cookie(&served, &cookie))], Html(page)).into_response()
}

fn set_cookie(served: &Served, value: &str) -> String {
    let secure = if served.site.is_secure() { "; Secure" } else { "" };
    format!("{}={value}; Path=/; HttpOnly; SameSite=Strict{secure}", served.credentials.cookie())
}

/// Revokes the browser's credential, and a token that is for this browser alone.
async fn leave(State(served): State<Arc<Served>>, Changing(credential): Changing) -> Response {
    if credential.shown == ShownBy::Bearer {
        let why = "a token is revoked by `eisen-core web revoke`";
        return (StatusCode::FORBIDDEN, why).into_response();
    }
    // First, so that the browser can try again.
    if let Some(holder) = credential.holder()
        && let Err(refused) = served.gateway.browser_left(holder).await
    {
        return (StatusCode::INTERNAL_SERVER_ERROR, refused.message).into_response();
    }
    served.credentials.leave(&credential);
    let gone = format!("{}; Max-Age=0", set_cookie(&served, ""));
    ([(SET_COOKIE, gone)], StatusCode::NO_CONTENT).into_response()
}

async fn web_socket(
    State(served): State<Arc<Served>>,
    Known(credential): Known,
    Extension(connection): Extension<WebConnection>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    if matches!(credential.shown, ShownBy::Cookie { .. })
        && let Err(refused) = guard::may_change(&served.site, &headers)
    {
        return refused.into_response();
    }
    let Some(port) = socket::open(&served, &credential) else {
        let why = "the port has reached its limit of clients";
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    };
    let longest = served.gateway.max_line_bytes();
    upgrade
        .serve(longest, move |socket| socket::serve(socket, port, credential.revoked, connection))
}

async fn schema(Known(_): Known) -> Json<serde_json::Value> {
    Json(serve::schema())
}

/// The figures of the team, in the format that is asked for.
async fn metrics(
    State(served): State<Arc<Served>>,
    Known(credential): Known,
    headers: HeaderMap,
) -> Response {
    let reads = |holder: &TokenHolder| holder.may(TokenRight::Read) && !holder.is_limited();
    if !credential.holder().is_none_or(reads) {
        return HttpRefusal::Right.into_response();
    }
    let accepted = headers.get(ACCEPT).and_then(|accepted| accepted.to_str().ok());
    let Some(metrics) = &served.metrics else { return StatusCode::NOT_FOUND.into_response() };
    let Rendered { content_type, body } = metrics.render(accepted).await;
    ([(CONTENT_TYPE, content_type)], body).into_response()
}

async fn page(
    Admitted: Admitted,
    State(served): State<Arc<Served>>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    assets::answer(uri.path(), served.credentials.folder(), &headers)
}
