//! What looking for conflicts costs a write: `fs/write_text_file` by an agent of a team, from its request
//! to the answer, in a team with `[conflicts]` against one without. Both teams run at the same time on one
//! core and take turns, so that the machine cancels out of the ratio. The file is written anew each time,
//! and there is another agent in the team, which has locked a file of its own.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::figures::within;
use crate::team::{PortClient, RunningTeam, token};
use serde_json::{Value, json};

/// Turns of each team, the first of which warms up, and writes in a turn.
const TURNS: usize = 20;
const WRITES: usize = 200;

const STRATEGIES: [&str; 4] = ["fww", "lww", "merge", "person"];

pub(crate) fn run() {
    let args: Vec<String> = crate::arguments();
    if let [first, times] = &args[..]
        && first == "agent"
    {
        return act(Path::new(times));
    }
    crate::stay_on_one_core();
    let mut teams: Vec<Team> = std::iter::once("").chain(STRATEGIES).map(Team::up).collect();
    let last = teams.len() - 1;
    for turn in 0..TURNS {
        // There and back again: what one still does in the background falls to another.
        for at in 0..teams.len() {
            let team = &mut teams[if turn % 2 == 0 { at } else { last - at }];
            team.turn(turn > 0);
        }
    }
    println!("{:<10} {:>14} {:>14} {:>10}", "", "median, µs", "p90, µs", "ratio");
    let base = teams[0].time(0.5);
    for team in &teams {
        let name = if team.strategy.is_empty() { "without" } else { team.strategy };
        let median = team.time(0.5);
        println!("{name:<10} {median:>14.1} {:>14.1} {:>10.3}", team.time(0.9), median / base);
    }
}

/// A team of two such agents as this bench plays.
struct Team {
    strategy: &'static str,
    _program: RunningTeam,
    folder: tempfile::TempDir,
    port: PortClient,
    times: Vec<f64>,
}

impl Team {
    fn up(strategy: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let table = match strategy {
            "" => String::new(),
            _ => format!("[conflicts]\nstrategy = \"{strategy}\"\n"),
        };
        let me = std::env::current_exe().unwrap();
        let agent = |id: &str| {
            let command = json!([me, "conflicts", "agent", at(&format!("times-{id}"))]);
            format!(
                "[[agents]]\nid = \"{id}\"\ncommand = {command}\n[agents.zone]\nallowed = [\"**\"]\n\
                 enforce = \"protocol\"\n"
            )
        };
        let config = format!(
            "[team]\nname = \"bench\"\nworkspace = \"work\"\nlisten = \"127.0.0.1:0\"\ntools = false\n\
             {table}{}{}",
            agent("ui"),
            agent("api")
        );
        std::fs::create_dir(at("work")).unwrap();
        std::fs::write(at("eisen.toml"), config).unwrap();
        let (program, number) = RunningTeam::on_a_port(folder.path());
        let port = PortClient::connect(number);
        let mut team = Self { strategy, _program: program, folder, port, times: Vec::new() };
        let token = token(team.folder.path());
        team.port.send(&json!({ "type": "auth", "token": token }));
        let mut ready = std::collections::HashSet::new();
        team.port.expect(|line| {
            if line["type"] == "agent" && line["state"] == "ready" {
                ready.insert(line["agent_id"].to_string());
            }
            ready.len() == 2
        });
        // The other one's turn goes on, so that its lock does.
        team.prompt("api", "other 1 hold");
        team
    }

    fn turn(&mut self, counts: bool) {
        self.prompt("ui", &format!("file {WRITES}"));
        self.port.expect(|line| line["type"] == "turn" && line["agent_id"] == "ui");
        let times = std::fs::read_to_string(self.folder.path().join("times-ui")).unwrap();
        if counts {
            self.times.extend(times.lines().map(|time| time.parse::<f64>().unwrap()));
        }
    }

    fn prompt(&mut self, agent: &str, text: &str) {
        let params = json!({ "agent_id": agent, "text": text });
        self.port.send(&json!({ "type": "rpc", "id": 1, "method": "prompt", "params": params }));
    }

    /// The time within which this part of the writes were answered, in microseconds.
    fn time(&self, part: f64) -> f64 {
        within(part, self.times.iter().copied())
    }
}

/// Plays an agent: a prompt `FILE COUNT` has it write the file so often, and leave the times.
fn act(times: &Path) {
    let mut lines = std::io::stdin().lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let send = |line: &Value| println!("{line}");
    let answer = |id: &Value, result: Value| {
        send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    };
    let mut cwd = PathBuf::new();
    loop {
        let request = next();
        let (id, params) = (&request["id"], &request["params"]);
        match request["method"].as_str() {
            Some("initialize") => answer(id, json!({ "protocolVersion": 1 })),
            Some("session/new") => {
                cwd = params["cwd"].as_str().unwrap().into();
                answer(id, json!({ "sessionId": "s" }));
            }
            Some("session/prompt") => {
                let text = params["prompt"][0]["text"].as_str().unwrap();
                let mut words = text.split(' ');
                let path = cwd.join(words.next().unwrap());
                let count: usize = words.next().unwrap().parse().unwrap();
                let mut all = Vec::new();
                for n in 0..count {
                    let params = json!({
                        "sessionId": "s",
                        "path": path,
                        "content": format!("{n}\n{}", "line of a file\n".repeat(200)),
                    });
                    let begun = Instant::now();
                    let method = "fs/write_text_file";
                    send(&json!({ "jsonrpc": "2.0", "id": n, "method": method, "params": params }));
                    assert_eq!(next()["result"], json!({}));
                    writeln!(all, "{:.3}", begun.elapsed().as_secs_f64() * 1e6).unwrap();
                }
                if words.next().is_none() {
                    std::fs::write(times, all).unwrap();
                    answer(id, json!({ "stopReason": "end_turn" }));
                }
            }
            _ => {}
        }
    }
}
