//! Child processes: spawn, process groups, pipes, exit, resource limits, and cleanup of everything
//! a command has started. Knows neither JSON nor sessions. Unsafe code is in `process/sys.rs` and
//! `process/resident.rs`.
//!
//! Each agent and each terminal has a *warden*: this program, started as `eisen-core warden` in a
//! session of its own, with one thread. It starts the command, adopts its orphans as a subreaper,
//! reaps them, reports the command's exit, and kills all of them when its socket to the supervisor
//! closes.
//! - The socket closes however the supervisor dies: one mechanism serves stop, crash and SIGKILL.
//!   The warden finds its processes in whatever group or session they are.
//! - Code between fork and exec made a spawn from a parent with 512 MB touched take 25 ms, against
//!   0.2 ms by `posix_spawn`. The supervisor only uses the latter; the small warden forks.
//! - The parent-death signal follows the thread that forked; a warden has only one.
//!
//! If a warden is killed, its command gets the parent-death signal, and the supervisor adopts and
//! kills the rest ([`become_subreaper`]). A warden that is stopped (SIGSTOP) is killed by the
//! supervisor, or woken by the supervisor's death.
//!
//! A [`Sweeper`] backs up the wardens: all processes of a run carry its mark in their environment
//! ([`marker`]). Once the supervisor is gone, the sweeper kills the processes that still carry it,
//! such as those of a warden that was killed at the same moment. If the sweeper was killed, too,
//! the next start does the same ([`end_run`]).
//!
//! Not covered: a daemon with an empty environment whose warden and supervisor were killed at the
//! same moment; processes of other users; and, without a cgroup, a process that forks into new
//! sessions faster than it is found. A PID namespace would cover these, but would hide the
//! machine's processes from commands. Other unixes have no subreaper: there, only the process group
//! is killed.
//!
//! An agent and its terminals are a [`Family`], which is measured and limited as a whole: by the
//! kernel with [`Groups`], else by polling (`limit_monitor`).

mod ancestry;
mod canary;
mod cgroup;
mod descriptors;
mod error;
mod family;
mod family_state;
mod folder;
mod idle_warden;
mod launcher;
mod limit_monitor;
mod limits;
mod log;
mod mark;
mod memory;
mod oom;
mod orphans;
#[cfg(target_os = "linux")]
mod resident;
mod sweeper;
mod sys;
#[cfg_attr(not(target_os = "linux"), path = "process/tree_none.rs")]
mod tree;
mod warden;
mod wire;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use tokio::net::unix::{OwnedWriteHalf, pipe};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

pub use ancestry::commands_above;
pub use canary::canary;
pub use cgroup::{Groups, LimitEnforcement};
pub use descriptors::raise_descriptor_limit;
pub use error::SpawnError;
pub use family::{Family, command_line, look_at, memory_below};
pub use folder::remove_folder;
pub use launcher::{Launcher, widen};
pub use limits::{Limits, Peak, Usage};
pub use log::{KEPT, StderrLog};
pub use mark::{age_of, boot, end_run, marker, start_of};
pub use orphans::become_subreaper;
#[cfg(target_os = "linux")]
pub use resident::give_back_program;
pub use sweeper::Sweeper;
pub use warden::warden_main;

/// Makes the scheduler not preempt other threads when the calling thread wakes (`SCHED_BATCH`). For
/// threads that read small writes: they wake later, and read more at once.
pub fn run_in_batches() {
    sys::run_in_batches();
}

/// A command to start. Its environment is what its launcher lets it inherit, plus `env`.
#[derive(Clone, Debug)]
pub struct Command {
    /// Looked up on PATH (of `env`, if set there) unless it contains a slash.
    pub program: OsString,
    /// The arguments, without the program's own name.
    pub args: Vec<OsString>,
    /// The working directory. A relative path of `program` starts from it.
    pub cwd: PathBuf,
    /// Variables that are added to the inherited ones, or replace them.
    pub env: BTreeMap<String, String>,
}

/// A running child with everything it started. Dropping it kills all of them.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    /// Sends one byte per signal; closing it makes the warden kill everything.
    control: OwnedWriteHalf,
    /// The child's exit; closed once all its descendants have ended.
    exit: watch::Receiver<Option<Exit>>,
    /// Dropping it starts the timeout for the warden to kill everything.
    ownership: oneshot::Sender<Infallible>,
}

/// The parent's ends of the child's pipes.
#[derive(Debug)]
pub struct Stdio {
    /// Writes to the child's standard input. Dropping it ends that input.
    pub stdin: pipe::Sender,
    /// Reads the child's standard output, until no process holds the other end.
    pub stdout: pipe::Receiver,
    /// Reads the child's standard error, until no process holds the other end.
    pub stderr: pipe::Receiver,
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub enum Exit {
    /// The process exited by itself, with this status from 0 to 255.
    Code(i32),
    /// A signal with this number ended it.
    Signal(i32),
}

/// The step of an orderly stop at which the process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// The process ended after its stdin was closed.
    OnEof(Exit),
    /// The process ended after SIGTERM.
    OnTerm(Exit),
    /// The process did not end in time, and got SIGKILL.
    Killed,
}

impl Process {
    /// The child's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for the child's exit; its descendants may live on until `kill` or drop. Cancel-safe;
    /// may be called again.
    pub async fn wait(&self) -> Exit {
        self.exit().await
    }

    /// Like [`Process::wait`], for a task that does not own the process.
    pub fn exit(&self) -> impl Future<Output = Exit> + Send + use<> {
        let mut exit = self.exit.clone();
        async move {
            let ended = exit.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
            // Without an exit, the sender is dropped only with the runtime, which kills the child.
            ended.unwrap_or(Exit::KILLED)
        }
    }

    /// Sends a signal to the child's process group; ignored once the child has ended.
    pub async fn signal(&self, signal: Signal) {
        let byte = [wire::signal_byte(signal)];
        // An error means that the warden has ended, with all its processes.
        while self.control.writable().await.is_ok() {
            match self.control.try_write(&byte) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                _ => return,
            }
        }
    }

    /// Kills the child and all its descendants, in any process group, and waits for their end; for
    /// some seconds at most, if one hangs in the kernel.
    pub async fn kill(self) -> Exit {
        let Self { control, ownership, mut exit, .. } = self;
        drop((control, ownership));
        while exit.changed().await.is_ok() {}
        exit.borrow().unwrap_or(Exit::KILLED)
    }

    /// Stops the child after its stdin was closed: waits `for_eof`, sends SIGTERM to the group,
    /// waits `for_term`, then kills. Remaining descendants are killed in any case.
    pub async fn stop(self, for_eof: Duration, for_term: Duration) -> Stopped {
        let stopped = if let Ok(exit) = timeout(for_eof, self.wait()).await {
            Stopped::OnEof(exit)
        } else {
            self.signal(Signal::SIGTERM).await;
            match timeout(for_term, self.wait()).await {
                Ok(exit) => Stopped::OnTerm(exit),
                Err(_) => Stopped::Killed,
            }
        };
        self.kill().await;
        stopped
    }
}

impl Exit {
    /// The end by SIGKILL, which also stands for an exit that is not known.
    pub const KILLED: Self = Self::Signal(Signal::SIGKILL as i32);

    /// Whether it exited with status 0.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exited with status {code}"),
            Self::Signal(number) => {
                write!(f, "was killed by signal {number}")?;
                // Realtime signals have no name.
                Signal::try_from(number).map_or(Ok(()), |signal| write!(f, " ({signal})"))
            }
        }
    }
}
