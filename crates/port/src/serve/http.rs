//! Recognizes HTTP on the port, so that a web page's requests are never run.

/// Whether the line could be an HTTP request line: method, target and version, in any case. No JSON
/// looks like that.
pub(super) fn is_request_line(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let method = words.next().unwrap_or_default();
    let version = words.next_back().unwrap_or_default();
    method.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
        && version.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"HTTP/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_is_known_by_its_request_line() {
        for http in [
            "GET / HTTP/1.1\r",
            "post /x?{\"type\":\"rpc\"} http/1.0",
            "PRI * HTTP/2.0\r",
            "M-SEARCH  *\tHTTP/1.1",
            "  GET / HTTP/1.1",
            "GET HTTP/1.1",
        ] {
            assert!(is_request_line(http.as_bytes()), "{http}");
        }
        for other in
            ["", "{\"type\":\"rpc\"}", "{} / HTTP/1.1", "HTTP/1.1", "GET / HTTPS", "hello there"]
        {
            assert!(!is_request_line(other.as_bytes()), "{other}");
        }
    }
}
