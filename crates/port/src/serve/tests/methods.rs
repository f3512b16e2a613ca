//! The rights to call each method, and its handling at a hub: a change of a right is a change of this table.

use std::fmt::Write as _;

use expect_test::expect_file;
use serde_json::Value;

use super::Port;
use super::docs::blocks;
use crate::serve::rpc::METHODS;
use crate::wire::AtHub;

#[test]
fn each_method_has_the_rights_of_the_table() {
    let mut table = String::new();
    for facts in METHODS.iter().map(|row| row.facts) {
        let hub = match facts.hub {
            AtHub::Port => "Port",
            AtHub::All(_) => "All",
            AtHub::Graph => "Graph",
            AtHub::One => "One",
        };
        let right = facts.token.right.map_or("-", |right| right.as_str());
        let steers = if facts.steers() { "steers" } else { "-" };
        let lasts = if facts.lasts { "lasts" } else { "-" };
        let (name, port, web, limit) = (facts.name, facts.port, facts.web, facts.token.limit);
        writeln!(table, "{name} {port:?} {web:?} {right} {limit:?} {steers} {lasts} {hub}")
            .unwrap();
    }
    expect_file!["methods.txt"].assert_eq(&table);
}

#[tokio::test]
async fn each_result_is_read_and_written_as_it_was() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    for block in blocks() {
        let message: Value = serde_json::from_str(block[0]).unwrap();
        let Some(row) = METHODS.iter().find(|row| message["method"] == row.facts.name) else {
            continue;
        };
        let answer = client.ask(row.facts.name, message["params"].clone()).await;
        if answer["type"] == "rpc_result" {
            let result = answer["result"].to_string();
            assert_eq!((row.again)(&result).unwrap(), result, "{}", row.facts.name);
        }
    }
}
