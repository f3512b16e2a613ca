//! The keys of providers that were taken out of the environment of this process.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::model::SecretText;

static KEPT: OnceLock<BTreeMap<String, SecretText>> = OnceLock::new();

/// Keeps keys by the variables that they were in, once: `key` of a provider finds them here.
pub fn keep_keys(keys: BTreeMap<String, SecretText>) {
    let _ = KEPT.set(keys);
}

/// Returns the keys that are kept.
pub fn kept_keys() -> &'static BTreeMap<String, SecretText> {
    static NONE: BTreeMap<String, SecretText> = BTreeMap::new();
    KEPT.get().unwrap_or(&NONE)
}
