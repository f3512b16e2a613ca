//! Owns the reading of fields whose writer may be another program, or another version of this one: a value
//! of an unexpected type is as if its field were missing.

use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny};
use serde_json::Value;

/// Reads a field, as `deserialize_with`: a value of another type is the default. It buffers the value, so it
/// can't read raw JSON.
pub fn lenient<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Either::deserialize(from)?.known().unwrap_or_default())
}

/// Reads a list, as `deserialize_with`: elements of another type are passed over, and another value is an
/// empty list.
pub fn lenient_list<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let elements: Vec<Either<T>> = lenient(from)?;
    Ok(elements.into_iter().filter_map(Either::known).collect())
}

/// Reads JSON; what is no JSON, or of another type, is the default. Of a name that stands twice the last value
/// counts.
pub fn or_default<T: DeserializeOwned + Default>(json: &str) -> T {
    serde_json::from_str::<Value>(json).and_then(serde_json::from_value).unwrap_or_default()
}

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Either<T> {
    Known(T),
    Other(IgnoredAny),
}

impl<T> Either<T> {
    fn known(self) -> Option<T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Other(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default, PartialEq, Debug, serde::Deserialize)]
    #[serde(default)]
    struct Fields {
        #[serde(deserialize_with = "lenient")]
        text: Option<String>,
        #[serde(deserialize_with = "lenient")]
        is: bool,
        #[serde(deserialize_with = "lenient_list")]
        all: Vec<u64>,
    }

    #[test]
    fn a_value_of_another_type_is_as_if_it_were_missing() {
        let read = |json: &str| or_default::<Fields>(json);
        let of = |text: &str, is, all: &[u64]| Fields {
            text: Some(text.to_owned()),
            is,
            all: all.to_vec(),
        };
        assert_eq!(read(r#"{"text":"a","is":true,"all":[1,2],"x":0}"#), of("a", true, &[1, 2]));
        assert_eq!(read(r#"{"text":"a","is":1,"all":[1,"b",null,{},3]}"#), of("a", false, &[1, 3]));
        assert_eq!(read(r#"{"text":"a","text":"b","all":{"a":1}}"#), of("b", false, &[]));
        for other in [r#"{"text":7,"is":null,"all":null}"#, "{}", "[]", "null", "no JSON"] {
            assert_eq!(read(other), Fields::default(), "{other}");
        }
    }
}
