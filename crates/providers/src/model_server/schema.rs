//! Arguments that fit the schema of a tool, and the least value of a schema.

use serde::Deserialize;
use serde_json::{Map, Value};

/// How deep a schema is followed: it may name itself.
const DEEPEST: usize = 12;

/// Items of a list that a schema asks for.
const MOST_ITEMS: u64 = 8;

/// The least text of a schema.
const TEXT: &str = "done";

/// The members of a schema that matter here. Others, and forms of other drafts, are passed over.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Schema {
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(rename = "type")]
    kind: Value,
    #[serde(rename = "enum")]
    values: Option<Vec<Value>>,
    #[serde(rename = "const")]
    constant: Option<Value>,
    properties: Option<Map<String, Value>>,
    required: Option<Vec<String>>,
    items: Option<Value>,
    #[serde(alias = "minItems")]
    min_items: Option<Value>,
    minimum: Option<Value>,
    #[serde(alias = "anyOf", alias = "any_of", alias = "oneOf", alias = "allOf")]
    one_of: Option<Vec<Value>>,
}

impl Schema {
    fn read(schema: &Value, root: &Value) -> Self {
        let mut read = Self::deserialize(schema).unwrap_or_default();
        for _ in 0..DEEPEST {
            let Some(name) = read.reference.take() else { break };
            let found = name.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
            read = found.and_then(|it| Self::deserialize(it).ok()).unwrap_or_default();
        }
        read
    }

    /// Whether a type is named; Gemini writes them in capitals.
    fn is(&self, kind: &str) -> bool {
        match &self.kind {
            Value::String(name) => name.eq_ignore_ascii_case(kind),
            Value::Array(names) => names
                .iter()
                .any(|name| name.as_str().is_some_and(|name| name.eq_ignore_ascii_case(kind))),
            _ => false,
        }
    }
}

/// The least value that a schema takes: the first of what it lists, an empty list, 0, "done".
pub(super) fn least(schema: &Value) -> Value {
    least_of(schema, schema, 0)
}

fn least_of(schema: &Value, root: &Value, depth: usize) -> Value {
    let read = Schema::read(schema, root);
    let first = read.constant.clone().or_else(|| read.values.as_ref()?.first().cloned());
    if let Some(first) = first {
        return first;
    }
    if depth >= DEEPEST {
        return Value::Null;
    }
    if read.properties.is_some() || read.is("object") {
        let required = read.required.unwrap_or_default();
        let properties = read.properties.unwrap_or_default();
        let needed = properties.iter().filter(|(name, _)| required.contains(name));
        let filled = needed.map(|(name, of)| (name.clone(), least_of(of, root, depth + 1)));
        return Value::Object(filled.collect());
    }
    if read.is("array") {
        let count = read.min_items.as_ref().and_then(number).unwrap_or(0).min(MOST_ITEMS);
        let item = read.items.unwrap_or_default();
        return (0..count).map(|_| least_of(&item, root, depth + 1)).collect();
    }
    if read.is("string") {
        return TEXT.into();
    }
    if read.is("integer") || read.is("number") {
        return read.minimum.filter(Value::is_number).unwrap_or_else(|| 0.into());
    }
    if read.is("boolean") {
        return false.into();
    }
    if read.is("null") {
        return Value::Null;
    }
    match read.one_of.as_ref().and_then(|schemas| schemas.first()) {
        Some(first) => least_of(first, root, depth + 1),
        None => TEXT.into(),
    }
}

/// A number, also as the text that Gemini writes.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// Arguments for a tool. A name such as `path|file_path` becomes the first of them that the schema has, or is left
/// out; other names stay. What the schema requires besides gets its least value.
pub(super) fn fit(args: &Value, schema: &Value) -> Value {
    fit_to(args, schema, schema, 0)
}

fn fit_to(args: &Value, schema: &Value, root: &Value, depth: usize) -> Value {
    if depth >= DEEPEST {
        return args.clone();
    }
    let read = Schema::read(schema, root);
    match args {
        Value::Object(args) => {
            let properties = read.properties.unwrap_or_default();
            let mut fitted = Map::new();
            for (names, value) in args {
                let is_choice = names.contains('|');
                let name = match names.split('|').find(|name| properties.contains_key(*name)) {
                    Some(name) => name,
                    None if is_choice => continue,
                    None => names,
                };
                let schema = properties.get(name).unwrap_or(&Value::Null);
                fitted.insert(name.to_owned(), fit_to(value, schema, root, depth + 1));
            }
            for name in read.required.unwrap_or_default() {
                if let Some(schema) = properties.get(&name).filter(|_| !fitted.contains_key(&name))
                {
                    fitted.insert(name, least_of(schema, root, depth + 1));
                }
            }
            Value::Object(fitted)
        }
        Value::Array(items) => {
            let schema = read.items.unwrap_or_default();
            items.iter().map(|item| fit_to(item, &schema, root, depth + 1)).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_with_choices_become_those_of_the_tool() {
        let args = json!({
            "path|file_path": "a.txt", "old|oldText|edits": "a", "edits|": [{ "old|oldText": "a" }],
            "exact": true,
        });
        let flat = json!({
            "type": "object",
            "properties": {
                "file_path": { "type": "string" }, "oldText": {}, "why": { "type": "STRING" },
            },
            "required": ["file_path", "why"],
        });
        assert_eq!(
            fit(&args, &flat),
            json!({ "file_path": "a.txt", "oldText": "a", "exact": true, "why": "done" })
        );
        let nested = json!({
            "properties": { "path": {}, "edits": { "type": "array", "items": { "$ref": "#/$defs/edit" } } },
            "$defs": { "edit": { "properties": { "oldText": {} } } },
        });
        let fitted = fit(&json!({ "path|": "b", "edits|": [{ "old|oldText": "a" }] }), &nested);
        assert_eq!(fitted, json!({ "path": "b", "edits": [{ "oldText": "a" }] }));
        assert_eq!(fit(&json!({ "a|b": 1, "c": 2 }), &Value::Null), json!({ "c": 2 }));
    }

    #[test]
    fn the_least_value_has_what_is_required() {
        let schema = json!({
            "type": "object",
            "properties": {
                "title": { "type": "string" }, "next": { "enum": ["user", "model"] },
                "score": { "type": "NUMBER", "minimum": 1 }, "more": { "type": "string" },
                "list": { "type": "array", "minItems": "2", "items": { "type": "boolean" } },
                "maybe": { "anyOf": [{ "type": "null" }, { "type": "string" }] },
            },
            "required": ["title", "next", "score", "list", "maybe"],
        });
        assert_eq!(
            least(&schema),
            json!({
                "title": "done", "next": "user", "score": 1, "list": [false, false], "maybe": null,
            })
        );
        let endless = json!({ "properties": { "next": { "$ref": "#" } }, "required": ["next"] });
        assert!(least(&endless).is_object());
        assert_eq!(least(&json!({ "$ref": "#/no/such" })), json!("done"));
        assert_eq!(least(&json!({ "$ref": 7 })), json!("done"));
    }
}
