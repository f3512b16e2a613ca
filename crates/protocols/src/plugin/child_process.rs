//! Owns the process of a plugin's child: its pipes, its deadline and the log of its output. The
//! child first answers its own steps, then one request after the other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use eisen_base::task;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::approval::Approval;
use super::frame::{self, ChildRole, HEAD, LONGEST_ANSWER};
use super::overdue::DEADLINE;
use super::reader::{CallError, CallOutput};
use crate::line::{Framer, lines};
use crate::process::{Command, Exit, Launcher, Process, Stdio, Stopped};

/// How long the child may take to end once its input is closed.
const GRACE: Duration = Duration::from_secs(1);

/// Bytes of its output that are logged as one line.
const LONGEST_LINE: usize = 4096;

/// Environment variables that the child inherits: library paths and locale. It gets no other, such
/// as the API keys of models.
const INHERITED: [&str; 7] =
    ["DYLD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "RUST_BACKTRACE", "TZ"];

/// A plugin for a child.
#[derive(Debug)]
pub(super) struct ChildSpec {
    /// The name in the configuration.
    pub(super) name: String,
    pub(super) library: PathBuf,
    pub(super) config: String,
    pub(super) approval: Option<Approval>,
}

impl ChildSpec {
    /// A library that no configuration names.
    pub(super) fn of_library(library: &Path, approval: Option<Approval>) -> Self {
        let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { name, library: library.to_owned(), config: "{}".to_owned(), approval }
    }
}

pub(super) struct PluginProcess {
    /// The plugin's name.
    name: String,
    process: Process,
    requests: pipe::Sender,
    answers: BufReader<pipe::Receiver>,
    /// Ends once all its output is logged.
    log: JoinHandle<()>,
}

/// The step whose answer is awaited.
#[derive(Clone, Copy)]
pub(super) enum AwaitedReply {
    Load,
    SelfTest,
    Create,
    Destroy,
    Call,
}

/// The result of a step, or why it failed.
pub(super) type StepResult = Result<CallOutput, String>;

impl PluginProcess {
    /// Starts the child; its first answer is that of loading the library. Its standard error is
    /// logged under the plugin's name.
    pub(super) async fn start(
        launcher: &Launcher,
        spec: &ChildSpec,
        role: ChildRole,
    ) -> Result<Self, String> {
        let ChildSpec { name, library, config, approval } = spec;
        // The child runs in another folder.
        let library = std::path::absolute(library).map_err(|error| error.to_string())?;
        let command = Command {
            program: launcher.program().into(),
            args: vec![
                frame::COMMAND.into(),
                library.into(),
                config.into(),
                role.as_str().into(),
                approval.as_ref().map(ToString::to_string).unwrap_or_default().into(),
            ],
            cwd: "/".into(),
            env: std::collections::BTreeMap::new(),
        };
        let (process, Stdio { stdin, stdout, stderr }) = launcher
            .inheriting(&INHERITED)
            .spawn(&command)
            .await
            .map_err(|error| error.to_string())?;
        let log = task::spawn(log(stderr, name.clone()));
        Ok(Self {
            name: name.clone(),
            process,
            requests: stdin,
            answers: BufReader::new(stdout),
            log,
        })
    }

    /// Sends a request, if it is not empty, and waits for the answer. The error describes how the
    /// process was lost.
    pub(super) async fn take(
        mut self,
        step: AwaitedReply,
        request: &[u8],
    ) -> Result<(Self, StepResult), CallError> {
        let Self { requests, answers, .. } = &mut self;
        // Write and read at once: a pipe's buffer is smaller than a long line.
        let asked = async { tokio::join!(requests.write_all(request), answer(answers)) };
        match timeout(DEADLINE, asked).await {
            Ok((Ok(()), Ok(outcome))) => Ok((self, outcome)),
            Ok(_) => Err(CallError::Died(step.died(self.end().await))),
            Err(_) => {
                self.end().await;
                let seconds = DEADLINE.as_secs();
                Err(CallError::Lost(format!("{} {seconds} s, and was ended", step.late())))
            }
        }
    }

    /// Ends the child, and waits until its output is logged.
    pub(super) async fn end(self) -> Exit {
        let exit = self.process.kill().await;
        log_ended(self.log).await;
        exit
    }

    /// Lets the child destroy its instance and end.
    pub(super) async fn leave(self) {
        let Self { name, process, requests, answers, log } = self;
        drop(requests);
        match process.stop(GRACE, Duration::ZERO).await {
            Stopped::OnEof(exit) if exit.success() => {}
            Stopped::OnEof(exit) => {
                tracing::warn!(plugin = name, %exit, "a plugin's process failed as it ended");
            }
            Stopped::OnTerm(_) | Stopped::Killed => {
                tracing::warn!(
                    plugin = name,
                    "a plugin did not return from destroying its instance, and was ended"
                );
            }
        }
        drop(answers);
        log_ended(log).await;
    }
}

impl AwaitedReply {
    fn died(self, exit: Exit) -> String {
        match self {
            Self::Load => format!("its process {exit} as it was loaded"),
            Self::SelfTest => format!("its process {exit} in its self-test"),
            Self::Create => format!("its process {exit} as it made an instance"),
            Self::Destroy => format!("its process {exit} as it destroyed its instance"),
            Self::Call => format!("its process died: {exit}"),
        }
    }

    fn late(self) -> &'static str {
        match self {
            Self::Load => "it was not loaded within",
            Self::SelfTest => "its self-test did not end within",
            Self::Create => "it made no instance within",
            Self::Destroy => "it did not destroy its instance within",
            Self::Call => "it said nothing for",
        }
    }
}

/// Waits until all output is logged. A child that hangs in the kernel may never close its end.
async fn log_ended(log: JoinHandle<()>) {
    let _ = timeout(DEADLINE, log).await;
}

/// Logs the output of a plugin, line by line. A full pipe would block the plugin for ever.
async fn log(mut stderr: pipe::Receiver, name: String) {
    let mut framer = Framer::new(LONGEST_LINE);
    let print = |block: &[u8]| {
        for line in lines(block) {
            let said = String::from_utf8_lossy(line.trim_ascii_end());
            if !said.is_empty() {
                tracing::warn!(plugin = name, said = %said.escape_debug(), "a plugin printed");
            }
        }
    };
    while let Ok(1..) = stderr.read_buf(framer.space()).await {
        while let Some(block) = framer.block_or_part() {
            print(&block);
        }
    }
    print(&framer.rest().unwrap_or_default());
}

/// Reads an answer; an error if it is missing or too long.
async fn answer(from: &mut (impl AsyncReadExt + Unpin)) -> std::io::Result<StepResult> {
    let mut head = [0; HEAD];
    from.read_exact(&mut head).await?;
    let length = u32::from_le_bytes(head) as usize;
    if length > LONGEST_ANSWER {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).await?;
    frame::decode(&body).ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}
