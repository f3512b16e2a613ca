use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::{Value, json};

/// Checks that a line of the port is one that `docs/wire.schema.json` foresees.
pub(crate) fn assert_server_line(line: &Value) {
    static LINES: OnceLock<Validator> = OnceLock::new();
    assert_valid(LINES.get_or_init(|| validator("#/$defs/ServerLine")), line);
}

/// Checks that a result is what `docs/wire.schema.json` foresees for the method.
pub(crate) fn assert_result(method: &str, result: &Value) {
    assert_valid(&validator(&format!("#/methods/{method}/result")), result);
}

fn validator(part: &str) -> Validator {
    let mut schema: Value =
        serde_json::from_str(include_str!("../../../docs/wire.schema.json")).unwrap();
    schema.as_object_mut().unwrap().remove("anyOf");
    schema["$ref"] = json!(part);
    jsonschema::validator_for(&schema).unwrap()
}

#[track_caller]
fn assert_valid(validator: &Validator, message: &Value) {
    let errors = validator.iter_errors(message);
    let errors: Vec<_> =
        errors.map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{message}\n{}", errors.join("\n"));
}
