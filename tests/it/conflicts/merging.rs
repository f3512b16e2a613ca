//! Agents that each add lines under a heading of their own in one file: none is lost, whatever falls between a read
//! and a write, and whatever the clock does.

use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde_json::{Value, json};

use super::FILE;
use crate::harness::{Program, Puppet, Stage, Team, agent, program, run};

const NAMES: [&str; 3] = ["a", "b", "c"];
const SESSIONS: [&str; 3] = ["s-a", "s-b", "s-c"];

/// An agent that reads the file, and some time later writes what it read with a line more.
struct Writer {
    puppet: Puppet,
    session: &'static str,
    heading: String,
    path: String,
    read: Option<String>,
    written: Option<Value>,
    lines: usize,
}

impl Writer {
    /// Reads, or begins to write, or waits for the answer to that.
    fn goes_on(&mut self) {
        if let Some(id) = self.written.take() {
            let answer = self.puppet.answer(&id);
            assert_eq!(answer["result"], json!({}), "{answer}");
        } else if let Some(known) = self.read.take() {
            self.lines += 1;
            let line = format!("{}{}.{}\n", self.heading, self.session, self.lines);
            let content = known.replacen(&self.heading, &line, 1);
            let params =
                json!({ "sessionId": self.session, "path": self.path, "content": content });
            self.written = Some(self.puppet.ask("fs/write_text_file", &params));
        } else {
            let params = json!({ "sessionId": self.session, "path": self.path });
            let answer = self.puppet.call("fs/read_text_file", &params);
            self.read = Some(answer["result"]["content"].as_str().unwrap().to_owned());
        }
    }
}

/// The agents, each in the middle of a turn.
fn writers(stage: &Stage, strategy: &str, up: impl FnOnce() -> Program) -> (Vec<Writer>, Team) {
    let blank = "-\n".repeat(6);
    let headings = NAMES.map(|name| format!("# {name}\n"));
    stage.file(&format!("shop/{FILE}"), &headings.clone().map(|it| it + blank.as_str()).concat());
    let puppets = NAMES.map(|name| stage.puppet(name));
    let agents = NAMES.map(|name| agent(name).puppet().zone("src/**"));
    stage.configure(&format!("[conflicts]\nstrategy = \"{strategy}\"\n"), agents.into());
    let team = Team::of(up(), stage);
    let mut writers = Vec::new();
    for ((mut puppet, session), heading) in puppets.into_iter().zip(SESSIONS).zip(headings) {
        puppet.connect(session);
        let (path, read, written, lines) = (stage.in_shop(FILE), None, None, 0);
        writers.push(Writer { puppet, session, heading, path, read, written, lines });
    }
    let mut port = team.steer_when_ready(&NAMES);
    for (name, writer) in NAMES.into_iter().zip(&mut writers) {
        port.begin(name, "go");
        writer.puppet.prompted();
    }
    (writers, team)
}

/// Has all go on in a random order; then every line that was answered is in the file, once.
fn add_lines(stage: &Stage, writers: &mut [Writer], random: &mut fastrand::Rng, steps: usize) {
    for _ in 0..steps {
        let which = random.usize(..writers.len());
        writers[which].goes_on();
    }
    for writer in &mut *writers {
        while writer.read.is_some() || writer.written.is_some() {
            writer.goes_on();
        }
    }
    let text = stage.read(&format!("shop/{FILE}"));
    for writer in writers {
        for line in 1..=writer.lines {
            let line = format!("\n{}.{line}\n", writer.session);
            assert_eq!(text.matches(&line).count(), 1, "{line:?} in {text}");
        }
    }
}

fn up(stage: &Stage) -> Program {
    stage.start(&["up", "-c", "eisen.toml"])
}

#[test]
fn no_line_is_lost_whenever_it_was_read() {
    let stage = Stage::new();
    let (mut writers, _team) = writers(&stage, "merge", || up(&stage));
    add_lines(&stage, &mut writers, &mut fastrand::Rng::with_seed(1), 400);
}

#[test]
fn a_clock_that_is_set_back_loses_no_line_and_hides_none_that_is_lost() {
    let stage = Stage::new();
    let library = stage.path("libclock.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/conflicts/clock.c");
    let compiled = run(program("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]));
    assert_eq!(compiled.code, 0, "{}", compiled.stderr);
    for strategy in ["merge", "lww"] {
        let stage = Stage::new();
        let shift = stage.path("shift");
        std::fs::write(&shift, 3600_i64.to_ne_bytes()).unwrap();
        let shifted = || {
            let mut up = stage.eisen_core(&["up", "-c", "eisen.toml"]);
            Program::start(up.env("LD_PRELOAD", &library).env("CLOCK_SHIFT", &shift))
        };
        let (mut writers, team) = writers(&stage, strategy, shifted);
        // In the hour that comes again.
        for writer in &mut writers {
            (0..3).for_each(|_| writer.goes_on());
        }
        let file = std::fs::File::options().write(true).open(&shift).unwrap();
        file.write_all_at(&0_i64.to_ne_bytes(), 0).unwrap();
        if strategy == "merge" {
            add_lines(&stage, &mut writers, &mut fastrand::Rng::with_seed(2), 200);
            continue;
        }
        let mut port = team.steer();
        // Two read, and both write: the second takes back the first one's line.
        for writer in &mut writers[..2] {
            writer.goes_on();
        }
        for writer in &mut writers[..2] {
            (0..2).for_each(|_| writer.goes_on());
        }
        let lost = json!({ "type": "conflict", "kind": "lost_update", "status": "observed" });
        assert_eq!(port.expect(&lost)["agents"], json!(["b", "a"]));
    }
}
