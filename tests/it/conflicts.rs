//! Two agents at one file: by each strategy, by `fs/*` and by shell; and lost updates.

mod claims;
mod lost;
mod merging;
mod strategies;

use serde_json::{Value, json};

use crate::harness::{Port, Puppet, Stage, Team, agent, eventually};

const FILE: &str = "src/ui/app.ts";

/// Two agents with one zone, each played by the test in the middle of a turn.
pub(super) struct Pair {
    port: Port,
    pub(super) ui: Player,
    pub(super) api: Player,
    team: Team,
}

pub(super) struct Player {
    pub(super) puppet: Puppet,
    session: &'static str,
    turn: Value,
    path: String,
}

pub(super) fn pair(stage: &Stage, keys: &str) -> Pair {
    let puppets = ["ui", "api"].map(|name| stage.puppet(name));
    let zoned = |name: &str| agent(name).puppet().zone("src/**").with("enforce = \"kernel\"");
    let team = stage.team(keys, vec![zoned("ui"), zoned("api")]);
    let [mut ui, mut api] = puppets;
    ui.connect("s-ui");
    api.connect("s-api");
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let mut play = |name: &str, mut puppet: Puppet, session| {
        port.begin(name, "go");
        let (turn, _) = puppet.prompted();
        Player { puppet, session, turn, path: stage.in_shop(FILE) }
    };
    let (ui, api) = (play("ui", ui, "s-ui"), play("api", api, "s-api"));
    Pair { port, ui, api, team }
}

impl Player {
    fn read(&mut self) -> String {
        let params = json!({ "sessionId": self.session, "path": self.path });
        let answer = self.puppet.call("fs/read_text_file", &params);
        answer["result"]["content"].as_str().unwrap().to_owned()
    }

    /// Sends a write by `fs/write_text_file`; returns its id.
    pub(super) fn begin_write(&mut self, content: &str) -> Value {
        let params = json!({ "sessionId": self.session, "path": self.path, "content": content });
        self.puppet.ask("fs/write_text_file", &params)
    }

    pub(super) fn write(&mut self, content: &str) -> Value {
        let id = self.begin_write(content);
        self.puppet.answer(&id)
    }

    /// Runs a line of a shell in the workspace; returns what it said.
    fn run(&mut self, line: &str) -> String {
        self.puppet.run(self.session, line)
    }

    /// Starts a line of a shell; returns its terminal.
    fn start(&mut self, line: &str) -> Value {
        let params = json!({ "sessionId": self.session, "command": line });
        let created = self.puppet.call("terminal/create", &params);
        let terminal = &created["result"]["terminalId"];
        json!({ "sessionId": self.session, "terminalId": terminal })
    }

    fn ends(&mut self, terminal: &Value) -> Value {
        self.puppet.call("terminal/wait_for_exit", terminal)["result"]["exitCode"].clone()
    }

    pub(super) fn end_turn(&mut self) {
        self.puppet.end_turn(&self.turn);
    }
}

impl Pair {
    /// Waits for a line of a conflict.
    fn conflict(&mut self, kind: &str, status: &str) -> Value {
        self.port.expect(&json!({ "type": "conflict", "kind": kind, "status": status }))
    }

    /// `ID KIND STATUS AGENTS` of each conflict, once there are so many.
    fn listed(&mut self, count: usize) -> Vec<String> {
        let port = &mut self.port;
        let mut all = Vec::new();
        eventually("the conflicts are listed", || {
            let listed = port.call("list_conflicts", &json!({})).unwrap();
            all = listed["conflicts"].as_array().unwrap().iter().map(shown).collect();
            all.len() >= count
        });
        all
    }
}

fn shown(conflict: &Value) -> String {
    let text = |name: &str| conflict[name].as_str().unwrap().to_owned();
    let agents = conflict["agents"].as_array().unwrap();
    let agents: Vec<_> = agents.iter().map(|agent| agent.as_str().unwrap()).collect();
    format!("{} {} {} {}", text("id"), text("kind"), text("status"), agents.join(" "))
}
