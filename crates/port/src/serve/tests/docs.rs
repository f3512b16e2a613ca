//! Compares the examples in `docs/wire.md` with the server's lines.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Port, samples};
use crate::config;
use crate::serve::rpc::METHODS;

const DOCUMENT: &str = include_str!("../../../../../docs/wire.md");

pub(super) fn blocks() -> impl Iterator<Item = Vec<&'static str>> {
    DOCUMENT
        .split("```json\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default().lines().collect::<Vec<_>>())
}

fn field(line: &str, name: &str) -> String {
    let message: Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    message[name].as_str().unwrap_or_default().to_owned()
}

fn is_request(line: &str) -> bool {
    ["rpc", "auth", "request_snapshot", "set_stream_filter", "subscribe"]
        .contains(&field(line, "type").as_str())
}

#[test]
fn every_line_of_the_server_is_shown_as_it_is() {
    let shown: BTreeSet<_> =
        blocks().filter(|block| !is_request(block[0])).flatten().map(ToOwned::to_owned).collect();
    assert_eq!(shown, samples::lines().into_iter().collect());
}

#[tokio::test]
async fn every_exchange_goes_as_it_is_shown() {
    let port = Port::open().await;
    let mut client = port.join().await;
    let mut methods = BTreeSet::new();
    for block in blocks().filter(|block| is_request(block[0])) {
        methods.insert(field(block[0], "method"));
        client.send(block[0].replace("TOKEN", port.tokens.owner()) + "\n").await;
        for &shown in &block[1..] {
            assert_eq!(client.line().await.trim_end(), shown, "after {}", block[0]);
        }
    }
    for method in METHODS.iter().map(|row| row.facts.name) {
        assert!(methods.contains(method), "no example of `{method}`");
    }
}

#[test]
fn the_limits_are_the_defaults() {
    let config::Port { max_connections, max_line_bytes, backlog, backlog_bytes, write_deadline } =
        config::Port::default();
    for limit in [
        format!("`max_connections` = {max_connections} |"),
        format!("`max_line_bytes` = {max_line_bytes} |"),
        format!("`backlog` = {backlog}, `backlog_bytes` = {backlog_bytes} |"),
        format!("`write_deadline_s` = {} |", write_deadline.as_secs()),
    ] {
        assert!(DOCUMENT.contains(&limit), "{limit}");
    }
}
