use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

/// Checks that a line of the port is one that `docs/wire.schema.json` foresees.
pub(crate) fn assert_server_line(line: &Value) {
    static LINES: OnceLock<Validator> = OnceLock::new();
    assert_valid(LINES.get_or_init(|| validator("#/$defs/ServerLine")), line);
}

/// Checks that a result is what `docs/wire.schema.json` foresees for the method.
pub(crate) fn assert_result(method: &str, result: &Value) {
    // The schema is long: each of its parts is read once.
    static RESULTS: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    let make = || Arc::new(validator(&format!("#/methods/{method}/result")));
    let validator = Arc::clone(
        RESULTS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(method.to_owned())
            .or_insert_with(make),
    );
    assert_valid(&validator, result);
}

/// One part of the schema.
struct Validator {
    schemas: Schemas,
    index: SchemaIndex,
}

const PLACE: &str = "test:///wire.schema.json";

fn validator(part: &str) -> Validator {
    let schema = serde_json::from_str(include_str!("../../../docs/wire.schema.json")).unwrap();
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource(PLACE, schema).unwrap();
    let index = compiler.compile(&format!("{PLACE}{part}"), &mut schemas).unwrap();
    Validator { schemas, index }
}

#[track_caller]
fn assert_valid(Validator { schemas, index }: &Validator, message: &Value) {
    let valid = schemas.validate(message, *index);
    assert!(valid.is_ok(), "{message}\n{}", valid.unwrap_err());
}
