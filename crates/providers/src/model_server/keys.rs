//! Keys of requests: whether one came, how, and whether it is the expected one. No key is kept or printed.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde::Serialize;

/// Characters of a fingerprint: enough to tell a few keys apart, too few to find one.
const FINGERPRINT: usize = 8;

/// The key that a request shows, without the key itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct ShownKey {
    /// The header or the parameter that it came in.
    pub(super) by: &'static str,
    pub(super) fingerprint: String,
    #[serde(skip)]
    hash: blake3::Hash,
}

/// The key that a server expects.
#[derive(Clone, Debug)]
pub struct ExpectedKey(blake3::Hash);

impl ExpectedKey {
    pub fn new(key: &str) -> Self {
        Self(blake3::hash(key.as_bytes()))
    }

    pub(super) fn is(&self, shown: Option<&ShownKey>) -> bool {
        // The comparison of hashes takes the same time wherever they differ.
        shown.is_some_and(|shown| shown.hash == self.0)
    }
}

impl ShownKey {
    pub(super) fn of(headers: &HeaderMap, query: Option<&str>) -> Option<Self> {
        let header = |name: &str| headers.get(name).map(http::HeaderValue::as_bytes);
        let bearer = headers.get(AUTHORIZATION).map(http::HeaderValue::as_bytes);
        let bearer = bearer.and_then(|value| {
            let is_bearer = value.len() > 7 && value[..7].eq_ignore_ascii_case(b"bearer ");
            is_bearer.then(|| value[7..].trim_ascii())
        });
        let parameter = query.unwrap_or_default().split('&').find_map(|it| it.strip_prefix("key="));
        for (by, key) in [
            ("authorization", bearer),
            ("x-api-key", header("x-api-key")),
            ("x-goog-api-key", header("x-goog-api-key")),
            ("api-key", header("api-key")),
            ("key", parameter.map(str::as_bytes)),
        ] {
            if let Some(key) = key.filter(|key| !key.is_empty()) {
                let hash = blake3::hash(key);
                let fingerprint = hash.to_hex()[..FINGERPRINT].to_owned();
                return Some(Self { by, fingerprint, hash });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_key_is_found_wherever_vendors_put_it() {
        let expected = ExpectedKey::new("sk-1");
        for (name, value, by) in [
            ("authorization", "Bearer sk-1", "authorization"),
            ("Authorization", "bearer  sk-1", "authorization"),
            ("x-api-key", "sk-1", "x-api-key"),
            ("x-goog-api-key", "sk-1", "x-goog-api-key"),
        ] {
            let mut headers = HeaderMap::new();
            let name: http::HeaderName = name.parse().unwrap();
            headers.insert(name, value.parse().unwrap());
            let shown = ShownKey::of(&headers, None).unwrap();
            assert_eq!(shown.by, by);
            assert!(expected.is(Some(&shown)));
            assert!(!serde_json::to_string(&shown).unwrap().contains("sk-1"));
        }
        let none = HeaderMap::new();
        assert!(expected.is(ShownKey::of(&none, Some("alt=sse&key=sk-1")).as_ref()));
        assert!(!expected.is(ShownKey::of(&none, Some("key=sk-2")).as_ref()));
        assert!(!expected.is(ShownKey::of(&none, Some("key=")).as_ref()));
    }
}
