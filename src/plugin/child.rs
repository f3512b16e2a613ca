//! An instance in a child of its own: what it does wrong ends it, and nothing else.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use super::frame::{self, HEAD, LONGEST_ANSWER};
use super::reader::{Answer, Call, CallError, Reader};
use crate::process::{Command, Launcher, Process, Stdio};

/// How long one call may take; past that the child is ended.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);

/// How long is waited before a child that died is followed by the next, at first and at most.
const BACKOFF: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

pub(super) struct Child {
    launcher: Launcher,
    library: PathBuf,
    config: String,
    pub(super) confined: bool,
    running: Option<(Process, Stdio)>,
    /// Before the next start; zero before the first.
    wait: Duration,
}

impl Child {
    pub(super) fn new(launcher: Launcher, library: PathBuf, config: String) -> Self {
        Self { launcher, library, config, confined: true, running: None, wait: Duration::ZERO }
    }

    /// Starts it once, and ends it. Returns whether it gates.
    pub(super) async fn try_out(&mut self) -> Result<bool, CallError> {
        let ((process, _), first) = self.start().await?;
        process.kill().await;
        Ok(first.told == [1])
    }

    async fn answer(&mut self, call: Call<'_>) -> Result<Answer, CallError> {
        let mut running = match self.running.take() {
            Some(running) => running,
            None => self.start().await?.0,
        };
        let asked = async {
            // Both at once: neither pipe holds a long line.
            let request = frame::request(call);
            let Stdio { stdin, stdout, stderr } = &mut running.1;
            let asked = async { tokio::join!(stdin.write_all(&request), answer(stdout)) };
            let (sent, answer) = tokio::select! {
                biased;
                never = log(stderr) => match never {},
                asked = asked => asked,
            };
            sent.map_err(|error| error.to_string()).and(answer)
        };
        let answered = timeout(DEADLINE, asked).await;
        match answered {
            Ok(Ok(outcome)) => {
                self.running = Some(running);
                // Beginning is what each does, also one that dies of the next line.
                if !matches!(call, Call::Start { .. }) {
                    self.wait = Duration::ZERO;
                }
                outcome.map_err(CallError::Failed)
            }
            Ok(Err(_)) => {
                let exit = running.0.kill().await;
                Err(CallError::Lost(format!("its process died: {exit}")))
            }
            Err(_) => {
                running.0.kill().await;
                let seconds = DEADLINE.as_secs();
                Err(CallError::Lost(format!("it said nothing for {seconds} s, and was ended")))
            }
        }
    }

    /// Returns it with its first answer.
    async fn start(&mut self) -> Result<((Process, Stdio), Answer), CallError> {
        sleep(self.wait).await;
        self.wait = (self.wait * 2).clamp(BACKOFF[0], BACKOFF[1]);
        let command = Command {
            program: self.launcher.program().into(),
            args: [
                super::host::COMMAND.into(),
                self.library.clone().into(),
                self.config.clone().into(),
            ]
            .into_iter()
            .chain((!self.confined).then(|| super::host::UNCONFINED.into()))
            .collect(),
            cwd: "/".into(),
            env: std::collections::BTreeMap::new(),
        };
        let lost = |why: String| CallError::Lost(why);
        let spawned = self.launcher.spawn(&command).await;
        let mut running = spawned.map_err(|error| lost(error.to_string()))?;
        let Stdio { stdout, stderr, .. } = &mut running.1;
        let began = timeout(DEADLINE, async {
            tokio::select! {
                // What it printed before it answered is told before.
                biased;
                never = log(stderr) => match never {},
                began = answer(stdout) => began,
            }
        });
        match began.await {
            Ok(Ok(Ok(first))) => Ok((running, first)),
            Ok(Ok(Err(why))) => {
                running.0.kill().await;
                Err(lost(why))
            }
            Ok(Err(_)) => {
                let exit = running.0.kill().await;
                Err(lost(format!("its process {exit} as it was loaded")))
            }
            Err(_) => {
                running.0.kill().await;
                let seconds = DEADLINE.as_secs();
                Err(lost(format!("it was not loaded within {seconds} s, and was ended")))
            }
        }
    }
}

impl Reader for Child {
    fn call<'a>(&'a mut self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, CallError>> {
        self.answer(call).boxed()
    }
}

/// Logs what a plugin says beside: who fills that pipe would wait for ever.
async fn log(stderr: &mut (impl AsyncReadExt + Unpin)) -> Infallible {
    let mut said = [0; 4096];
    loop {
        match stderr.read(&mut said).await {
            Ok(read) if read > 0 => {
                let said = String::from_utf8_lossy(&said[..read]);
                tracing::warn!(said = %said.trim_end().escape_debug(), "a plugin");
            }
            _ => std::future::pending().await,
        }
    }
}

/// Reads an answer: what the plugin put, or why it failed; an error if there is none.
async fn answer(from: &mut (impl AsyncReadExt + Unpin)) -> Result<Result<Answer, String>, String> {
    let mut head = [0; HEAD];
    from.read_exact(&mut head).await.map_err(|error| error.to_string())?;
    let length = u32::from_le_bytes(head) as usize;
    if length > LONGEST_ANSWER {
        return Err(format!("its answer has {length} bytes"));
    }
    let mut body = Vec::new();
    let read = from.take(length as u64).read_to_end(&mut body).await;
    if read.map_err(|error| error.to_string())? < length {
        return Err("its answer is torn".to_owned());
    }
    frame::answered(body).ok_or_else(|| "its answer is torn".to_owned())
}
