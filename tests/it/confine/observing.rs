//! Agents that are observed: nothing stops them but what is closed whoever asks, and all is counted.

use serde_json::{Value, json};

use crate::harness::{Port, Stage, Team, agent};

const OBSERVED: &str = "enforce = \"observe\"\ndenied = [\"types/**\"]";

/// What the journal has of the uses of a path: a line each.
fn uses(port: &mut Port, path: &str) -> Vec<String> {
    let found = port.call("list_events", &json!({ "types": ["path.use"] })).unwrap();
    let of_path = |event: &&Value| event["payload"]["path"] == path;
    let line = |event: &Value| {
        let payload = &event["payload"];
        let text = |key: &str| payload[key].as_str().unwrap_or("-").to_owned();
        let mark = |key: &'static str| if payload[key] == true { key } else { "-" };
        let call = if payload["tool_call_id"].is_string() { "call" } else { "-" };
        let marks = [mark("named"), mark("outside"), call].join(" ");
        format!("{} by {}: {marks}", text("action"), text("program"))
    };
    found["events"].as_array().unwrap().iter().filter(of_path).map(line).collect()
}

#[test]
fn an_observed_agent_is_stopped_only_where_it_is_denied_and_all_it_uses_is_counted() {
    let stage = Stage::new();
    let ui = agent("ui").zone("src/ui/**").with(OBSERVED);
    let zones = "[zones]\nsecrets = \"deny\"";
    let team = stage.team(zones, vec![ui]);
    let mut port = team.steer_when_ready(&["ui"]);

    let line = "cat src/api/cart.rs src/ui/app.ts && sed -i s/order/changed/ src/api/order.rs";
    let said = port.prompt("ui", &format!("run {line}"));
    assert_eq!(said, "api\nui\n");
    assert_eq!(stage.read("shop/src/api/order.rs"), "changed\n");
    // By its client, too.
    assert_eq!(port.prompt("ui", "read src/api/cart.rs"), "got api\n");
    for closed in ["types/cart.ts", ".env"] {
        // A shell finds the name; the zone does not see the text.
        let said = port.prompt("ui", &format!("run eval \"cat $(echo {closed})\""));
        assert!(!["types\n", "SECRET=1\n"].contains(&&*said), "{closed}: {said}");
        assert!(port.prompt("ui", &format!("read {closed}")).starts_with("refused"), "{closed}");
    }

    assert_eq!(uses(&mut port, "src/api/cart.rs"), ["read by cat: named outside call"]);
    assert_eq!(uses(&mut port, "src/ui/app.ts"), ["read by cat: named - call"]);
    // The draft of `sed` has no line of its own.
    let order = uses(&mut port, "src/api/order.rs");
    assert!(order.contains(&"write by sed: named outside call".to_owned()), "{order:?}");
    assert_eq!(uses(&mut port, "types/cart.ts"), [""; 0]);
    let ps = stage.run(&["ps"]);
    assert!(ps.stdout.contains("observed"), "{}", ps.stdout);
    let check = stage.run(&["check", "-c", "eisen.toml"]);
    assert!(check.stdout.contains("observed, not stopped"), "{}", check.stdout);
    drop(port);
    let ended = team.stop();
    assert!(ended.stderr.contains("observed and not stopped"), "{}", ended.stderr);
}

#[test]
fn up_observes_all_agents_of_one_run() {
    let stage = Stage::new();
    stage.configure("", vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**")]);
    let team = Team::of(stage.start(&["up", "-c", "eisen.toml", "--observe"]), &stage);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    assert_eq!(port.prompt("ui", "run cat src/api/cart.rs"), "api\n");
    assert_eq!(port.prompt("api", "read src/ui/app.ts"), "got ui\n");
    // Files with secrets are asked for, whatever the file says of these.
    let prompt = port.begin("ui", "run cat .env; true");
    let blocked = port.blocked("pending");
    assert_eq!(blocked["path"], ".env");
    port.resolve(&blocked, &json!({ "decision": "deny" })).unwrap();
    let said = port.said(prompt);
    assert!(!said.contains("SECRET"), "{said}");
    // Another reading of the file changes nothing of that.
    port.call("reload", &json!({})).unwrap();
    assert_eq!(port.prompt("ui", "run cat src/api/cart.rs"), "api\n");
    drop(port);
    team.stop();
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    assert_ne!(port.prompt("ui", "run cat src/api/cart.rs"), "api\n");
}

#[test]
fn observing_begins_with_a_start_and_ends_at_once() {
    let stage = Stage::new();
    let configure = |enforce: &str| {
        stage.configure("", vec![agent("ui").zone("src/ui/**").with(enforce)]);
    };
    configure("enforce = \"auto\"");
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    let tries = |port: &mut Port| {
        let by_program = port.prompt("ui", "run cat src/api/cart.rs") == "api\n";
        (by_program, port.prompt("ui", "read src/api/cart.rs") == "got api\n")
    };
    configure("enforce = \"observe\"");
    let changes = port.call("reload", &json!({})).unwrap();
    assert_eq!(changes["needs_restart"][0]["key"], "zone.enforce");
    assert_eq!(tries(&mut port), (false, false));
    port.call("restart_agent", &json!({ "agent_id": "ui" })).unwrap();
    port.agent_is("ui", "ready");
    assert_eq!(tries(&mut port), (true, true));
    configure("enforce = \"auto\"");
    port.call("reload", &json!({})).unwrap();
    assert_eq!(tries(&mut port), (false, false));
}
