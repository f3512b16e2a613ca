//! Owns a value of an enumeration that grows: a reader of lines and results passes over names that it does not
//! know, and a reader of params refuses them.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::model::{Action, BlockedStatus, ConflictStatus, Variants};

/// A variant by its name, or a name that only another version of the program knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NameOf<T> {
    Known(T),
    Other(Box<str>),
}

impl<T: Variants> NameOf<T> {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(value) => value.name(),
            Self::Other(name) => name,
        }
    }

    /// The variant; None if this program has none of that name.
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(value) => Some(*value),
            Self::Other(_) => None,
        }
    }
}

/// No name: another version lacks the field.
impl<T> Default for NameOf<T> {
    fn default() -> Self {
        Self::Other(Box::default())
    }
}

impl<T> From<T> for NameOf<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T: Variants> NameOf<T> {
    pub fn from_name(name: &str) -> Self {
        let known = T::all().iter().find(|known| known.name() == name);
        known.map_or_else(|| Self::Other(name.into()), |known| Self::Known(*known))
    }
}

impl<T: PartialEq> PartialEq<T> for NameOf<T> {
    fn eq(&self, other: &T) -> bool {
        matches!(self, Self::Known(value) if value == other)
    }
}

impl<T: Variants> fmt::Display for NameOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<T: Variants> Serialize for NameOf<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, T: Variants> Deserialize<'de> for NameOf<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor(PhantomData))
    }
}

impl<T: Variants> JsonSchema for NameOf<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "NameOf".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<_> = T::all().iter().map(|value| value.name()).collect();
        json_schema!({ "type": "string", "enum": names })
    }
}

struct NameVisitor<T>(PhantomData<T>);

impl<T: Variants> Visitor<'_> for NameVisitor<T> {
    type Value = NameOf<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<NameOf<T>, E> {
        Ok(NameOf::from_name(name))
    }
}

/// A variant by its name, in params: a name that this program does not know is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exact<T>(pub T);

/// An enumeration of params, by its name in the schema.
pub trait Titled: Variants {
    const TITLE: &'static str;
}

impl Titled for Action {
    const TITLE: &'static str = "AskedAction";
}

impl Titled for BlockedStatus {
    const TITLE: &'static str = "Status";
}

impl Titled for ConflictStatus {
    const TITLE: &'static str = "Status";
}

impl<T: Variants> Serialize for Exact<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<'de, T: Variants> Deserialize<'de> for Exact<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(ExactVisitor(PhantomData))
    }
}

impl<T: Titled> JsonSchema for Exact<T> {
    fn schema_name() -> Cow<'static, str> {
        T::TITLE.into()
    }

    fn schema_id() -> Cow<'static, str> {
        std::any::type_name::<Self>().into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        NameOf::<T>::json_schema(generator)
    }
}

struct ExactVisitor<T>(PhantomData<T>);

impl<T: Variants> Visitor<'_> for ExactVisitor<T> {
    type Value = Exact<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Exact<T>, E> {
        let known = T::all().iter().find(|known| known.name() == name);
        known.map(|known| Exact(*known)).ok_or_else(|| {
            let names: Vec<_> = T::all().iter().map(|known| known.name()).collect();
            let names = names.join("`, `");
            E::custom(format_args!("unknown variant `{name}`, expected one of `{names}`"))
        })
    }
}
