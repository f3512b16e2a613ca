//! `compress`: what the agent is prompted with, what is told before and after, and exit codes.

use serde_json::{Value, json};

use super::Running;
use crate::harness::{Port, Puppet, Stage, agent, eventually};

fn update(ui: &mut Puppet, update: &Value) {
    let params = json!({"sessionId": "s1", "update": update});
    ui.send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
}

fn announce(ui: &mut Puppet, port: &mut Port, names: &[&str]) {
    let command = |name: &&str| json!({"name": name, "description": "d"});
    let commands: Vec<_> = names.iter().map(command).collect();
    let all = json!({"sessionUpdate": "available_commands_update", "availableCommands": commands});
    update(ui, &all);
    eventually("the command is known", || {
        let agents = port.call("list_agents", &json!({})).unwrap();
        agents[0]["compress"].as_str().is_some_and(|it| names.contains(&&it[1..]))
    });
}

fn report(ui: &mut Puppet, used: u64) {
    update(ui, &json!({"sessionUpdate": "usage_update", "used": used, "size": 2000}));
}

#[test]
fn the_agents_own_command_is_sent_and_the_tokens_are_told() {
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    let team = stage.team("", vec![agent("ui").puppet()]);
    ui.connect("s1");
    let mut port = team.steer_when_ready(&["ui"]);
    let unknown = stage.run(&["compress", "ui"]);
    assert_eq!((unknown.code, &*unknown.stdout), (2, ""));
    assert!(unknown.stderr.contains("set `compact` in a profile"), "{}", unknown.stderr);
    announce(&mut ui, &mut port, &["init", "summarize", "compress"]);

    report(&mut ui, 1500);
    let (compressing, lines) = Running::read(&stage, &["compress", "ui"]);
    let (turn, text) = ui.prompted();
    assert_eq!(text, "/compress");
    let busy = stage.run(&["compress", "ui"]);
    assert_eq!(busy.code, 1);
    assert!(busy.stderr.contains("`ui` is in a turn"), "{}", busy.stderr);
    let (waiting, after) = Running::read(&stage, &["compress", "ui", "--timeout", "50", "--json"]);
    eventually("the second waits", || {
        port.call("list_agents", &json!({})).unwrap()[0]["sessions"][0]["queued"] == 1
    });
    ui.say("s1", "It is shorter now.");
    report(&mut ui, 200);
    ui.end_turn(&turn);
    assert_eq!(lines.next().unwrap(), "ui: 1.5k → 200 of 2.0k tokens");
    assert_eq!(compressing.end(), (Some(0), String::new()));

    let (turn, _) = ui.prompted();
    ui.say("s1", "No.");
    ui.send(&json!({"jsonrpc": "2.0", "id": turn, "result": {"stopReason": "refusal"}}));
    let told: Value = serde_json::from_str(&after.next().unwrap()).unwrap();
    assert_eq!((&told["stop_reason"], &told["text"]), (&json!("refusal"), &json!("No.")));
    assert_eq!((&told["command"], &told["after"]["used"]), (&json!("/compress"), &json!(200)));
    assert_eq!(waiting.end().0, Some(5));
}

#[test]
fn a_compression_that_takes_too_long_is_cancelled() {
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    let team = stage.team("", vec![agent("ui").puppet()]);
    ui.connect("s1");
    let mut port = team.steer_when_ready(&["ui"]);
    announce(&mut ui, &mut port, &["compact"]);
    let (late, _lines) = Running::read(&stage, &["compress", "ui", "--timeout", "1"]);
    let (turn, _) = ui.prompted();
    ui.expect(&json!({"method": "session/cancel", "params": {"sessionId": "s1"}}));
    ui.send(&json!({"jsonrpc": "2.0", "id": turn, "result": {"stopReason": "cancelled"}}));
    let (code, said) = late.end();
    assert_eq!(code, Some(124));
    assert!(said.contains("the time is up"), "{said}");
}

#[test]
fn what_cannot_be_compressed_is_said() {
    let stage = Stage::new();
    let command = stage.command(&agent("api"));
    let config = format!(
        "[team]\nname = \"shop\"\nworkspace = \"shop\"\nlisten = \"127.0.0.1:0\"\n\
         [profiles.mine]\ncommand = {command:?}\ncompact = \"/shrink\"\n\
         [[agents]]\nid = \"ui\"\nprofile = \"mine\"\nautostart = false\n\
         [[agents]]\nid = \"api\"\nprofile = \"mine\"\n"
    );
    stage.file("eisen.toml", &config);
    let team = stage.up();
    team.steer_when_ready(&["api"]);
    for (args, why) in [
        (&["ui"][..], "agent `ui` is stopped, not ready"),
        (&["nobody"], "there is no agent `nobody`; there are: ui, api"),
        (&["api", "--session", "s9"], "agent `api` has no session `s9` open"),
    ] {
        let refused = stage.run(&[&["compress"], args].concat());
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
    // The script does nothing for it, and reports no tokens.
    let done = stage.run(&["compress", "api"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(done.stdout.contains("it does not report the tokens"), "{}", done.stdout);
}
