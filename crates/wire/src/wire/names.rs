//! Owns the names that are known by a longer one at a hub, with the host before them: a type for each kind of
//! name, and where the names are in params, results and lines. A name's place follows from its type, which stands
//! in the schema as `x-name`.

use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Method;
use crate::model::{Variants as _, named};

/// The key of a schema under which the kind of a name stands.
pub(super) const KEY: &str = "x-name";

/// Levels of a type that are looked at; those of the wire have fewer.
const DEEPEST: usize = 16;

named! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum NameKind {
        Agent = "agent",
        OfTeam = "of_team",
        Unique = "unique",
        Giver = "giver",
        Decider = "decider",
        Stream = "stream",
    }
}

/// Declares the types of names.
macro_rules! names {
    ($($(#[$of:meta])* $name:ident = $kind:ident,)*) => {$(
        $(#[$of])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name<'a>(Cow<'a, str>);

        impl JsonSchema for $name<'_> {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "x-name": NameKind::$kind.as_str() })
            }
        }

        impl $name<'_> {
            pub fn into_owned(self) -> String {
                self.0.into_owned()
            }
        }

        impl Deref for $name<'_> {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name<'_> {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl PartialEq<str> for $name<'_> {
            fn eq(&self, other: &str) -> bool {
                **self == *other
            }
        }

        impl PartialEq<&str> for $name<'_> {
            fn eq(&self, other: &&str) -> bool {
                **self == **other
            }
        }

        impl PartialEq<String> for $name<'_> {
            fn eq(&self, other: &String) -> bool {
                **self == **other
            }
        }

        impl<'a> From<&'a str> for $name<'a> {
            fn from(name: &'a str) -> Self {
                Self(name.into())
            }
        }

        impl<'a> From<&'a String> for $name<'a> {
            fn from(name: &'a String) -> Self {
                Self(name.into())
            }
        }

        impl From<String> for $name<'_> {
            fn from(name: String) -> Self {
                Self(name.into())
            }
        }

        impl<'a> From<Cow<'a, str>> for $name<'a> {
            fn from(name: Cow<'a, str>) -> Self {
                Self(name)
            }
        }

        impl From<$name<'_>> for Arc<str> {
            fn from(name: $name<'_>) -> Self {
                (*name).into()
            }
        }

        impl From<$name<'_>> for String {
            fn from(name: $name<'_>) -> Self {
                name.into_owned()
            }
        }
    )*};
}

names! {
    /// An agent.
    AgentName = Agent,
    /// The id of a blocked access, a conflict or a task, which other teams have too.
    TeamId = OfTeam,
    /// An id that no other team has, such as that of an event or a run: a hub passes it on as it is, and takes a host
    /// before it in params.
    UniqueId = Unique,
    /// The giver of a task: an agent, or `orchestrator` for a program or a person.
    Giver = Giver,
    /// The decider: an agent as `agent:ID`, or a kind of other deciders.
    Decider = Decider,
    /// A stream of the journal.
    StreamName = Stream,
}

/// Where names are in a value.
#[derive(Clone, Default, Debug)]
pub struct NamePlaces {
    /// The value is one.
    name: Option<NameKind>,
    fields: BTreeMap<String, NamePlaces>,
    /// In each item of a list, or each field of a map.
    each: Option<Box<NamePlaces>>,
}

/// Where names are in the params and in the result of a method.
#[derive(Debug)]
pub struct MethodNames {
    pub params: NamePlaces,
    pub result: NamePlaces,
}

impl MethodNames {
    pub fn of<M: Method>() -> Self {
        let params = SchemaSettings::draft2020_12().for_deserialize();
        let params = params.into_generator().into_root_schema_for::<M::Params>();
        Self { params: NamePlaces::new(params), result: NamePlaces::of::<M::Result<'static>>() }
    }
}

/// The parts of a schema that say where names are.
#[derive(Default, Deserialize)]
#[serde(default)]
struct NamedSchema {
    #[serde(rename = "x-name")]
    name: Option<String>,
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(rename = "$defs")]
    definitions: BTreeMap<String, Value>,
    properties: BTreeMap<String, Value>,
    items: Value,
    #[serde(rename = "additionalProperties")]
    values: Value,
    #[serde(rename = "anyOf")]
    any: Vec<Value>,
    #[serde(rename = "oneOf")]
    one: Vec<Value>,
    #[serde(rename = "allOf")]
    all: Vec<Value>,
    #[serde(rename = "x-tool")]
    tool: ToolName,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolName {
    name: Option<String>,
}

impl NamePlaces {
    /// Returns where names are in what is written of a type.
    pub(super) fn of<T: JsonSchema>() -> Self {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        Self::new(settings.into_generator().into_root_schema_for::<T>())
    }

    fn new(schema: Schema) -> Self {
        let schema = schema.to_value();
        let root = NamedSchema::deserialize(&schema).unwrap_or_default();
        let mut places = Self::default();
        places.add(&schema, &root.definitions, DEEPEST);
        places
    }

    fn add(&mut self, schema: &Value, definitions: &BTreeMap<String, Value>, levels: usize) {
        let Some(levels) = levels.checked_sub(1) else { return };
        // What is no object, as `true`, says nothing.
        let Ok(schema) = NamedSchema::deserialize(schema) else { return };
        if let Some(name) = schema.name {
            self.name = NameKind::all().iter().copied().find(|kind| kind.as_str() == name);
        }
        let defined = schema.reference.as_deref().and_then(|path| path.strip_prefix("#/$defs/"));
        if let Some(definition) = defined.and_then(|name| definitions.get(name)) {
            self.add(definition, definitions, levels);
        }
        for (field, of_field) in &schema.properties {
            let mut places = self.fields.remove(field).unwrap_or_default();
            places.add(of_field, definitions, levels);
            if places.is_empty() {
                continue;
            }
            // A client may give it by the name that the tool has for it.
            let tool = NamedSchema::deserialize(of_field).unwrap_or_default().tool;
            if let Some(alias) = tool.name {
                self.fields.insert(alias, places.clone());
            }
            self.fields.insert(field.clone(), places);
        }
        for each in [&schema.items, &schema.values] {
            let mut places = self.each.take().map(|each| *each).unwrap_or_default();
            places.add(each, definitions, levels);
            self.each = (!places.is_empty()).then(|| Box::new(places));
        }
        for part in schema.any.iter().chain(&schema.one).chain(&schema.all) {
            self.add(part, definitions, levels);
        }
    }

    fn is_empty(&self) -> bool {
        self.name.is_none() && self.fields.is_empty() && self.each.is_none()
    }

    /// Replaces each name for which `replace` returns another one. All else stays, also fields of other versions.
    pub fn rename(
        &self,
        value: &mut Value,
        replace: &mut dyn FnMut(NameKind, &str) -> Option<String>,
    ) {
        match value {
            Value::String(text) => {
                if let Some(new) = self.name.and_then(|kind| replace(kind, text)) {
                    *text = new;
                }
            }
            Value::Array(items) => {
                let Some(each) = &self.each else { return };
                for item in items {
                    each.rename(item, replace);
                }
            }
            Value::Object(object) => {
                for (name, field) in object {
                    if let Some(places) = self.fields.get(name).or(self.each.as_deref()) {
                        places.rename(field, replace);
                    }
                }
            }
            _ => {}
        }
    }
}
