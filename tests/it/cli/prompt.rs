//! `prompt`: the answer as it comes, its exit codes, and Ctrl-C.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use super::top::Terminal;
use super::{Running, assert_ended};
use crate::harness::{EISEN_CORE, Port, Puppet, Stage, Team, agent, eventually};

fn puppet(stage: &Stage) -> (Puppet, Team, Port) {
    let mut ui = stage.puppet("ui");
    let team = stage.team("", vec![agent("ui").puppet()]);
    ui.connect("s1");
    let port = team.steer_when_ready(&["ui"]);
    (ui, team, port)
}

#[test]
fn the_answer_is_printed_as_it_comes() {
    let stage = Stage::new();
    let (mut ui, _team, _port) = puppet(&stage);
    let (prompt, lines) = Running::read(&stage, &["prompt", "ui", "Show the cart"]);
    let (turn, text) = ui.prompted();
    assert_eq!(text, "Show the cart");
    ui.say("s1", "one\ntw");
    assert_eq!(lines.next().unwrap(), "one");
    ui.say("s1", "o\nthree");
    ui.end_turn(&turn);
    assert_eq!(lines.rest(), ["two", "three"]);
    assert_eq!(prompt.end(), (Some(0), String::new()));
}

#[test]
fn a_line_for_the_person_stands_in_a_terminal_by_itself() {
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    let zoned = agent("ui").puppet().zone("src/ui/**");
    let team = stage.team("[orchestrator]\non_block = \"hold\"\n", vec![zoned, agent("api")]);
    ui.connect("s1");
    let _port = team.steer_when_ready(&["ui", "api"]);
    let line = format!("'{EISEN_CORE}' prompt ui 'Look at the cart'");
    let Some(terminal) = Terminal::of(&stage, &line) else { return };
    let (turn, _) = ui.prompted();
    ui.say("s1", "I look at it.");
    let path = stage.in_shop("src/api/cart.rs");
    ui.ask("fs/read_text_file", &json!({ "sessionId": "s1", "path": path }));
    // Which of the two comes first is not promised.
    eventually("both stand in lines by themselves", || {
        let screen = terminal.screen();
        let has = |begin: &str| screen.lines().any(|line| line.starts_with(begin));
        has("I look at it.") && has("b1: pending")
    });
    ui.end_turn(&turn);
    terminal.shows("left 0");
}

#[test]
fn its_exit_code_reports_how_the_turn_ended() {
    let stage = Stage::new();
    let ui = agent("ui").zone("src/ui/**");
    let team = stage.team(
        "",
        vec![ui, agent("api").zone("src/api/**"), agent("off").with("autostart = false")],
    );
    team.steer_when_ready(&["ui", "api"]);
    assert_ended(&stage.run(&["prompt", "ui", "hello"]), 0, "hello\n", "");
    assert_ended(&stage.run(&["prompt", "ui", "stop at once"]), 3, "", "");
    let failed = stage.run(&["prompt", "ui", "fail"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (1, ""));
    assert!(failed.stderr.contains("no such model"), "{failed:?}");
    let blocked = stage.run(&["prompt", "ui", "read src/api/cart.rs"]);
    assert_eq!(blocked.code, 0);
    assert!(blocked.stdout.starts_with("refused: "), "{blocked:?}");
    let told = "b1: denied: read src/api/cart.rs by ui (via fs, owned by api)\n1 refused: ";
    assert!(blocked.stderr.starts_with(told), "{blocked:?}");
    // A read that was refused stops no work; a write does.
    let strict = ["prompt", "--strict-exit", "ui"];
    assert_eq!(stage.run(&[&strict[..], &["read src/api/cart.rs"]].concat()).code, 0);
    let wrote = stage.run(&[&strict[..], &["write src/api/cart.rs: no"]].concat());
    assert_eq!(wrote.code, 7, "{wrote:?}");
    let wrote = stage.run(&[&strict[..], &["write src/ui/new.ts: one"]].concat());
    assert_eq!(wrote.code, 0, "{wrote:?}");
    assert!(wrote.stderr.starts_with("1 file, +1 \u{2212}0: "), "{wrote:?}");
    assert!(wrote.stderr.contains("eisen-core diff --session ui/ui-s1 --turn "), "{wrote:?}");
    let off = stage.run(&["prompt", "off", "hello"]);
    assert_ended(&off, 1, "", "error: agent `off` is stopped, not ready (code 409)\n");
    let nobody = stage.run(&["prompt", "nobody", "hello"]);
    let there_are = "error: there is no agent `nobody`; there are: ui, api, off (code 404)\n";
    assert_ended(&nobody, 1, "", there_are);

    let json = stage.run(&["prompt", "--json", "ui", "hello"]);
    let result: Value = serde_json::from_str(&json.stdout).unwrap();
    let expected = json!({
        "session_id": "ui-s1", "stop_reason": "end_turn", "text": "hello",
        "changed": { "files": 0, "added": 0, "removed": 0 }, "blocked": [],
    });
    assert_eq!(result, expected);

    let mut piped = stage.eisen_core(&["prompt", "ui", "-"]);
    let mut piped = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    piped.stdin.take().unwrap().write_all(b"from\na pipe").unwrap();
    let output = piped.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "from\na pipe\n");
}

#[test]
fn ctrl_c_cancels_the_running_turn_and_not_the_team() {
    let stage = Stage::new();
    let (mut ui, _team, mut port) = puppet(&stage);
    let (prompt, lines) = Running::read(&stage, &["prompt", "ui", "long work"]);
    let (turn, _) = ui.prompted();
    ui.say("s1", "at it\n");
    assert_eq!(lines.next().unwrap(), "at it");
    port.begin("ui", "another's");
    await_queued(&mut port, 1);
    prompt.interrupt();
    ui.expect(&json!({"method": "session/cancel", "params": {"sessionId": "s1"}}));
    ui.say("s1", "stopping\n");
    assert_eq!(lines.next().unwrap(), "stopping");
    ui.send(&json!({"jsonrpc": "2.0", "id": turn, "result": {"stopReason": "cancelled"}}));
    let note = "cancelling the turn; Ctrl-C again exits at once";
    assert_eq!(prompt.end(), (Some(130), note.to_owned()));
    // What others asked for is theirs to withdraw.
    let (turn, text) = ui.prompted();
    assert_eq!(text, "another's");
    ui.end_turn(&turn);
    port.expect(&json!({"type": "turn", "turn": 1, "stop_reason": "end_turn"}));

    // An agent that doesn't care is left alone at the second.
    let (prompt, lines) = Running::read(&stage, &["prompt", "ui", "more"]);
    let (turn, _) = ui.prompted();
    ui.say("s1", "at it\n");
    assert_eq!(lines.next().unwrap(), "at it");
    prompt.interrupt();
    ui.expect(&json!({"method": "session/cancel"}));
    prompt.interrupt();
    assert_eq!(prompt.end(), (Some(130), note.to_owned()));
    // Whatever it answers, the turn is what it was told to be.
    ui.end_turn(&turn);
    port.expect(&json!({"type": "turn", "turn": 2, "stop_reason": "cancelled"}));
}

#[test]
fn what_was_said_before_a_failure_is_printed_before_it() {
    let stage = Stage::new();
    let (mut ui, _team, _port) = puppet(&stage);
    let (prompt, mut stdout) = Running::start(&stage, &["prompt", "ui", "much"]);
    let (turn, _) = ui.prompted();
    let much = "x".repeat(300_000);
    ui.say("s1", &much);
    let error = json!({"code": -32000, "message": "too \u{1b}[31mhot\u{9b}"});
    ui.send(&json!({"jsonrpc": "2.0", "id": turn, "error": error}));
    let mut said = String::new();
    stdout.read_to_string(&mut said).unwrap();
    assert!(said == much + "\n", "{} bytes", said.len());
    let error = "error: the agent answered `session/prompt` with error -32000: too hot (code 500)";
    assert_eq!(prompt.end(), (Some(1), error.to_owned()));
}

/// Waits until so many prompts wait in the agent's session.
fn await_queued(port: &mut Port, count: u64) {
    eventually("the prompts are queued", || {
        let agents = port.call("list_agents", &json!({})).unwrap();
        agents[0]["sessions"][0]["queued"] == count
    });
}

#[test]
fn ctrl_c_withdraws_a_prompt_that_still_waits() {
    let stage = Stage::new();
    let (mut ui, _team, mut port) = puppet(&stage);
    port.begin("ui", "first");
    let (turn, _) = ui.prompted();
    let (prompt, _lines) = Running::read(&stage, &["prompt", "ui", "second"]);
    await_queued(&mut port, 1);
    port.begin("ui", "third");
    await_queued(&mut port, 2);
    prompt.interrupt();
    assert_eq!(
        prompt.end(),
        (Some(130), "the prompt was withdrawn before its turn began".to_owned())
    );
    await_queued(&mut port, 1);
    ui.end_turn(&turn);
    assert_eq!(ui.prompted().1, "third");
}

#[test]
fn who_reads_slowly_gets_all_and_holds_up_nobody() {
    let stage = Stage::new();
    let (mut ui, _team, mut port) = puppet(&stage);
    let (prompt, mut stdout) = Running::start(&stage, &["prompt", "ui", "much"]);
    let (turn, _) = ui.prompted();
    let mut all = String::new();
    for n in 0..3000 {
        let text = format!("{n}: {}\n", "x".repeat(200));
        ui.say("s1", &text);
        all += &text;
    }
    ui.end_turn(&turn);
    // More than any pipe holds was said, nothing was read, and the turn is over.
    port.expect(&json!({"type": "turn", "stop_reason": "end_turn"}));
    let mut read = String::new();
    stdout.read_to_string(&mut read).unwrap();
    assert!(read == all, "{} bytes of {}", read.len(), all.len());
    assert_eq!(prompt.end(), (Some(0), String::new()));
}

#[test]
fn who_has_read_enough_ends_it_quietly() {
    let stage = Stage::new();
    let (mut ui, _team, _port) = puppet(&stage);
    let (prompt, stdout) = Running::start(&stage, &["prompt", "ui", "much"]);
    let (turn, _) = ui.prompted();
    ui.say("s1", "enough\n");
    let mut stdout = BufReader::new(stdout);
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "enough\n");
    drop(stdout);
    ui.say("s1", "too much\n");
    assert_eq!(prompt.end(), (Some(0), String::new()));
    ui.end_turn(&turn);
}

#[test]
fn the_end_of_the_team_is_a_sentence() {
    let stage = Stage::new();
    let (mut ui, team, _port) = puppet(&stage);
    let (prompt, _lines) = Running::read(&stage, &["prompt", "ui", "long work"]);
    ui.prompted();
    team.stop();
    let (code, stderr) = prompt.end();
    assert_eq!(code, Some(1));
    let whys = ["the agent ended", "the team is stopping", "the team closed the connection"];
    assert!(whys.iter().any(|why| stderr.contains(why)), "{stderr}");
}
