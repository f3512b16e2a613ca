use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};

use serde_json::{Value, json};

use super::PATIENCE;
use super::schema::{assert_result, assert_server_line};

/// Lines of a stream, read by a thread of their own so that waiting for one can be given up.
pub(crate) struct Lines {
    lines: Receiver<Vec<u8>>,
}

impl Lines {
    pub(crate) fn of(stream: impl Read + Send + 'static) -> Self {
        Self::of_opened(move || stream)
    }

    /// Reads a stream whose opening may wait for its other end.
    pub(crate) fn of_opened<R: Read>(open: impl FnOnce() -> R + Send + 'static) -> Self {
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let mut stream = BufReader::new(open());
            loop {
                let mut line = Vec::new();
                // A connection that was reset has ended, too.
                let read = stream.read_until(b'\n', &mut line).unwrap_or(0);
                if read == 0 || sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { lines }
    }

    /// Returns a line that has come already.
    pub(crate) fn try_next(&self) -> Option<String> {
        let line = self.lines.try_recv().ok()?;
        Some(String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned())
    }

    /// Returns the next line; None at the end.
    pub(crate) fn next(&self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned()),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing came any more, and no end"),
        }
    }

    /// Waits for a line with this text.
    pub(crate) fn until(&self, text: &str) {
        let mut before = Vec::new();
        loop {
            match self.next() {
                Some(line) if line.contains(text) => return,
                Some(line) => before.push(line),
                None => panic!("no line has `{text}`:\n{}", before.join("\n")),
            }
        }
    }

    pub(crate) fn rest(&self) -> Vec<String> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

/// The other end of a stream of JSON lines, both ways.
pub(crate) struct Peer {
    writer: Box<dyn Write>,
    lines: Lines,
    /// What came and was not asked for yet.
    inbox: VecDeque<Value>,
    /// All that came, in order.
    pub(crate) transcript: Vec<Value>,
    /// Checks each line that comes.
    validate: Option<fn(&Value)>,
}

impl Peer {
    pub(crate) fn new(writer: impl Write + 'static, lines: Lines) -> Self {
        let inbox = VecDeque::new();
        Self { writer: Box::new(writer), lines, inbox, transcript: Vec::new(), validate: None }
    }

    /// Speaks to a process over its standard streams.
    pub(crate) fn of(stdin: ChildStdin, stdout: ChildStdout) -> Self {
        Self::new(stdin, Lines::of(stdout))
    }

    /// Ends what it says.
    pub(crate) fn close(&mut self) {
        self.writer = Box::new(std::io::sink());
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_raw(format!("{message}\n").as_bytes());
    }

    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).unwrap();
        self.writer.flush().unwrap();
    }

    /// Waits for a line that has these members, nested ones too, and takes it: the first that
    /// nobody took.
    pub(crate) fn expect(&mut self, members: &Value) -> Value {
        self.expect_that(&members.to_string(), |line| has(line, members))
    }

    pub(crate) fn expect_that(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let mut at = 0;
        loop {
            while at < self.inbox.len() {
                if is_it(&self.inbox[at]) {
                    return self.inbox.remove(at).unwrap();
                }
                at += 1;
            }
            assert!(self.read(), "the stream ended without {what}, after {:#?}", self.transcript);
        }
    }

    /// Waits for a line by its text; what comes before it is passed over.
    pub(crate) fn expect_raw(&mut self, is_it: impl Fn(&str) -> bool) -> String {
        loop {
            let line = self.lines.next().unwrap_or_else(|| panic!("the stream ended"));
            if is_it(&line) {
                return line;
            }
        }
    }

    /// Reads to the end; returns the text of unread lines.
    pub(crate) fn rest_raw(&mut self) -> Vec<String> {
        self.lines.rest()
    }

    /// Reads to the end; returns all untaken messages.
    pub(crate) fn until_end(&mut self) -> Vec<Value> {
        while self.read() {}
        self.inbox.drain(..).collect()
    }

    /// Where in the transcript the first line with these members stands.
    pub(crate) fn position(&self, members: &Value) -> usize {
        let position = self.transcript.iter().position(|line| has(line, members));
        position.unwrap_or_else(|| panic!("no {members} in {:#?}", self.transcript))
    }

    /// How many lines with these members came so far.
    pub(crate) fn count(&self, members: &Value) -> usize {
        self.transcript.iter().filter(|line| has(line, members)).count()
    }

    fn read(&mut self) -> bool {
        let Some(line) = self.lines.next() else { return false };
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line}: {e}"));
        if let Some(validate) = self.validate {
            validate(&line);
        }
        // Around the connect the same state may come twice.
        if line["type"] == "agent" && self.transcript.contains(&line) {
            return true;
        }
        self.transcript.push(line.clone());
        self.inbox.push_back(line);
        true
    }
}

/// Whether `value` has all that `members` has.
pub(crate) fn has(value: &Value, members: &Value) -> bool {
    match (value, members) {
        (Value::Object(value), Value::Object(members)) => members
            .iter()
            .all(|(key, member)| value.get(key).is_some_and(|value| has(value, member))),
        _ => value == members,
    }
}

/// A client of the port, which holds every line and result to the schema.
pub(crate) struct Port {
    peer: Peer,
    socket: TcpStream,
    /// Methods asked, each by the id before which it stands.
    asked: Vec<String>,
}

impl std::ops::Deref for Port {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.peer
    }
}

impl std::ops::DerefMut for Port {
    fn deref_mut(&mut self) -> &mut Peer {
        &mut self.peer
    }
}

impl Port {
    /// Connects, and waits until the stream has begun: what happens from now on is in it.
    pub(crate) fn connect(port: u16) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let lines = Lines::of(socket.try_clone().unwrap());
        let mut peer = Peer::new(socket.try_clone().unwrap(), lines);
        peer.validate = Some(assert_server_line);
        assert!(peer.read(), "the port closed the connection");
        assert_eq!(peer.transcript[0]["type"], "snapshot");
        Self { peer, socket, asked: Vec::new() }
    }

    pub(crate) fn auth(&mut self, token: &str) {
        self.send(&json!({"type": "auth", "token": token}));
        self.expect(&json!({"type": "rpc_result", "id": null}));
    }

    /// Waits until the agent is in this state, now or later; a state that was passed counts.
    pub(crate) fn agent_is(&mut self, agent: &str, state: &str) -> Value {
        self.expect(&json!({"type": "agent", "agent_id": agent, "state": state}))
    }

    /// Sends a request; returns its id.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.asked.push(method.to_owned());
        let id = self.asked.len() as u64;
        self.send(&json!({"type": "rpc", "id": id, "method": method, "params": params}));
        id
    }

    /// Waits for the answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let answer = self.expect_that(&format!("an answer to {id}"), |line| {
            line["id"] == id && (line["type"] == "rpc_result" || line["type"] == "rpc_error")
        });
        if answer["type"] == "rpc_result" {
            let asked = usize::try_from(id).ok().and_then(|id| self.asked.get(id.checked_sub(1)?));
            if let Some(method) = asked {
                assert_result(method, &answer["result"]);
            }
            Ok(answer["result"].clone())
        } else {
            Err(answer["error"].clone())
        }
    }

    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Begins a prompt; returns the request's id.
    pub(crate) fn begin(&mut self, agent: &str, text: &str) -> u64 {
        self.ask("prompt", &json!({"agent_id": agent, "text": text}))
    }

    /// Begins a turn that ends when it is cancelled, and waits until it runs.
    pub(crate) fn begin_waiting(&mut self, agent: &str) -> u64 {
        let id = self.begin(agent, "wait");
        self.expect(&json!({"type": "usage", "agent_id": agent, "used": 7}));
        id
    }

    /// Prompts an agent, and returns what it said.
    pub(crate) fn prompt(&mut self, agent: &str, text: &str) -> String {
        let id = self.begin(agent, text);
        self.said(id)
    }

    /// Waits for the end of a turn that ends well; returns what the agent said.
    pub(crate) fn said(&mut self, id: u64) -> String {
        let result = self.answer(id).unwrap();
        assert_eq!(result["stop_reason"], "end_turn", "{result}");
        result["text"].as_str().unwrap().to_owned()
    }

    pub(crate) fn resolve(&mut self, blocked: &Value, decision: &Value) -> Result<Value, Value> {
        let mut params = decision.clone();
        params["id"] = blocked["id"].clone();
        self.call("resolve_blocked", &params)
    }

    /// Waits for the first news of a blocked access.
    pub(crate) fn blocked(&mut self, status: &str) -> Value {
        self.expect(&json!({"type": "blocked", "status": status}))
    }

    pub(crate) fn shut_down(&self, how: Shutdown) {
        self.socket.shutdown(how).unwrap();
    }
}
