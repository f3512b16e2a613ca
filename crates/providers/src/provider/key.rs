//! The key of a provider.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};
use zeroize::Zeroizing;

use super::{KeyPlace, ProviderFault};

/// Bytes of a key: those of clouds are signed tokens.
const LONGEST: usize = 8192;

/// The key of a provider, as the header that it is sent in. It can't be shown, copied out or serialised; its memory
/// is overwritten when the last request that has it is done.
pub struct ProviderKey {
    name: HeaderName,
    value: HeaderValue,
}

impl ProviderKey {
    /// Takes a key. The text that it came in is overwritten, also if it is refused.
    pub fn new(key: String, place: &KeyPlace) -> Result<Self, ProviderFault> {
        let key = Zeroizing::new(key);
        let is_good =
            (1..=LONGEST).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_good {
            return Err(ProviderFault::Key);
        }
        let (name, scheme) = match place {
            KeyPlace::Bearer => (header::AUTHORIZATION, "Bearer "),
            KeyPlace::Header(name) => (name.clone(), ""),
        };
        // One piece of memory of the right size: one that grew would leave copies behind.
        let mut whole = Zeroizing::new(Vec::with_capacity(scheme.len() + key.len()));
        whole.extend_from_slice(scheme.as_bytes());
        whole.extend_from_slice(key.as_bytes());
        let mut value = HeaderValue::from_maybe_shared(Bytes::from_owner(whole))
            .map_err(|_| ProviderFault::Key)?;
        value.set_sensitive(true);
        Ok(Self { name, value })
    }

    /// The header's name.
    pub(crate) fn name(&self) -> &HeaderName {
        &self.name
    }

    /// The header's value, which shares the memory of the key.
    pub(crate) fn value(&self) -> HeaderValue {
        self.value.clone()
    }
}
