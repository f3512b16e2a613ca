//! What looking for conflicts costs a write: `fs/write_text_file` by an agent of a team, from its request
//! to the answer, in a team with `[conflicts]` against one without. Both teams run at the same time on one
//! core and take turns, so that the machine cancels out of the ratio. The file is written anew each time,
//! and there is another agent in the team, which has locked a file of its own.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
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
    stay_on_one_core();
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
    folder: tempfile::TempDir,
    program: Child,
    port: TcpStream,
    lines: BufReader<TcpStream>,
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
        let mut program = Command::new(env!("CARGO_BIN_EXE_eisen-core"))
            .args(["up", "-c"])
            .arg(at("eisen.toml"))
            .env("EISEN_DIR", at("eisen"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(program.stderr.take().unwrap()).lines();
        let number: u16 = said
            .by_ref()
            .find_map(|line| line.unwrap().strip_prefix("eisen-core tcp port: ")?.parse().ok())
            .unwrap();
        std::thread::spawn(move || said.for_each(drop));
        let run = std::fs::read_dir(at("eisen/run")).unwrap().next().unwrap().unwrap();
        let run: Value = serde_json::from_slice(&std::fs::read(run.path()).unwrap()).unwrap();
        let port = TcpStream::connect(("127.0.0.1", number)).unwrap();
        let lines = BufReader::new(port.try_clone().unwrap());
        let mut team = Self { strategy, folder, program, port, lines, times: Vec::new() };
        team.send(&json!({ "type": "auth", "token": run["token"] }));
        let mut ready = std::collections::HashSet::new();
        team.expect(|line| {
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
        self.expect(|line| line["type"] == "turn" && line["agent_id"] == "ui");
        let times = std::fs::read_to_string(self.folder.path().join("times-ui")).unwrap();
        if counts {
            self.times.extend(times.lines().map(|time| time.parse::<f64>().unwrap()));
        }
    }

    fn prompt(&mut self, agent: &str, text: &str) {
        let params = json!({ "agent_id": agent, "text": text });
        self.send(&json!({ "type": "rpc", "id": 1, "method": "prompt", "params": params }));
    }

    fn send(&mut self, line: &Value) {
        writeln!(self.port, "{line}").unwrap();
    }

    fn expect(&mut self, mut is_it: impl FnMut(&Value) -> bool) {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the team has ended");
            if is_it(&serde_json::from_str(&line).unwrap()) {
                return;
            }
        }
    }

    /// The time within which this part of the writes were answered, in microseconds.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn time(&self, part: f64) -> f64 {
        let mut times = self.times.clone();
        times.sort_by(f64::total_cmp);
        times[((times.len() - 1) as f64 * part) as usize]
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.program.id().cast_signed()), Signal::SIGINT);
        let _ = self.program.wait();
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

/// With all that is started from now on.
fn stay_on_one_core() {
    let here = Pid::from_raw(0);
    let allowed = sched_getaffinity(here).unwrap();
    let last = (0..CpuSet::count()).rfind(|core| allowed.is_set(*core).unwrap()).unwrap();
    let mut one = CpuSet::new();
    one.set(last).unwrap();
    sched_setaffinity(here, &one).unwrap();
}
