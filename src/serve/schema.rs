//! Owns the JSON Schema of the port, derived from its types of lines, params and results.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{rpc, wire};

/// Returns the schema: `$defs.ServerLine` is any line of the server, `$defs.ClientLine` any of a
/// client, and `methods.NAME` has the `params` and the `result` of each method.
pub fn schema() -> Value {
    let mut requests = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let mut answers = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let server = wire::schema(&mut answers);
    let (mut methods, mut lines) = (Map::new(), plain_lines(&mut requests));
    let id = requests.subschema_for::<wire::Id>();
    for (name, method, right, _) in rpc::METHODS {
        let (params, result) = rpc::schemas(method, &mut requests, &mut answers);
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

/// A client's lines other than `rpc`. `request` parses them key by key to refuse repeated keys;
/// these are the resulting forms.
#[derive(JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(dead_code, reason = "stands in the schema for what is read key by key")]
enum PlainLine {
    /// Asks for fresh snapshots: of the session with that id, or of all.
    RequestSnapshot { session_id: Option<String> },
    /// Narrows the stream to a session or, if that is not given, to a mode; or to neither.
    SetStreamFilter {
        session_id: Option<String>,
        #[schemars(extend("enum" = [json!(null), json!(""), json!("single_agent"), json!("orchestrator")]))]
        session_mode: Option<String>,
    },
    /// Adds what is off by default: `session_update`, `overlap`, `graph`, `task`, `report`.
    Subscribe { topics: Vec<String> },
    /// Shows a token: the control token, or an agent's own.
    Auth { token: Option<String>, proof: Option<String> },
    /// Makes the connection that of an MCP client, by the proof of a token for the tools.
    Tools { proof: String },
    /// Asks for a challenge, by which `proof` proves a token without showing it.
    AuthChallenge,
}

fn plain_lines(requests: &mut SchemaGenerator) -> Vec<Value> {
    let schema: Schema = PlainLine::json_schema(requests);
    let lines = schema.get("oneOf").and_then(Value::as_array);
    lines.cloned().unwrap_or_default()
}
