//! Writes the conversation of an agent with its own client down in ACP. The plugin only observes
//! both, and no intents are fulfilled.

use std::path::PathBuf;

use eisen_plugin::Record;
use serde_json::{Value, json};

use super::permissions::MOST_ASKS;
use super::{Conversation, Intent, Translated, Translation};
use crate::line::Direction;

/// ACP lines in their order.
pub(in crate::plugin) type Heard = Vec<(Direction, Vec<u8>)>;

/// Translates observed records into the ACP lines of both sides.
pub(in crate::plugin) struct Transcript {
    translation: Translation,
    /// A turn began before its session was known.
    turn_waits: bool,
}

impl Transcript {
    /// `known_as` is the session's id, if it is not the agent's own.
    pub(in crate::plugin) fn new(name: String, cwd: PathBuf, known_as: Option<String>) -> Self {
        let translation = Translation::new(name, None, Conversation::default());
        Self { translation: Translation { cwd, known_as, ..translation }, turn_waits: false }
    }

    /// Returns the intents of a client's ACP line.
    pub(in crate::plugin) fn on_client_line(&mut self, line: &[u8]) -> Vec<Intent> {
        let mut said = Translated::default();
        self.translation.on_client_line(line, &mut said);
        said.intents
    }

    /// Translates a record. The error says what is wrong with it.
    pub(in crate::plugin) fn on_record(
        &mut self,
        record: Record<'_>,
        heard: &mut Heard,
    ) -> Result<(), String> {
        match &record {
            // The agent's client answers by itself.
            Record::Line { .. } => return Ok(()),
            Record::Withdrawn { id } => {
                self.is_answered(id, heard);
                return Ok(());
            }
            _ => {}
        }
        if self.translation.session.is_none() {
            match &record {
                Record::Session { id } => self.translation.known_as = Some(id.clone().into_owned()),
                // The session's id may be in the next record.
                Record::TurnBegan if self.translation.known_as.is_none() => {
                    self.turn_waits = true;
                    return Ok(());
                }
                _ => {}
            }
            self.opens(heard);
        }
        match &record {
            Record::TurnBegan => {
                self.turn_begins(heard);
                return Ok(());
            }
            // An agent that reuses an id has got the answer to its first ask.
            Record::Ask { id, .. } => {
                self.is_answered(id, heard);
                self.let_go_of_all_but(MOST_ASKS - 1, heard);
            }
            Record::TurnEnded { .. } => self.let_go_of_all_but(0, heard),
            _ => {}
        }
        let mut said = Translated::default();
        let outcome = self.translation.translate(record, &mut said);
        heard.push((Direction::ToClient, said.to_client));
        outcome
    }

    fn opens(&mut self, heard: &mut Heard) {
        let id = json!("session");
        let params = json!({"cwd": self.translation.cwd, "mcpServers": []});
        heard.push(request(&id, "session/new", &params));
        let mut said = Translated::default();
        self.translation.opened(&id, &mut said);
        heard.push((Direction::ToClient, said.to_client));
        if std::mem::take(&mut self.turn_waits) {
            self.turn_begins(heard);
        }
    }

    /// The agent ended: a turn without output still counts as a turn.
    pub(in crate::plugin) fn ends(&mut self, heard: &mut Heard) {
        if self.turn_waits {
            self.opens(heard);
        }
    }

    /// Begins a turn, unless one runs: prompts meanwhile belong to that turn.
    fn turn_begins(&mut self, heard: &mut Heard) {
        if self.translation.prompt.is_none() {
            self.translation.last_id += 1;
            let id = json!(format!("turn-{}", self.translation.last_id));
            let params = json!({"sessionId": self.translation.session, "prompt": []});
            heard.push(request(&id, "session/prompt", &params));
            self.translation.prompt = Some(id);
        }
    }

    /// Closes the oldest asks whose answer was not reported, until `stay` are left.
    fn let_go_of_all_but(&mut self, stay: usize, heard: &mut Heard) {
        while self.translation.asks.len() > stay
            && let Some(ask) = self.translation.asks.values().next().cloned()
        {
            self.is_answered(&ask, heard);
        }
    }

    /// Closes an ask. The true answer is unknown, so it is shown as cancelled.
    fn is_answered(&mut self, ask: &str, heard: &mut Heard) {
        for (id, _) in self.translation.asks.extract_if(.., |_, open| open == ask) {
            let params = json!({"requestId": id});
            let cancel = json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params});
            let result = json!({"outcome": {"outcome": "cancelled"}});
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
            heard.push((Direction::ToClient, cancel.to_string().into_bytes()));
            heard.push((Direction::ToAgent, answer.to_string().into_bytes()));
        }
    }
}

fn request(id: &Value, method: &str, params: &Value) -> (Direction, Vec<u8>) {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    (Direction::ToAgent, request.to_string().into_bytes())
}
