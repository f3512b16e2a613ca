use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use super::Stage;
use super::peer::{Lines, Peer};

/// An agent that the test itself plays: its process only copies bytes from and to two named pipes.
pub(crate) struct Puppet {
    peer: Peer,
    last_id: u64,
}

impl std::ops::Deref for Puppet {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.peer
    }
}

impl std::ops::DerefMut for Puppet {
    fn deref_mut(&mut self) -> &mut Peer {
        &mut self.peer
    }
}

/// Ends with its input, and dies with the process that plays it.
const SCRIPT: &str = r#"exec 3< "$0.out"; { cat <&3; kill $$; } & exec cat 3<&- > "$0.in""#;

impl Puppet {
    /// Plays the process of this name.
    pub(crate) fn new(stage: &Stage, name: &str) -> Self {
        let [input, output] = Self::pipes(stage, name);
        Self::on(input, output)
    }

    /// Makes the pipes to and from the process of this name, for another process that plays it.
    pub(crate) fn pipes(stage: &Stage, name: &str) -> [PathBuf; 2] {
        ["in", "out"].map(|end| {
            let path = stage.path(&format!("{name}.{end}"));
            mkfifo(&path, Mode::S_IRWXU).unwrap();
            path
        })
    }

    /// Plays the next process of the same name, once the one before is dead and its last lines
    /// are read.
    pub(crate) fn again(stage: &Stage, name: &str) -> Self {
        Self::on(stage.path(&format!("{name}.in")), stage.path(&format!("{name}.out")))
    }

    fn on(input: PathBuf, output: PathBuf) -> Self {
        // Open for both, so that neither opening nor writing waits for the process.
        let writer = OpenOptions::new().read(true).write(true).open(output).unwrap();
        let lines = Lines::of_opened(move || File::open(input).unwrap());
        Self { peer: Peer::new(writer, lines), last_id: 0 }
    }

    /// The command of the puppet of this name, for a configuration in the stage's folder.
    pub(crate) fn command(stage: &Path, name: &str) -> Vec<String> {
        let pipes = stage.join(name).display().to_string();
        vec!["sh".to_owned(), "-c".to_owned(), SCRIPT.to_owned(), pipes]
    }

    /// Answers what a client asks first, up to the open session `session`.
    pub(crate) fn connect(&mut self, session: &str) {
        self.serve("initialize", &json!({"protocolVersion": 1}));
        self.serve("session/new", &json!({"sessionId": session}));
    }

    /// Waits for a request, and answers it; returns its params.
    pub(crate) fn serve(&mut self, method: &str, result: &Value) -> Value {
        let request = self.expect(&json!({"method": method}));
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
        request["params"].clone()
    }

    /// Waits for a prompt; returns its id and text.
    pub(crate) fn prompted(&mut self) -> (Value, String) {
        let request = self.expect(&json!({"method": "session/prompt"}));
        let text = request["params"]["prompt"][0]["text"].as_str().unwrap().to_owned();
        (request["id"].clone(), text)
    }

    /// Says something in the running turn.
    pub(crate) fn say(&mut self, session: &str, text: &str) {
        let content = json!({"type": "text", "text": text});
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
        let params = json!({"sessionId": session, "update": update});
        self.send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    pub(crate) fn end_turn(&mut self, prompt: &Value) {
        let result = json!({"stopReason": "end_turn"});
        self.send(&json!({"jsonrpc": "2.0", "id": prompt, "result": result}));
    }

    /// Sends a request of the agent's own; returns its id.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = json!(format!("own {}", self.last_id));
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Waits for the answer to a request of its own.
    pub(crate) fn answer(&mut self, id: &Value) -> Value {
        self.expect_that(&format!("an answer to {id}"), |line| {
            line["id"] == *id && line.get("method").is_none()
        })
    }

    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        self.answer(&id)
    }

    /// Runs a command in a terminal to its end; returns its output.
    pub(crate) fn run(&mut self, session: &str, line: &str) -> String {
        let created = self.call("terminal/create", &json!({"sessionId": session, "command": line}));
        let terminal = &created["result"]["terminalId"];
        assert!(terminal.is_string(), "{created}");
        let this = json!({"sessionId": session, "terminalId": terminal});
        self.call("terminal/wait_for_exit", &this);
        let output = self.call("terminal/output", &this);
        self.call("terminal/release", &this);
        output["result"]["output"].as_str().unwrap().to_owned()
    }
}
