//! `prompt`: sends a prompt, prints the answer as it arrives, and exits by the stop reason.

mod blocks;
pub(super) mod ended;
mod printer;

use std::io::{self, Read as _};

use anyhow::Context;
use clap::Args;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::blocks::Blocks;
use self::ended::EndedTurn;
use self::printer::Printer;
use super::Global;
use super::blocked::describe;
use super::exit_codes::REFUSED;
use super::output::{self, escape_controls, note, plain, print};
use super::team::{Which, await_start, failed, first_agent, read, readable};
use crate::home;
use crate::program::Failure;
use crate::serve::client::{ClientError, Connection, Message, MethodAnswer, Refusal};
use crate::wire::{Blocked, Cancel, CancelParams, PromptAgent, PromptParams, Prompted};

/// The exit code that shells use for SIGINT.
const INTERRUPTED: u8 = 130;

/// Send a prompt to an agent and print its answer as it arrives
///
/// Waits until a starting agent is ready, and for the prompts queued before this one in the
/// session. Accesses that are blocked during the turn are shown on standard error. Ctrl-C withdraws
/// a queued prompt, or cancels the running turn and waits for its end; a second Ctrl-C exits at
/// once. The team keeps running.
#[derive(Args, Debug)]
#[command(
    allow_missing_positional = true,
    after_help = "\
Examples:
  eisen-core prompt \"Add a test for the cart\"     to the first agent of the team
  eisen-core prompt ui \"Show the cart's total in the header\"
  git diff | eisen-core prompt reviewer -
  eisen-core prompt ui --json \"Is it done?\" | jq -r .text

Exit codes: 0 the turn ended (end_turn), 1 it failed or could not be started, 2 wrong usage,
3 max_tokens, 4 max_turn_requests, 5 refusal, 6 another stop reason, 7 with --strict-exit: something was
refused, 130 cancelled or withdrawn."
)]
pub(super) struct PromptArgs {
    /// Id of the agent; left out, the first one that is ready
    agent: Option<String>,
    /// The prompt; `-` reads it from standard input
    text: String,
    /// Id of the session [default: the first session that the agent opened]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Print only the result, as JSON: `session_id`, `stop_reason`, `text`, `changed`, `blocked`
    #[arg(long)]
    json: bool,
    /// Exit with 7 if a write, command or connection that the agent intended was refused
    #[arg(long)]
    strict_exit: bool,
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
        let agent = match self.agent {
            Some(agent) => agent,
            None => first_agent(&mut team).await?,
        };
        await_start(&mut team, &agent).await.map_err(failed)?;
        let session = self.session.as_deref().or(global.session_id.as_deref());
        let printer = (!self.json).then(Printer::start);
        let turn = SentPrompt::send(&mut team, agent, session, &text, printer)?;
        turn.follow(&mut team, self.strict_exit).await
    }
}

/// A prompt that waits for its result.
pub(super) struct SentPrompt {
    agent: String,
    /// Id of the request.
    request: u64,
    blocks: Blocks,
    /// Bytes of the answer that were sent to the printer.
    printed: usize,
    /// The turn's last sweep, with a hint how to allow it.
    sweep_hint: Option<String>,
    /// Id of the request that cancels the turn.
    cancel_request: Option<u64>,
    interrupts: Signal,
    /// None if only the result is printed.
    printer: Option<Printer>,
    /// The number of the turn, once it has ended.
    turn: Option<u64>,
}

/// How the wait for a prompt ends.
pub(super) enum PromptEnd {
    /// With the result of the prompt.
    Ended(Result<MethodAnswer<PromptAgent>, ClientError>),
    /// Ctrl-C exits at once, with this code.
    Interrupted(u8),
}

impl SentPrompt {
    /// Sends a prompt. Without a printer its answer is only in the result.
    pub(super) fn send(
        team: &mut Connection,
        agent: String,
        session: Option<&str>,
        text: &str,
        printer: Option<Printer>,
    ) -> Result<Self, Failure> {
        let request = team.send::<PromptAgent>(&PromptParams {
            agent_id: agent.clone().into(),
            session_id: session.map(str::to_owned),
            text: Some(text.to_owned()),
            blocks: None,
            stream: Some(true),
        });
        let interrupts = signal(SignalKind::interrupt());
        let interrupts = interrupts.map_err(|error| Failure::Run(error.into()))?;
        Ok(Self {
            agent,
            request,
            blocks: Blocks::default(),
            printed: 0,
            sweep_hint: None,
            cancel_request: None,
            interrupts,
            printer,
            turn: None,
        })
    }

    /// Waits until the turn ends or Ctrl-C exits. Cancel-safe.
    pub(super) async fn wait(&mut self, team: &mut Connection) -> Result<PromptEnd, Failure> {
        loop {
            tokio::select! {
                message = team.next() => match message {
                    Ok(message) => if let Some(outcome) = self.on_message(message) {
                        return Ok(PromptEnd::Ended(outcome.map(MethodAnswer::new).map_err(ClientError::from)));
                    },
                    Err(error) => return Ok(PromptEnd::Ended(Err(error))),
                },
                _ = self.interrupts.recv() => if let Some(code) = self.interrupt(team) {
                    return Ok(PromptEnd::Interrupted(code));
                },
                printed = Printer::ended(&mut self.printer) => printed?,
            }
        }
    }

    /// Follows the turn until it ends or Ctrl-C exits; returns the exit code.
    async fn follow(mut self, team: &mut Connection, is_strict: bool) -> Result<u8, Failure> {
        let ended = match self.wait(team).await? {
            PromptEnd::Ended(ended) => ended,
            PromptEnd::Interrupted(code) => return Ok(code),
        };
        if let Some(printer) = &self.printer {
            // The first `printed` bytes were printed already.
            let text = ended.as_ref().ok().and_then(|result| result.read().ok());
            let text = text.map(|result| result.text).unwrap_or_default();
            printer.write(text.get(self.printed..).unwrap_or_default());
            printer.close();
            // An error is printed after the answer.
            tokio::select! {
                printed = Printer::ended(&mut self.printer) => printed?,
                _ = self.interrupts.recv() => return Ok(INTERRUPTED),
            }
        }
        if let Some(hint) = &self.sweep_hint {
            note(hint);
        }
        let answer = ended.map_err(failed)?;
        let result = read(&answer)?;
        let interrupts = &mut self.interrupts;
        let ended = EndedTurn::look(team, &self.agent, self.turn, &result, interrupts).await;
        if self.printer.is_none() {
            print(ended.json(&answer.json))?;
        }
        if let Some(reason) = &result.reason {
            note(escape_controls(&format!("{}: {reason}", result.stop_reason)));
        }
        if self.printer.is_some() {
            ended.tell();
        }
        let code = exit_code(&result);
        Ok(if code == 0 && is_strict && ended.is_short() { REFUSED } else { code })
    }

    /// Handles a message of the port; returns the result of the prompt if this is it.
    fn on_message(&mut self, message: Message) -> Option<Result<Value, Refusal>> {
        match message {
            Message::Answer { id, outcome } if id == self.request => {
                if let Some(result) =
                    outcome.as_ref().ok().and_then(|it| Prompted::deserialize(it).ok())
                {
                    self.began(&result.session_id);
                }
                return Some(outcome);
            }
            Message::Answer { id, outcome: Err(refusal) } if self.cancel_request == Some(id) => {
                note(format_args!("cannot cancel the turn: {}", plain(&refusal.message)));
            }
            Message::Progress { id, session, text } if id == self.request => {
                self.began(&session);
                if text.is_empty() {
                    self.begin_anew();
                }
                self.print(&text);
            }
            Message::Blocked(access) => {
                let access = readable(&access, Blocked::deserialize(&access));
                let access = access.filter(|access| access.session.agent_id == self.agent);
                if let Some(access) = access.and_then(|access| self.blocks.blocked(access)) {
                    self.show_blocked(&access);
                }
            }
            Message::Turn { agent, session, turn } if agent == self.agent => {
                if self.blocks.session() == Some(&session) {
                    self.turn = Some(turn);
                }
                self.blocks.ended(&session);
            }
            _ => {}
        }
        None
    }

    fn began(&mut self, session: &str) {
        for access in self.blocks.began(session) {
            self.show_blocked(&access);
        }
    }

    /// The prompt was sent, maybe again: what was printed is not of the answer.
    fn begin_anew(&mut self) {
        if let Some(printer) = &self.printer
            && self.printed > 0
        {
            printer.write("\n");
            self.printed = 0;
            note("the agent could not go on: the prompt was sent again");
        }
    }

    fn print(&mut self, text: &str) {
        if let Some(printer) = &self.printer {
            printer.write(text);
            self.printed += text.len();
        }
    }

    /// Prints an access that was blocked in this turn. Incidental accesses (sweeps) can't be decided,
    /// but may have made a command fail: the last one is printed once the turn has ended.
    fn show_blocked(&mut self, access: &Blocked<'_>) {
        if access.harmless {
            return;
        }
        if access.sweep.is_some() {
            let (program, agent) = (home::own_command(), plain(&self.agent));
            self.sweep_hint = Some(format!(
                "{}; if this made a command fail: {program} why {agent} {}",
                describe(access),
                plain(&access.path)
            ));
        } else {
            self.tell(describe(access));
        }
    }

    /// Prints a line for the person within the answer.
    fn tell(&self, line: String) {
        match &self.printer {
            // The answer may be in the middle of a line there.
            Some(printer) if output::is_terminal() => printer.note(line),
            _ => note(line),
        }
    }

    /// Handles Ctrl-C; returns the exit code if the command exits at once.
    fn interrupt(&mut self, team: &mut Connection) -> Option<u8> {
        if self.cancel_request.is_some() {
            return Some(INTERRUPTED);
        }
        if !self.cancel(team) {
            // Closing the connection withdraws a queued prompt.
            note("the prompt was withdrawn before its turn began");
            return Some(INTERRUPTED);
        }
        self.tell("cancelling the turn; Ctrl-C again exits at once".to_owned());
        None
    }

    /// Cancels the turn; false if it has not begun.
    pub(super) fn cancel(&mut self, team: &mut Connection) -> bool {
        let Some(session) = self.blocks.session() else { return false };
        let (agent_id, session_id) = (self.agent.clone(), Some(session.to_owned()));
        let params = CancelParams { agent_id: agent_id.into(), session_id, queued: Some(false) };
        self.cancel_request = Some(team.send::<Cancel>(&params));
        true
    }
}

pub(super) fn exit_code(result: &Prompted) -> u8 {
    match &*result.stop_reason {
        "end_turn" => 0,
        "max_tokens" => 3,
        "max_turn_requests" => 4,
        "refusal" => 5,
        "cancelled" => INTERRUPTED,
        _ => 6,
    }
}

fn standard_input() -> anyhow::Result<String> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).context("cannot read the prompt from standard input")?;
    Ok(text)
}
