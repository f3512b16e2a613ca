//! Processes of terminals without a warden, which only the whole program has.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use eisen_base::task;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};

use crate::client_host::terminals::{Launch, Shell};
use crate::process::{Command, Exit, SpawnError};

#[derive(Debug)]
pub(super) struct Shells;

#[derive(Debug)]
struct Child {
    group: Pid,
    exit: watch::Receiver<Option<Exit>>,
    /// Its drop kills the group.
    _killed: oneshot::Sender<()>,
}

impl Launch for Shells {
    fn start(
        &self,
        command: Command,
    ) -> BoxFuture<'static, Result<(Box<dyn Shell>, pipe::Receiver), SpawnError>> {
        let started = Child::start(&command).map_err(|source| {
            let program = command.program.to_string_lossy().into_owned();
            SpawnError::Program { program, source }
        });
        async { started }.boxed()
    }
}

impl Child {
    fn start(command: &Command) -> io::Result<(Box<dyn Shell>, pipe::Receiver)> {
        let (output, end) = io::pipe()?;
        let mut child = tokio::process::Command::new(&command.program)
            .args(&command.args)
            .current_dir(&command.cwd)
            .envs(&command.env)
            .stdin(Stdio::null())
            .stdout(end.try_clone()?)
            .stderr(end)
            .process_group(0)
            .spawn()?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let group = Pid::from_raw(pid.ok_or(io::ErrorKind::Other)?);
        let (exited, exit) = watch::channel(None);
        let (killed, mut killing) = oneshot::channel::<()>();
        task::spawn(async move {
            let status = tokio::select! {
                status = child.wait() => status,
                _ = &mut killing => {
                    let _ = killpg(group, Signal::SIGKILL);
                    child.wait().await
                }
            };
            let status = status.unwrap_or_default();
            let code = status.code().map(Exit::Code);
            exited.send_replace(code.or(status.signal().map(Exit::Signal)));
            // What it left in the background goes with the last of its owner.
            let _ = killing.await;
            let _ = killpg(group, Signal::SIGKILL);
        });
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(output))?;
        Ok((Box::new(Self { group, exit, _killed: killed }), output))
    }
}

impl Shell for Child {
    fn wait(&self) -> BoxFuture<'static, Exit> {
        let mut exit = self.exit.clone();
        async move { exit.wait_for(Option::is_some).await.ok().and_then(|exit| *exit) }
            .map(|exit| exit.unwrap_or(Exit::Signal(9)))
            .boxed()
    }

    fn kill(self: Box<Self>) -> BoxFuture<'static, Exit> {
        let _ = killpg(self.group, Signal::SIGKILL);
        self.wait()
    }
}
