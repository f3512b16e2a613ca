//! The headers of a request and an answer, as they go on.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::callers::ShownToken;
use crate::provider::{ModelProvider, ProviderKind};

/// Bytes of a token.
const LONGEST_TOKEN: usize = 4096;

/// Headers that are for one connection, and `Expect`, which the endpoint answers itself.
const OF_CONNECTION: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Headers in which agents show a token, whatever their kind.
const OF_TOKENS: [HeaderName; 4] = [
    header::AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
    HeaderName::from_static("api-key"),
];

/// The parameter of an address in which agents of Gemini may show one.
const TOKEN_PARAMETER: &str = "key";

/// The token that a request shows, at any of the places where kinds of agents have theirs. None: there is none, or
/// there are two.
pub(super) fn token(
    headers: &HeaderMap,
    query: Option<&str>,
    kind: ProviderKind,
) -> Option<ShownToken> {
    let of_headers = OF_TOKENS.into_iter().flat_map(|name| headers.get_all(name)).map(|value| {
        let value = value.to_str().ok()?;
        let (scheme, token) = value.split_once(' ').unwrap_or(("bearer", value));
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
    });
    let parameters = query.filter(|_| kind == ProviderKind::Gemini).into_iter().flat_map(|query| {
        form_urlencoded::parse(query.as_bytes())
            .filter(|(name, _)| name == TOKEN_PARAMETER)
            .map(|(_, value)| Some(value.into_owned()))
    });
    let mut tokens = of_headers.chain(parameters);
    let token = tokens.next()??;
    let is_one = tokens.all(|other| other.as_ref() == Some(&token));
    let is_bounded = (1..=LONGEST_TOKEN).contains(&token.len());
    (is_one && is_bounded).then_some(ShownToken(token))
}

/// The query without the parameter of the token: the key is sent in a header, since addresses get into logs. None:
/// nothing is left.
pub(super) fn query_without_token(query: &str, kind: ProviderKind) -> Option<String> {
    if kind != ProviderKind::Gemini {
        return Some(query.to_owned());
    }
    let is_token = |part: &&str| {
        let mut pairs = form_urlencoded::parse(part.as_bytes());
        pairs.next().is_some_and(|(name, _)| name == TOKEN_PARAMETER)
    };
    if !query.split('&').any(|part| is_token(&part)) {
        return Some(query.to_owned());
    }
    let rest: Vec<_> = query.split('&').filter(|part| !is_token(part)).collect();
    (!rest.is_empty()).then(|| rest.join("&"))
}

/// The headers of a request as they go on, in their order: with the provider's host and key.
pub(super) fn onward(
    headers: &HeaderMap,
    provider: &ModelProvider,
    host: &HeaderValue,
    length: Option<u64>,
    is_counted: bool,
) -> HeaderMap {
    let named = named_by_connection(headers);
    let mut onward = HeaderMap::with_capacity(headers.len() + 1);
    let mut key = provider.key.as_ref().map(|key| (key.name().clone(), key.value()));
    for (name, value) in headers {
        if name == header::HOST {
            onward.insert(header::HOST, host.clone());
        } else if OF_TOKENS.contains(name) || is_key_of(provider, name) {
            if let Some((name, value)) = key.take() {
                onward.insert(name, value);
            }
        } else if name == header::CONTENT_LENGTH {
            if let Some(length) = length {
                onward.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
            }
        } else if name == header::ACCEPT_ENCODING && is_counted {
            // The answer is counted as it passes, and nothing compressed can be.
            onward.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        } else if name != header::EXPECT && !is_of_connection(name, &named) {
            onward.append(name.clone(), value.clone());
        }
    }
    if let Some((name, value)) = key {
        onward.insert(name, value);
    }
    onward
}

/// The headers of an answer as they go on, in their order.
pub(super) fn backward(headers: &HeaderMap) -> HeaderMap {
    let named = named_by_connection(headers);
    let passing = headers.iter().filter(|(name, _)| !is_of_connection(name, &named));
    let mut backward = HeaderMap::with_capacity(headers.len());
    for (name, value) in passing {
        backward.append(name.clone(), value.clone());
    }
    backward
}

fn is_key_of(provider: &ModelProvider, name: &HeaderName) -> bool {
    provider.key.as_ref().is_some_and(|key| key.name() == name)
}

fn is_of_connection(name: &HeaderName, named: &[HeaderName]) -> bool {
    OF_CONNECTION.contains(name) || named.contains(name)
}

/// The headers that `Connection` names as those of the connection.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(header::CONNECTION).iter();
    let names = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    names.filter_map(|name| name.trim().parse().ok()).collect()
}
