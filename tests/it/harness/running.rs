use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::peer::{Lines, Port};
use super::{PATIENCE, Stage};

/// A run of the program that has printed its port.
pub(crate) struct Program {
    child: Child,
    pub(crate) port: u16,
    pub(crate) stderr: Lines,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// 128 + n after signal n.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Program {
    /// Starts the program, and waits for the line with its port on stderr.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = Lines::of(child.stderr.take().unwrap());
        let mut before = Vec::new();
        let port = loop {
            let Some(line) = stderr.next() else {
                panic!("no port was printed:\n{}", before.join("\n"));
            };
            let port = line.strip_prefix("eisen-core tcp port: ");
            if let Some(port) = port.and_then(|port| port.parse().ok()) {
                break port;
            }
            before.push(line);
        };
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        Self { child, port, stderr, stdin, stdout }
    }

    pub(crate) fn connect(&self) -> Port {
        Port::connect(self.port)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of the program, whose standard input ends first.
    pub(crate) fn wait(mut self) -> Ended {
        drop(self.stdin.take());
        let stdout = self.stdout.take().map(read_in_background);
        let stderr = self.stderr.rest().join("\n");
        let stdout = stdout.map(|text| text.recv_timeout(PATIENCE).unwrap()).unwrap_or_default();
        Ended { code: exit_code(&mut self.child), stdout, stderr }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A test that failed leaves nothing behind either.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_in_background(mut stream: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, text) = mpsc::channel();
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        sender.send(String::from_utf8_lossy(&all).into_owned())
    });
    text
}

pub(super) fn exit_code(child: &mut Child) -> i32 {
    let status = child.wait().unwrap();
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap()
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Ended {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let code = output.status.code().or_else(|| output.status.signal().map(|n| 128 + n));
    Ended { code: code.unwrap(), stdout, stderr }
}

/// A team that is up.
pub(crate) struct Team {
    pub(crate) program: Program,
    /// What its run file says.
    pub(crate) run_file: Value,
}

impl Team {
    pub(crate) fn of(program: Program, stage: &Stage) -> Self {
        let run_file =
            stage.run_file("shop").expect("the port is printed after the run file is there");
        Self { program, run_file }
    }

    pub(crate) fn token(&self) -> &str {
        self.run_file["token"].as_str().unwrap()
    }

    pub(crate) fn watch(&self) -> Port {
        self.program.connect()
    }

    /// Connects a client that may steer the team.
    pub(crate) fn steer(&self) -> Port {
        let mut port = self.watch();
        port.auth(self.token());
        port
    }

    /// Connects a client that may steer the team, once these agents are ready.
    pub(crate) fn steer_when_ready(&self, agents: &[&str]) -> Port {
        let mut port = self.steer();
        for agent in agents {
            port.agent_is(agent, "ready");
        }
        port
    }

    /// Stops the team as Ctrl-C does.
    pub(crate) fn stop(self) -> Ended {
        self.program.signal(Signal::SIGINT);
        self.program.wait()
    }
}
