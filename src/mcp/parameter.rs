//! The arguments of a tool: their flat schema, and the check of a client's values.

use std::sync::Arc;

use serde_json::{Map, Value, json};

/// One argument of a tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) shape: ArgumentShape,
    pub(super) is_required: bool,
    pub(super) description: &'static str,
}

/// The form of an argument. No argument nests, since clients differ in how much of a schema they
/// understand.
#[derive(Clone, Copy, Debug)]
pub(super) enum ArgumentShape {
    /// At most so many bytes.
    Text(usize),
    Choice(&'static [&'static str]),
    Whole {
        least: u64,
        most: u64,
    },
    Number,
    Flag,
    /// At most so many texts of [`NAME`] bytes.
    Texts(usize),
}

/// The argument that names a page of a list.
pub(super) const PAGE: &str = "page";

/// Bytes of a name, such as an id or a path.
pub(super) const NAME: usize = 4096;

pub(super) const fn required(
    name: &'static str,
    shape: ArgumentShape,
    description: &'static str,
) -> Parameter {
    Parameter { name, shape, is_required: true, description }
}

pub(super) const fn optional(
    name: &'static str,
    shape: ArgumentShape,
    description: &'static str,
) -> Parameter {
    Parameter { name, shape, is_required: false, description }
}

impl ArgumentShape {
    fn schema(self) -> Map<String, Value> {
        let schema = match self {
            Self::Text(_) => json!({ "type": "string" }),
            Self::Choice(names) => json!({ "type": "string", "enum": names }),
            Self::Whole { least, most } => {
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Self::Number => json!({ "type": "number" }),
            Self::Flag => json!({ "type": "boolean" }),
            Self::Texts(_) => json!({ "type": "array", "items": { "type": "string" } }),
        };
        if let Value::Object(schema) = schema { schema } else { Map::new() }
    }

    /// Describes the values that an argument takes.
    pub(super) fn wanted(self) -> String {
        match self {
            Self::Text(most) => format!("text of at most {most} bytes"),
            Self::Choice(names) => {
                let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
                format!("one of {}", names.join(", "))
            }
            Self::Whole { least, most } => format!("a whole number from {least} to {most}"),
            Self::Number => "a number".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Texts(most) => format!("a list of at most {most} texts of at most {NAME} bytes"),
        }
    }

    fn fits(self, value: &Value) -> bool {
        let is_text =
            |value: &Value, most: usize| value.as_str().is_some_and(|it| it.len() <= most);
        match self {
            Self::Text(most) => is_text(value, most),
            Self::Choice(names) => value.as_str().is_some_and(|it| names.contains(&it)),
            Self::Whole { least, most } => {
                value.as_u64().is_some_and(|it| (least..=most).contains(&it))
            }
            Self::Number => value.is_number(),
            Self::Flag => value.is_boolean(),
            Self::Texts(most) => value
                .as_array()
                .is_some_and(|all| all.len() <= most && all.iter().all(|it| is_text(it, NAME))),
        }
    }
}

/// The schema of a tool's arguments.
pub(super) fn schema(parameters: &[Parameter]) -> Arc<Map<String, Value>> {
    let properties: Map<_, _> = parameters
        .iter()
        .map(|it| {
            let mut schema = it.shape.schema();
            schema.insert("description".to_owned(), it.description.into());
            (it.name.to_owned(), Value::Object(schema))
        })
        .collect();
    let required: Vec<_> =
        parameters.iter().filter(|it| it.is_required).map(|it| it.name).collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("required".to_owned(), required.into());
    Arc::new(schema)
}

/// Checks the arguments of a call; null counts as left out. The error describes the expected value.
pub(super) fn check(
    parameters: &[Parameter],
    arguments: Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let mut checked = Map::new();
    for (name, value) in arguments.into_iter().filter(|(_, value)| !value.is_null()) {
        let Some(parameter) = parameters.iter().find(|it| it.name == name) else {
            let known: Vec<_> = parameters.iter().map(|it| format!("`{}`", it.name)).collect();
            let known = if known.is_empty() {
                "this tool takes none".to_owned()
            } else {
                format!("there are {}", known.join(", "))
            };
            let name: String = name.chars().take(64).collect();
            return Err(format!("there is no argument `{name}`: {known}"));
        };
        if !parameter.shape.fits(&value) {
            return Err(format!("`{name}` must be {}", parameter.shape.wanted()));
        }
        checked.insert(name, value);
    }
    match parameters.iter().find(|it| it.is_required && !checked.contains_key(it.name)) {
        Some(missing) => {
            Err(format!("`{}` is missing: give {}", missing.name, missing.shape.wanted()))
        }
        None => Ok(checked),
    }
}
