//! The sweeper of a run: this program, started as `eisen-core warden sweep MARK`. When the
//! supervisor is gone, it kills the processes that still carry the run's mark, such as those of a
//! warden that was killed or stopped at the same moment.

use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use nix::sys::signal::{SigHandler, Signal};
use nix::unistd::setsid;
use tokio::process::{Child, Command};

use super::{Launcher, mark, orphans, sys};

/// The second argument of a sweeper, after `warden`.
const SWEEP: &str = "sweep";

/// The running sweeper. It acts when this is dropped, or the program dies.
#[derive(Debug)]
pub struct Sweeper {
    _process: Child,
    /// The sweeper acts when this pipe closes, unless a byte came first.
    alive: io::PipeWriter,
}

impl Sweeper {
    /// Starts the sweeper of this run.
    pub fn start(launcher: &Launcher) -> io::Result<Self> {
        let (gone, alive) = io::pipe()?;
        let mut command = Command::new(launcher.program());
        command.arg0("eisen-core").args(["warden", SWEEP, mark::marker()]);
        command.stdin(OwnedFd::from(gone)).stdout(Stdio::null()).stderr(Stdio::inherit());
        let (process, _) = orphans::enter(|| command.spawn())?;
        Ok(Self { _process: process, alive })
    }

    /// Ends the sweeper, which acts first unless every process of the run has ended.
    pub fn end(mut self, all_ended: bool) {
        if all_ended {
            // Fails if it was killed.
            let _ = self.alive.write(&[0]);
        }
    }
}

/// Runs as a sweeper if this process was started as one; returns whether it was.
pub(super) fn run_if_asked() -> io::Result<bool> {
    let mut args = std::env::args().skip(2);
    if args.next().as_deref() != Some(SWEEP) {
        return Ok(false);
    }
    let run = args.next().ok_or(io::ErrorKind::InvalidInput)?;
    sys::close_inherited()?;
    // A session of its own receives no signals of a terminal.
    setsid()?;
    #[cfg(target_os = "linux")]
    {
        nix::sys::prctl::set_name(c"eisen-sweeper")?;
        nix::sys::prctl::set_pdeathsig(Signal::SIGCONT)?;
    }
    for signal in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM] {
        sys::set_handler(signal, SigHandler::SigIgn)?;
    }
    // The read returns when the supervisor has ended, or dismisses this process.
    if io::stdin().read(&mut [0])? == 0 {
        mark::end_run(&run, None);
    }
    Ok(true)
}
