//! An instance in a child of its own: what it does wrong ends it, and nothing else.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::approval::Approval;
use super::frame;
use super::frame::Role;
use super::reader::{Answer, Call, CallError, Reader};
use super::running::{Running, Step};
use crate::process::Launcher;

/// How long is waited before a child that died is followed by the next, at first and at most.
const BACKOFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

pub(super) struct Child {
    launcher: Launcher,
    name: String,
    library: PathBuf,
    config: String,
    approval: Option<Approval>,
    running: Option<Running>,
    /// Before the next start; zero before the first.
    wait: Duration,
}

impl Child {
    /// `name` is the plugin's in the configuration.
    pub(super) fn new(
        launcher: Launcher,
        name: String,
        library: PathBuf,
        config: String,
        approval: Option<Approval>,
    ) -> Self {
        Self { launcher, name, library, config, approval, running: None, wait: Duration::ZERO }
    }

    async fn answer(&mut self, call: Call<'_>) -> Result<Answer, CallError> {
        let running = match self.running.take() {
            Some(running) => running,
            None => self.start().await?,
        };
        let request = frame::request(call);
        let (running, outcome) = running.take(Step::Call, &request).await?;
        self.running = Some(running);
        // Beginning is what each does, also one that dies of the next line.
        if !matches!(call, Call::Start { .. }) {
            self.wait = Duration::ZERO;
        }
        outcome.map_err(CallError::Failed)
    }

    async fn start(&mut self) -> Result<Running, CallError> {
        sleep(self.wait).await;
        self.wait = (self.wait * 2).clamp(BACKOFF[0], BACKOFF[1]);
        let Self { launcher, name, library, config, approval, .. } = self;
        let running = Running::start(launcher, name, library, config, Role::Serve, *approval).await;
        let running = running.map_err(CallError::Lost)?;
        let (running, loaded) = running.take(Step::Load, &[]).await?;
        match loaded {
            Ok(_) => Ok(running),
            Err(why) => {
                running.end().await;
                Err(CallError::Lost(why))
            }
        }
    }
}

impl Reader for Child {
    fn call<'a>(&'a mut self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, CallError>> {
        self.answer(call).boxed()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Without a runtime there is nobody to wait: it is ended with its process.
        if let (Some(running), Ok(runtime)) = (self.running.take(), Handle::try_current()) {
            self.launcher.see_out(running.leave(), &runtime);
        }
    }
}
