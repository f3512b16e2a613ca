//! `top` in a real terminal.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;

use crate::harness::{EISEN_CORE, Port, Puppet, Stage, Team, agent, eventually};

/// Counts the servers of tmux that were started.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// A terminal of tmux, of 80 by 24, with a server of its own.
pub(super) struct Terminal<'a> {
    stage: &'a Stage,
    /// The server's own socket. Nobody else uses its name: a server that is told to end may still answer.
    socket: PathBuf,
}

impl<'a> Terminal<'a> {
    /// Runs `top` there, and says how it was left. None if tmux is not installed.
    fn top(stage: &'a Stage, before: &str) -> Option<Self> {
        Self::of(stage, &format!("{before} '{EISEN_CORE}' top"))
    }

    /// Runs a command there, and says how it was left. None if tmux is not installed.
    pub(super) fn of(stage: &'a Stage, command: &str) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            eprintln!("skipped: tmux is not installed");
            return None;
        }
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let terminal = Self { stage, socket: stage.path(&format!("tmux-{number}")) };
        let line = format!("{command}; echo \"left $?\"; exec cat");
        let size = ["-x", "80", "-y", "24"];
        let begun = terminal.tmux(&[&["new-session", "-d"], &size[..], &[&line]].concat());
        assert!(begun.status.success(), "{begun:?}");
        Some(terminal)
    }

    fn tmux(&self, args: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(["-f", "/dev/null", "-u"]);
        command.env("EISEN_DIR", self.stage.path("home")).env_remove("TMUX");
        command.args(args).output().unwrap()
    }

    fn resize(&self, columns: u16, lines: u16) {
        let (columns, lines) = (columns.to_string(), lines.to_string());
        let resized = self.tmux(&["resize-window", "-x", &columns, "-y", &lines]);
        assert!(resized.status.success(), "{resized:?}");
    }

    fn key(&self, key: &str) {
        assert!(self.tmux(&["send-keys", key]).status.success(), "{key}");
    }

    pub(super) fn screen(&self) -> String {
        String::from_utf8(self.tmux(&["capture-pane", "-p"]).stdout).unwrap()
    }

    /// What is on the screen with its escape sequences.
    fn styled(&self) -> String {
        String::from_utf8(self.tmux(&["capture-pane", "-p", "-e"]).stdout).unwrap()
    }

    pub(super) fn shows(&self, text: &str) {
        let mut last = String::new();
        let is_there = || {
            last = self.screen();
            last.contains(text)
        };
        eventually(&format!("the terminal shows {text:?}"), is_there);
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// A team whose `ui` waits to read a file; with the id of its request.
fn waiting(stage: &Stage, ui: &mut Puppet) -> (Team, Port, serde_json::Value) {
    let keys = "[orchestrator]\non_block = \"hold\"\n";
    let team = stage.team(keys, vec![agent("ui").puppet().zone("src/ui/**"), agent("api")]);
    ui.connect("s-ui");
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let path = stage.in_shop("src/api/cart.rs");
    let asked = ui.ask("fs/read_text_file", &json!({ "sessionId": "s-ui", "path": path }));
    port.expect(&json!({ "type": "blocked", "status": "pending" }));
    (team, port, asked)
}

#[test]
fn one_frame_is_printed_anywhere() {
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    let (_team, _port, _) = waiting(&stage, &mut ui);
    let frame = stage.run(&["top", "--once"]);
    assert_eq!(frame.code, 0, "{}", frame.stderr);
    let file = "The file as it is:\napi";
    for wanted in ["1 waits for a decision", "ui read `src/api/cart.rs`", file, "a allow"] {
        assert!(frame.stdout.contains(wanted), "{wanted}: {}", frame.stdout);
    }
    assert!(!frame.stdout.contains('\u{1b}'), "{}", frame.stdout);
    let facts = stage.run(&["top", "--once", "--json"]);
    assert_eq!((facts.code, facts.stdout.lines().count()), (0, 1), "{}", facts.stderr);
    let facts: serde_json::Value = serde_json::from_str(&facts.stdout).unwrap();
    let agents = facts["agents"].as_array().unwrap().iter().map(|it| &it["agent_id"]);
    assert_eq!(agents.collect::<Vec<_>>(), ["ui", "api"]);
    let card = &facts["blocked"][0];
    assert_eq!((&facts["team"], &card["path"]), (&json!("shop"), &json!("src/api/cart.rs")));
    assert_eq!((&facts["conflicts"], &facts["budgets"]), (&json!([]), &json!([])));
    let refused = stage.run(&["top"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("`top --once`"), "{}", refused.stderr);
}

#[test]
fn a_person_decides_and_prompts_in_a_terminal_and_leaves_it_as_it_was() {
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    let (_team, mut port, asked) = waiting(&stage, &mut ui);
    let Some(terminal) = Terminal::top(&stage, "") else { return };
    terminal.shows("ui asks to read `src/api/cart.rs`");
    terminal.shows("The file as it is:");
    // A card that has just come up takes no key.
    let shown = Instant::now();
    eventually("a person has read it", || shown.elapsed() > Duration::from_secs(1));
    terminal.key("a");
    terminal.shows("Nothing waits");
    assert_eq!(ui.answer(&asked)["result"]["content"], "api\n");
    port.expect(&json!({ "type": "blocked", "status": "allowed" }));

    // What others do is seen at once.
    port.begin("ui", "go on");
    let (prompt, _) = ui.prompted();
    terminal.shows("working");
    terminal.key("Tab");
    terminal.shows("p prompt");
    // The agents stand in the order of the file again.
    terminal.key("Enter");
    terminal.shows("b1: allowed");
    ui.say("s-ui", "I read the cart.\n");
    terminal.shows("I read the cart.");
    ui.end_turn(&prompt);
    terminal.shows("ended: end_turn");
    terminal.resize(50, 12);
    terminal.shows("I read the cart.");

    terminal.key("Tab");
    terminal.key("p");
    terminal.shows("prompt ui:");
    terminal.tmux(&["send-keys", "-l", "and now?"]);
    terminal.key("Enter");
    let (prompt, text) = ui.prompted();
    assert_eq!(text, "and now?");
    ui.end_turn(&prompt);
    terminal.shows("the turn of ui ended");
    terminal.key("q");
    terminal.shows("left 0");
    assert!(!terminal.screen().contains("prompt"), "{}", terminal.screen());
}

#[test]
fn a_team_that_has_worked_is_shown_with_its_tasks_steps_and_changes() {
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    let keys = "[orchestrator]\non_block = \"hold\"\n";
    let team = stage.team(keys, vec![agent("ui").puppet().zone("src/ui/**"), agent("api")]);
    ui.connect("s-ui");
    let mut port = team.steer_when_ready(&["ui", "api"]);
    port.begin("ui", "Add a footer\nPlease.");
    let (prompt, _) = ui.prompted();
    let write = json!({ "sessionId": "s-ui", "path": stage.in_shop("src/ui/footer.ts"), "content": "a\nb\n" });
    let written = ui.ask("fs/write_text_file", &write);
    assert!(ui.answer(&written)["error"].is_null());
    ui.say("s-ui", "It is there.\n");
    ui.end_turn(&prompt);
    port.expect(&json!({ "type": "turn", "agent_id": "ui" }));

    let frame = stage.run(&["top", "--once"]);
    for wanted in ["done", "Add a footer", "+2 −0", "> Please.", "It is there.", "ended: end_turn"]
    {
        assert!(frame.stdout.contains(wanted), "{wanted}: {}", frame.stdout);
    }
    let facts = stage.run(&["top", "--once", "--json"]);
    let facts: serde_json::Value = serde_json::from_str(&facts.stdout).unwrap();
    let agent = &facts["agents"][0];
    assert_eq!((&agent["task"], &agent["step"]), (&json!("Add a footer"), &json!("done")));
    assert_eq!((&agent["changed"]["added"], &agent["state"]), (&json!(2), &json!("ready")));
    assert_eq!(facts["agents"][1]["task"], json!(null));

    let Some(terminal) = Terminal::top(&stage, "") else { return };
    terminal.shows("Add a footer");
    terminal.key("2");
    terminal.shows("ui, all turns: 1 file, +2 −0");
    terminal.shows("src/ui/footer.ts  +2 −0\n@@ -0,0 +1,2 @@\n+a\n+b");
    // A prompt of somebody else is the task as soon as its turn says something, in one column, too.
    terminal.resize(40, 20);
    port.begin("ui", "Now test it");
    let (prompt, _) = ui.prompted();
    ui.say("s-ui", "I test it.\n");
    terminal.shows("● ui working\n  Now test it");
    ui.end_turn(&prompt);
    terminal.shows("? help");
    terminal.key("q");
    terminal.shows("left 0");
}

#[test]
fn what_is_allowed_is_what_was_shown_and_who_decided_is_said() {
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    let (_team, mut port, asked) = waiting(&stage, &mut ui);
    let Some(terminal) = Terminal::top(&stage, "") else { return };
    terminal.shows("The file as it is:\napi");
    let shown = Instant::now();
    stage.file("shop/src/api/cart.rs", "other\n");
    eventually("a person has read it", || shown.elapsed() > Duration::from_secs(1));
    // Another file than was shown: nothing is decided, and it is shown anew.
    terminal.key("a");
    terminal.shows("The file as it is:\nother");
    assert!(terminal.screen().contains("1 waits"), "{}", terminal.screen());
    port.call("resolve_blocked", &json!({ "id": "b1", "decision": "allow" })).unwrap();
    assert_eq!(ui.answer(&asked)["result"]["content"], "other\n");
    terminal.shows("b1: allowed by a person");
    terminal.key("q");
    terminal.shows("left 0");
}

#[test]
fn it_ends_by_a_signal_and_with_its_team_and_has_no_colours_where_none_are_wanted() {
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    let (team, _port, _) = waiting(&stage, &mut ui);
    let Some(terminal) = Terminal::top(&stage, "NO_COLOR=1") else { return };
    terminal.shows("1 waits");
    let styled = terminal.styled();
    for color in ["\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[36m", "38;5;"] {
        assert!(!styled.contains(color), "{styled:?}");
    }
    let found = terminal.tmux(&["list-panes", "-F", "#{pane_pid}"]);
    let shell: i32 = String::from_utf8(found.stdout).unwrap().trim().parse().unwrap();
    let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"));
    let program: i32 = children.unwrap().trim().parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(program), Signal::SIGTERM).unwrap();
    terminal.shows("left 0");
    drop(terminal);
    let terminal = Terminal::top(&stage, "").unwrap();
    terminal.shows("1 waits");
    assert!(terminal.styled().contains("38;5;3m"), "{:?}", terminal.styled());
    team.stop();
    terminal.shows("the team `shop` has ended");
    terminal.shows("left 0");
}
