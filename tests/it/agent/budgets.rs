//! Agents whose budget, or whose team's, is used up.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::{EISEN_CORE, Port, Stage, Team, agent};

fn team(stage: &Stage, of_team: &str, of_agent: &str) -> (Team, Port) {
    let ui = agent("ui").with(&format!("[agents.budget]\n{of_agent}"));
    let team = stage.team(&format!("[budget]\n{of_team}"), vec![ui, agent("api")]);
    let port = team.steer_when_ready(&["ui", "api"]);
    (team, port)
}

#[track_caller]
fn assert_refused(answer: Result<Value, Value>, why: &str) {
    let error = answer.unwrap_err();
    assert_eq!(error["code"], 409, "{error}");
    assert!(error["message"].as_str().unwrap().contains(why), "{error}");
}

fn prompt(port: &mut Port, agent: &str, text: &str) -> Result<Value, Value> {
    port.call("prompt", &json!({"agent_id": agent, "text": text}))
}

/// What the budget of an agent, or of the team, has used of its tokens.
fn used(port: &mut Port, agent: Option<&str>) -> u64 {
    let all = port.call("list_budgets", &json!({})).unwrap();
    let own = all.as_array().unwrap().iter().find(|it| it["agent_id"].as_str() == agent);
    own.unwrap()["tokens"]["used"].as_u64().unwrap()
}

#[test]
fn a_turn_ends_at_its_next_tool_call_and_prompts_are_refused_until_the_budget_is_raised() {
    let stage = Stage::new();
    let (team, mut port) = team(&stage, "", "tokens = 10_000");
    let why = "the budget of `ui` is used up: ";
    let ended = prompt(&mut port, "ui", "go wild").unwrap();
    assert_eq!(ended["stop_reason"], "cancelled");
    assert!(ended["reason"].as_str().unwrap().starts_with(why), "{ended}");
    let line = port.expect(&json!({"type": "budget", "state": "exceeded"}));
    assert!(line["reason"].as_str().unwrap().starts_with(why), "{line}");
    port.expect_that("the agent's reason", |line| {
        line["type"] == "agent"
            && line["agent_id"] == "ui"
            && line["reason"].as_str().is_some_and(|reason| reason.starts_with(why))
    });
    // Past the limit by no more than a call that was under way.
    let before = used(&mut port, Some("ui"));
    assert!((10_000..=12_000).contains(&before), "{before}");
    assert_refused(prompt(&mut port, "ui", "hello"), why);
    let shown = stage.run(&["ps"]).stdout;
    assert!(shown.contains("budget of ui: exceeded, 1") && shown.contains(why), "{shown}");
    // Others go on.
    assert_eq!(port.prompt("api", "hello"), "hello");

    // Nor does another process of it begin anew.
    port.call("restart_agent", &json!({"agent_id": "ui"})).unwrap();
    port.expect(&json!({
        "type": "agent", "agent_id": "ui", "state": "ready", "restarts": 1,
    }));
    assert_refused(prompt(&mut port, "ui", "hello"), why);

    let raised =
        port.call("raise_budget", &json!({"agent_id": "ui", "tokens": 1_000_000})).unwrap();
    assert_eq!((&raised["state"], &raised["reason"]), (&json!("open"), &Value::Null));
    assert_eq!(raised["tokens"]["used"], before);
    assert_eq!(port.prompt("ui", "hello"), "hello");
    drop(port);
    team.stop();
    let events = stage.run(&["history", "--type", "budget", "--json"]).stdout;
    let states: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // While a budget only fills, there is an event each second: on a busy machine also before the warning.
    let states = states.iter().map(|event| event["payload"]["state"].as_str().unwrap());
    let mut states: Vec<_> = states.skip_while(|state| *state == "open").collect();
    states.dedup();
    assert_eq!(states, ["warned", "exceeded", "open"]);
    // The next run has a budget of its own.
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "hello"), "hello");
}

#[test]
fn a_turn_without_tool_calls_is_cancelled_and_the_team_with_it() {
    let stage = Stage::new();
    let (_team, mut port) = team(&stage, "tokens = 20_000\non_exceed = \"cancel\"", "");
    let why = "the team's budget is used up: ";
    let waits = port.begin_waiting("api");
    let ended = prompt(&mut port, "ui", "babble").unwrap();
    assert_eq!(ended["stop_reason"], "cancelled");
    assert!(ended["reason"].as_str().unwrap().starts_with(why), "{ended}");
    let ended = port.answer(waits).unwrap();
    assert!(ended["reason"].as_str().unwrap().starts_with(why), "{ended}");
    for agent in ["ui", "api"] {
        assert_refused(prompt(&mut port, agent, "hello"), why);
    }
    let over = used(&mut port, None) - 20_000;
    assert!(over <= 2_000, "{over}");
}

#[test]
fn an_agent_is_stopped_and_stays_so() {
    let stage = Stage::new();
    let (_team, mut port) = team(&stage, "", "tokens = 5_000\non_exceed = \"stop\"");
    let ended = prompt(&mut port, "ui", "babble").unwrap_err();
    assert!(ended["message"].as_str().unwrap().contains("is used up: "), "{ended}");
    let stopped = port.agent_is("ui", "error");
    assert!(stopped["reason"].as_str().unwrap().contains("is used up: "), "{stopped}");
}

#[test]
fn every_total_is_enforced() {
    let stage = Stage::new();
    let prices = "cost = 5.0\ncurrency = \"EUR\"\n[prices.\"house/one\"]\ninput = 1\noutput = 10\ncurrency = \"EUR\"";
    let (_team, mut port) = team(&stage, prices, "turns = 4");
    for _ in 0..3 {
        prompt(&mut port, "ui", "use house/one").unwrap();
    }
    assert_refused(
        prompt(&mut port, "api", "hello"),
        "the team's budget is used up: 6.00 of 5.00 EUR are spent",
    );
    port.call("raise_budget", &json!({"cost": 100.0})).unwrap();
    prompt(&mut port, "ui", "hello").unwrap();
    assert_refused(
        prompt(&mut port, "ui", "hello"),
        "the budget of `ui` is used up: 4 of 4 turns are used",
    );
    for (params, why) in [
        (json!({}), "one of `tokens`"),
        (json!({"tokens": 0}), "`tokens` must be from 1"),
        (json!({"cost": -1}), "`cost` must be more than 0"),
    ] {
        let error = port.call("raise_budget", &params).unwrap_err();
        assert_eq!(error["code"], 400);
        assert!(error["message"].as_str().unwrap().contains(why), "{error}");
    }
    let nobody = port.call("raise_budget", &json!({"agent_id": "x", "turns": 1})).unwrap_err();
    assert_eq!(nobody["code"], 404);
}

#[test]
fn an_agent_does_not_raise_its_own() {
    let stage = Stage::new();
    let keys = "[orchestrator]\nagent = \"lead\"\n[budget]\ntokens = 100_000";
    let team = stage.team(keys, vec![agent("lead"), agent("ui")]);
    let mut port = team.steer_when_ready(&["lead", "ui"]);
    let raise = format!("run {EISEN_CORE} budget --team-wide --tokens 900000 2>&1; true");
    for (agent, why) in [("lead", "takes the control token of a person"), ("ui", "takes the")] {
        let said = port.prompt(agent, &raise);
        assert!(said.contains(why), "{said}");
    }
    let shown = port.prompt("ui", &format!("run {EISEN_CORE} budget"));
    assert!(shown.contains("team: open, ") && shown.contains("of 100.0k tokens"), "{shown}");
    let raised = stage.run(&["budget", "--team-wide", "--tokens", "900000"]);
    assert!(raised.stdout.contains("of 900.0k tokens"), "{raised:?}");
}

#[test]
fn an_editor_hears_the_reason() {
    let stage = Stage::new();
    let (_team, mut port) = team(&stage, "", "turns = 1");
    port.prompt("ui", "hello");
    let mut editor = stage.attach("ui");
    editor.initialize(&json!({}));
    let session = editor.open();
    let prompt = editor.begin(&session, "hello");
    let answer = editor.answer(&prompt);
    let why = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("1 of 1 turns are used"), "{answer}");
}

#[test]
fn a_run_that_is_killed_goes_on_with_its_budgets_and_one_that_is_stopped_does_not() {
    let stage = Stage::new();
    let day = "tokens = 1_000_000\nturns = 6\nwindow_s = 86_400";
    let (team, mut port) = team(&stage, day, "tokens = 10_000");
    let why = "the budget of `ui` is used up: ";
    prompt(&mut port, "ui", "go wild").unwrap();
    let before = used(&mut port, Some("ui"));
    let killed_and_up = |team: Team| {
        // It waits until all of it is in the journal.
        stage.run(&["cost"]);
        team.program.signal(Signal::SIGKILL);
        team.program.wait();
        let team = stage.up();
        let port = team.steer_when_ready(&["ui", "api"]);
        (team, port)
    };
    let (team, mut port) = killed_and_up(team);
    assert_eq!(used(&mut port, Some("ui")), before);
    assert_refused(prompt(&mut port, "ui", "hello"), why);
    assert_eq!(port.prompt("api", "hello"), "hello");
    port.call("raise_budget", &json!({"agent_id": "ui", "tokens": 1_000_000})).unwrap();
    port.expect(&json!({"type": "budget", "agent_id": "ui", "state": "open"}));

    // What was raised is kept, too.
    let (team, mut port) = killed_and_up(team);
    assert_eq!(used(&mut port, Some("ui")), before);
    assert_eq!(port.prompt("ui", "hello"), "hello");
    drop(port);
    assert_eq!(team.stop().code, 0);

    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let all = port.call("list_budgets", &json!({})).unwrap();
    let of = |agent: Option<&str>| {
        let all = all.as_array().unwrap().iter();
        all.clone().find(|it| it["agent_id"].as_str() == agent).unwrap().clone()
    };
    let own = of(Some("ui"));
    assert_eq!((&own["tokens"]["limit"], &own["turns"]["used"]), (&json!(10_000), &json!(0)));
    // The window counts over runs: `go wild` and two of `hello`.
    let turns = of(None)["turns"]["used"].as_u64().unwrap();
    assert_eq!(turns, 3);
    for _ in turns..6 {
        assert_eq!(port.prompt("api", "hello"), "hello");
    }
    assert_refused(prompt(&mut port, "api", "hello"), "6 of 6 turns are used within 86400 s");
}
