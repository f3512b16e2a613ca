//! A provider of models: what it speaks, where it is, and its key.

mod address;
mod key;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use http::HeaderName;

pub use crate::model::ProviderKind;
pub use address::ProviderUrl;
pub use key::ProviderKey;

/// Where a request has the key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyPlace {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// A header of its own.
    Header(HeaderName),
}

impl KeyPlace {
    /// The place that the vendor's own interface has.
    pub fn of(kind: ProviderKind) -> Self {
        match kind {
            ProviderKind::OpenAi => Self::Bearer,
            ProviderKind::Anthropic => Self::Header(HeaderName::from_static("x-api-key")),
            ProviderKind::Gemini => Self::Header(HeaderName::from_static("x-goog-api-key")),
        }
    }
}

/// Why a provider can't be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProviderFault {
    /// The name would not be a part of a path.
    #[error(
        "the name of a provider has 1 to 64 letters, digits, `-`, `_` and `.`, and begins with a letter or digit"
    )]
    Name,
    /// The address is none of a provider.
    #[error(
        "`url` is `http://` or `https://`, a host, and perhaps a port and a path: no user, query or fragment"
    )]
    Url,
    /// The key could not be sent. It is not shown.
    #[error(
        "a key has 1 to 8192 visible ASCII characters and no spaces; this one has others, or another length"
    )]
    Key,
}

/// A provider that agents are led to.
pub struct ModelProvider {
    /// The first part of the path at the endpoint.
    pub name: Arc<str>,
    /// The interface that it has.
    pub kind: ProviderKind,
    /// Where it is. Its path stands in front of the rest of the agent's path.
    pub url: ProviderUrl,
    /// None: requests are sent without one.
    pub key: Option<ProviderKey>,
    /// Models that have another name there: the agent's name, and the provider's.
    pub models: BTreeMap<String, String>,
    /// Its calls are handed over with their bodies.
    pub record: bool,
}

impl ModelProvider {
    /// A provider without a key, whose models have their own names, and whose calls are not recorded.
    pub fn new(name: &str, kind: ProviderKind, url: &str) -> Result<Self, ProviderFault> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let is_good = (1..=64).contains(&name.len())
            && name.bytes().all(is_name)
            && name.starts_with(|first: char| first.is_ascii_alphanumeric());
        if !is_good {
            return Err(ProviderFault::Name);
        }
        Ok(Self {
            name: name.into(),
            kind,
            url: ProviderUrl::new(url)?,
            key: None,
            models: BTreeMap::new(),
            record: false,
        })
    }

    /// Sends requests with a key, at the place that the vendor has for it.
    pub fn with_key(self, key: String) -> Result<Self, ProviderFault> {
        let place = KeyPlace::of(self.kind);
        Ok(Self { key: Some(ProviderKey::new(key, &place)?), ..self })
    }
}

impl fmt::Debug for ModelProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Provider({}, {})", self.name, self.kind.as_str())
    }
}

#[cfg(test)]
mod tests;
