//! `session/request_permission`: by policy inside the zone, with a refusal outside.

use serde_json::json;

use crate::harness::{Stage, agent};

/// The kernel would refuse the access itself, and the permission would be given.
const PROTOCOL: &str = "enforce = \"protocol\"";

#[test]
fn inside_the_zone_the_policy_chooses_among_what_was_offered() {
    let stage = Stage::new();
    let zone = "[agents.zone]\nallowed = [\"src/ui/**\"]";
    let team = stage.team(
        "",
        vec![
            agent("ui").with(zone),
            agent("strict").with(&format!("permissions = \"deny\"\n{zone}")),
        ],
    );
    let mut port = team.steer_when_ready(&["ui", "strict"]);
    assert_eq!(port.prompt("ui", "ask src/ui/app.ts"), "allow_once");
    assert_eq!(port.prompt("ui", "ask bluntly src/ui/app.ts"), "allow_once");
    assert_eq!(port.prompt("strict", "ask src/ui/app.ts"), "refused with reject_once");
    assert_eq!(port.prompt("strict", "ask bluntly src/ui/app.ts"), "the permission was cancelled");
    assert_eq!(port.count(&json!({"type": "blocked"})), 0);
}

#[test]
fn outside_the_zone_a_reject_option_is_chosen() {
    let stage = Stage::new();
    let team = stage.team(
        "",
        vec![agent("ui").zone("src/ui/**").with(PROTOCOL), agent("api").zone("src/api/**")],
    );
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "ask src/api/cart.rs"), "refused with reject_once");
    let blocked = port.blocked("denied");
    let seen = (&blocked["path"], &blocked["via"], &blocked["action"], &blocked["owners"]);
    let expected =
        (&json!("src/api/cart.rs"), &json!("permission"), &json!("write"), &json!(["api"]));
    assert_eq!(seen, expected);
    assert_eq!(port.prompt("ui", "ask bluntly src/api/cart.rs"), "the permission was cancelled");
}

#[test]
fn where_the_kernel_holds_the_zone_the_policy_answers_and_the_call_is_what_is_blocked() {
    let stage = Stage::new();
    let kernel = "[agents.zone]\nallowed = [\"src/ui/**\"]\nenforce = \"kernel\"";
    let team = stage.team(
        "",
        vec![
            agent("ui").with(kernel),
            agent("strict").with(&format!("permissions = \"deny\"\n{kernel}")),
        ],
    );
    let mut port = team.steer_when_ready(&["ui", "strict"]);
    assert_eq!(port.prompt("ui", "ask src/api/cart.rs"), "allow_once");
    assert_eq!(port.prompt("strict", "ask src/api/cart.rs"), "refused with reject_once");
    assert_eq!(port.count(&json!({"type": "blocked", "via": "permission"})), 0);
}

#[test]
fn a_turn_that_ends_on_a_denied_permission_says_so() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/ui/**").with(PROTOCOL)]);
    let mut port = team.steer_when_ready(&["ui"]);
    let prompt = port.begin("ui", "ask src/api/cart.rs");
    let why = "it ended after a permission was denied: `src/api/cart.rs` (b1)";
    assert_eq!(port.answer(prompt).unwrap()["reason"], why);
    assert_eq!(port.expect(&json!({"type": "turn"}))["reason"], why);
}

#[test]
fn a_permission_outside_the_zone_can_be_held_and_given() {
    let stage = Stage::new();
    let team = stage.team(
        "[orchestrator]\non_block = \"hold\"",
        vec![agent("ui").zone("src/ui/**").with(PROTOCOL)],
    );
    let mut port = team.steer_when_ready(&["ui"]);
    for (decision, said) in [("allow", "allow_once"), ("deny", "refused with reject_once")] {
        let prompt = port.begin("ui", "ask src/api/cart.rs");
        let blocked = port.blocked("pending");
        port.resolve(&blocked, &json!({"decision": decision})).unwrap();
        assert_eq!(port.said(prompt), said);
    }
    let prompt = port.begin("ui", "ask src/api/cart.rs");
    let blocked = port.blocked("pending");
    let error = port.resolve(&blocked, &json!({"decision": "answer", "content": "x"})).unwrap_err();
    assert_eq!(error["code"], 400, "{error}");
    port.call("cancel", &json!({"agent_id": "ui"})).unwrap();
    assert_eq!(port.blocked("expired")["id"], blocked["id"]);
    assert_eq!(port.answer(prompt).unwrap()["stop_reason"], "cancelled");
}

#[test]
fn permissions_can_be_the_orchestrators_to_give() {
    let stage = Stage::new();
    let ui = agent("ui")
        .with("permissions = \"orchestrator\"\n[agents.zone]\nallowed = [\"src/ui/**\"]");
    let team = stage.team("", vec![ui]);
    let mut port = team.steer_when_ready(&["ui"]);
    for (decision, said) in [("allow", "allow_once"), ("deny", "refused with reject_once")] {
        let prompt = port.begin("ui", "ask src/ui/app.ts");
        let blocked = port.blocked("pending");
        assert_eq!(
            (&blocked["path"], &blocked["via"]),
            (&json!("src/ui/app.ts"), &json!("permission"))
        );
        port.resolve(&blocked, &json!({"decision": decision})).unwrap();
        assert_eq!(port.said(prompt), said);
    }
}

#[test]
fn questions_to_the_user_are_answered_by_the_same_policy() {
    let question = |mode: &str, field: serde_json::Value| {
        let schema =
            json!({"type": "object", "properties": {"branch": field}, "required": ["branch"]});
        json!({
            "sessionId": "t", "message": "Which branch?", "mode": mode, "requestedSchema": schema,
            "elicitationId": "e", "url": "https://example.com/branch",
        })
    };
    for policy in ["allow", "deny", "orchestrator"] {
        let stage = Stage::new();
        let mut ui = stage.puppet("ui");
        let keys = format!("permissions = \"{policy}\"");
        let team = stage.team("", vec![agent("ui").puppet().with(&keys)]);
        let offered = ui.serve("initialize", &json!({"protocolVersion": 1}));
        assert_eq!(offered["clientCapabilities"]["elicitation"], json!({"form": {}}));
        ui.serve("session/new", &json!({"sessionId": "t"}));
        team.steer_when_ready(&["ui"]);
        let filled = json!({"type": "string", "default": "main"});
        let mut asked =
            |mode, field| ui.call("elicitation/create", &question(mode, field))["result"].clone();
        let declined = json!({"action": "decline"});
        let accepted = json!({"action": "accept", "content": {"branch": "main"}});
        let expected = if policy == "allow" { &accepted } else { &declined };
        assert_eq!(asked("form", filled.clone()), *expected, "{policy}");
        assert_eq!(asked("form", json!({"type": "string"})), declined, "{policy}");
        assert_eq!(asked("url", filled), declined, "{policy}");
        let malformed = ui.call("elicitation/create", &json!({"sessionId": "t", "mode": "form"}));
        assert_eq!(malformed["error"]["code"], -32602, "{malformed}");
    }
}
