//! The supervisor's side of a spawn: starts wardens, and follows them until their processes are
//! gone.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

#[cfg(target_os = "linux")]
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use parking_lot::Mutex;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, pipe};
use tokio::process::{Child, Command as TokioCommand};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::cgroup::Groups;
use super::error::StartRefusal;
use super::family::{Family, Member};
use super::idle_warden::IdleWarden;
use super::limits::Limits;
use super::wire::{LENGTH, REPORT, Report};
use super::{Command, Exit, Process, SpawnError, Stdio, descriptors, mark, orphans, sys, wire};
use crate::confine::{Confinement, Doorbell, SetupStep};

/// Size of the pipe that an agent's output comes through.
const WIDE_PIPE: i32 = 1024 * 1024;
/// Past this many children, pipes keep their default size: the kernel limits the total size of a
/// user's pipes, and then gives all the user's programs tiny ones.
const WIDE_PIPES: usize = 24;

/// How long a warden may take to kill everything. After that it was stopped, or waits for a process
/// that hangs in the kernel: it is killed, and this process does its work.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a start may take: a program can be on a disk that hangs.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Starts commands, each under a warden. [`Launcher::drained`] waits for the processes of all
/// clones.
#[derive(Clone, Debug)]
pub struct Launcher {
    program: PathBuf,
    /// Follow wardens, and stop processes.
    tasks: TaskTracker,
    /// A warden for the next command; see [`Launcher::prepare`].
    idle: Arc<Mutex<Option<IdleWarden>>>,
    /// The cgroups that enforce limits of families.
    groups: Option<Arc<Groups>>,
    /// The family of started processes.
    family: Option<Family>,
    confinement: Option<Arc<Confinement>>,
    /// Names of the variables that commands inherit; None: all.
    inherits: Option<&'static [&'static str]>,
}

impl Launcher {
    /// `program` must call [`warden_main`](super::warden_main) when its first argument is `warden`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            tasks: TaskTracker::new(),
            idle: Arc::default(),
            groups: None,
            family: None,
            confinement: None,
            inherits: None,
        }
    }

    /// A launcher for the running program, even if its file was replaced.
    pub fn this_program() -> io::Result<Self> {
        if cfg!(target_os = "linux") {
            return Ok(Self::new("/proc/self/exe"));
        }
        Ok(Self::new(std::env::current_exe()?))
    }

    /// The same launcher, with limits of families enforced by the kernel.
    #[must_use]
    pub fn with_groups(self, groups: Groups) -> Self {
        Self { groups: Some(Arc::new(groups)), ..self }
    }

    /// The folder of the cgroup of all families with limits.
    pub fn group(&self) -> Option<PathBuf> {
        self.groups.as_ref().map(|groups| groups.folder().to_owned())
    }

    /// Creates a family, with a cgroup if it has limits and cgroups are available.
    pub fn family(&self, limits: Limits) -> Family {
        let group = self.groups.as_ref().filter(|_| limits.is_any());
        let group = group.and_then(|groups| {
            let group = groups.group(limits);
            group
                .inspect_err(|error| {
                    tracing::warn!(%error, "no cgroup for an agent: its limits are enforced by polling");
                })
                .ok()
        });
        Family::of(limits, group)
    }

    /// A launcher whose processes belong to `family`.
    #[must_use]
    pub fn within(&self, family: &Family) -> Self {
        Self { family: Some(family.clone()), ..self.clone() }
    }

    /// Starts the warden of the next command now, so that the command need not wait for it.
    pub fn prepare(&self) -> io::Result<()> {
        *self.idle.lock() = Some(self.start_warden()?);
        Ok(())
    }

    /// The program that wardens run.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// A launcher whose commands are confined, with all their descendants.
    #[must_use]
    pub fn confined(&self, confinement: Arc<Confinement>) -> Self {
        Self { confinement: Some(confinement), ..self.clone() }
    }

    /// One whose commands inherit only these variables of our environment.
    #[must_use]
    pub fn inheriting(&self, names: &'static [&'static str]) -> Self {
        // What waits has inherited all of them.
        Self { inherits: Some(names), idle: Arc::default(), ..self.clone() }
    }

    /// Starts `command` in a process group of its own.
    pub async fn spawn(&self, command: &Command) -> Result<(Process, Stdio), SpawnError> {
        let pipes = || -> io::Result<_> {
            let (input, to_child) = io::pipe()?;
            let (from_child, output) = io::pipe()?;
            let (errors_from_child, errors) = io::pipe()?;
            let stdio = Stdio {
                stdin: pipe::Sender::from_owned_fd(to_child.into())?,
                stdout: pipe::Receiver::from_owned_fd(from_child.into())?,
                stderr: pipe::Receiver::from_owned_fd(errors_from_child.into())?,
            };
            Ok(([input.into(), output.into(), errors.into()], stdio))
        };
        let (ends, stdio) = pipes().map_err(|error| SpawnError::warden(command, error))?;
        let (process, running) = self.start(command, ends).await?;
        if running <= WIDE_PIPES {
            widen(&stdio.stdout, WIDE_PIPE);
        }
        Ok((process, stdio))
    }

    /// Starts `command` without standard input, and with both outputs in one pipe, as for a
    /// terminal.
    pub async fn spawn_merged(
        &self,
        command: &Command,
    ) -> Result<(Process, pipe::Receiver), SpawnError> {
        let pipes = || -> io::Result<_> {
            let nothing = File::open("/dev/null")?;
            let (from_child, output) = io::pipe()?;
            let errors = output.try_clone()?;
            let receiver = pipe::Receiver::from_owned_fd(from_child.into())?;
            Ok(([nothing.into(), output.into(), errors.into()], receiver))
        };
        let (ends, output) = pipes().map_err(|error| SpawnError::warden(command, error))?;
        let (process, _) = self.start(command, ends).await?;
        Ok((process, output))
    }

    /// Runs the remaining work for a process; [`Launcher::drained`] waits for it.
    pub fn run_to_end(&self, work: impl Future<Output = ()> + Send + 'static, runtime: &Handle) {
        self.tasks.spawn_on(work, runtime);
    }

    /// Waits until all started processes and their descendants have ended, and their remaining work
    /// is done. Doesn't stop processes that still have an owner.
    pub async fn drained(&self) {
        let idle = self.idle.lock().take();
        if let Some(idle) = idle {
            idle.end().await;
        }
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Starts a process; also returns the number of running wardens.
    async fn start(
        &self,
        command: &Command,
        ends: [OwnedFd; 3],
    ) -> Result<(Process, usize), SpawnError> {
        let failed = |error| SpawnError::warden(command, error);
        let confinement = self.confinement.clone();
        let spec = wire::encode(command, confinement.as_deref().map(Confinement::canary))?;
        let ruleset = confinement.as_deref().map(Confinement::ruleset);
        let sent: Vec<_> = ends.iter().map(OwnedFd::as_fd).chain(ruleset).collect();
        let order = |warden: &IdleWarden| warden.order(&spec[..LENGTH], &sent);
        let idle = self.idle.lock().take();
        let warden = match idle {
            Some(idle) if order(&idle).is_ok() => idle,
            idle => {
                // It was killed.
                let _ = idle.map(|idle| self.tasks.spawn(idle.end()));
                let started = self.start_warden().map_err(failed)?;
                order(&started).map_err(failed)?;
                started
            }
        };
        drop(sent);
        drop(ends);
        let IdleWarden { process: warden, pid, control } = warden;
        let running = orphans::running();
        control.set_nonblocking(true).map_err(failed)?;
        let ours = UnixStream::from_std(control).map_err(failed)?;
        let member = self.family.as_ref().map(|family| family.enter(pid));

        let (reports, mut control) = ours.into_split();
        let (started, start) = oneshot::channel();
        let (ended, exit) = watch::channel(None);
        let (ownership, owner) = oneshot::channel();
        let started = Some(started);
        // The task ends soon after `control` and `ownership` are dropped, with this future or with
        // the process.
        let handle = WardenHandle { warden, pid, confinement, reports, started, ended, member };
        self.tasks.spawn(handle.run(owner));
        let start = async {
            // If the warden is gone, `start` ends without a report.
            let _ = control.write_all(&spec[LENGTH..]).await;
            start.await
        };
        let Ok(start) = timeout(START_TIMEOUT, start).await else {
            return Err(failed(io::Error::other("the command did not start in time")));
        };
        match start {
            Ok(Ok(pid)) => Ok((Process { pid, control, exit, ownership }, running)),
            Ok(Err(refusal)) => {
                Err(SpawnError::refused(command, refusal, self.confinement.is_some()))
            }
            Err(_) => Err(failed(io::Error::other("it ended before its command started"))),
        }
    }

    fn start_warden(&self) -> io::Result<IdleWarden> {
        let mut command = TokioCommand::new(&self.program);
        command.arg0("eisen-core").arg("warden");
        command.args(descriptors::of_children().map(|limit| limit.to_string()));
        if let Some(names) = self.inherits {
            let set = |name: &&'static str| Some((*name, std::env::var_os(name)?));
            command.env_clear().envs(names.iter().filter_map(set));
        }
        command.env(mark::VARIABLE, mark::marker());
        IdleWarden::start(command)
    }
}

/// The supervisor's state of one warden.
struct WardenHandle {
    warden: Child,
    pid: i32,
    confinement: Option<Arc<Confinement>>,
    reports: OwnedReadHalf,
    started: Option<oneshot::Sender<Result<u32, StartRefusal>>>,
    ended: watch::Sender<Option<Exit>>,
    /// Its membership in its family.
    member: Option<Member>,
}

impl WardenHandle {
    /// Forwards the warden's reports and reaps it. If the warden was killed, or is overdue after
    /// `owner` has ended, kills its processes.
    async fn run(mut self, owner: oneshot::Receiver<Infallible>) {
        let overdue = async {
            let _ = owner.await;
            tokio::time::sleep(KILL_TIMEOUT).await;
        };
        let orderly = tokio::select! {
            orderly = self.follow() => orderly,
            () = overdue => {
                let _ = self.warden.kill().await;
                false
            }
        };
        orphans::leave(self.pid);
        if !orderly {
            tracing::warn!(warden = self.pid, "a warden was killed; killing its processes");
            orphans::end().await;
        }
        drop(self.member.take());
        if self.ended.borrow().is_none() {
            self.ended.send_replace(Some(Exit::KILLED));
        }
    }

    /// Follows the warden to its end and reaps it; returns whether it did all its work. Its orphans
    /// come to this process only once it was reaped.
    async fn follow(&mut self) -> bool {
        while let Ok((frame, descriptors)) = receive(&self.reports).await {
            match Report::decode(frame) {
                Some(Report::Started(pid)) => {
                    let served = self.serve_doorbell(descriptors);
                    self.report(served.map(|()| pid.cast_unsigned()));
                }
                Some(Report::Refused(refusal)) => self.report(Err(refusal)),
                Some(Report::Ended(exit)) => drop(self.ended.send_replace(Some(exit))),
                None => break,
            }
        }
        self.warden.wait().await.is_ok_and(|status| status.success())
    }

    /// Starts to serve the doorbell of a confined command, whose calls wait for it.
    fn serve_doorbell(&self, listener: Vec<OwnedFd>) -> Result<(), StartRefusal> {
        let Some(confinement) = &self.confinement else { return Ok(()) };
        let failed = |errno| StartRefusal::Confinement(SetupStep::Doorbell, errno);
        // A confined command never starts without a listener.
        let listener = listener.into_iter().next().ok_or(failed(libc::EBADF))?;
        Doorbell::attend(listener, Arc::clone(confinement))
            .map_err(|error| failed(error.raw_os_error().unwrap_or(libc::EIO)))
    }

    fn report(&mut self, start: Result<u32, StartRefusal>) {
        // The receiver may have been dropped.
        let _ = self.started.take().map(|started| started.send(start));
    }
}

/// Receives one report with its descriptors.
async fn receive(reports: &OwnedReadHalf) -> io::Result<([u8; REPORT], Vec<OwnedFd>)> {
    let socket = reports.as_ref();
    let (mut frame, mut received, mut descriptors) = ([0; REPORT], 0, Vec::new());
    while received < REPORT {
        let rest = &mut frame[received..];
        let more = || sys::receive_with(socket, rest);
        let (count, with_it) = socket.async_io(Interest::READABLE, more).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        received += count;
        descriptors.extend(with_it);
    }
    Ok((frame, descriptors))
}

/// Grows a pipe to at least `bytes`. Errors are ignored: a small pipe is only slower.
pub fn widen(pipe: impl AsFd, bytes: i32) {
    #[cfg(target_os = "linux")]
    if fcntl(&pipe, FcntlArg::F_GETPIPE_SZ).is_ok_and(|size| size < bytes) {
        let _ = fcntl(&pipe, FcntlArg::F_SETPIPE_SZ(bytes));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (pipe, bytes);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[tokio::test]
    async fn drained_waits_for_remaining_work() {
        let launcher = Launcher::new("none");
        let (done, is_done) = oneshot::channel::<()>();
        let work = async { is_done.await.unwrap() };
        launcher.run_to_end(work, &Handle::current());
        let mut drained = std::pin::pin!(launcher.drained());
        assert!(futures_util::poll!(&mut drained).is_pending());
        done.send(()).unwrap();
        drained.await;
    }
}
