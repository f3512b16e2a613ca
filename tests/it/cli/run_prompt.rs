//! What a run is asked: in an earlier session, with files, for an answer by a schema; and what its agent
//! leaves behind.

use std::path::Path;

use serde_json::Value;

use super::run::{repository, run_agent};
use crate::harness::{Ended, Stage};

const AGENT: &str = r#"
[[on]]
prompt = "It says ui"
steps = [{ say = "I know it." }]
[[on]]
prompt = "Remember the cart"
steps = [{ say = "I do." }]
[[on]]
prompt = "does not fit"
steps = [{ say = '```json' }, { say = "\n{\"count\": 2}\n" }, { say = '```' }]
[[on]]
prompt = "Count"
steps = [{ say = "{\"count\": \"two\"}" }]
[[on]]
prompt = "Guess"
steps = [{ say = "{\"count\": 7}" }]
[[on]]
prompt = "leave"
steps = [{ spawn_child = "sleep 4321", detach = true }, { say = "It runs." }]
[[on]]
steps = [{ read = "src/ui/app.ts" }, { say = "It says {last}" }]
"#;

/// A repository whose agent has these abilities.
fn with(abilities: &str) -> Stage {
    let stage = repository();
    stage.file("one.toml", &["[agent]\nname = \"one\"\n", abilities, AGENT].concat());
    stage
}

fn told(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.stderr))
}

#[test]
fn a_session_goes_on_and_is_forked() {
    let stage = with("load = []\nfork = true\n");
    let first = told(&run_agent(&stage, &["--json", "look"]));
    let session = first["session_id"].as_str().unwrap();
    for name in ["last", session, first["id"].as_str().unwrap()] {
        let next = told(&run_agent(&stage, &["--json", "--session", name, "look"]));
        assert_eq!((&next["status"], &next["session_id"]), (&"succeeded".into(), &session.into()));
    }
    let fork = told(&run_agent(&stage, &["--json", "--fork", session, "look"]));
    assert_eq!(fork["status"], "succeeded", "{fork}");
    assert_ne!(fork["session_id"], session);
    // The agent is that of the session.
    let own = stage.eisen_core(&["run", "--session", session, "look"]);
    let own = crate::harness::run({ own }.current_dir(stage.path("shop")));
    assert_eq!((own.code, &*own.stdout), (0, "It says ui\n"), "{}", own.stderr);
    let unknown = run_agent(&stage, &["--session", "nobody", "look"]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    assert!(unknown.stderr.contains("no run has had the session `nobody`"), "{}", unknown.stderr);
}

#[test]
fn an_agent_that_forgets_is_told_the_conversation_by_a_fork_only() {
    let stage = with("");
    assert_eq!(run_agent(&stage, &["look"]).code, 0);
    let ended = run_agent(&stage, &["--session", "last", "look"]);
    assert_eq!((ended.code, &*ended.stdout), (125, ""), "{}", ended.stderr);
    assert!(ended.stderr.contains("can't go on with an earlier session"), "{}", ended.stderr);
    let ended = run_agent(&stage, &["--fork", "last", "and now?"]);
    assert_eq!((ended.code, &*ended.stdout), (0, "I know it.\n"), "{}", ended.stderr);
}

#[test]
fn files_go_with_the_prompt() {
    let stage = with("");
    stage.file("note.md", "Remember the cart.\n");
    let file = stage.path("note.md").display().to_string();
    let ended = run_agent(&stage, &["--file", &file, "Read:"]);
    assert_eq!((ended.code, &*ended.stdout), (0, "I do.\n"), "{}", ended.stderr);
    let missing = run_agent(&stage, &["--file", "none.md", "Read:"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("cannot read the file none.md"), "{}", missing.stderr);
}

#[test]
fn an_answer_fits_its_schema_or_the_run_failed() {
    let stage = with("");
    let schema = r#"{"type":"object","required":["count"],"properties":{"count":{"type":"integer","maximum":5}}}"#;
    stage.file("count.json", schema);
    let schema = stage.path("count.json").display().to_string();
    let ended = run_agent(&stage, &["--schema", &schema, "Count the modules."]);
    assert_eq!((ended.code, &*ended.stdout), (0, "{\"count\": 2}\n"), "{}", ended.stderr);
    stage.file("one.toml", &AGENT.replace("{\\\"count\\\": 2}", "{\\\"count\\\": 9}"));
    let ended = run_agent(&stage, &["--schema", &schema, "Count the modules."]);
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("at `/count`: must be <=5, but got 9"), "{}", ended.stderr);
    stage.file("count.json", "{\"type\":\"sheep\"}");
    let ended = run_agent(&stage, &["--schema", &schema, "Guess"]);
    assert_eq!((ended.code, &*ended.stdout), (2, ""), "{}", ended.stderr);
}

#[test]
fn what_an_agent_leaves_behind_is_ended_and_named() {
    let stage = with("");
    let ended = run_agent(&stage, &["--json", "leave"]);
    let told = told(&ended);
    assert_eq!((ended.code, &told["text"]), (0, &"It runs.".into()));
    let named = told["background"].to_string();
    assert!(named.contains("sleep 4321"), "{named}");
    assert_eq!(sleepers(&stage), Vec::<String>::new());
    let plain = run_agent(&stage, &["leave"]);
    assert!(plain.stderr.contains("sleep 4321"), "{}", plain.stderr);
    let none = run_agent(&stage, &["--json", "look"]);
    assert_eq!(self::told(&none)["background"], serde_json::json!([]));
}

/// The processes of the stage that sleep.
fn sleepers(stage: &Stage) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_own = |process: &Path| {
        let cwd = std::fs::read_link(process.join("cwd"));
        cwd.is_ok_and(|cwd| cwd.starts_with(stage.path("shop")))
    };
    let lines = all.filter(|process| is_own(process)).filter_map(|process| {
        let line = std::fs::read(process.join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).into_owned())
    });
    lines.filter(|line| line.contains("4321")).collect()
}
