//! Tests the README's shell loop with a Codex that prints its arguments and input.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use codex_exec_json::CodexExecJson;
use eisen_plugin::testing::play;
use eisen_plugin::{Extractor, Record, Records, records};

const LOOP: &str = include_str!("../turns.sh");

/// Prints its arguments, and its input as one line; with `stay` in the input, runs until killed.
const CODEX: &str = r#"echo "args $*"; input=$(cat; echo .)
printf '%s' "$input" | tr '\n' '~'; echo
case $input in *stay*) exec sleep 3600 ;; esac"#;

#[test]
fn it_is_what_the_readme_shows() {
    assert!(include_str!("../README.md").contains(&format!("'''\n{LOOP}'''")));
    // TOML would interpret these.
    assert!(!LOOP.contains("${") && !LOOP.contains("$$") && !LOOP.contains("'''"));
}

#[test]
fn each_prompt_runs_codex_with_what_was_said() {
    let mut agent = Agent::start();
    assert_eq!(agent.prompt("one\\n \\\n\ttwo  "), ["args exec --json -", "one\\n \\~\ttwo  ."]);
    assert_eq!(agent.line(), r#"{"type":"exited","status":0}"#);
    agent.knows("t-1");
    assert_eq!(agent.prompt("-n %s"), ["args exec --json resume t-1 -", "-n %s."]);
    assert_eq!(agent.line(), r#"{"type":"exited","status":0}"#);
}

#[test]
fn a_turn_can_be_cancelled_and_the_next_one_runs() {
    let mut agent = Agent::start();
    assert_eq!(agent.prompt("stay"), ["args exec --json -", "stay."]);
    agent.does(Extractor::cancel);
    assert_eq!(agent.line(), r#"{"type":"exited","status":143}"#);
    assert_eq!(agent.prompt("go on"), ["args exec --json -", "go on."]);
}

#[test]
fn nothing_is_left_when_its_input_ends() {
    let mut agent = Agent::start();
    agent.prompt("stay");
    drop(agent.child.stdin.take());
    agent.line();
    assert!(agent.child.wait().unwrap().success());
}

#[test]
fn a_failed_start_is_the_end_of_the_turn() {
    let output = play::<CodexExecJson>("{}", "prompt x\n< {\"type\":\"exited\",\"status\":127}\n");
    assert!(output.contains("turn-ended error Codex ended with status 127"), "{output}");
}

/// Only the loop can report it: it runs on.
#[test]
fn an_instance_that_comes_in_the_middle_of_a_turn_tells_its_end() {
    let output = play::<CodexExecJson>(
        "{}",
        "start {\"cwd\":\"/\"}\n< {\"type\":\"exited\",\"status\":3}\n",
    );
    assert!(output.contains("turn-ended error Codex ended with status 3"), "{output}");
    let again = "< {\"type\":\"exited\",\"status\":0}\n< {\"type\":\"exited\",\"status\":0}\n";
    assert_eq!(play::<CodexExecJson>("{}", again).matches("turn-ended").count(), 1);
}

/// The process of a turn exits while the next turn is running.
#[test]
fn an_instance_that_comes_in_the_middle_of_a_turn_loses_no_later_one() {
    let exited = "< {\"type\":\"exited\",\"status\":0}\n";
    let ended = "< {\"type\":\"turn.completed\"}\n";
    let second = format!("start {{\"cwd\":\"/\"}}\n{ended}prompt x\n{exited}");
    let output = play::<CodexExecJson>("{}", &second);
    assert_eq!(output.matches("turn-ended").count(), 1, "{output}");
    assert!(output.contains("turn-ended end_turn"), "{output}");
    // The second process is the last, and its exit is not reported.
    let output = play::<CodexExecJson>("{}", &format!("{second}{exited}"));
    assert!(output.contains("turn-ended error Codex ended with status 0"), "{output}");
}

struct Agent {
    plugin: CodexExecJson,
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    _folder: Folder,
}

/// Removed when dropped.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Agent {
    fn start() -> Self {
        use std::os::unix::fs::PermissionsExt;
        use std::sync::atomic::{AtomicU32, Ordering};
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = folder.join(format!("codex-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let codex = folder.join("codex");
        std::fs::write(&codex, format!("#!/bin/sh\n{CODEX}\n")).unwrap();
        std::fs::set_permissions(&codex, PermissionsExt::from_mode(0o755)).unwrap();
        let mut child = Command::new("sh")
            .args(["-c", LOOP])
            .arg(&codex)
            .args(["exec", "--json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let plugin = CodexExecJson::create("{}").unwrap();
        Self { plugin, child, output, _folder: Folder(folder) }
    }

    /// Sends the lines that the plugin puts.
    fn does(
        &mut self,
        act: impl FnOnce(&mut CodexExecJson, &mut Records<'_>) -> Result<(), String>,
    ) {
        let mut output: Vec<u8> = Vec::new();
        let mut put = |bytes: &[u8]| {
            output.extend(bytes);
            true
        };
        act(&mut self.plugin, &mut Records::new(&mut put)).unwrap();
        let stdin = self.child.stdin.as_mut().unwrap();
        for record in records(&output) {
            if let Record::Line { body } = record.unwrap() {
                stdin.write_all(body).unwrap();
                stdin.write_all(b"\n").unwrap();
            }
        }
    }

    /// Prompts, and returns the first two lines of Codex.
    fn prompt(&mut self, text: &str) -> [String; 2] {
        self.does(|plugin, records| plugin.prompt(text, records));
        [self.line(), self.line()]
    }

    fn knows(&mut self, thread: &str) {
        let settings = format!(r#"{{"cwd":"/","resume":"{thread}"}}"#);
        self.does(|plugin, records| plugin.start(&settings, records));
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end_matches('\n').to_owned()
    }
}

impl Drop for Agent {
    /// Ends the loop and all that it runs.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
