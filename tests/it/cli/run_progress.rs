//! What a run shows of its work while it goes on.

use serde_json::Value;

use super::run::{command, listed};
use super::top::Terminal;
use crate::harness::{EISEN_CORE, Stage, eventually, program, run};

/// It works until there is a file `go`. Of two calls it counts the last.
const SCRIPT: &str = r#"
[agent]
name = "one"
[[on]]
prompt = "count"
steps = [
  { read = "src/ui/app.ts" }, { say = "Counted." },
  { answer = '{"usage":{"inputTokens":10,"outputTokens":5,"totalTokens":15}}' },
]
[[on]]
steps = [{ run = "while ! test -e go; do sleep 0.05; done" }, { say = "Through." }]
"#;

fn stage() -> Stage {
    let stage = Stage::new();
    let made = program("git").args(["init", "-q"]).arg(stage.path("shop")).status().unwrap();
    assert!(made.success());
    stage.file("one.toml", SCRIPT);
    let script = stage.path("one.toml").display().to_string();
    let profile = format!(
        "[profiles.one]\nusage = \"call\"\ncommand = [\"{EISEN_CORE}\", \"scripted-agent\", \"{script}\"]\n"
    );
    stage.file("home/config.toml", &(profile + Stage::ANY_MEMORY));
    stage
}

#[test]
fn what_an_agent_did_last_is_in_the_state_of_its_run() {
    let stage = stage();
    let ended = run(&mut command(&stage, &["run", "--detach", "--profile", "one", "Go"]));
    let id = ended.stdout.trim().to_owned();
    let does =
        |run: &Value| run["last_action"].as_str().is_some_and(|it| it.contains("test -e go"));
    eventually("it is told while it runs", || does(&listed(&stage, &id)));
    assert_eq!(listed(&stage, &id)["status"], "running");
    stage.file("shop/go", "");
    assert_eq!(stage.run(&["wait", &id]).code, 0);
    assert!(does(&listed(&stage, &id)));
}

#[test]
fn a_terminal_shows_what_an_agent_does_and_in_the_end_only_the_answer() {
    let stage = stage();
    let shop = stage.path("shop").display().to_string();
    let line = format!("cd {shop} && '{EISEN_CORE}' run --profile one Go");
    let Some(terminal) = Terminal::of(&stage, &line) else { return };
    terminal.shows("test -e go");
    stage.file("shop/go", "");
    terminal.shows("left 0");
    let screen = terminal.screen();
    let first = screen.lines().next().unwrap();
    assert!(first == "Through." && !screen.contains("test -e go"), "{screen}");
}

#[test]
fn tokens_that_are_estimated_are_marked() {
    let stage = stage();
    let counts = |more: &[&str]| {
        run(&mut command(&stage, &[&["run", "--profile", "one"], more, &["count"]].concat()))
    };
    let ended = counts(&[]);
    assert!(ended.stderr.contains(": ~30 tokens, "), "{}", ended.stderr);
    let told: Value = serde_json::from_str(&counts(&["--json"]).stdout).unwrap();
    let found = (&told["tokens"], &told["tokens_estimated"]);
    assert_eq!(found, (&30.into(), &true.into()), "{told}");
    let runs = stage.run(&["runs", "--all"]).stdout;
    assert!(runs.contains(" ~30 "), "{runs}");
}
