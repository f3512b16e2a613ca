//! Owns the JSON Schema of the port, derived from its types of lines, params and results.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema as _, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::rpc;
use crate::wire::{self, PlainLine};

/// Returns the schema: `$defs.ServerLine` is any line of the server, `$defs.ClientLine` any of a
/// client, and `methods.NAME` has the `params` and the `result` of each method.
pub fn schema() -> Value {
    let mut requests = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    // What a reader takes for a field that another version lacks is no part of an answer.
    let without_defaults = RecursiveTransform(|schema: &mut Schema| drop(schema.remove("default")));
    let answers = SchemaSettings::draft2020_12().for_serialize().with_transform(without_defaults);
    let mut answers = answers.into_generator();
    let server = wire::server_lines(&mut answers);
    let (mut methods, mut lines) = (Map::new(), plain_lines(&mut requests));
    let id = requests.subschema_for::<wire::Id>();
    for row in &rpc::METHODS {
        let (params, result) = (row.schemas)(&mut requests, &mut answers);
        let (name, right) = (row.facts.name, row.facts.port);
        lines.push(json!({
            "type": "object",
            "properties": {
                "type": { "const": "rpc" },
                "id": id,
                "method": { "const": name },
                "params": { "anyOf": [params, { "type": "null" }] },
            },
            "required": ["type", "id", "method"],
        }));
        let auth = right.needs_token();
        methods
            .insert(name.to_owned(), json!({ "auth": auth, "params": params, "result": result }));
    }
    let mut definitions = requests.take_definitions(true);
    definitions.extend(answers.take_definitions(true));
    definitions.insert(
        "ClientLine".to_owned(),
        json!({ "description": "A line that a client sends.", "oneOf": lines }),
    );
    wire::add_mark(&mut definitions);
    definitions.values_mut().for_each(wire::take_tools);
    definitions.sort_keys();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The wire of eisen-core",
        "description": "One JSON object a line; see docs/wire.md.",
        "anyOf": [server, { "$ref": "#/$defs/ClientLine" }],
        "methods": methods,
        "$defs": definitions,
    })
}

fn plain_lines(requests: &mut SchemaGenerator) -> Vec<Value> {
    let schema: Schema = PlainLine::json_schema(requests);
    let lines = schema.get("oneOf").and_then(Value::as_array);
    lines.cloned().unwrap_or_default()
}
