use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::peer::{Lines, Peer};
use super::running::exit_code;

/// An editor that is attached to an agent; the test plays it over the program's standard streams.
pub(crate) struct Editor {
    peer: Peer,
    child: Child,
    stderr: Lines,
    last_id: u64,
}

impl std::ops::Deref for Editor {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.peer
    }
}

impl std::ops::DerefMut for Editor {
    fn deref_mut(&mut self) -> &mut Peer {
        &mut self.peer
    }
}

impl Editor {
    /// Runs `eisen-core attach`.
    pub(crate) fn start(command: &mut Command) -> Self {
        let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = streams.spawn().unwrap();
        let stderr = Lines::of(child.stderr.take().unwrap());
        let peer = Peer::of(child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { peer, child, stderr, last_id: 0 }
    }

    /// Says what it can; returns what the agent said of itself.
    pub(crate) fn initialize(&mut self, capabilities: &Value) -> Value {
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        self.call("initialize", &params)["result"].clone()
    }

    /// Sends a request; returns its id.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = json!(format!("e{}", self.last_id));
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Waits for the answer to a request.
    pub(crate) fn answer(&mut self, id: &Value) -> Value {
        self.expect_that(&format!("an answer to {id}"), |line| {
            line["id"] == *id && line.get("method").is_none()
        })
    }

    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        self.answer(&id)
    }

    /// Opens a session; returns its id.
    pub(crate) fn open(&mut self) -> String {
        let answer = self.call("session/new", &json!({"cwd": "/", "mcpServers": []}));
        answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Prompts; returns the request's id.
    pub(crate) fn begin(&mut self, session: &str, text: &str) -> Value {
        let prompt = json!([{"type": "text", "text": text}]);
        self.ask("session/prompt", &json!({"sessionId": session, "prompt": prompt}))
    }

    /// Waits for a request of the agent, and answers it; returns its params.
    pub(crate) fn serve(&mut self, method: &str, result: &Value) -> Value {
        let request = self.expect(&json!({"method": method}));
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
        request["params"].clone()
    }

    /// Waits for the next chunk of what the agent says.
    pub(crate) fn reported(&mut self) -> String {
        let chunk = json!({"params": {"update": {"sessionUpdate": "agent_message_chunk"}}});
        let update = self.expect(&chunk);
        update["params"]["update"]["content"]["text"].as_str().unwrap().to_owned()
    }

    /// The processes that the program has started and that run as its children.
    pub(crate) fn children(&self) -> String {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let of_task = |task: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.unwrap().path().join("children")).unwrap()
        };
        tasks.map(of_task).collect()
    }

    /// Waits for a line that people would see.
    pub(crate) fn said(&self) -> String {
        self.stderr.next().unwrap()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Waits for the end of the program; returns its exit code and what it complained of.
    pub(crate) fn end(&mut self) -> (i32, String) {
        let complaint = self.stderr.rest().join("\n");
        (exit_code(&mut self.child), complaint)
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        // A test that failed leaves nothing behind either.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
