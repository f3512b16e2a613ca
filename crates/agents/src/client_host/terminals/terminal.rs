//! One terminal: a task that owns the process and its output. It ends with the process's exit, not
//! with the pipe: background processes may still write.

use std::io::{self, Read};
use std::os::fd::AsFd;

use agent_client_protocol_schema::v1::{
    Error, KillTerminalResponse, TerminalExitStatus, TerminalOutputResponse,
};
use nix::sys::signal::Signal;
use serde_json::value::RawValue;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::screen::Screen;
use super::shell::Shell;
use super::tail::Tail;
use crate::client_host::rpc;
use crate::model::{TerminalExit, code};
use crate::process::Exit;

/// Capacity of a terminal's mailbox; senders wait when it is full.
const MAILBOX: usize = 16;

/// Bytes read from the pipe at a time, and at most after the exit: an ordinary user's pipe holds no
/// more, so further output came later.
const CHUNK: usize = 16 << 10;
const DRAINED: usize = 1 << 20;

/// Handle of a terminal's task, which ends when the last handle is dropped.
#[derive(Debug)]
pub(crate) struct Terminal {
    mailbox: mpsc::Sender<TerminalMsg>,
    exit: watch::Receiver<Option<Exit>>,
}

#[derive(Debug)]
enum TerminalMsg {
    Output(oneshot::Sender<TerminalOutputResponse>),
    Kill(oneshot::Sender<()>),
}

type TerminalResult = Result<Box<RawValue>, Error>;

impl Terminal {
    /// Returns a terminal and its task.
    pub(super) fn new(
        shell: Box<dyn Shell>,
        output: pipe::Receiver,
        tail: Tail,
        screen: Option<Screen>,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (mailbox, messages) = mpsc::channel(MAILBOX);
        let (exited, exit) = watch::channel(None);
        let (shell, output) = (Some(shell), Some(output));
        let state = TerminalState { shell, output, tail, exited, screen };
        (Self { mailbox, exit }, state.run(messages))
    }

    /// Answers `terminal/output`.
    pub(crate) fn output(&self) -> impl Future<Output = TerminalResult> + Send + use<> {
        let mailbox = self.mailbox.clone();
        async move {
            let (reply, answer) = oneshot::channel();
            mailbox.send(TerminalMsg::Output(reply)).await.map_err(|_| gone())?;
            rpc::encode(&answer.await.map_err(|_| gone())?)
        }
    }

    /// Answers `terminal/wait_for_exit`.
    pub(crate) fn wait_for_exit(&self) -> impl Future<Output = TerminalResult> + Send + use<> {
        let mut exit = self.exit.clone();
        async move {
            let exit = exit.wait_for(Option::is_some).await.map_err(|_| gone())?.map(status);
            rpc::encode(&exit)
        }
    }

    /// Answers `terminal/kill` and `terminal/release` once the process and its child processes are
    /// gone.
    pub(crate) fn kill(&self) -> impl Future<Output = TerminalResult> + Send + use<> {
        let mailbox = self.mailbox.clone();
        async move {
            let (reply, killed) = oneshot::channel();
            mailbox.send(TerminalMsg::Kill(reply)).await.map_err(|_| gone())?;
            killed.await.map_err(|_| gone())?;
            rpc::encode(&KillTerminalResponse::new())
        }
    }
}

#[derive(Debug)]
struct TerminalState {
    /// None once killed.
    shell: Option<Box<dyn Shell>>,
    /// None at its end.
    output: Option<pipe::Receiver>,
    tail: Tail,
    exited: watch::Sender<Option<Exit>>,
    /// None where nothing shows it.
    screen: Option<Screen>,
}

impl TerminalState {
    async fn run(mut self, mut messages: mpsc::Receiver<TerminalMsg>) {
        let mut chunk = vec![0; CHUNK];
        loop {
            let running = self.shell.is_some() && self.exited.borrow().is_none();
            let due = self.screen.as_ref().and_then(Screen::due);
            tokio::select! {
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    let exit = *self.exited.borrow();
                    self.show(exit);
                }
                read = read(&mut self.output, &mut chunk) => match read {
                    Ok(length @ 1..) => {
                        self.tail.push(&chunk[..length]);
                        self.screen.iter_mut().for_each(Screen::changed);
                    }
                    Ok(0) | Err(_) => self.output = None,
                },
                exit = wait(self.shell.as_deref()), if running => self.exit(exit),
                message = messages.recv() => match message {
                    Some(TerminalMsg::Output(reply)) => drop(reply.send(self.output())),
                    Some(TerminalMsg::Kill(reply)) => {
                        self.kill().await;
                        let _ = reply.send(());
                    }
                    None => break,
                },
            }
        }
        self.kill().await;
    }

    async fn kill(&mut self) {
        if let Some(shell) = self.shell.take() {
            let exit = shell.kill().await;
            self.exit(exit);
        }
    }

    /// Records the first exit; all earlier output has been read by then.
    fn exit(&mut self, exit: Exit) {
        if let Some(output) = &self.output
            && let Err(error) = drain(output, &mut self.tail)
        {
            tracing::debug!(%error, "cannot read the rest of a terminal's output");
        }
        // Before the agent knows of the exit: it may report its call as done then.
        let is_first = self.exited.borrow().is_none();
        if is_first && self.screen.as_ref().is_some_and(Screen::wants_end) {
            self.show(Some(exit));
        }
        self.exited.send_if_modified(|known| {
            let first = known.is_none();
            known.get_or_insert(exit);
            first
        });
    }

    fn show(&mut self, exit: Option<Exit>) {
        let Some(screen) = &mut self.screen else { return };
        let exit = exit.map(|exit| {
            let TerminalExitStatus { exit_code, signal, .. } = status(exit);
            TerminalExit { exit_code: exit_code.map(i64::from), signal }
        });
        screen.show(self.tail.end(Screen::MOST, exit.is_some()), exit);
    }

    fn output(&mut self) -> TerminalOutputResponse {
        let exit = *self.exited.borrow();
        let (output, truncated) = self.tail.text(exit.is_some());
        TerminalOutputResponse::new(output, truncated).exit_status(exit.map(status))
    }
}

async fn read(output: &mut Option<pipe::Receiver>, chunk: &mut [u8]) -> io::Result<usize> {
    match output {
        Some(output) => output.read(chunk).await,
        None => std::future::pending().await,
    }
}

async fn wait(shell: Option<&dyn Shell>) -> Exit {
    match shell {
        Some(shell) => shell.wait().await,
        None => std::future::pending().await,
    }
}

/// Reads the current content of the pipe. Bypasses tokio, which only reports what its poller has
/// seen.
fn drain(output: &pipe::Receiver, tail: &mut Tail) -> io::Result<()> {
    let mut pipe = std::fs::File::from(output.as_fd().try_clone_to_owned()?);
    let mut chunk = vec![0; CHUNK];
    let mut drained = 0;
    while drained < DRAINED {
        match pipe.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => {
                tail.push(&chunk[..length]);
                drained += length;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn status(exit: Exit) -> TerminalExitStatus {
    match exit {
        // Exit codes have eight bits.
        Exit::Code(code) => TerminalExitStatus::new().exit_code(code.unsigned_abs()),
        Exit::Signal(number) => {
            let name = Signal::try_from(number)
                .map_or_else(|_| format!("signal {number}"), |signal| signal.as_str().to_owned());
            TerminalExitStatus::new().signal(name)
        }
    }
}

fn gone() -> Error {
    rpc::failure(code::INTERNAL_ERROR, "The terminal is gone")
}
