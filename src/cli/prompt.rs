mod blocks;

use std::io::{self, Read as _, Write as _};
use std::sync::mpsc;

use anyhow::Context;
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

use self::blocks::Blocks;
use super::Global;
use super::blocked::Blocked;
use super::output::{self, escape_controls, note, plain, print};
use super::team::{Which, failed};
use crate::app::{self, Failure};
use crate::serve::client::{ClientError, Connection, Message, Refusal};

/// Of a shell, for what SIGINT ended.
const INTERRUPTED: u8 = 130;

/// Prompt an agent, and print its answer as it comes
///
/// Waits for an agent that is about to be ready, and behind the prompts that are queued in the
/// session. Accesses that are blocked during its turn are named on standard error. Ctrl-C withdraws
/// a prompt that still waits, and cancels one whose turn runs: the end of the turn is awaited, and a
/// second Ctrl-C leaves at once. The team goes on in any case.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core prompt ui \"Show the cart's total in the header\"
  git diff | eisen-core prompt reviewer -
  eisen-core prompt ui --json \"Is it done?\" | jq -r .text

Exit codes: 0 the turn ended well (end_turn), 1 it failed, or could not be asked for, 2 wrong usage,
3 max_tokens, 4 max_turn_requests, 5 refusal, 6 another stop reason, 130 cancelled or withdrawn.")]
pub(super) struct PromptArgs {
    /// The agent, by its id
    agent: String,
    /// What to say; `-` reads standard input
    text: String,
    /// The session [default: the first one that the agent opened]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Print the result once it is there, as the port has it: `session_id`, `stop_reason`, `text`
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

impl PromptArgs {
    pub(super) async fn run(self, global: &Global) -> Result<u8, Failure> {
        let text = match self.text.as_str() {
            "-" => standard_input().map_err(Failure::Usage)?,
            _ => self.text.clone(),
        };
        let mut team = self.which.connect(global).await?;
        await_start(&mut team, &self.agent).await.map_err(failed)?;
        let session = self.session.clone().or_else(|| global.session_id.clone());
        let params = json!({
            "agent_id": self.agent, "session_id": session, "text": text, "stream": true,
        });
        let asked = team.send("prompt", &params);
        let interrupts = signal(SignalKind::interrupt());
        let interrupts = interrupts.map_err(|error| Failure::Run(error.into()))?;
        let printer = (!self.json).then(Printer::start);
        let turn = SentPrompt {
            agent: self.agent,
            asked,
            blocks: Blocks::default(),
            printed: 0,
            swept: None,
            cancelling: None,
            interrupts,
            printer,
        };
        turn.follow(&mut team).await
    }
}

/// Waits while an agent is on its way to be ready: right after `up -d`, or while it restarts.
async fn await_start(team: &mut Connection, agent: &str) -> Result<(), ClientError> {
    let mut waits = false;
    loop {
        let agents = team.call("list_agents", &json!({})).await?;
        let mut agents = agents.as_array().into_iter().flatten();
        let state = agents.find(|it| it["agent_id"] == agent).and_then(|it| it["state"].as_str());
        if !matches!(state, Some("initializing" | "connecting" | "restarting")) {
            return Ok(());
        }
        if !std::mem::replace(&mut waits, true) {
            note(format_args!("waiting for `{}` to be ready", plain(agent)));
        }
        while !matches!(
            team.next().await?,
            Message::Changed | Message::Turn { .. } | Message::Lagged
        ) {}
    }
}

/// A prompt that was sent, until its result.
struct SentPrompt {
    agent: String,
    /// The request's id.
    asked: u64,
    blocks: Blocks,
    /// Bytes of the answer that were handed to the printer.
    printed: usize,
    /// What the turn's last sweep says, and how to mend it.
    swept: Option<String>,
    /// The request that cancels the turn.
    cancelling: Option<u64>,
    interrupts: Signal,
    /// None if only the result is printed.
    printer: Option<Printer>,
}

impl SentPrompt {
    /// Follows the turn to its end, or until a Ctrl-C leaves it; returns the exit code.
    async fn follow(mut self, team: &mut Connection) -> Result<u8, Failure> {
        let ended = loop {
            tokio::select! {
                message = team.next() => match message {
                    Ok(message) => if let Some(outcome) = self.on_message(message) {
                        break outcome.map_err(ClientError::from);
                    },
                    Err(error) => break Err(error),
                },
                _ = self.interrupts.recv() => if let Some(code) = self.interrupt(team) {
                    return Ok(code);
                },
                printed = Printer::ended(&mut self.printer) => printed?,
            }
        };
        if let Some(printer) = &self.printer {
            // The pieces before are the beginning of the text.
            let text = ended.as_ref().ok().and_then(|result| result["text"].as_str());
            printer.log(text.and_then(|text| text.get(self.printed..)).unwrap_or_default());
            printer.close();
            // Also before an error is told: it comes behind what the agent said.
            tokio::select! {
                printed = Printer::ended(&mut self.printer) => printed?,
                _ = self.interrupts.recv() => return Ok(INTERRUPTED),
            }
        } else if let Ok(result) = &ended {
            print(result)?;
        }
        if let Some(swept) = self.swept {
            note(swept);
        }
        let result = ended.map_err(failed)?;
        if let Some(reason) = result["reason"].as_str() {
            let ended = result["stop_reason"].as_str().unwrap_or_default();
            note(escape_controls(&format!("{ended}: {reason}")));
        }
        Ok(exit_code(&result))
    }

    /// Takes a line of the port in; returns what came of the prompt if it says that.
    fn on_message(&mut self, message: Message) -> Option<Result<Value, Refusal>> {
        match message {
            Message::Answer { id, outcome } if id == self.asked => {
                let session =
                    outcome.as_ref().ok().and_then(|result| result["session_id"].as_str());
                if let Some(session) = session {
                    self.began(session);
                }
                return Some(outcome);
            }
            Message::Answer { id, outcome: Err(refusal) } if self.cancelling == Some(id) => {
                note(format_args!("cannot cancel the turn: {}", plain(&refusal.message)));
            }
            Message::Progress { id, session, text } if id == self.asked => {
                self.began(&session);
                self.print(&text);
            }
            Message::Blocked(access) => {
                let access = Blocked::deserialize(access).ok();
                let access = access.filter(|access| access.agent_id == self.agent);
                if let Some(access) = access.and_then(|access| self.blocks.blocked(access)) {
                    self.name(&access);
                }
            }
            Message::Turn { agent, session } if agent == self.agent => self.blocks.ended(&session),
            _ => {}
        }
        None
    }

    fn began(&mut self, session: &str) {
        for access in self.blocks.began(session) {
            self.name(&access);
        }
    }

    fn print(&mut self, text: &str) {
        if let Some(printer) = &self.printer {
            printer.log(text);
            self.printed += text.len();
        }
    }

    /// Names an access that was blocked in this very turn. What the agent did not mean nobody can
    /// decide, but a command may fail by it: that is said once, when the turn has ended.
    fn name(&mut self, access: &Blocked) {
        if access.sweep.is_some() {
            let (program, agent) = (app::own_command(), plain(&self.agent));
            self.swept = Some(format!(
                "{}; if a command failed by that: {program} why {agent} {}",
                access.describe(),
                plain(&access.path)
            ));
        } else {
            note(access.describe());
        }
    }

    /// Acts on Ctrl-C; returns the exit code if that is the end.
    fn interrupt(&mut self, team: &mut Connection) -> Option<u8> {
        if self.cancelling.is_some() {
            return Some(INTERRUPTED);
        }
        let Some(session) = self.blocks.session() else {
            // The end of the connection withdraws what is queued.
            note("the prompt was withdrawn before its turn");
            return Some(INTERRUPTED);
        };
        note("the turn is asked to end; Ctrl-C again leaves at once");
        let params = json!({ "agent_id": self.agent, "session_id": session, "queued": false });
        self.cancelling = Some(team.send("cancel", &params));
        None
    }
}

/// Writes the answer to standard output, in a thread of its own: who reads that slowly must not
/// keep us from reading the port, or from Ctrl-C. What waits here is at most the answer.
struct Printer {
    pieces: mpsc::Sender<Option<String>>,
    task: JoinHandle<io::Result<()>>,
}

impl Printer {
    fn start() -> Self {
        let (pieces, waiting) = mpsc::channel();
        Self { pieces, task: tokio::task::spawn_blocking(move || print_all(&waiting)) }
    }

    fn log(&self, text: &str) {
        if !text.is_empty() {
            // Its end is heard of elsewhere.
            let _ = self.pieces.send(Some(text.to_owned()));
        }
    }

    fn close(&self) {
        let _ = self.pieces.send(None);
    }

    /// Waits until all is printed, or can't be; forever if there is nothing to print.
    async fn ended(printer: &mut Option<Self>) -> Result<(), Failure> {
        match printer {
            Some(printer) => match (&mut printer.task).await {
                Ok(ended) => ended.map_err(output::failure),
                Err(error) => Err(Failure::Run(error.into())),
            },
            None => std::future::pending().await,
        }
    }
}

fn print_all(pieces: &mpsc::Receiver<Option<String>>) -> io::Result<()> {
    let (mut stdout, terminal) = (io::stdout().lock(), output::is_terminal());
    let mut ended = true;
    while let Ok(Some(piece)) = pieces.recv() {
        ended = piece.ends_with('\n');
        let piece = if terminal { escape_controls(&piece) } else { piece };
        stdout.write_all(piece.as_bytes())?;
        stdout.flush()?;
    }
    if !ended {
        stdout.write_all(b"\n")?;
    }
    stdout.flush()
}

fn exit_code(result: &Value) -> u8 {
    match result["stop_reason"].as_str() {
        Some("end_turn") => 0,
        Some("max_tokens") => 3,
        Some("max_turn_requests") => 4,
        Some("refusal") => 5,
        Some("cancelled") => INTERRUPTED,
        _ => 6,
    }
}

fn standard_input() -> anyhow::Result<String> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).context("cannot read the prompt from standard input")?;
    Ok(text)
}
