//! The warden's program: starts one command, reaps its descendants, and kills all of them when the
//! socket to the supervisor closes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command as StdCommand;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, setsid};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};

use super::error::StartRefusal;
use super::sys::{self, ChildEnds};
use super::wire::{self, LENGTH, Report};
use super::{Command, Exit, canary, sweeper, tree};
use crate::confine::{self, Entrance, SetupStep};

/// How often the descendants are killed again: a scan of `/proc` may miss processes that fork
/// meanwhile.
const KILL_INTERVAL: Duration = Duration::from_millis(100);

/// Runs as a warden and never returns. `main` calls it, before anything else, when the first
/// argument is `warden`. Standard input is then the socket to the supervisor, and the second
/// argument, if any, the command's limit of open descriptors.
pub fn warden_main() -> ! {
    if let Some(code) = canary::run_if_asked() {
        std::process::exit(code);
    }
    let code = match run() {
        Ok(()) => 0,
        // The supervisor died, or cancelled this start.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
        Err(error) => {
            eprintln!("eisen-core warden: {error} (this command is internal to eisen-core)");
            2
        }
    };
    std::process::exit(code)
}

fn run() -> io::Result<()> {
    if sweeper::run_if_asked()? {
        return Ok(());
    }
    sys::close_inherited()?;
    // A session of its own receives no signals of a terminal. This fails only for a group leader,
    // which no child of a supervisor is.
    setsid()?;
    #[cfg(target_os = "linux")]
    {
        nix::sys::prctl::set_name(c"eisen-warden")?;
        // A command can stop (SIGSTOP) its warden; the supervisor's death then wakes it.
        nix::sys::prctl::set_pdeathsig(Signal::SIGCONT)?;
    }

    let stdin = io::stdin();
    let mut length = [0; LENGTH];
    let (received, descriptors) = sys::receive_with(&stdin, &mut length)?;
    if received != LENGTH {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let control = StdUnixStream::from(stdin.as_fd().try_clone_to_owned()?);
    control.set_nonblocking(true)?;
    // One thread: the parent-death signal of the child follows the thread that forked it.
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let mut control = UnixStream::from_std(control)?;
        let mut spec = vec![0; u32::from_le_bytes(length) as usize];
        control.read_exact(&mut spec).await?;
        let order = SpawnOrder::new(&spec, descriptors).ok_or(io::ErrorKind::InvalidData)?;
        drop(spec);
        let (mut warden, listener) = match Warden::start(order) {
            Ok(started) => started,
            Err(refusal) => return send(&mut control, Report::Refused(refusal)).await,
        };
        let report = Report::Started(warden.child);
        // If the supervisor is gone, `guard` returns at once.
        let _ = match listener {
            None => send(&mut control, report).await,
            // The socket is empty, so this can't block. Our copy is closed at once: when the
            // supervisor closes the last one, every pending call fails.
            Some(listener) => sys::send_with(&control, &report.encode(), &[listener.as_fd()]),
        };
        warden.guard(&mut control).await;
        warden.end_all(&mut control).await;
        Ok(())
    })
}

/// The supervisor's order to start a command.
struct SpawnOrder {
    command: Command,
    ends: ChildEnds,
    /// The ruleset and the canary file of a confined command.
    wall: Option<(OwnedFd, PathBuf)>,
}

impl SpawnOrder {
    fn new(spec: &[u8], descriptors: Vec<OwnedFd>) -> Option<Self> {
        let (command, canary) = wire::decode(spec)?;
        let mut descriptors = descriptors.into_iter();
        let ends = [descriptors.next()?, descriptors.next()?, descriptors.next()?];
        // Reject one without the other: the command would run unconfined.
        let wall = match (descriptors.next(), canary) {
            (None, None) => None,
            (Some(ruleset), Some(canary)) => Some((ruleset, canary)),
            _ => return None,
        };
        Some(Self { command, ends, wall })
    }
}

struct Warden {
    child: i32,
    /// Whether `child` was reaped, so that its pid may be reused.
    reaped: bool,
    /// SIGCHLD.
    deaths: SignalStream,
}

impl Warden {
    /// Starts the command; returns the listener of the doorbell if it is confined.
    fn start(order: SpawnOrder) -> Result<(Self, Option<OwnedFd>), StartRefusal> {
        let SpawnOrder { command, ends: [stdin, stdout, stderr], wall } = order;
        let deaths = guard_self().map_err(|error| StartRefusal::Guard(number(&error)))?;
        let entrance = wall.map(|(ruleset, canary)| Entrance::new(ruleset, &canary)).transpose();
        let entrance = entrance.map_err(confinement)?;
        std::env::set_current_dir(&command.cwd)
            .map_err(|error| StartRefusal::Folder(number(&error)))?;
        let mut child = StdCommand::new(command.program);
        child.args(command.args).envs(command.env).process_group(0);
        child.stdin(stdin).stdout(stdout).stderr(stderr);
        sys::guard_child(&mut child, descriptor_limit());
        let mut doorbell = None;
        if let Some(entrance) = entrance {
            let (ours, childs) =
                StdUnixStream::pair().map_err(|error| StartRefusal::Guard(number(&error)))?;
            sys::confine_child(&mut child, entrance, childs);
            doorbell = Some(ours);
        }
        let spawned = child.spawn();
        // Closes the child's ends of the pipes and of the socket, so that reads end with the child.
        drop(child);
        // Don't keep the child's folder in use.
        let _ = std::env::set_current_dir("/");
        let listener = match doorbell.map(|socket| confine::receive(socket.as_fd())).transpose() {
            Ok(listener) => listener.flatten().transpose().map_err(confinement)?,
            Err(error) => {
                return Err(StartRefusal::Confinement(SetupStep::Doorbell, number(&error)));
            }
        };
        let child = spawned.map_err(|error| StartRefusal::Program(number(&error)))?;
        Ok((Self { child: child.id().cast_signed(), reaped: false, deaths }, listener))
    }

    /// Reaps, and forwards signals, until the supervisor closes the socket.
    async fn guard(&mut self, control: &mut UnixStream) {
        let mut signals = [0; 16];
        loop {
            tokio::select! {
                read = control.read(&mut signals) => match read {
                    Ok(0) | Err(_) => return,
                    Ok(count) => signals[..count].iter().for_each(|&signal| self.forward(signal)),
                },
                _ = self.deaths.recv() => {
                    self.reap(control).await;
                }
            }
        }
    }

    fn forward(&self, signal: u8) {
        if let (false, Ok(signal)) = (self.reaped, Signal::try_from(i32::from(signal))) {
            let child = Pid::from_raw(self.child);
            // If its group is empty, the child has moved to another group.
            let _ = killpg(child, signal).or_else(|_| kill(child, signal));
        }
    }

    /// Kills all descendants, and waits for their end.
    async fn end_all(&mut self, control: &mut UnixStream) {
        while self.reap(control).await {
            self.forward(wire::signal_byte(Signal::SIGKILL));
            tree::kill_descendants(|_| false);
            tokio::select! {
                _ = self.deaths.recv() => {}
                () = tokio::time::sleep(KILL_INTERVAL) => {}
            }
        }
    }

    /// Reaps ended children, and reports the command's exit. Returns whether a child is alive.
    async fn reap(&mut self, control: &mut UnixStream) -> bool {
        loop {
            match sys::reap(-1) {
                Ok(Some((pid, exit))) => self.reaped(pid, exit, control).await,
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    async fn reaped(&mut self, pid: i32, exit: Exit, control: &mut UnixStream) {
        if pid == self.child && !self.reaped {
            self.reaped = true;
            // Fails if the supervisor is gone.
            let _ = send(control, Report::Ended(exit)).await;
        }
    }
}

fn descriptor_limit() -> Option<u64> {
    std::env::args().nth(2)?.parse().ok()
}

/// Becomes a subreaper, and catches the signals that would end this process. They are caught, not
/// ignored, so that exec resets them for the child.
fn guard_self() -> io::Result<SignalStream> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_child_subreaper(true)?;
    for kind in [
        SignalKind::hangup(),
        SignalKind::interrupt(),
        SignalKind::quit(),
        SignalKind::terminate(),
        SignalKind::user_defined1(),
        SignalKind::user_defined2(),
    ] {
        // The handler stays when the receiver is dropped.
        drop(signal(kind)?);
    }
    signal(SignalKind::child())
}

async fn send(control: &mut UnixStream, report: Report) -> io::Result<()> {
    control.write_all(&report.encode()).await
}

fn confinement((step, errno): (SetupStep, Errno)) -> StartRefusal {
    StartRefusal::Confinement(step, errno as i32)
}

fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::EIO as i32)
}
