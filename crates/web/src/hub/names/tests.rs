#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use expect_test::expect_file;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::wire::{CheckTasks, GetDiff, ListBlocked, Method as _, PromptAgent, ResolveBlocked};

const DOCUMENT: &str = include_str!("../../../../../docs/wire.md");

/// The examples of the document: blocks of lines, of which the first may be a request.
fn examples() -> impl Iterator<Item = Vec<Value>> {
    let blocks = DOCUMENT.split("```json\n").skip(1);
    blocks.map(|rest| {
        let block = rest.split("```").next().unwrap_or_default();
        block.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    })
}

fn method_of(request: &Value) -> Option<&'static Facts> {
    serve::facts(request["method"].as_str()?)
}

fn line(line: &Value, host: &str) -> Value {
    let mut line = line.clone();
    let kind = line["type"].as_str().unwrap_or_default().to_owned();
    line_to_hub(&mut line, &kind, host);
    line
}

fn result(method: &Facts, result: &Value, host: &str) -> Value {
    let mut result = result.clone();
    result_to_hub(&mut result, method, host);
    result
}

/// Takes the hosts out of params; the host, or the error.
fn params(method: &Facts, params: &Value) -> (Value, Result<Option<String>, String>) {
    let mut fields = params.as_object().cloned().unwrap_or_default();
    let host = from_hub(&mut fields, method);
    (fields.into(), host)
}

/// All examples, as a hub named `a` has them.
fn renamed() -> String {
    let mut text = String::new();
    for block in examples() {
        let (first, answers) = block.split_first().unwrap();
        let Some(method) = method_of(first) else {
            for shown in &block {
                writeln!(text, "{}", line(shown, "a")).unwrap();
            }
            continue;
        };
        let (params, host) = params(method, &first["params"]);
        writeln!(text, "{} {params} {host:?}", method.name).unwrap();
        for answer in answers.iter().filter(|answer| answer["type"] == "rpc_result") {
            writeln!(text, "  {}", result(method, &answer["result"], "a")).unwrap();
        }
    }
    text
}

#[test]
fn the_examples_of_the_document_get_the_host_where_they_have_names() {
    expect_file!["examples.txt"].assert_eq(&renamed());
}

#[test]
fn names_get_the_host_and_words_do_not() {
    let blocked = json!({
        "type": "blocked", "agent_id": "ui", "session_id": "s", "id": "b1",
        "owners": ["api", "db"], "orchestrator": { "agent_id": "lead", "session_id": "l" },
        "decided_by": "agent:api", "answered_by": "api", "path": "b1", "reason": "ui",
    });
    let wanted = json!({
        "type": "blocked", "agent_id": "a/ui", "session_id": "s", "id": "a/b1",
        "owners": ["a/api", "a/db"],
        "orchestrator": { "agent_id": "a/lead", "session_id": "l" },
        "decided_by": "agent:a/api", "answered_by": "a/api", "path": "b1", "reason": "ui",
    });
    assert_eq!(line(&blocked, "a"), wanted);
    // A row of a list is as a line.
    assert_eq!(result(&ListBlocked::FACTS, &json!([blocked]), "a"), json!([wanted]));
    let event = json!({ "agent_id": "ui", "update": { "agent_id": "ui", "id": "b1" } });
    let event = json!({ "type": "session_update", "agent_id": "ui", "update": event });
    assert_eq!(line(&event, "a")["update"], event["update"]);
    let tasks = json!({ "tasks": [{ "id": "t-0123abcd", "agent": "ui" }], "cursor": 4 });
    let wanted = json!({ "tasks": [{ "id": "a/t-0123abcd", "agent": "a/ui" }], "cursor": 4 });
    assert_eq!(result(&CheckTasks::FACTS, &tasks, "a"), wanted);
}

#[test]
fn an_agent_of_another_host_keeps_its_host() {
    let blocked = json!({ "type": "blocked", "agent_id": "ui",
        "orchestrator": { "agent_id": "b/lead" }, "decided_by": "agent:b/lead" });
    let wanted = json!({ "type": "blocked", "agent_id": "a/ui",
        "orchestrator": { "agent_id": "b/lead" }, "decided_by": "agent:b/lead" });
    assert_eq!(line(&blocked, "a"), wanted);
    let given = |by: &str| line(&json!({ "type": "task", "by": by }), "a")["by"].clone();
    assert_eq!(["lead", "b/lead", "orchestrator"].map(given), ["a/lead", "b/lead", "orchestrator"]);
}

#[test]
fn params_name_one_host() {
    let named = || Ok(Some("a".to_owned()));
    for (method, given, left, host) in [
        (
            &PromptAgent::FACTS,
            json!({ "agent_id": "a/ui", "text": "x/y" }),
            json!({ "agent_id": "ui", "text": "x/y" }),
            named(),
        ),
        (
            &CheckTasks::FACTS,
            json!({ "ids": ["a/t-1", "a/t-2"], "host": "a" }),
            json!({ "ids": ["t-1", "t-2"] }),
            named(),
        ),
        // A tool calls the agent otherwise.
        (&GetDiff::FACTS, json!({ "agent": "a/ui" }), json!({ "agent": "ui" }), named()),
        (&GetDiff::FACTS, json!({ "host": "a" }), json!({}), named()),
        (&GetDiff::FACTS, json!({ "path": "a/b" }), json!({ "path": "a/b" }), Ok(None)),
    ] {
        assert_eq!(params(method, &given), (left, host), "{given}");
    }
    let several = json!({ "ids": ["a/t-1", "b/t-2"] });
    assert!(params(&CheckTasks::FACTS, &several).1.is_err());
    assert!(params(&ResolveBlocked::FACTS, &json!({ "id": "a/b1", "host": "b" })).1.is_err());
    assert!(params(&GetDiff::FACTS, &json!({ "host": 1 })).1.is_err());
}

proptest! {
    /// A line of a later version passes whole: what it has besides stays, whatever its name.
    #[test]
    fn fields_of_other_versions_stay(
        name in "[a-z_]{1,12}", text in ".{0,8}", host in "[a-z]{1,4}", at in any::<prop::sample::Index>(),
    ) {
        let lines: Vec<Value> = examples().filter(|it| method_of(&it[0]).is_none()).flatten().collect();
        let shown = at.get(&lines);
        prop_assume!(shown.get(&name).is_none());
        let mut later = shown.clone();
        let new = json!({ "new": [{ "agent_id": text, "id": "b1" }] });
        later[format!("later_{name}")] = new.clone();
        let mut wanted = line(shown, &host);
        wanted[format!("later_{name}")] = new;
        prop_assert_eq!(line(&later, &host), wanted);
    }
}
