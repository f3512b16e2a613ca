//! The arguments of a tool: read from the schema of its method's params, with their flat schema, and the check of a
//! client's values.

use std::sync::Arc;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::argument::Argument;
use crate::wire::names;

/// One argument of a tool.
#[derive(Clone, Debug)]
pub struct Parameter {
    pub name: String,
    pub shape: ArgumentShape,
    pub is_required: bool,
    pub description: String,
}

/// The form of an argument. No argument nests, since clients differ in how much of a schema they
/// understand.
#[derive(Clone, Debug)]
pub enum ArgumentShape {
    /// At most so many bytes.
    Text(usize),
    Choice(Vec<String>),
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
pub const PAGE: &str = "page";

/// Bytes of a name, such as an id or a path.
const NAME: usize = 4096;

/// The largest whole number that all JSON readers keep exactly.
const LARGEST: u64 = (1 << 53) - 1;

/// The key of a schema under which [`Argument`] stands.
const KEY: &str = "x-tool";

pub(super) fn page_of_list() -> Parameter {
    Parameter {
        name: PAGE.to_owned(),
        shape: ArgumentShape::Whole { least: 1, most: 1_000_000 },
        is_required: false,
        description: "Which page of the list; the first if left out".to_owned(),
    }
}

/// Returns the arguments that params have: the fields that say something to a tool.
pub(super) fn of<P: JsonSchema>() -> Vec<Parameter> {
    let generator = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let schema = generator.into_root_schema_for::<P>().to_value();
    let mut found = Vec::new();
    add(&schema, &schema["$defs"], &mut found);
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, parameter)| parameter).collect()
}

/// Takes out of a schema what is said to tools and to hubs.
pub fn take_tools(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.shift_remove(KEY);
            fields.shift_remove(names::KEY);
            fields.values_mut().for_each(take_tools);
        }
        Value::Array(items) => items.iter_mut().for_each(take_tools),
        _ => {}
    }
}

/// Adds the arguments of an object, and of its variants, with their places.
fn add(object: &Value, definitions: &Value, found: &mut Vec<(usize, Parameter)>) {
    for (field, property) in object["properties"].as_object().into_iter().flatten() {
        // What is said of the field that tells variants apart stands at the first of them.
        let said = if property["const"].is_null() { &property[KEY] } else { &object[KEY] };
        let Ok(said) = Argument::deserialize(said) else { continue };
        let is_required =
            object["required"].as_array().is_some_and(|all| all.contains(&json!(field)));
        let parameter = Parameter {
            name: said.name.as_deref().unwrap_or(field).to_owned(),
            shape: ArgumentShape::new(property, definitions, &said),
            is_required,
            description: said.about.into_owned(),
        };
        found.push((said.at.unwrap_or(found.len()), parameter));
    }
    for variant in object["oneOf"].as_array().into_iter().flatten() {
        let from = found.len();
        add(variant, definitions, found);
        // Only the field that tells variants apart has to be there in each.
        let tag = variant["properties"].as_object().into_iter().flatten();
        let tag = tag.clone().find(|(_, it)| !it["const"].is_null()).map(|(name, _)| name);
        for (_, parameter) in &mut found[from..] {
            parameter.is_required &= Some(&parameter.name) == tag;
        }
    }
}

impl ArgumentShape {
    fn new(property: &Value, definitions: &Value, said: &Argument) -> Self {
        if let Some(choices) = &said.choices {
            return Self::Choice(choices.iter().map(ToString::to_string).collect());
        }
        let some = |schema: &Value| !schema.is_null() && schema["type"] != "null";
        if let Some(inner) =
            property["anyOf"].as_array().and_then(|all| all.iter().find(|it| some(it)))
        {
            return Self::new(inner, definitions, said);
        }
        if let Some(name) = property["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/"))
        {
            return Self::new(&definitions[name], definitions, said);
        }
        if let Some(names) = property["enum"].as_array() {
            return Self::Choice(
                names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            );
        }
        let kind = &property["type"];
        let bound = |usual: usize| {
            said.most.map_or(usual, |most| usize::try_from(most).unwrap_or(usize::MAX))
        };
        match kind.as_str().or_else(|| kind[0].as_str()).unwrap_or_default() {
            "integer" => {
                Self::Whole { least: said.least.unwrap_or(0), most: said.most.unwrap_or(LARGEST) }
            }
            "number" => Self::Number,
            "boolean" => Self::Flag,
            "array" => Self::Texts(bound(usize::MAX)),
            _ => Self::Text(bound(NAME)),
        }
    }

    fn schema(&self) -> Map<String, Value> {
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
    pub fn wanted(&self) -> String {
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

    fn fits(&self, value: &Value) -> bool {
        let is_text =
            |value: &Value, most: usize| value.as_str().is_some_and(|it| it.len() <= most);
        match self {
            Self::Text(most) => is_text(value, *most),
            Self::Choice(names) => {
                value.as_str().is_some_and(|it| names.iter().any(|name| name == it))
            }
            Self::Whole { least, most } => {
                value.as_u64().is_some_and(|it| (least..=most).contains(&&it))
            }
            Self::Number => value.is_number(),
            Self::Flag => value.is_boolean(),
            Self::Texts(most) => value
                .as_array()
                .is_some_and(|all| all.len() <= *most && all.iter().all(|it| is_text(it, NAME))),
        }
    }
}

/// The schema of a tool's arguments.
pub fn schema(parameters: &[Parameter]) -> Arc<Map<String, Value>> {
    let properties: Map<_, _> = parameters
        .iter()
        .map(|it| {
            let mut schema = it.shape.schema();
            schema.insert("description".to_owned(), it.description.as_str().into());
            (it.name.clone(), Value::Object(schema))
        })
        .collect();
    let required: Vec<_> =
        parameters.iter().filter(|it| it.is_required).map(|it| it.name.as_str()).collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("required".to_owned(), required.into());
    Arc::new(schema)
}

/// Checks the arguments of a call; null counts as left out. The error describes the expected value.
pub fn check(
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
    match parameters.iter().find(|it| it.is_required && !checked.contains_key(&it.name)) {
        Some(missing) => {
            Err(format!("`{}` is missing: give {}", missing.name, missing.shape.wanted()))
        }
        None => Ok(checked),
    }
}
