//! One turn: plays steps in order until they end, one of them ends it, or the client cancels it.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::agent::Msg;
use super::script::{Act, Script, Step};
use super::wire;
use crate::script::{Captures, Vars};

/// How a turn ended.
pub(super) enum TurnEnd {
    /// With a stop reason.
    Stopped(String),
    /// With an error response.
    Failed(String),
}

/// A part of the script.
#[derive(Clone, Copy)]
pub(super) enum ScriptPart {
    Start,
    Load,
    Rule(usize),
    /// No rule matched the prompt.
    Default,
}

/// The part to play, and its prompt.
pub(super) struct Play {
    pub(super) part: ScriptPart,
    pub(super) prompt: String,
    pub(super) captures: Captures,
    /// `session/cancel` ends it.
    pub(super) cancellable: bool,
}

impl Play {
    pub(super) fn of(part: ScriptPart) -> Self {
        Self { part, prompt: String::new(), captures: Captures::new(), cancellable: true }
    }
}

/// The context of a turn: its session, and its channels to the agent.
pub(super) struct TurnStage {
    pub(super) session: Arc<str>,
    pub(super) cwd: PathBuf,
    /// The session's mode; empty without one.
    pub(super) mode: String,
    /// The session's model; empty without one.
    pub(super) model: String,
    /// The number of tool calls of the session so far.
    pub(super) calls: Arc<AtomicU64>,
    pub(super) mailbox: mpsc::Sender<Msg>,
    pub(super) cancel: CancellationToken,
    pub(super) stay: CancellationToken,
}

pub(super) struct ScriptedTurn {
    pub(super) stage: TurnStage,
    pub(super) vars: Vars,
    /// Ids of tool calls that were sent to the client and have not ended.
    pub(super) open_calls: Vec<String>,
    /// A terminal that must be released.
    pub(super) open_terminal: Option<Value>,
    /// Members of the answer to the prompt beside its stop reason.
    answer: Map<String, Value>,
}

/// The result of a step: the new value of `{last}`, if any, or the error.
pub(super) type StepDone = Result<Option<String>, String>;

impl ScriptedTurn {
    pub(super) fn new(stage: TurnStage, play: &Play) -> Self {
        let mut vars = Vars::default();
        vars.set("session", &*stage.session);
        vars.set("cwd", stage.cwd.to_string_lossy());
        vars.set("mode", &*stage.mode);
        vars.set("model", &*stage.model);
        vars.set("prompt", &*play.prompt);
        vars.set("last", "");
        vars.set("error", "");
        vars.extend(play.captures.clone());
        Self { stage, vars, open_calls: Vec::new(), open_terminal: None, answer: Map::new() }
    }

    /// Plays its part; returns its end, and what else is to be answered.
    pub(super) async fn play(
        mut self,
        script: &Script,
        play: &Play,
    ) -> (TurnEnd, Map<String, Value>) {
        let steps: &[Step] = match play.part {
            ScriptPart::Start => &script.agent.start,
            ScriptPart::Load => script.agent.load.as_deref().unwrap_or_default(),
            ScriptPart::Rule(index) => &script.rules[index].steps,
            ScriptPart::Default => {
                let name = &script.agent.name;
                self.send_text(&format!("I am {name}, and my script has nothing for this prompt."))
                    .await;
                &[]
            }
        };
        let cancel = self.stage.cancel.clone();
        let played = tokio::select! {
            biased;
            () = cancel.cancelled(), if play.cancellable => None,
            played = self.steps(steps) => Some(played),
        };
        let end = match played {
            None => {
                self.release_terminal().await;
                TurnEnd::Stopped("cancelled".to_owned())
            }
            Some(Err(outcome)) => outcome,
            Some(Ok(())) => TurnEnd::Stopped("end_turn".to_owned()),
        };
        (end, self.answer)
    }

    /// Plays steps in order; an error ends the turn early. Boxed, because steps contain steps.
    fn steps<'a>(
        &'a mut self,
        steps: &'a [Step],
    ) -> Pin<Box<dyn Future<Output = Result<(), TurnEnd>> + Send + 'a>> {
        Box::pin(async move {
            for step in steps {
                match self.step(&step.act).await? {
                    Ok(last) => {
                        if let Some(last) = last {
                            self.vars.set("last", last);
                        }
                        self.steps(&step.on_ok).await?;
                    }
                    Err(error) => {
                        self.vars.set("error", error);
                        self.steps(&step.on_error).await?;
                        if step.required {
                            return Err(TurnEnd::Stopped("end_turn".to_owned()));
                        }
                    }
                }
            }
            Ok(())
        })
    }

    async fn step(&mut self, act: &Act) -> Result<StepDone, TurnEnd> {
        match act {
            Act::Say(text) => self.send_text(&self.vars.expand(text)).await,
            Act::Think(text) => {
                let text = self.vars.expand(text);
                self.update(chunk("agent_thought_chunk", &text)).await;
            }
            Act::Plan { entries, done } => self.plan(entries, *done).await,
            Act::Usage { used, size, cost } => {
                let mut update =
                    json!({"sessionUpdate": "usage_update", "used": used, "size": size});
                if let Some((amount, currency)) = cost {
                    update["cost"] = json!({"amount": amount, "currency": currency});
                }
                self.update(update).await;
            }
            Act::Update(update) => self.update(self.vars.expand_json(update)).await,
            Act::Answer(members) => {
                if let Value::Object(members) = self.vars.expand_json(members) {
                    self.answer.extend(members);
                }
            }
            Act::WaitMs(ms) => sleep(Duration::from_millis(*ms)).await,
            Act::WaitCancel => self.stage.cancel.cancelled().await,
            Act::ForEach { pattern, text, steps } => {
                let text = self.vars.expand(text.as_deref().unwrap_or("{prompt}"));
                for captures in pattern.all(&text) {
                    self.vars.extend(captures);
                    self.steps(steps).await?;
                }
            }
            Act::Repeat { times, steps } => {
                for n in 1..=*times {
                    self.vars.set("n", n.to_string());
                    self.steps(steps).await?;
                }
            }
            Act::Stop(reason) => return Err(TurnEnd::Stopped(reason.clone())),
            Act::Fail(message) => return Err(TurnEnd::Failed(self.vars.expand(message))),
            Act::Raw { line, newline } => {
                let mut line = self.vars.expand(line).into_bytes();
                line.extend(newline.then_some(b'\n'));
                self.send(Msg::Line(line)).await;
            }
            Act::Stderr(text) => eprintln!("{}", self.vars.expand(text)),
            Act::Exit(code) => self.end(Msg::Exit(*code)).await,
            Act::Crash => self.end(Msg::Crash).await,
            Act::Hang => self.end(Msg::Hang).await,
            Act::IgnoreEof => self.stage.stay.cancel(),
            Act::IgnoreTerm => {
                let terminate = tokio::signal::unix::SignalKind::terminate();
                // tokio's handler stays installed after the stream is dropped.
                let listening = tokio::signal::unix::signal(terminate);
                return Ok(listening.map(|_| None).map_err(|error| error.to_string()));
            }
            client => return Ok(self.act(client).await),
        }
        Ok(Ok(None))
    }

    async fn send_text(&self, text: &str) {
        self.update(chunk("agent_message_chunk", text)).await;
    }

    async fn plan(&self, entries: &[String], done: usize) {
        let entries = entries.iter().enumerate().map(|(index, entry)| {
            let status = match index {
                index if index < done => "completed",
                index if index == done => "in_progress",
                _ => "pending",
            };
            json!({"content": self.vars.expand(entry), "priority": "medium", "status": status})
        });
        let entries: Vec<_> = entries.collect();
        self.update(json!({"sessionUpdate": "plan", "entries": entries})).await;
    }

    pub(super) async fn update(&self, update: Value) {
        let params = json!({"sessionId": &*self.stage.session, "update": update});
        self.send(Msg::Line(wire::notification("session/update", &params))).await;
    }

    /// Sends a request with this session's id, and waits for the client's answer.
    pub(super) async fn request(&self, method: &str, mut params: Value) -> Result<Value, String> {
        if let Value::Object(params) = &mut params {
            params.entry("sessionId").or_insert_with(|| json!(&*self.stage.session));
        }
        let (answer, answered) = oneshot::channel();
        self.send(Msg::Request { method: method.to_owned(), params, answer }).await;
        match answered.await {
            Ok(answer) => answer.map_err(|error| error.message),
            Err(_) => Err("the agent is ending".to_owned()),
        }
    }

    /// Closes the terminal and the calls of a cancelled turn, without waiting for responses.
    async fn release_terminal(&mut self) {
        if let Some(terminal) = self.open_terminal.take() {
            let params = json!({"sessionId": &*self.stage.session, "terminalId": terminal});
            let (answer, _) = oneshot::channel();
            let method = "terminal/release".to_owned();
            self.send(Msg::Request { method, params, answer }).await;
        }
        while let Some(call) = self.open_calls.pop() {
            self.end_call(call, Err("cancelled"), json!({})).await;
        }
    }

    async fn send(&self, msg: Msg) {
        // Fails if the agent has ended, and this turn with it.
        let _ = self.stage.mailbox.send(msg).await;
    }

    /// Sends the agent a last message, after which no step is played.
    async fn end(&self, msg: Msg) {
        self.send(msg).await;
        std::future::pending::<()>().await;
    }
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}
