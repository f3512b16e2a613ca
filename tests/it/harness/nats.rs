use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// A server of NATS that keeps what it stored; ends with the test.
pub(crate) struct NatsServer {
    port: u16,
    store: TempDir,
    child: Option<Child>,
}

impl NatsServer {
    /// None where the program is not installed.
    pub(crate) fn start() -> Option<Self> {
        if Command::new("nats-server").arg("--version").output().is_err() {
            eprintln!("skipped: nats-server is not installed");
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self { port, store: TempDir::new().unwrap(), child: None };
        server.run();
        Some(server)
    }

    pub(crate) fn run(&mut self) {
        let mut command = Command::new("nats-server");
        command.args(["-js", "-a", "127.0.0.1", "-p", &self.port.to_string()]);
        command.args(["--user", "eisen", "--pass", "p/w:1"]).arg("-sd");
        command.arg(self.store.path()).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().unwrap());
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = self.child.as_ref().unwrap().id();
        kill(Pid::from_raw(i32::try_from(id).unwrap()), signal).unwrap();
    }

    /// Its address, with the login that it wants.
    pub(crate) fn url(&self) -> String {
        format!("nats://eisen:p%2Fw%3A1@127.0.0.1:{}", self.port)
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}
