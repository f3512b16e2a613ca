//! The report of a call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Spending, mask, mask_texts, masked_keys, masked_line};
use bytes::Bytes;
use serde_json::Value;

use super::setback::ProviderSetback;

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallEnd {
    /// With all of its answer.
    Whole,
    /// The agent went away.
    CutByAgent,
    /// The connection to the provider ended within the answer, or was silent for too long.
    CutByProvider,
    /// The request was sent, perhaps, and no answer came.
    Unanswered,
    /// The request was not sent: the provider can't be reached.
    Unsent,
}

/// How long a call took.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CallTimes {
    /// To the first byte of the answer's body; None: none came.
    pub first_byte: Option<Duration>,
    /// To the end.
    pub whole: Duration,
}

/// The outcome of a call.
#[derive(Debug)]
pub struct CallReport {
    /// The name of the provider.
    pub provider: Arc<str>,
    /// The model that the agent asked for.
    pub asked_model: Option<Arc<str>>,
    /// Tokens, money, and the model as the answer names it, else as it was asked for. None: nothing was
    /// spent, since the call failed.
    pub spending: Option<Spending>,
    /// How it ended.
    pub end: CallEnd,
    /// The status of the answer.
    pub status: Option<u16>,
    /// The provider does not serve.
    pub setback: Option<ProviderSetback>,
    /// How long it took.
    pub times: CallTimes,
    /// The call itself, if its provider records.
    pub record: Option<RecordedCall>,
}

/// A call as it was sent and answered. Its texts are given out masked only.
pub struct RecordedCall {
    pub(crate) request: Bytes,
    pub(crate) answer: Vec<u8>,
    /// The request is longer than what is here.
    pub request_is_cut: bool,
    /// The answer is longer than what is here.
    pub answer_is_cut: bool,
}

impl RecordedCall {
    /// The body of the request, with secrets masked, among them those that are `known`. Parses it: not for a thread that
    /// serves.
    pub fn request(&self, known: &[&str]) -> String {
        masked(without_part(&self.request, known, self.request_is_cut), known)
    }

    /// The body of the answer, with secrets masked.
    pub fn answer(&self, known: &[&str]) -> String {
        masked(without_part(&self.answer, known, self.answer_is_cut), known)
    }
}

impl fmt::Debug for RecordedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (request, answer) = (self.request.len(), self.answer.len());
        write!(f, "RecordedCall({request} and {answer} bytes)")
    }
}

/// Bytes of a secret of which a cut may leave the beginning.
const LEAST_PART: usize = 4;

/// A text without the part of a secret that a cut left at its end.
fn without_part<'a>(bytes: &'a [u8], known: &[&str], is_cut: bool) -> &'a [u8] {
    let part = |secret: &&str| {
        let parts = (LEAST_PART..secret.len()).rev();
        parts.into_iter().find(|length| bytes.ends_with(&secret.as_bytes()[..*length]))
    };
    let part = known.iter().filter(|_| is_cut).filter_map(part).max();
    &bytes[..bytes.len() - part.unwrap_or(0)]
}

/// Masks JSON as a whole, the JSON of events line by line, and any other text by the names in it.
fn masked(bytes: &[u8], known: &[&str]) -> String {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if let Some(b'{' | b'[') = first {
        return masked_json(bytes, known).unwrap_or_else(|| NO_JSON.to_owned());
    }
    let text = String::from_utf8_lossy(bytes);
    let mut masked = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let ends = line.len() - line.trim_end().len();
        let (line, end) = line.split_at(line.len() - ends);
        let data = line.strip_prefix("data:").map(str::trim_start);
        match data {
            Some("[DONE]") | None => masked.push_str(&masked_keys(&masked_line(line), known)),
            Some(data) => {
                let data = masked_json(data.as_bytes(), known);
                masked.push_str("data: ");
                masked.push_str(data.as_deref().unwrap_or(NO_JSON));
            }
        }
        masked.push_str(end);
    }
    masked
}

/// Stands for what looks like JSON and is none, in which secrets can't be found by their names.
const NO_JSON: &str = "(no JSON, so not shown)";

/// Masks JSON, also of a text that was cut.
fn masked_json(bytes: &[u8], known: &[&str]) -> Option<String> {
    let whole = serde_json::from_slice(bytes).ok();
    let mut value: Value = whole.or_else(|| serde_json::from_slice(&closed(bytes)).ok())?;
    mask(&mut value);
    mask_texts(&mut value, known);
    Some(value.to_string())
}

/// Closes what a cut left open, behind the last value that is whole, or within the last text.
fn closed(bytes: &[u8]) -> Vec<u8> {
    let (mut open, mut good) = (Vec::new(), (0, 0));
    let (mut is_text, mut is_escaped, mut is_name) = (false, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        if is_text {
            is_text = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
            if !is_text && !is_name {
                good = (at + 1, open.len());
            }
            continue;
        }
        match byte {
            b'"' => is_text = true,
            b'{' | b'[' => {
                open.push(if *byte == b'{' { b'}' } else { b']' });
                is_name = *byte == b'{';
                good = (at + 1, open.len());
            }
            b'}' | b']' => {
                open.pop();
                good = (at + 1, open.len());
            }
            b',' => {
                is_name = open.last() == Some(&b'}');
                good = (at, open.len());
            }
            b':' => is_name = false,
            _ => {}
        }
    }
    let mut text;
    if is_text && !is_name {
        // An escape that was cut, such as `\u00`, goes with it.
        let tail = bytes.len().saturating_sub(6);
        let escape = bytes[tail..].iter().rposition(|byte| *byte == b'\\');
        text = bytes[..escape.map_or(bytes.len(), |at| tail + at)].to_vec();
        text = String::from_utf8_lossy(&text).into_owned().into_bytes();
        text.push(b'"');
    } else {
        text = bytes[..good.0].to_vec();
        open.truncate(good.1);
    }
    text.extend(open.iter().rev());
    text
}
