//! A team that runs for a bench in a folder of its own: its process, and a connection to its port.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// The program in a team's folder, which has its `$EISEN_DIR`.
pub(crate) fn eisen_core(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eisen-core"));
    command.args(args).current_dir(folder).env("EISEN_DIR", folder.join("eisen"));
    command.stdin(Stdio::null());
    command
}

/// The process of a team, which ends when it is dropped.
pub(crate) struct RunningTeam(pub(crate) Child);

impl RunningTeam {
    /// Starts the team of a folder's `eisen.toml`; returns its port, too.
    pub(crate) fn on_a_port(folder: &Path) -> (Self, u16) {
        let mut up = eisen_core(folder, &["up"]);
        let mut program = up.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(program.stderr.take().unwrap()).lines();
        let port = said
            .by_ref()
            .find_map(|line| line.unwrap().strip_prefix("eisen-core tcp port: ")?.parse().ok())
            .unwrap();
        std::thread::spawn(move || said.for_each(drop));
        (Self(program), port)
    }

    /// Starts it, and returns once its agent is ready.
    pub(crate) fn ready(folder: &Path) -> Self {
        let mut up = eisen_core(folder, &["up"]);
        let mut program = up.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut said = BufReader::new(program.stdout.take().unwrap()).lines();
        said.find(|line| line.as_ref().unwrap().contains("ready")).unwrap().unwrap();
        std::thread::spawn(move || said.for_each(drop));
        Self(program)
    }
}

impl Drop for RunningTeam {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGINT);
        let _ = self.0.wait();
    }
}

/// A connection to the port of a team.
pub(crate) struct PortClient {
    port: TcpStream,
    lines: BufReader<TcpStream>,
}

impl PortClient {
    pub(crate) fn connect(number: u16) -> Self {
        let port = TcpStream::connect(("127.0.0.1", number)).unwrap();
        let lines = BufReader::new(port.try_clone().unwrap());
        Self { port, lines }
    }

    pub(crate) fn send(&mut self, line: &Value) {
        writeln!(self.port, "{line}").unwrap();
    }

    /// Reads lines up to one.
    pub(crate) fn expect(&mut self, mut is_it: impl FnMut(&Value) -> bool) {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the team has ended");
            if is_it(&serde_json::from_str(&line).unwrap()) {
                return;
            }
        }
    }
}

/// The token of a team that runs in a folder.
pub(crate) fn token(folder: &Path) -> Value {
    let run = std::fs::read_dir(folder.join("eisen/run")).unwrap().next().unwrap().unwrap();
    let run: Value = serde_json::from_slice(&std::fs::read(run.path()).unwrap()).unwrap();
    run["token"].clone()
}
