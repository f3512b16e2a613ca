//! An answer before it has the form of an API: what is said, called and broken, in order.

use std::time::Duration;

use serde_json::Value;

use super::script::StopReason;
use super::troubles::ModelRefusal;
use super::usage::ModelTokens;

/// The answer to one request.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct PlayedAnswer {
    /// The number of the call.
    pub(super) n: u64,
    /// Which `[[on]]` of the script it is of, from 1.
    pub(super) rule: Option<usize>,
    pub(super) pieces: Vec<Piece>,
    pub(super) tokens: ModelTokens,
    pub(super) stop: StopReason,
    /// The connection closes after this number of bytes of the body.
    pub(super) cut_after: Option<u64>,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Piece {
    Say(Pieces),
    Think(Pieces),
    Call(ToolCall),
    Fail(ModelRefusal),
    Wait(Duration),
    Ping,
    Raw(String),
    Cut,
    Hang,
}

/// A text in the pieces in which it is streamed.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Pieces {
    pub(super) texts: Vec<String>,
    /// The wait behind each piece.
    pub(super) delay: Duration,
}

impl Pieces {
    pub(super) fn whole(&self) -> String {
        self.texts.concat()
    }
}

#[derive(Clone, PartialEq, Debug)]
pub(super) struct ToolCall {
    pub(super) id: String,
    /// The name as the request has it.
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) input: Input,
    /// The input ends in its middle.
    pub(super) half: bool,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Input {
    Json(Value),
    Text(String),
}

impl ToolCall {
    /// The input as the text that is streamed.
    pub(super) fn text(&self) -> String {
        let text = match &self.input {
            Input::Json(args) => args.to_string(),
            Input::Text(text) => text.clone(),
        };
        if !self.half {
            return text;
        }
        let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at));
        text[..middle.unwrap_or(0)].to_owned()
    }

    /// The input where only whole JSON can be said; of a half call nothing.
    pub(super) fn json(&self) -> Value {
        match &self.input {
            _ if self.half => Value::Object(serde_json::Map::new()),
            Input::Json(args) => args.clone(),
            Input::Text(text) => serde_json::json!({ "input": text }),
        }
    }
}

impl PlayedAnswer {
    pub(super) fn has_calls(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Call(_)))
    }

    /// All that is said, in one text.
    pub(super) fn said(&self) -> String {
        let said = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Say(pieces) => Some(pieces.whole()),
            _ => None,
        });
        said.collect()
    }

    /// All that is thought, in one text.
    pub(super) fn thought(&self) -> String {
        let thought = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Think(pieces) => Some(pieces.whole()),
            _ => None,
        });
        thought.collect()
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Call(call) => Some(call),
            _ => None,
        })
    }
}
