//! The example in C as a member of a team.

use serde_json::json;

use super::scene::{HOLD, PLAIN, compile, team};
use crate::harness::Stage;

#[test]
fn its_agent_is_prompted_held_and_answered() {
    for isolation in ["in-process", "process"] {
        let stage = Stage::new();
        let library = compile(&stage, PLAIN, "libplain.so", &[]);
        let team = team(&stage, &library, isolation, HOLD);
        let mut port = team.steer_when_ready(&["ui"]);

        for (line, action) in [("read", "read"), ("wrote", "write")] {
            let said = port.prompt("ui", &format!("say hello;{line} src/ui/app.ts;done"));
            assert_eq!(said, "hello", "{isolation}");
            port.expect_that("its file on the map", |line| {
                line["type"] == "delta"
                    && line["updates"].as_array().unwrap().iter().any(|node| {
                        node["path"] == "src/ui/app.ts" && node["last_action"] == action
                    })
            });
        }
        assert_eq!(port.prompt("ui", "may 1 write src/ui/app.ts"), "yes 1");
        assert_eq!(port.count(&json!({"type": "blocked"})), 0);

        // Names in a folder above the zone are not protected, contents of its files are.
        assert_eq!(port.prompt("ui", "may 1 read src"), "yes 1");
        assert_eq!(port.prompt("ui", "may 1 search src/ui"), "yes 1");
        for (decision, said) in [("deny", "no 3"), ("allow", "yes 3")] {
            let prompt = port.begin("ui", "may 3 search .");
            let blocked = port.blocked("pending");
            assert_eq!((&blocked["path"], &blocked["action"]), (&json!("."), &json!("read")));
            port.resolve(&blocked, &json!({"decision": decision})).unwrap();
            assert_eq!(port.said(prompt), said, "{isolation}");
        }

        for (decision, said) in [("allow", "yes 2"), ("deny", "no 2")] {
            let prompt = port.begin("ui", "may 2 write src/api/cart.rs");
            let blocked = port.blocked("pending");
            let seen = (&blocked["path"], &blocked["via"], &blocked["action"]);
            assert_eq!(seen, (&json!("src/api/cart.rs"), &json!("permission"), &json!("write")));
            port.resolve(&blocked, &json!({"decision": decision})).unwrap();
            assert_eq!(port.said(prompt), said, "{isolation}");
        }
    }
}

#[test]
fn text_comes_as_it_is_said_and_a_turn_can_be_cancelled() {
    for isolation in ["in-process", "process"] {
        let stage = Stage::new();
        let library = compile(&stage, PLAIN, "libplain.so", &[]);
        let team = team(&stage, &library, isolation, "");
        let mut port = team.steer_when_ready(&["ui"]);
        let prompt =
            port.ask("prompt", &json!({"agent_id": "ui", "text": "say on it", "stream": true}));
        port.expect(&json!({"type": "rpc_progress", "id": prompt, "text": "on it"}));
        port.call("cancel", &json!({"agent_id": "ui"})).unwrap();
        let result = port.answer(prompt).unwrap();
        assert_eq!(result["stop_reason"], "cancelled", "{isolation}: {result}");
        assert_eq!(port.prompt("ui", "say again;done"), "again");
    }
}
