//! A child between this process and an agent, and what passing on costs it.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use super::child::{BLOCK, widen};

/// What the client says; the agent answers any line.
const REQUEST: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/set_mode\",\
    \"params\":{\"sessionId\":\"5b1f\",\"modeId\":\"ask\"}}\n";

pub(crate) struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    block: Vec<u8>,
    /// Of each request until all of its answer was there.
    times: Vec<Duration>,
    /// What the child itself used meanwhile.
    processor: Duration,
}

impl Peer {
    /// One that only copies.
    pub(crate) fn copying(answer: &Path, writes: &str, wide: bool) -> Self {
        let mut command = crate::part("relay");
        command.args(["child", if wide { "copy-wide" } else { "copy" }, writes]).arg(answer);
        Self::start(&mut command, wide)
    }

    pub(crate) fn observing(answer: &Path, writes: &str, wide: bool, zone: &[&str]) -> Self {
        let workspace = answer.parent().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_eisen-core"));
        command.env("EISEN_DIR", workspace.with_extension("eisen")).current_dir(workspace);
        command.args(["observe", "--port", "0"]).args(zone).arg("--");
        let agent = std::env::current_exe().unwrap();
        command.arg(agent).args(["relay", "child", "answer", writes]).arg(answer);
        Self::start(&mut command, wide)
    }

    fn start(command: &mut Command, wide: bool) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        if wide {
            widen(stdin.as_ref().unwrap());
            widen(&stdout);
        }
        let block = vec![0; BLOCK];
        Self { child, stdin, stdout, block, times: Vec::new(), processor: Duration::ZERO }
    }

    /// Asks for one answer after the other, and waits for all bytes of each.
    pub(crate) fn ask(&mut self, answers: impl IntoIterator<Item = usize>) {
        let before = self.clock();
        for bytes in answers {
            let start = Instant::now();
            self.stdin.as_ref().unwrap().write_all(REQUEST).unwrap();
            let mut heard = 0;
            while heard < bytes {
                let read = self.stdout.read(&mut self.block).unwrap();
                assert!(read > 0, "it ended");
                heard += read;
            }
            assert_eq!(heard, bytes, "nothing is lost or added");
            self.times.push(start.elapsed());
        }
        self.processor += self.clock().saturating_sub(before);
    }

    /// Forgets what was measured so far.
    pub(crate) fn reset(&mut self) {
        self.times.clear();
        self.processor = Duration::ZERO;
    }

    /// The time that so much of all took at most, in nanoseconds.
    pub(crate) fn time(&self, quantile: f64) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "an index"
        )]
        let index = (times.len() as f64 * quantile) as usize;
        times[index].as_secs_f64() * 1e9
    }

    /// The child's own CPU time for each answer, in nanoseconds.
    #[expect(clippy::cast_precision_loss, reason = "thousands")]
    pub(crate) fn processor(&self) -> f64 {
        self.processor.as_secs_f64() * 1e9 / self.times.len() as f64
    }

    fn clock(&self) -> Duration {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap());
        clock_gettime(clock_getcpuclockid(pid).unwrap()).unwrap().into()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.stdin.take());
        self.child.wait().unwrap();
    }
}
