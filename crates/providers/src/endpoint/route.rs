//! Where a request goes: which provider, and which path there. Whatever could lead elsewhere is refused.

use http::{Method, Request, StatusCode, header};
use percent_encoding::percent_decode_str;

/// A request that goes nowhere, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NoRoute(pub(super) StatusCode, pub(super) &'static str);

/// The parts of a path at the endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Route<'a> {
    pub(super) provider: &'a str,
    /// Empty, or with a slash at its beginning; as the agent wrote it.
    pub(super) path: &'a str,
}

/// Finds the route of a request that came to the endpoint with this port.
pub(super) fn route<B>(request: &Request<B>, port: u16) -> Result<Route<'_>, NoRoute> {
    let uri = request.uri();
    if request.method() == Method::CONNECT || uri.authority().is_some() || uri.scheme().is_some() {
        return Err(NoRoute(
            StatusCode::BAD_REQUEST,
            "this is no proxy: give the agent the address of its provider here as its base URL",
        ));
    }
    if request.headers().contains_key(header::ORIGIN) {
        return Err(NoRoute(StatusCode::FORBIDDEN, "web pages have no business here"));
    }
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let is_ours = hosts.next().is_some_and(|host| is_ours(host.as_bytes(), port));
    if !is_ours || hosts.next().is_some() {
        return Err(NoRoute(StatusCode::MISDIRECTED_REQUEST, "`Host` is not this endpoint"));
    }
    let whole = uri.path().strip_prefix('/').unwrap_or_default();
    let (provider, path) = whole.split_at(whole.find('/').unwrap_or(whole.len()));
    if provider.is_empty() {
        return Err(NoRoute(
            StatusCode::NOT_FOUND,
            "the path begins with the name of a provider: /NAME/…",
        ));
    }
    if leaves(path) {
        return Err(NoRoute(StatusCode::BAD_REQUEST, "a path may not have `.` or `..` as a part"));
    }
    Ok(Route { provider, path })
}

/// Whether a host is the loopback interface by one of its names, with the endpoint's port.
fn is_ours(host: &[u8], port: u16) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let Some((name, given)) = host.rsplit_once(':') else { return false };
    let is_loopback = ["127.0.0.1", "localhost", "[::1]"].contains(&name);
    is_loopback && given == port.to_string()
}

/// Whether a server could read the path as one that goes up: `..`, also as `%2e%2e`, between backslashes, behind
/// `%2f`, before a `;`, and encoded twice.
fn leaves(path: &str) -> bool {
    let mut read = path.as_bytes().to_vec();
    for _ in 0..4 {
        let parts = read.split(|byte| matches!(byte, b'/' | b'\\'));
        let names = parts.map(|part| part.split(|byte| *byte == b';').next().unwrap_or_default());
        if names.into_iter().any(|name| matches!(name, b"." | b"..")) {
            return true;
        }
        let text = String::from_utf8_lossy(&read).into_owned();
        let decoded: Vec<u8> = percent_decode_str(&text).collect();
        if decoded == read {
            return false;
        }
        read = decoded;
    }
    // Encoded so often that nobody means it.
    true
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn asked(uri: &str, host: &str) -> Request<()> {
        Request::get(uri).header(header::HOST, host).body(()).unwrap()
    }

    #[test]
    fn the_first_part_is_the_provider_and_the_rest_its_path() {
        for (uri, provider, path) in [
            ("/a/v1/messages?x=1", "a", "/v1/messages"),
            ("/a", "a", ""),
            ("/a/", "a", "/"),
            ("/a/v1beta/models/g%20x:generateContent", "a", "/v1beta/models/g%20x:generateContent"),
            ("/a/files/x..y/.hidden", "a", "/files/x..y/.hidden"),
        ] {
            let request = asked(uri, "127.0.0.1:80");
            assert_eq!(route(&request, 80), Ok(Route { provider, path }), "{uri}");
        }
    }

    #[test]
    fn other_hosts_and_paths_that_go_up_are_refused() {
        for path in [
            "/a/..",
            "/a/../b",
            "/a/x/%2e%2e/b",
            "/a/.%2E/b",
            "/a/x%2f..%2fb",
            "/a/x%5c..%5cb",
            "/a/%252e%252e/b",
            "/a/..;x/b",
            "/a/./b",
            "/a/%25252525252e/b",
        ] {
            assert!(route(&asked(path, "127.0.0.1:80"), 80).is_err(), "{path}");
        }
        for uri in ["http://other.example/a/b", "http://127.0.0.1:80/a/b"] {
            assert!(route(&asked(uri, "127.0.0.1:80"), 80).is_err(), "{uri}");
        }
        for host in ["127.0.0.1", "127.0.0.1:81", "other.example", "127.0.0.1:80.example:80"] {
            assert!(route(&asked("/a/b", host), 80).is_err(), "{host}");
        }
        for host in ["127.0.0.1:80", "localhost:80", "[::1]:80"] {
            assert!(route(&asked("/a/b", host), 80).is_ok(), "{host}");
        }
        let mut twice = asked("/a/b", "127.0.0.1:80");
        twice.headers_mut().append(header::HOST, "other.example".parse().unwrap());
        assert!(route(&twice, 80).is_err());
        let mut page = asked("/a/b", "127.0.0.1:80");
        page.headers_mut().append(header::ORIGIN, "null".parse().unwrap());
        assert!(route(&page, 80).is_err());
    }
}
