//! The variables that have keys of providers, to which nothing else of a file refers.

use std::collections::BTreeMap;

use toml::de::DeTable;

use super::errors::{code, quoted};

/// The provider whose key a variable is.
#[derive(Clone, Debug)]
pub(super) struct KeyOwner {
    pub(super) provider: String,
    /// The user's file has it.
    pub(super) of_user: bool,
}

/// Returns the variables that keys of a file name.
pub(super) fn named_variables(document: &DeTable<'_>, of_user: bool) -> BTreeMap<String, KeyOwner> {
    let providers = document.get("providers").and_then(|item| item.get_ref().as_table());
    let key = |provider: &DeTable<'_>| Some(provider.get("key")?.get_ref().as_str()?.to_owned());
    let named = providers.into_iter().flatten().filter_map(|(name, provider)| {
        let key = provider.get_ref().as_table().and_then(key)?;
        let owner = KeyOwner { provider: name.get_ref().to_string(), of_user };
        Some((variable(&key)?.to_owned(), owner))
    });
    named.collect()
}

/// The variable that a text is a reference to, and nothing else.
pub(super) fn variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    let is_name = !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some(name)
}

impl KeyOwner {
    /// Says why something else can't refer to the variable.
    pub(super) fn refusal(&self, variable: &str) -> String {
        let file = if self.of_user { " of $EISEN_DIR/config.toml" } else { "" };
        format!("{} has the key of the provider {}{file}", code(variable), quoted(&self.provider))
    }
}
