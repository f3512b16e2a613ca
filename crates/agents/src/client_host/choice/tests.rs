#![allow(clippy::unwrap_used)]

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

fn reported(chosen: Result<&Choice, HostError>) -> String {
    match chosen {
        Ok(Choice { id, how, .. }) => format!("{id} by {how:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_choice_is_meant_by_id_then_name_then_either_in_any_case() {
    let opened = json!({ "models": { "availableModels": [
        { "modelId": "opus", "name": "Opus" },
        { "modelId": "fast", "name": "opus" },
        { "modelId": "m-3", "name": "Haiku 3" },
        { "name": "has no id" },
        "no object",
    ] } });
    let check = |wanted: &str, expected: Expect| {
        expected.assert_eq(&reported(choose("model", wanted, &models(&opened))));
    };
    check("opus", expect!["opus by Model"]);
    check("Opus", expect!["opus by Model"]);
    check("OPUS", expect!["opus by Model"]);
    check(" haiku 3 ", expect!["m-3 by Model"]);
    check("sonnet", expect!["the agent offers no model `sonnet`; it offers `fast`, `m-3`, `opus`"]);
    check("", expect!["the agent offers no model ``; it offers `fast`, `m-3`, `opus`"]);
}

#[test]
fn both_ways_of_announcing_are_searched() {
    let opened = json!({
        "modes": { "availableModes": [{ "id": "ask", "name": "Ask" }] },
        "models": { "availableModels": [{ "modelId": "old", "name": "Old" }] },
        "configOptions": [
            { "id": "model", "options": [{ "value": "not this", "name": "" }] },
            { "id": "llm", "category": "model", "options": [
                { "group": "g", "name": "G", "options": [{ "value": "new", "name": "New" }] },
                { "group": "h", "name": "H", "options": [{ "value": "newer", "name": "Newer" }] },
            ] },
            { "id": "mode", "type": "boolean", "currentValue": true },
        ],
    });
    let check = |chosen: String, expected: Expect| expected.assert_eq(&chosen);
    let model = |wanted| reported(choose("model", wanted, &models(&opened)));
    check(model("newer"), expect![[r#"newer by Option("llm")"#]]);
    check(model("Old"), expect!["old by Model"]);
    check(
        model("not this"),
        expect!["the agent offers no model `not this`; it offers `new`, `newer`, `old`"],
    );
    check(reported(choose("mode", "ask", &modes(&opened))), expect!["ask by Mode"]);
    check(
        reported(choose("mode", "plan", &modes(&json!(null)))),
        expect!["the agent offers no mode `plan`; it offers none"],
    );
}

#[test]
fn an_error_names_a_few() {
    let ids: Vec<_> = (0..11).map(|n| n.to_string()).collect();
    assert_eq!(list(&ids), "`0`, `1`, `2`, `3`, `4`, `5`, `6`, `7` and 3 more");
}

/// Checks an excerpt of what an agent answers to `initialize` and `session/new`.
fn understood(answer: &Value, mode: &str, model: &str, expected: &Expect) {
    let auth = auth_methods(answer);
    let auth: Vec<_> = auth.iter().map(|method| method.id.as_str()).collect();
    expected.assert_eq(&format!(
        "auth: {}\nmode: {}\nmodel: {}\n",
        list(&auth),
        reported(choose("mode", mode, &modes(answer))),
        reported(choose("model", model, &models(answer)))
    ));
}

#[test]
fn agents_that_announce_in_one_way_are_understood() {
    // OpenCode: options only.
    understood(
        &json!({
            "authMethods": [{ "name": "Login with opencode", "id": "opencode-login" }],
            "configOptions": [
                { "id": "model", "name": "Model", "category": "model", "type": "select",
                  "currentValue": "fake/fake-model",
                  "options": [{ "value": "fake/fake-model", "name": "Fake/Fake Model" }] },
                { "id": "mode", "name": "Session Mode", "category": "mode", "type": "select",
                  "currentValue": "build",
                  "options": [{ "value": "build", "name": "build" },
                              { "value": "plan", "name": "plan", "description": "Plan mode." }] },
            ],
        }),
        "plan",
        "fake/fake-model",
        &expect![[r#"
            auth: `opencode-login`
            mode: plan by Option("mode")
            model: fake/fake-model by Option("model")
        "#]],
    );
    // Gemini: no options.
    understood(
        &json!({
            "authMethods": [
                { "id": "oauth-personal", "name": "Log in with Google" },
                { "id": "gemini-api-key", "name": "Gemini API key",
                  "_meta": { "api-key": { "provider": "google" } } },
            ],
            "modes": { "currentModeId": "default", "availableModes": [
                { "id": "default", "name": "Default", "description": "Prompts for approval" },
                { "id": "yolo", "name": "YOLO", "description": "Auto-approves all tools" },
            ] },
            "models": { "currentModelId": "gemini-2.5-pro", "availableModels": [
                { "modelId": "auto", "name": "Auto" },
                { "modelId": "gemini-2.5-pro", "name": "gemini-2.5-pro" },
            ] },
        }),
        "yolo",
        "Auto",
        &expect![[r"
            auth: `oauth-personal`, `gemini-api-key`
            mode: yolo by Mode
            model: auto by Model
        "]],
    );
}

#[test]
fn agents_that_announce_in_part_or_twice_are_understood() {
    // Vibe: modes both ways, models as an option only.
    understood(
        &json!({
            "authMethods": [],
            "modes": { "currentModeId": "ask", "availableModes": [
                { "id": "ask", "name": "Ask" },
                { "id": "auto-approve", "name": "Auto Approve" },
            ] },
            "configOptions": [
                { "id": "mode", "name": "Session Mode", "category": "mode", "type": "select",
                  "currentValue": "ask",
                  "options": [{ "value": "ask", "name": "Ask" },
                              { "value": "auto-approve", "name": "Auto Approve" }] },
                { "id": "model", "name": "Model", "category": "model", "type": "select",
                  "currentValue": "fake",
                  "options": [{ "value": "fake", "name": "fake" },
                              { "value": "mistral-medium-3.5", "name": "Mistral Medium 3.5" }] },
                { "id": "thinking", "name": "Thinking", "category": "thinking", "type": "select",
                  "currentValue": "off", "options": [{ "value": "off", "name": "Off" }] },
            ],
        }),
        "Auto Approve",
        "mistral medium 3.5",
        &expect![[r#"
            auth: none
            mode: auto-approve by Mode
            model: mistral-medium-3.5 by Option("model")
        "#]],
    );
    // Copilot: modes with addresses for ids, and no models.
    understood(
        &json!({
            "authMethods": [{ "id": "copilot-login", "name": "Log in with Copilot CLI",
                              "_meta": { "terminal-auth": { "args": ["login"] } } }],
            "modes": { "availableModes": [
                { "id": "https://agentclientprotocol.com/protocol/session-modes#plan",
                  "name": "Plan" },
            ] },
            "configOptions": [
                { "type": "select", "id": "allow_all", "name": "Allow All",
                  "category": "permissions", "currentValue": "off",
                  "options": [{ "value": "on", "name": "On" }] },
            ],
        }),
        "plan",
        "gpt",
        &expect![[r"
            auth: `copilot-login`
            mode: https://agentclientprotocol.com/protocol/session-modes#plan by Mode
            model: the agent offers no model `gpt`; it offers none
        "]],
    );
}
