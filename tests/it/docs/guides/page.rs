//! Reads the steps of a guide from its Markdown. A block whose language is
//!
//! - `console` has commands behind `$`, each with what it prints below it. What is behind the language says
//!   more: the last command of `console waits` goes on in a terminal of its own, and `console goes-on` is what
//!   that one prints from then on;
//! - `toml` and begins with `# NAME` is this file, in the folder of the project;
//! - `json editor` has the settings of an editor: it starts the agent in them. `text prompt` is what is typed
//!   in it; `json mcp` has those of an MCP client;
//! - `text` and `json` alone are to be read.

use std::path::PathBuf;

/// A thing that a reader of the guide does.
pub(super) enum Step<'a> {
    /// Writes a file.
    File { name: &'a str, text: String },
    /// Types a command, and sees this.
    Command { line: String, shown: Vec<&'a str> },
    /// Types a command in another terminal, which goes on once it has printed this.
    Waiting { line: String, shown: Vec<&'a str> },
    /// Sees this in that terminal, up to the command's end.
    GoesOn { shown: Vec<&'a str> },
    /// Connects an editor by its settings.
    Editor { settings: String },
    /// Types a prompt in it.
    Prompt { text: String },
    /// Connects an MCP client by its settings.
    Mcp { settings: String },
}

/// A file of this package.
pub(super) fn path(relative: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(relative)
}

/// What a reader does from the beginning of a guide to its end.
pub(super) fn steps(guide: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    let mut lines = guide.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else {
            assert!(!line.trim_start().starts_with("```"), "a block is indented: {line}");
            continue;
        };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match kind {
            "console" => steps.extend(commands(&block)),
            "console waits" => steps.extend(waiting(commands(&block))),
            "console goes-on" => steps.push(Step::GoesOn { shown: block }),
            "toml" => steps.push(file(&block)),
            "json editor" => steps.push(Step::Editor { settings: block.join("\n") }),
            "json mcp" => steps.push(Step::Mcp { settings: block.join("\n") }),
            "text prompt" => steps.push(Step::Prompt { text: block.join("\n") }),
            "text" | "json" => {}
            _ => panic!("no reader can try a block of `{kind}`"),
        }
    }
    assert!(!steps.is_empty(), "there is nothing to do");
    steps
}

fn commands<'a>(block: &[&'a str]) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    let mut lines = block.iter().peekable();
    while let Some(line) = lines.next() {
        let line = line.strip_prefix("$ ").unwrap_or_else(|| panic!("no command prints `{line}`"));
        let mut shown = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
            shown.push(*line);
        }
        steps.push(Step::Command { line: line.to_owned(), shown });
    }
    steps
}

/// The last of these commands does not end.
fn waiting(mut steps: Vec<Step<'_>>) -> Vec<Step<'_>> {
    let Some(Step::Command { line, shown }) = steps.pop() else { panic!("nothing waits") };
    steps.push(Step::Waiting { line, shown });
    steps
}

fn file<'a>(block: &[&'a str]) -> Step<'a> {
    let name = block.first().and_then(|line| line.strip_prefix("# "));
    let name = name.expect("a file begins with its name, as a comment");
    Step::File { name, text: block.join("\n") + "\n" }
}
