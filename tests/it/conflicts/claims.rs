//! Claims: an agent locks files before it writes them, by its tools.

use serde_json::{Value, json};

use super::FILE;
use crate::harness::{Stage, agent, eventually};
use crate::serve::tools::{Client, server};

#[test]
fn a_claimed_file_is_others_again_once_it_is_released() {
    let stage = Stage::new();
    let [mut ui, mut api] = ["ui", "api"].map(|name| stage.puppet(name));
    let zoned = |name: &str| agent(name).puppet().zone("src/**");
    let team = stage.team(
        "[conflicts]\n[orchestrator]\non_block = \"hold\"\n",
        vec![zoned("ui"), zoned("api")],
    );
    ui.serve("initialize", &json!({ "protocolVersion": 1 }));
    let ui_server = server(&ui.serve("session/new", &json!({ "sessionId": "s-ui" })));
    api.connect("s-api");
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let mut tools = Client::of(&ui_server);
    let mut call = |tool: &str, arguments: Value| tools.call(tool, &arguments);
    let outside = call("claim", json!({ "paths": ["types/cart.ts"] }));
    assert_eq!(outside["isError"], true, "{outside}");
    let claimed = call("claim", json!({ "symbols": ["src/ui/app.ts::App"], "ttl_s": 600 }));
    let lock = claimed["structuredContent"]["locks"][0].clone();
    assert_eq!(lock["path"], FILE, "{claimed}");

    let task = json!({ "agent": "api", "task": "write it" });
    let task = port.call("delegate_task", &task).unwrap()["id"].clone();
    let (turn, _) = api.prompted();
    let write = json!({ "sessionId": "s-api", "path": stage.in_shop(FILE), "content": "api\n" });
    let held = api.ask("fs/write_text_file", &write);
    port.expect(&json!({ "type": "conflict", "kind": "held", "status": "pending" }));
    let task_state = |port: &mut crate::harness::Port| {
        let found = port.call("check_tasks", &json!({ "ids": [task] })).unwrap();
        found["tasks"][0]["state"].as_str().unwrap().to_owned()
    };
    eventually("the task waits", || task_state(&mut port) == "waiting_lock");
    let wrong = call("release", json!({ "paths": [FILE], "fence": 1_000_000 }));
    assert_eq!(wrong["isError"], true, "{wrong}");
    let released = call("release", json!({ "paths": [FILE], "fence": lock["fence"] }));
    assert_eq!(released["structuredContent"]["released"], json!([FILE]), "{released}");
    assert_eq!(api.answer(&held)["result"], json!({}));
    assert_eq!(stage.read(&format!("shop/{FILE}")), "api\n");
    eventually("the task runs", || task_state(&mut port) == "running");
    let taken = call("claim", json!({ "paths": [FILE] }));
    assert!(taken.to_string().contains("`api` has"), "{taken}");
    api.end_turn(&turn);
}
