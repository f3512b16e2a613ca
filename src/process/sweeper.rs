//! The sweeper of a run: this very program, started as `eisen-core warden sweep MARK`, which stands
//! behind the wardens. When the supervisor is gone, it ends what still carries the run's mark: what
//! a warden left that was killed or stopped in the same moment.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use nix::sys::signal::{SigHandler, Signal};
use nix::unistd::setsid;
use tokio::process::{Child, Command};

use super::{Launcher, mark, orphans, sys};

/// Behind `warden` it asks for a sweeper.
const SWEEP: &str = "sweep";

/// Guards this run until it is dropped, at the end of the program.
#[derive(Debug)]
pub struct Sweeper {
    _process: Child,
    /// Its end tells the sweeper that this process is gone.
    _alive: io::PipeWriter,
}

impl Sweeper {
    /// Starts the sweeper of this run.
    pub fn start(launcher: &Launcher) -> io::Result<Self> {
        let (gone, alive) = io::pipe()?;
        let mut command = Command::new(launcher.program());
        command.arg0("eisen-core").args(["warden", SWEEP, mark::marker()]);
        command.stdin(OwnedFd::from(gone)).stdout(Stdio::null()).stderr(Stdio::inherit());
        let (process, _) = orphans::enter(|| {
            let child = command.spawn()?;
            let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
            Ok((child, pid.ok_or(io::ErrorKind::NotFound)?))
        })?;
        Ok(Self { _process: process, _alive: alive })
    }
}

/// Runs as a sweeper if this process was started as one; answers whether it was.
pub(super) fn run_if_asked() -> io::Result<bool> {
    let mut args = std::env::args().skip(2);
    if args.next().as_deref() != Some(SWEEP) {
        return Ok(false);
    }
    let run = args.next().ok_or(io::ErrorKind::InvalidInput)?;
    sys::close_inherited()?;
    // No terminal's signals arrive in a session of its own, and it ends when its work is done.
    setsid()?;
    #[cfg(target_os = "linux")]
    {
        nix::sys::prctl::set_name(c"eisen-sweeper")?;
        nix::sys::prctl::set_pdeathsig(Signal::SIGCONT)?;
    }
    for signal in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM] {
        sys::set_handler(signal, SigHandler::SigIgn)?;
    }
    // Nobody writes: this is the end of the supervisor.
    let _ = io::stdin().read(&mut [0])?;
    mark::end_run(&run, None);
    Ok(true)
}
