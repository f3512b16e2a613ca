//! Does what a guide says, in one terminal, and in others where the guide has more.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};

use serde_json::{Value, json};

use super::agents::command;
use super::page::Step;
use super::shown::matches;
use crate::harness::{Editor, Lines, Stage, eventually, run};

/// Behind this a terminal says how a command ended.
const END: &str = "the command has ended with ";

/// Commands that only look: who does not see yet what the guide shows looks again.
const LOOKS: [&str; 9] = [
    "cat ",
    "eisen-core blame",
    "eisen-core diff",
    "eisen-core history",
    "eisen-core inbox",
    "eisen-core ps",
    "eisen-core runs",
    "eisen-core team budget",
    "eisen-core top",
];

/// What changes something though its name begins like one of these.
const ACTS: [&str; 5] = [
    "eisen-core inbox allow",
    "eisen-core inbox answer",
    "eisen-core inbox deny",
    "eisen-core runs batch",
    "eisen-core runs stop",
];

/// A reader of a guide.
pub(super) struct Reader<'a> {
    stage: &'a Stage,
    terminal: Terminal,
    /// Those in which a command waits, the last one last.
    others: Vec<Terminal>,
    editors: Vec<(Editor, String)>,
}

struct Terminal {
    shell: Child,
    input: Option<ChildStdin>,
    lines: Lines,
}

impl<'a> Reader<'a> {
    pub(super) fn new(stage: &'a Stage) -> Self {
        Self { stage, terminal: Terminal::open(stage), others: Vec::new(), editors: Vec::new() }
    }

    pub(super) fn take(&mut self, step: &Step<'_>) {
        match step {
            Step::File { name, text } => self.stage.file(&format!("user/shop/{name}"), text),
            Step::Command { line, shown } => self.type_in(line, shown),
            Step::Waiting { line, shown } => self.start(line, shown),
            Step::GoesOn { shown } => {
                let printed = self.others.pop().expect("nothing waits").lines.rest();
                assert!(matches(shown, &printed), "{}", differs("what goes on", shown, &printed));
            }
            Step::Editor { settings } => self.connect(settings),
            Step::Prompt { text } => self.prompt(text),
            Step::Mcp { settings } => self.list_tools(settings),
        }
    }

    fn type_in(&mut self, line: &str, shown: &[&str]) {
        println!("$ {line}");
        let looks = LOOKS.iter().any(|look| line.starts_with(look))
            && !ACTS.iter().any(|act| line.starts_with(act));
        let mut printed = self.terminal.run(line);
        if looks && !matches(shown, &printed) {
            let what = differs(line, shown, &printed);
            eventually(&what, || {
                printed = self.terminal.run(line);
                matches(shown, &printed)
            });
        }
        assert!(matches(shown, &printed), "{}", differs(line, shown, &printed));
    }

    fn start(&mut self, line: &str, shown: &[&str]) {
        println!("in another terminal: $ {line}");
        let mut other = Terminal::open(self.stage);
        other.say(&format!("cd shop\n{{ {line}\n}} </dev/null\nexit\n"));
        let mut printed = Vec::new();
        while !matches(shown, &printed) {
            let next = other.lines.next();
            let next = next.unwrap_or_else(|| panic!("{}", differs(line, shown, &printed)));
            println!("{next}");
            printed.push(next);
        }
        self.others.push(other);
    }

    /// Starts what the settings name, as an editor does; opens a session.
    fn connect(&mut self, settings: &str) {
        let servers: Value = serde_json::from_str(settings).unwrap();
        let (name, server) = servers["agent_servers"].as_object().unwrap().iter().next().unwrap();
        println!("an editor connects to {name}");
        let mut editor = self.server(server);
        editor.initialize(&json!({"fs": {"readTextFile": true, "writeTextFile": true}}));
        let folder = self.stage.path("user/shop");
        let opened = editor.call("session/new", &json!({"cwd": folder, "mcpServers": []}));
        let session = opened["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{opened}"));
        self.editors.push((editor, session.to_owned()));
    }

    /// Prompts in the editor that was connected last, which serves files meanwhile.
    fn prompt(&mut self, text: &str) {
        let (editor, session) = self.editors.last_mut().expect("no editor is connected");
        let asked = editor.begin(session, text);
        loop {
            let line = editor.expect_that("a request, or the end of the turn", |line| {
                line["id"] == asked || line.get("method").is_some() && line.get("id").is_some()
            });
            if line["id"] == asked {
                assert_eq!(line["result"]["stopReason"], "end_turn", "{line}");
                return;
            }
            let mut answer = served(&self.stage.path("user/shop"), &line);
            answer["jsonrpc"] = json!("2.0");
            answer["id"] = line["id"].clone();
            editor.send(&answer);
        }
    }

    fn list_tools(&self, settings: &str) {
        let servers: Value = serde_json::from_str(settings).unwrap();
        let (_, server) = servers["mcpServers"].as_object().unwrap().iter().next().unwrap();
        let mut client = self.server(server);
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "reader", "version": "1"}});
        client.call("initialize", &params);
        let listed = client.call("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
        assert!(!tools.is_empty(), "{listed}");
    }

    /// A program on whose standard streams a protocol is spoken.
    fn server(&self, settings: &Value) -> Editor {
        let mut program = command(self.stage, settings["command"].as_str().unwrap());
        for word in settings["args"].as_array().unwrap() {
            program.arg(word.as_str().unwrap());
        }
        Editor::start(program.current_dir(self.stage.path("user/shop")))
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.editors.clear();
        // A test that failed leaves no team behind.
        run(command(self.stage, "eisen-core").args(["down", "--all", "--kill"]));
    }
}

impl Terminal {
    fn open(stage: &Stage) -> Self {
        let mut shell = command(stage, "sh");
        let streams = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shell = streams.spawn().unwrap();
        let lines = Lines::of(shell.stdout.take().unwrap());
        let input = shell.stdin.take();
        let mut terminal = Self { shell, input, lines };
        terminal.say("exec 2>&1\n");
        terminal
    }

    fn say(&mut self, text: &str) {
        self.input.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Runs a command to its end; returns what it printed. The next one sees its exit code.
    fn run(&mut self, line: &str) -> Vec<String> {
        self.say(&format!(
            "{{ (exit ${{code:-0}})\n{line}\n}} </dev/null; code=$?; echo; echo \"{END}$code\"\n"
        ));
        let mut printed: Vec<String> = Vec::new();
        loop {
            let line = self.lines.next().expect("the terminal was closed");
            if line.starts_with(END) {
                break;
            }
            printed.push(line);
        }
        // What ends in the midst of a line is followed by no empty one.
        printed.pop_if(|line| line.is_empty());
        printed
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.input.take();
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// What an editor answers to a request for a file.
fn served(folder: &Path, request: &Value) -> Value {
    let params = &request["params"];
    let path = folder.join(params["path"].as_str().unwrap_or_default());
    let result = match request["method"].as_str() {
        Some("fs/read_text_file") => {
            std::fs::read_to_string(path).map(|text| json!({"content": text}))
        }
        Some("fs/write_text_file") => {
            std::fs::write(path, params["content"].as_str().unwrap()).map(|()| json!({}))
        }
        _ => Err(std::io::ErrorKind::Unsupported.into()),
    };
    match result {
        Ok(result) => json!({"result": result}),
        Err(error) => json!({"error": {"code": -32603, "message": error.to_string()}}),
    }
}

fn differs(line: &str, shown: &[&str], printed: &[String]) -> String {
    format!("$ {line}\nthe guide shows:\n{}\nit printed:\n{}", shown.join("\n"), printed.join("\n"))
}
