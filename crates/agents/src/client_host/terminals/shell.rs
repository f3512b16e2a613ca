//! Starts and ends the process of a terminal: by a [`Launcher`], or by a test's own implementation.

use std::fmt::Debug;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::net::unix::pipe;

use crate::process::{Command, Exit, Launcher, Process, SpawnError};

pub(crate) trait Launch: Debug + Send + Sync + 'static {
    /// Starts a process without input, with both outputs in one pipe.
    fn start(&self, command: Command) -> BoxFuture<'static, Result<Started, SpawnError>>;
}

pub(crate) type Started = (Box<dyn Shell>, pipe::Receiver);

/// A running process with its child processes. Dropping it kills them.
pub(crate) trait Shell: Debug + Send + Sync {
    /// Waits for the process itself. Cancel safe.
    fn wait(&self) -> BoxFuture<'static, Exit>;

    /// Kills the process and its child processes; returns its exit, which may have come before.
    fn kill(self: Box<Self>) -> BoxFuture<'static, Exit>;
}

impl Launch for Launcher {
    fn start(&self, command: Command) -> BoxFuture<'static, Result<Started, SpawnError>> {
        let launcher = self.clone();
        async move {
            let (process, output) = launcher.spawn_merged(&command).await?;
            Ok((Box::new(process) as Box<dyn Shell>, output))
        }
        .boxed()
    }
}

impl Shell for Process {
    fn wait(&self) -> BoxFuture<'static, Exit> {
        self.exit().boxed()
    }

    fn kill(self: Box<Self>) -> BoxFuture<'static, Exit> {
        Process::kill(*self).boxed()
    }
}
