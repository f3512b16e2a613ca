//! Texts of prompts, answers and calls, as the conventions have them. Only for spans with contents.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::model::mask;
use crate::telemetry::span::{LONGEST_CONTENT, cut};

/// Bytes of a value that is parsed.
const LONGEST_PARSED: usize = 1 << 20;

/// Bytes of a message's text: in its form it may be longer.
const LONGEST_MESSAGE: usize = LONGEST_CONTENT / 2;

#[derive(Deserialize)]
struct Block {
    #[serde(default)]
    text: String,
}

/// The text of a prompt's blocks.
pub(super) fn text_of_blocks(blocks: &str) -> String {
    let mut text = String::new();
    for block in serde_json::from_str::<Vec<Block>>(blocks).unwrap_or_default() {
        append(&mut text, &block.text);
    }
    text
}

/// Adds the text of a chunk of a message, as far as there is room.
pub(super) fn add_chunk(text: &mut String, content: &str) {
    if let Ok(block) = serde_json::from_str::<Block>(content) {
        append(text, &block.text);
    }
}

fn append(text: &mut String, more: &str) {
    let room = LONGEST_MESSAGE.saturating_sub(text.len());
    text.push_str(cut(more, room));
}

/// One message, in the form of `gen_ai.input.messages` and `gen_ai.output.messages`.
pub(super) fn messages(role: &str, text: &str) -> String {
    json!([{ "role": role, "parts": [{ "type": "text", "content": text }] }]).to_string()
}

/// A value of a call as text, with its secrets masked; None for nothing.
pub(super) fn value(raw: &RawValue) -> Option<String> {
    if raw.get().len() > LONGEST_PARSED {
        return Some(format!("{} bytes", raw.get().len()));
    }
    let mut value: Value = serde_json::from_str(raw.get()).ok().filter(|it| *it != Value::Null)?;
    mask(&mut value);
    Some(value.to_string())
}
