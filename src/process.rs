//! Child processes: spawn, process group, pipes, exit, and that nothing outlives its owner.
//! Knows neither JSON nor sessions. Its unsafe code is all in `process/sys.rs`.
//!
//! Each agent and each terminal has a *warden*: this very program, started as `eisen-core warden`
//! in a session of its own, with one thread. It starts the real command, adopts (as a subreaper)
//! and reaps whatever comes of it, reports its end, and kills all of it when its socket to the
//! supervisor closes.
//! - The socket closes however the supervisor dies: one mechanism serves stop, crash and SIGKILL.
//!   Whose a process is stays known, whatever group or session it fled to.
//! - Code between fork and exec made a spawn from a parent with 512 MB touched take 25 ms, against
//!   0.2 ms by `posix_spawn`. The supervisor does only the latter; the small warden forks.
//! - The parent-death signal follows the thread that forked; a warden has only one.
//!
//! A killed warden's command gets the parent-death signal, and the rest comes to the supervisor
//! ([`become_subreaper`]), which ends it. A warden that was stopped is killed in its turn,
//! or woken by the supervisor's death.
//!
//! A [`Sweeper`] stands behind the wardens: every process of a run carries its mark in the
//! environment ([`marker`]), and once the supervisor is gone the sweeper ends what still does. So
//! nothing is left either if a warden was killed, or is kept stopped, in that same moment. If the
//! sweeper was killed with both, the next start ends what carries the mark ([`end_run`]).
//!
//! Not covered: a daemon that was started with an empty environment, once its warden and the
//! supervisor were killed in the same moment; processes of other users; and one that forks into new
//! sessions faster than it is found, where there is no cgroup. A PID namespace would close that, but
//! commands would no more see the machine's processes. Other unixes have no subreaper: there only
//! the process group is ended.
//!
//! An agent and its terminals are a [`Family`], which is measured and limited as a whole: by the
//! kernel where there are [`Groups`], else by looking at it (`census`).

mod canary;
mod cgroup;
mod descriptors;
mod error;
mod family;
mod folder;
mod household;
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
use tokio::net::unix::{OwnedWriteHalf, pipe};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

pub use canary::canary;
pub use cgroup::{Groups, Holding};
pub use descriptors::raise_descriptor_limit;
pub use error::SpawnError;
pub use family::{Family, look_at};
pub use folder::remove_folder;
pub use launcher::{Launcher, widen};
pub use limits::{Limits, Peak, Usage};
pub use log::StderrLog;
pub use mark::{age_of, boot, end_run, marker, start_of};
pub use orphans::become_subreaper;
#[cfg(target_os = "linux")]
pub use resident::give_back_program;
pub use sweeper::Sweeper;
pub use warden::warden_main;

/// Has the calling thread take the processor from nobody when it is woken: it waits until a free
/// one is there, or who runs has had its turn. For threads that read what others write bit by bit:
/// they come when there is more, and don't break in at each bit.
pub fn run_in_batches() {
    sys::run_in_batches();
}

/// What to run. The environment is the supervisor's own plus `env`.
#[derive(Clone, Debug)]
pub struct Command {
    /// Looked up on PATH (that of `env`, if it has one) if it has no slash.
    pub program: OsString,
    pub args: Vec<OsString>,
    pub cwd: PathBuf,
    pub env: BTreeMap<String, String>,
}

/// A running child with everything it started. Dropping it kills them all.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    /// One byte a signal; its end is the warden's order to kill.
    control: OwnedWriteHalf,
    /// Its sender goes when all has ended.
    exit: watch::Receiver<Option<Exit>>,
    /// Dropped with this, it starts the time that the warden has to end everything.
    ownership: oneshot::Sender<Infallible>,
}

/// The parent's ends of the child's pipes.
#[derive(Debug)]
pub struct Stdio {
    pub stdin: pipe::Sender,
    pub stdout: pipe::Receiver,
    pub stderr: pipe::Receiver,
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// How far an orderly stop had to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stopped {
    OnEof(Exit),
    OnTerm(Exit),
    Killed,
}

impl Process {
    /// The child's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for the child itself to end; what it started may live on until `kill` or drop. May
    /// be called again and dropped at any time: it answers the same.
    pub async fn wait(&self) -> Exit {
        self.exit().await
    }

    /// Like [`Process::wait`], for a task that does not own the process.
    pub fn exit(&self) -> impl Future<Output = Exit> + Send + use<> {
        let mut exit = self.exit.clone();
        async move {
            let ended = exit.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
            // The sender leaves without an exit only when the runtime is being torn down, and
            // the child is being killed with it.
            ended.unwrap_or(Exit::KILLED)
        }
    }

    /// Sends a signal to the child's process group. Once the child has ended nothing happens.
    pub async fn signal(&self, signal: Signal) {
        let byte = [wire::signal_byte(signal)];
        // An error says that the warden has ended, and so has whatever could be signalled.
        while self.control.writable().await.is_ok() {
            match self.control.try_write(&byte) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                _ => return,
            }
        }
    }

    /// Kills the child and everything it started, also what left its process group, and waits
    /// until all of it is gone; some seconds at most, for what hangs in the kernel.
    pub async fn kill(self) -> Exit {
        let Self { control, ownership, mut exit, .. } = self;
        drop((control, ownership));
        while exit.changed().await.is_ok() {}
        exit.borrow().unwrap_or(Exit::KILLED)
    }

    /// The orderly end, to be called after stdin was closed: waits `for_eof`, sends SIGTERM to the
    /// group, waits `for_term`, kills. What the child leaves behind is killed in any case. Says how
    /// far it had to go.
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
    pub const KILLED: Self = Self::Signal(Signal::SIGKILL as i32);

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
