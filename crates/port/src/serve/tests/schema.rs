//! `docs/wire.schema.json` is the schema of what really goes over the wire.

use boon::{Compiler, SchemaIndex, Schemas};
use expect_test::expect_file;
use serde_json::{Value, json};

use super::docs::blocks;
use super::{Port, samples};
use crate::serve::schema;

const PLACE: &str = "test:///wire.schema.json";

/// A validator for one part of the schema.
pub(super) struct Validator {
    schemas: Schemas,
    index: SchemaIndex,
}

pub(super) fn validator(part: &str) -> Validator {
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource(PLACE, schema()).unwrap();
    let index = compiler.compile(&format!("{PLACE}{part}"), &mut schemas).unwrap();
    Validator { schemas, index }
}

impl Validator {
    fn is_valid(&self, message: &Value) -> bool {
        self.schemas.validate(message, self.index).is_ok()
    }
}

#[track_caller]
fn assert_valid(Validator { schemas, index }: &Validator, message: &Value) {
    let valid = schemas.validate(message, *index);
    assert!(valid.is_ok(), "{message}\n{}", valid.unwrap_err());
}

#[test]
fn the_document_is_the_schema() {
    let schema = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    expect_file!["../../../../../docs/wire.schema.json"].assert_eq(&schema);
}

#[test]
fn every_line_of_the_server_is_valid() {
    let server = validator("#/$defs/ServerLine");
    for line in samples::lines() {
        assert_valid(&server, &serde_json::from_str(&line).unwrap());
    }
}

#[test]
fn every_example_of_a_client_is_valid() {
    let client = validator("#/$defs/ClientLine");
    for line in blocks().map(|block| block[0]) {
        let message: Value = serde_json::from_str(line).unwrap();
        let wrong = message["method"] == "dance" || message["id"].is_null();
        let is_request = ["rpc", "auth", "request_snapshot", "set_stream_filter", "subscribe"]
            .contains(&message["type"].as_str().unwrap_or_default());
        if is_request && !(message["type"] == "rpc" && wrong) {
            assert_valid(&client, &message);
        }
    }
}

#[tokio::test]
async fn every_result_is_valid() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    for block in blocks() {
        let message: Value = serde_json::from_str(block[0]).unwrap();
        let Some(method) = message["method"].as_str().filter(|method| *method != "dance") else {
            continue;
        };
        let answer = client.ask(method, message["params"].clone()).await;
        if answer["type"] == "rpc_result" {
            assert_valid(&validator(&format!("#/methods/{method}/result")), &answer["result"]);
        }
    }
}

#[test]
fn what_is_wrong_is_not_valid() {
    let server = validator("#/$defs/ServerLine");
    let mut message: Value = serde_json::from_str(&samples::lines()[3]).unwrap();
    assert_valid(&server, &message);
    message["updates"][0]["last_action"] = json!("dance");
    assert!(!server.is_valid(&message));
    let client = validator("#/$defs/ClientLine");
    assert!(client.is_valid(&json!({ "type": "rpc", "id": 1, "method": "prompt",
        "params": { "agent_id": "ui" } })));
    assert!(!client.is_valid(&json!({ "type": "rpc", "id": 1, "method": "prompt",
        "params": { "agent_id": 7 } })));
}
