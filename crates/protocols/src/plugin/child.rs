//! Owns a plugin instance that runs in a child process, and starts the child again after a loss.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::child_process::{AwaitedReply, ChildSpec, PluginProcess};
use super::frame::{self, ChildRole};
use super::reader::{CallError, CallOutput, InstanceCall, RecordReader};
use crate::process::Launcher;

/// First and longest wait before a child that died is replaced.
const BACKOFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

pub(super) struct Child {
    launcher: Launcher,
    spec: ChildSpec,
    running: Option<PluginProcess>,
    /// The wait before the next start; zero before the first.
    wait: Duration,
}

impl Child {
    pub(super) fn new(launcher: Launcher, spec: ChildSpec) -> Self {
        Self { launcher, spec, running: None, wait: Duration::ZERO }
    }

    async fn answer(&mut self, call: InstanceCall<'_>) -> Result<CallOutput, CallError> {
        let running = match self.running.take() {
            Some(running) => running,
            None => self.start().await?,
        };
        let request = frame::encode(&call);
        let (running, outcome) = running.take(AwaitedReply::Call, &request).await?;
        self.running = Some(running);
        // A child that dies of each following line still answers `Start`.
        if !matches!(call, InstanceCall::Start { .. }) {
            self.wait = Duration::ZERO;
        }
        outcome.map_err(CallError::Failed)
    }

    async fn start(&mut self) -> Result<PluginProcess, CallError> {
        sleep(self.wait).await;
        self.wait = (self.wait * 2).clamp(BACKOFF[0], BACKOFF[1]);
        let running = PluginProcess::start(&self.launcher, &self.spec, ChildRole::Serve).await;
        let running = running.map_err(CallError::Lost)?;
        let (running, loaded) = running.take(AwaitedReply::Load, &[]).await?;
        match loaded {
            Ok(_) => Ok(running),
            Err(why) => {
                running.end().await;
                Err(CallError::Lost(why))
            }
        }
    }
}

impl RecordReader for Child {
    fn call<'a>(
        &'a mut self,
        call: InstanceCall<'a>,
    ) -> BoxFuture<'a, Result<CallOutput, CallError>> {
        self.answer(call).boxed()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Without a runtime the child can't be awaited; dropping its process ends it.
        if let (Some(running), Ok(runtime)) = (self.running.take(), Handle::try_current()) {
            self.launcher.run_to_end(running.leave(), &runtime);
        }
    }
}
