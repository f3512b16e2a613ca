//! `on_block = "hold"`: an access outside the zone waits for a decision.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::harness::{Port, Puppet, Stage, Team, agent};

const HOLD: &str = "[orchestrator]\non_block = \"hold\"";
const OUTSIDE: &str =
    "Outside agent zone: src/api/cart.rs. Request cross-region info through the orchestrator.";

fn team(stage: &Stage) -> (Team, Port) {
    let team = stage.team(HOLD, vec![agent("ui").zone("src/ui/**")]);
    let port = team.steer_when_ready(&["ui"]);
    (team, port)
}

/// A team whose agent is played by the test, in the middle of a turn.
struct Held {
    port: Port,
    ui: Puppet,
    prompt: Value,
    path: String,
    pid: i32,
    _team: Team,
}

fn with_puppet(stage: &Stage, keys: &str) -> Held {
    let mut ui = stage.puppet("ui");
    let team = stage.team(keys, vec![agent("ui").puppet().zone("src/ui/**")]);
    ui.connect("u1");
    let mut port = team.steer();
    let pid = port.agent_is("ui", "ready")["pid"].as_i64().unwrap();
    port.begin("ui", "go");
    let (prompt, _) = ui.prompted();
    let path = stage.in_shop("src/api/cart.rs");
    Held { port, ui, prompt, path, pid: i32::try_from(pid).unwrap(), _team: team }
}

impl Held {
    /// Asks for a file outside the zone, and waits until that is pending.
    fn read(&mut self) -> (Value, Value) {
        let id = self.ui.ask("fs/read_text_file", &json!({"sessionId": "u1", "path": self.path}));
        (id, self.port.blocked("pending"))
    }

    fn expires(&mut self, blocked: &Value) {
        assert_eq!(self.port.blocked("expired")["id"], blocked["id"]);
        let pending = self.port.call("list_blocked", &json!({"status": "pending"}));
        assert_eq!(pending, Ok(json!([])));
        let error = self.port.resolve(blocked, &json!({"decision": "allow"})).unwrap_err();
        assert_eq!(error["code"], 409, "{error}");
    }
}

#[test]
fn each_decision_settles_it_in_its_way() {
    let stage = Stage::new();
    let (_team, mut port) = team(&stage);
    for (decision, status, said) in [
        (json!({"decision": "allow"}), "allowed", "got api\n".to_owned()),
        (json!({"decision": "answer", "content": "told\n"}), "answered", "got told\n".to_owned()),
        (json!({"decision": "deny"}), "denied", format!("refused: {OUTSIDE}")),
        (
            json!({"decision": "deny", "message": "Ask api."}),
            "denied",
            format!("refused: {OUTSIDE} Ask api."),
        ),
    ] {
        let prompt = port.begin("ui", "read src/api/cart.rs");
        let blocked = port.blocked("pending");
        assert_eq!(port.resolve(&blocked, &decision).unwrap()["status"], status);
        assert_eq!(port.blocked(status)["id"], blocked["id"]);
        assert_eq!(port.said(prompt), said);
    }
    assert_eq!(port.count(&json!({"type": "blocked"})), 8);
}

#[test]
fn one_decision_for_the_session_is_enough() {
    let stage = Stage::new();
    let (_team, mut port) = team(&stage);
    let prompt = port.begin("ui", "read twice src/api/cart.rs");
    let blocked = port.blocked("pending");
    port.resolve(&blocked, &json!({"decision": "allow", "scope": "session"})).unwrap();
    assert_eq!(port.said(prompt), "got api\ngot api\n");
    assert_eq!(port.prompt("ui", "read src/api/cart.rs"), "got api\n");
    assert_eq!(port.count(&json!({"type": "blocked", "status": "pending"})), 1);
}

#[test]
fn what_nobody_decides_is_denied_in_time() {
    let stage = Stage::new();
    let keys = "[orchestrator]\non_block = \"hold\"\nhold_timeout_s = 1";
    let team = stage.team(keys, vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let prompt = port.begin("ui", "read src/api/cart.rs");
    let blocked = port.blocked("pending");
    assert_eq!(port.blocked("denied")["id"], blocked["id"]);
    assert!(port.said(prompt).starts_with(&format!("refused: {OUTSIDE}")));
    // Late, but not too late for the next try.
    port.resolve(&blocked, &json!({"decision": "allow"})).unwrap();
    assert_eq!(port.prompt("ui", "read src/api/cart.rs"), "got api\n");
}

#[test]
fn later_lines_pass_while_it_waits() {
    let stage = Stage::new();
    let mut held = with_puppet(&stage, HOLD);
    let (id, blocked) = held.read();
    let own = stage.in_shop("src/ui/app.ts");
    let answer = held.ui.call("fs/read_text_file", &json!({"sessionId": "u1", "path": own}));
    assert_eq!(answer["result"]["content"], "ui\n");
    held.port.resolve(&blocked, &json!({"decision": "allow"})).unwrap();
    assert_eq!(held.ui.answer(&id)["result"]["content"], "api\n");
}

#[test]
fn deciding_one_settles_all_alike() {
    let stage = Stage::new();
    let mut held = with_puppet(&stage, HOLD);
    let (first, blocked) = held.read();
    let (second, again) = held.read();
    assert_ne!(blocked["id"], again["id"]);
    held.port.resolve(&again, &json!({"decision": "allow"})).unwrap();
    for id in [first, second] {
        assert_eq!(held.ui.answer(&id)["result"]["content"], "api\n");
    }
    assert_eq!(held.port.count(&json!({"type": "blocked", "status": "allowed"})), 2);
    // It may be asked again later.
    held.read();
}

#[test]
fn a_cancelled_turn_lets_it_go() {
    let stage = Stage::new();
    let mut held = with_puppet(&stage, HOLD);
    let (id, blocked) = held.read();
    held.port.call("cancel", &json!({"agent_id": "ui"})).unwrap();
    assert_eq!(held.ui.answer(&id)["error"]["code"], -32800);
    held.expires(&blocked);
}

#[test]
fn the_end_of_its_turn_lets_it_go() {
    let stage = Stage::new();
    let mut held = with_puppet(&stage, HOLD);
    let (id, blocked) = held.read();
    let prompt = held.prompt.clone();
    held.ui.end_turn(&prompt);
    assert_eq!(held.ui.answer(&id)["error"]["code"], -32800);
    held.expires(&blocked);
}

#[test]
fn an_agent_may_withdraw_its_own_request() {
    let stage = Stage::new();
    let mut held = with_puppet(&stage, HOLD);
    let (id, blocked) = held.read();
    let cancel =
        json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}});
    held.ui.send(&cancel);
    assert_eq!(held.ui.answer(&id)["error"]["code"], -32800);
    held.expires(&blocked);
}

#[test]
fn the_death_of_its_agent_lets_it_go() {
    let stage = Stage::new();
    let mut held = with_puppet(&stage, HOLD);
    let (_, blocked) = held.read();
    kill(Pid::from_raw(held.pid), Signal::SIGKILL).unwrap();
    held.expires(&blocked);
    let turn = held.port.expect(&json!({"type": "turn", "agent_id": "ui"}));
    assert_eq!(turn["stop_reason"], "error");
}

#[test]
fn a_stop_of_its_agent_lets_it_go() {
    let stage = Stage::new();
    let mut held = with_puppet(&stage, HOLD);
    let (_, blocked) = held.read();
    held.port.call("stop_agent", &json!({"agent_id": "ui"})).unwrap();
    held.expires(&blocked);
    held.port.agent_is("ui", "stopped");
}

/// A secret in the zone: a person is asked, whatever touches it, and no agent decides.
#[test]
fn a_secret_is_asked_for_by_whatever_it_is_touched() {
    let stage = Stage::new();
    let keys = "[zones]\nsecrets = \"ask\"";
    let team = stage.team(keys, vec![agent("ui").zone("**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    for order in ["read .env", "run cat .env"] {
        let prompt = port.begin("ui", order);
        let blocked = port.blocked("pending");
        assert_eq!((&blocked["path"], &blocked["denied_by"]), (&".env".into(), &Value::Null));
        port.resolve(&blocked, &json!({"decision": "allow"})).unwrap();
        let said = port.said(prompt);
        assert!(said.contains("SECRET=1"), "{order}: {said}");
    }
    let prompt = port.begin("ui", "read .env");
    let blocked = port.blocked("pending");
    port.resolve(&blocked, &json!({"decision": "deny"})).unwrap();
    assert!(port.said(prompt).starts_with("refused: "));
    assert_eq!(port.prompt("ui", "read src/ui/app.ts"), "got ui\n");
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_in_folders_that_are_missing_is_one_question_to_a_shell() {
    let stage = Stage::new();
    let ui = agent("ui").zone("src/ui/**").with("enforce = \"kernel\"");
    let team = stage.team("[orchestrator]\non_block = \"hold\"", vec![ui]);
    let mut port = team.steer_when_ready(&["ui"]);
    let allow = json!({ "decision": "allow" });
    let deny = json!({ "decision": "deny" });
    let prompt = port.begin("ui", "run mkdir -p new/deep && echo x > new/deep/f; echo made");
    let asked = port.blocked("pending");
    assert_eq!(
        (&asked["path"], &asked["action"]),
        (&json!("new/deep/f"), &json!("write")),
        "{asked}"
    );
    port.resolve(&asked, &allow).unwrap();
    assert_eq!(
        (port.said(prompt), stage.read("shop/new/deep/f")),
        ("made\n".to_owned(), "x\n".to_owned())
    );
    assert_eq!(port.call("list_blocked", &json!({})).unwrap().as_array().unwrap().len(), 1);

    // In one and the same call nothing else is made in the folders: a shell finds the name of one, which nobody means,
    // and the arguments of a program name the other.
    let line = "run (mkdir -p more/deep && echo x > more/deep/f; echo y > more/deep/$(echo g); \
                mkdir more/deep/$(echo sub) more/$(echo other)) 2>/dev/null; echo ended";
    let prompt = port.begin("ui", line);
    let asked = port.blocked("pending");
    assert_eq!(asked["path"], "more/deep/f");
    port.resolve(&asked, &allow).unwrap();
    for path in ["more/deep/sub", "more/other"] {
        let asked = port.blocked("pending");
        assert_eq!(asked["path"], path);
        port.resolve(&asked, &deny).unwrap();
    }
    assert_eq!(port.said(prompt), "ended\n");
    assert_eq!(stage.read("shop/more/deep/f"), "x\n");
    assert!(["g", "sub", "../other"].iter().all(|it| !stage.has(format!("shop/more/deep/{it}"))));
}
