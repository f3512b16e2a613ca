//! `cost`: what agents spent, of a team that runs and of one that is gone.

use serde_json::{Value, json};

use super::assert_ended;
use crate::harness::{Stage, agent};

fn cost(stage: &Stage, args: &[&str]) -> Value {
    let ended = stage.run(&[&["cost", "--json"], args].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    serde_json::from_str(&ended.stdout).unwrap()
}

/// The columns of a table, without the alignment.
fn normal(table: &str) -> Vec<String> {
    table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// A team in which one agent used models, and another says nothing; it has spent, and what the port
/// says of it.
fn spent(stage: &Stage) -> Value {
    let prices = "[prices.\"house/one\"]\ninput = 1\noutput = 10\ncurrency = \"EUR\"";
    let team = stage.team(prices, vec![agent("ui"), agent("api")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    for prompt in ["use gpt-5-2025-08-07", "use house/one", "use nobody/knows", "use house/one"] {
        port.prompt("ui", prompt);
    }
    port.prompt("api", "hello");
    // The sums of a running team are those of the journal.
    let agents = port.call("list_agents", &json!({})).unwrap();
    let running = cost(stage, &[]);
    drop(port);
    team.stop();
    assert_eq!(running, cost(stage, &[]));
    let live = &agents[0]["sessions"][0]["spent"];
    for figure in ["input", "output", "total", "cost", "estimated", "incomplete"] {
        assert_eq!(live[figure], running["rows"][0][figure], "{figure}");
    }
    running
}

#[test]
fn sums_are_by_agent_and_say_what_they_lack() {
    let stage = Stage::new();
    let by_agent = spent(&stage);
    let ui = &by_agent["rows"][0];
    assert_eq!(
        (&ui["agent_id"], &ui["turns"], &ui["total"]),
        (&json!("ui"), &json!(4), &json!(4_400_000))
    );
    assert_eq!(
        ui["cost"],
        json!([
            {"amount": 4.0, "currency": "EUR"},
            {"amount": 2.25, "currency": "USD"},
        ])
    );
    assert_eq!(ui["estimated"], json!(["cost"]));
    let incomplete = json!(["cached_read", "cached_write", "reasoning", "cost"]);
    assert_eq!((&ui["incomplete"], &ui["cached_read"]), (&incomplete, &Value::Null));
    // Not zero: nothing is known.
    assert_eq!(by_agent["rows"][1]["total"], Value::Null);
    assert_eq!(by_agent["total"]["turns"], json!(5));
    assert_eq!(
        normal(&stage.run(&["cost"]).stdout),
        [
            "AGENT TURNS INPUT CACHED WRITTEN OUTPUT REASONING TOTAL COST",
            "ui 4 4.0M - - 400.0k - 4.4M ~4.00 EUR + 2.25 USD+",
            "api 1 - - - - - - -",
            "total 5 4.0M+ - - 400.0k+ - 4.4M+ ~4.00 EUR + 2.25 USD+",
        ]
    );
}

#[test]
fn sums_are_also_by_model_turn_and_task() {
    let stage = Stage::new();
    let all = spent(&stage)["total"].clone();
    for by in ["model", "turn", "task"] {
        let sums = cost(&stage, &["--by", by]);
        assert_eq!(sums["total"], all, "{by}");
    }
    let models = cost(&stage, &["--by", "model", "ui"]);
    let models: Vec<_> = models["rows"].as_array().unwrap().iter().collect();
    let names: Vec<_> = models.iter().map(|row| row["model"].as_str().unwrap()).collect();
    assert_eq!(names, ["gpt-5-2025-08-07", "house/one", "nobody/knows"]);
    assert_eq!(models[2]["cost"], json!([]), "unpriced is not free");
    let turns = cost(&stage, &["--by", "turn", "ui"]);
    let turns: Vec<_> =
        turns["rows"].as_array().unwrap().iter().map(|row| row["turn"].as_u64()).collect();
    assert_eq!(turns, [Some(0), Some(1), Some(2), Some(3)]);
    let tasks = cost(&stage, &["--by", "task", "ui"]);
    let again = &tasks["rows"][1];
    assert_eq!((&again["prompt"], &again["turns"]), (&json!("use house/one"), &json!(2)));
    assert_eq!(again["total"], json!(2_200_000));
}

#[test]
fn without_a_journal_there_is_a_sentence() {
    let stage = Stage::new();
    let none = format!("error: there is no journal in {}\n", stage.path("home/teams").display());
    assert_ended(&stage.run(&["cost"]), 1, "", &none);
    assert_eq!(stage.run(&["cost", "--by", "week"]).code, 2);
}
