//! Prompts, and the chunks of messages and thoughts that become one event a message.

use agent_client_protocol_schema::v1::{Annotations, Role};
use serde::Deserialize;
use serde_json::Value;

use super::shrink::shrink;
use super::{Draft, Fold, Row};
use crate::journal::event::{EventType, NewEvent, Place, cut};
use crate::journal::payload::MessagePayload;
use crate::model::{SessionKey, TimestampMs};

/// Bytes of a message's text; the rest is left out, and marked.
pub(super) const LONGEST_TEXT: usize = 1 << 20;

/// Bytes of a message's other contents, as JSON.
const LONGEST_BLOCKS: usize = 64 << 10;
const MOST_BLOCKS: usize = 100;

/// Bytes of a message in the search index.
const LONGEST_FOUND: usize = 256 << 10;

/// A block of a prompt that says whom it is for.
#[derive(Deserialize)]
struct Addressed {
    annotations: Annotations,
}

/// A message that is not complete.
pub(super) struct Message {
    pub(super) kind: EventType,
    pub(super) id: Option<String>,
    text: String,
    /// The bytes of the whole text.
    bytes: usize,
    blocks: Vec<Value>,
    started_ms: TimestampMs,
    turn: u64,
    /// The draft, and how much of the text is in it.
    draft: Option<u64>,
    drafted: usize,
}

impl Fold {
    pub(super) fn prompt(&mut self, key: &SessionKey, blocks: &str, at: TimestampMs) {
        self.settle_message(key, at);
        let session = self.session(key);
        let turn = session.turn + session.running.saturating_sub(1);
        let blocks: Vec<Value> = serde_json::from_str(blocks).unwrap_or_default();
        // What is for the agent alone stands last: a turn is known by what its person wrote.
        let (for_agent, for_all): (Vec<_>, _) = blocks.into_iter().partition(is_for_agent);
        let (mut text, mut others) = (String::new(), Vec::new());
        for block in for_all.into_iter().chain(for_agent) {
            match text_of(&block) {
                Some(piece) => {
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(piece);
                }
                None if others.len() < MOST_BLOCKS => others.push(block),
                None => {}
            }
        }
        session.prompt = cut(&text, LONGEST_BLOCKS).0.into_owned();
        let message = Message {
            kind: EventType::MESSAGE_USER,
            id: None,
            bytes: text.len(),
            text: cut(&text, LONGEST_TEXT).0.into_owned(),
            blocks: others,
            started_ms: at,
            turn,
            draft: None,
            drafted: 0,
        };
        self.put(key, message, at);
    }

    /// Adds a chunk to the open message of its kind, or begins one.
    pub(super) fn chunk(
        &mut self,
        key: &SessionKey,
        kind: EventType,
        id: Option<&str>,
        content: Value,
        at: TimestampMs,
    ) {
        let session = self.session(key);
        if kind == EventType::MESSAGE_USER
            && text_of(&content).is_some_and(|text| session.prompt.contains(text))
        {
            return;
        }
        let goes_on = session.message.as_ref().is_some_and(|open| {
            open.kind == kind && (id.is_none() || open.id.is_none() || open.id.as_deref() == id)
        });
        if !goes_on {
            self.settle_message(key, at);
            let session = self.session(key);
            session.message = Some(Message {
                kind,
                id: None,
                text: String::new(),
                bytes: 0,
                blocks: Vec::new(),
                started_ms: at,
                turn: session.turn,
                draft: None,
                drafted: 0,
            });
        }
        let Some(open) = &mut self.session(key).message else { return };
        if open.id.is_none() {
            open.id = id.map(str::to_owned);
        }
        open.add(content);
    }

    /// Ends the open message and puts out the calls, before another message.
    fn settle_message(&mut self, key: &SessionKey, at: TimestampMs) {
        self.end_message(key, at);
        self.flush_calls(key);
    }

    pub(super) fn end_message(&mut self, key: &SessionKey, at: TimestampMs) {
        let open = self.sessions.get_mut(key).and_then(|session| session.message.take());
        if let Some(message) = open {
            self.put(key, message, at);
        }
    }

    /// Puts out the text that the open message got since the last call.
    pub(super) fn draft(&mut self, key: &SessionKey) {
        let (next, keeps_texts) = (self.next_draft, self.keeps_texts());
        let Some(open) = self.sessions.get_mut(key).and_then(|it| it.message.as_mut()) else {
            return;
        };
        if open.drafted == open.text.len() {
            return;
        }
        let number = open.draft.unwrap_or(next);
        open.draft = keeps_texts.then_some(number);
        let text = open.text[open.drafted..].to_owned();
        open.drafted = open.text.len();
        if !keeps_texts {
            return;
        }
        let draft = Draft {
            number,
            key: key.clone(),
            kind: open.kind,
            turn: open.turn,
            started_ms: open.started_ms,
            text,
        };
        if number == next {
            self.next_draft += 1;
        }
        self.rows.push(Row::Draft(draft));
    }

    fn put(&mut self, key: &SessionKey, message: Message, at: TimestampMs) {
        let mut payload = MessagePayload {
            bytes: message.bytes,
            message_id: message.id.map(|id| cut(&id, 1024).0.into_owned()),
            started: message.started_ms,
            ..MessagePayload::default()
        };
        let mut found = String::new();
        if self.keeps_texts() {
            let mut blocks = Value::from(message.blocks);
            crate::model::mask(&mut blocks);
            let is_cut = shrink(&mut blocks, LONGEST_BLOCKS);
            payload.truncated = is_cut || message.bytes > message.text.len();
            payload.blocks =
                Some(blocks).filter(|it| it.as_array().is_some_and(|it| !it.is_empty()));
            found = cut(&message.text, LONGEST_FOUND).0.into_owned();
            payload.text = Some(message.text);
        } else if !message.blocks.is_empty() {
            payload.blocks = Some(message.blocks.len().into());
        }
        let event = NewEvent::new(Place::Wire(key.clone()), message.kind, &payload);
        let mut event = event.at(at).in_turn(message.turn).found_by(found);
        event.draft = message.draft;
        self.rows.push(Row::Event(event));
    }
}

impl Message {
    /// Whether it grew since its last draft.
    pub(super) fn has_undrafted(&self) -> bool {
        self.drafted < self.text.len()
    }

    fn add(&mut self, content: Value) {
        match text_of(&content) {
            Some(piece) => {
                self.bytes += piece.len();
                let room = LONGEST_TEXT.saturating_sub(self.text.len());
                // Once the text was cut, nothing is added.
                if self.bytes - piece.len() == self.text.len() {
                    self.text.push_str(&cut(piece, room).0);
                }
            }
            None if self.blocks.len() < MOST_BLOCKS => {
                let mut content = content;
                shrink(&mut content, LONGEST_BLOCKS);
                self.blocks.push(content);
            }
            None => {}
        }
    }
}

/// The first text of a prompt that is the user's: of the content blocks of ACP, as JSON.
pub fn user_text(blocks: &str) -> Option<String> {
    let blocks: Vec<Value> = serde_json::from_str(blocks).ok()?;
    blocks.iter().filter(|block| !is_for_agent(block)).find_map(text_of).map(str::to_owned)
}

/// Whether the client marked a block of its prompt as none of the user's.
fn is_for_agent(block: &Value) -> bool {
    let audience = Addressed::deserialize(block).ok().and_then(|block| block.annotations.audience);
    audience.is_some_and(|all| all.contains(&Role::Assistant) && !all.contains(&Role::User))
}

fn text_of(block: &Value) -> Option<&str> {
    let is_text = block.get("type").and_then(Value::as_str) == Some("text");
    block.get("text").and_then(Value::as_str).filter(|_| is_text)
}
