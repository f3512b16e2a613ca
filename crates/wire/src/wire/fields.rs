//! Owns how single fields are read, and which are left out.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads an optional name; an empty one counts as missing.
pub(super) fn name<'de, D: Deserializer<'de>, T: From<String>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    Ok(name.filter(|name| !name.is_empty()).map(T::from))
}

/// Reads raw JSON where serde has a value already: beside a field that is flattened.
pub(super) fn raw<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<T, D::Error> {
    serde_json::from_value(Value::deserialize(deserializer)?).map_err(D::Error::custom)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_zero(number: &u64) -> bool {
    *number == 0
}
