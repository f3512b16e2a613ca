//! What open pages cost the agents: how long turns take in a team without a web server, with one and no
//! page, and with three and ten pages that follow everything. Turns of the teams alternate, so that the
//! machine cancels out of the ratios. Agents say and do some three hundred things a second, more than any
//! model does. The clients that stand for pages run on the same cores.

use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use crate::figures::within;
use crate::team::{PortClient, RunningTeam, eisen_core, token};
use serde_json::{Value, json};
use tungstenite::Message;
use tungstenite::client::IntoClientRequest as _;

/// Turns of each team, the first of which warms up.
const TURNS: usize = 25;

/// What an agent does in a turn.
const SCRIPT: &str = r#"
[[on]]
prompt = "work"
steps = [{ repeat = 100, steps = [
  { say = "some words of an answer, as models send them " },
  { wait_ms = 2 },
  { read = "src/a.rs" },
  { wait_ms = 2 },
] }]
"#;

pub(crate) fn run() {
    let pages: [Option<usize>; 4] = [None, Some(0), Some(3), Some(10)];
    let mut teams: Vec<Team> = pages.into_iter().map(Team::up).collect();
    let last = teams.len() - 1;
    for turn in 0..TURNS {
        // There and back again: what one still does in the background falls to another.
        for at in 0..teams.len() {
            teams[if turn % 2 == 0 { at } else { last - at }].turn(turn > 0);
        }
    }
    println!("{:<16} {:>14} {:>14} {:>10}", "", "median, ms", "p90, ms", "ratio");
    let base = teams[0].time(0.5);
    for team in &teams {
        let name = team.pages.map_or("no web server".to_owned(), |pages| format!("{pages} pages"));
        let median = team.time(0.5);
        println!("{name:<16} {median:>14.2} {:>14.2} {:>10.4}", team.time(0.9), median / base);
    }
}

/// A team of one scripted agent, with so many pages; None: without a web server.
struct Team {
    pages: Option<usize>,
    _program: RunningTeam,
    folder: tempfile::TempDir,
    port: PortClient,
    times: Vec<f64>,
}

impl Team {
    fn up(pages: Option<usize>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("work/src")).unwrap();
        std::fs::write(at("work/src/a.rs"), "fn a() {}\n").unwrap();
        std::fs::write(at("agent.toml"), format!("[agent]\nname = \"ui\"\n{SCRIPT}")).unwrap();
        let command = json!([env!("CARGO_BIN_EXE_eisen-core"), "scripted-agent", at("agent.toml")]);
        let web = pages.map_or("", |_| "[web]\nlisten = \"127.0.0.1:0\"\n");
        let config = format!(
            "[team]\nname = \"bench\"\nworkspace = \"work\"\nlisten = \"127.0.0.1:0\"\ntools = false\n{web}\
             [[agents]]\nid = \"ui\"\ncommand = {command}\n[agents.zone]\nallowed = [\"**\"]\n\
             enforce = \"protocol\"\n"
        );
        std::fs::write(at("eisen.toml"), config).unwrap();
        let (program, number) = RunningTeam::on_a_port(folder.path());
        let port = PortClient::connect(number);
        let mut team = Self { pages, _program: program, folder, port, times: Vec::new() };
        let token = token(team.folder.path());
        team.port.send(&json!({ "type": "auth", "token": token }));
        team.port.expect(|line| line["type"] == "agent" && line["state"] == "ready");
        for _ in 0..pages.unwrap_or(0) {
            follow(team.folder.path());
        }
        team
    }

    fn turn(&mut self, counts: bool) {
        let begun = Instant::now();
        let params = json!({ "agent_id": "ui", "text": "work" });
        self.port.send(&json!({ "type": "rpc", "id": 1, "method": "prompt", "params": params }));
        self.port.expect(|line| line["type"] == "rpc_result" && line["id"] == 1);
        if counts {
            self.times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
    }

    /// The time within which this part of the turns ended, in milliseconds.
    fn time(&self, part: f64) -> f64 {
        within(part, self.times.iter().copied())
    }
}

/// Follows everything, as a page does.
fn follow(folder: &Path) {
    let mut token = eisen_core(folder, &["web", "token", "--scope", "read", "--json"]);
    let made = token.stdout(Stdio::piped()).output().unwrap();
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let (token, url) = (made["token"].as_str().unwrap(), made["url"].as_str().unwrap());
    let address = url.strip_prefix("http://").unwrap();
    let mut request = format!("ws://{address}/ws").into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    let (mut socket, _) =
        tungstenite::client(request, TcpStream::connect(address).unwrap()).unwrap();
    let topics = ["session_update", "graph", "task", "report", "overlap"];
    for line in [
        json!({ "type": "auth", "token": token }),
        json!({ "type": "subscribe", "topics": topics }),
    ] {
        socket.send(Message::text(line.to_string())).unwrap();
    }
    std::thread::spawn(move || while socket.read().is_ok() {});
}
