//! The site as browsers have it: its origin and its host, which requests name exactly.

use std::net::SocketAddr;

/// One origin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebSite {
    /// Scheme and authority, in lower case: `http://127.0.0.1:17321`.
    origin: String,
}

impl WebSite {
    /// The site of an origin, or else of an address that is listened on.
    pub fn new(origin: Option<&str>, address: SocketAddr, has_tls: bool) -> Self {
        let scheme = if has_tls { "https" } else { "http" };
        let usual = if has_tls { 443 } else { 80 };
        let origin = match origin {
            Some(origin) => origin.to_owned(),
            // A browser leaves the usual port out.
            None if address.port() == usual && address.is_ipv6() => {
                format!("{scheme}://[{}]", address.ip())
            }
            None if address.port() == usual => format!("{scheme}://{}", address.ip()),
            None => format!("{scheme}://{address}"),
        };
        Self { origin }
    }

    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The origin without its scheme.
    pub(super) fn host(&self) -> &str {
        self.origin.split_once("://").map_or("", |(_, host)| host)
    }

    pub(super) fn is_secure(&self) -> bool {
        self.origin.starts_with("https://")
    }

    /// Whether a request's `Host` is this site's.
    pub(super) fn has_host(&self, host: &str) -> bool {
        host.eq_ignore_ascii_case(self.host())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_origin_is_as_browsers_write_it() {
        let of = |address: &str, has_tls| {
            WebSite::new(None, address.parse().unwrap(), has_tls).origin().to_owned()
        };
        assert_eq!(of("127.0.0.1:17321", false), "http://127.0.0.1:17321");
        assert_eq!(of("127.0.0.1:80", false), "http://127.0.0.1");
        assert_eq!(of("127.0.0.1:80", true), "https://127.0.0.1:80");
        assert_eq!(of("[::1]:443", true), "https://[::1]");
        assert_eq!(of("[::1]:17321", false), "http://[::1]:17321");
        let named =
            WebSite::new(Some("https://team.example"), "10.0.0.1:1".parse().unwrap(), false);
        assert!(named.has_host("Team.Example") && !named.has_host("team.example:443"));
        assert!(!named.has_host("10.0.0.1:1") && !named.has_host(""));
    }
}
