//! Classifies an agent's error: does waiting help (and how long), the user, or nothing? Knows the
//! error texts of model services and agents, and no protocol.

mod retry;
mod rules;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::Deserialize;

use self::retry::Retry;
use crate::model::TimestampMs;

/// Characters of an error that is sent as an answer.
const LONGEST_ERROR: usize = 2_000;

/// The reason of a turn whose agent told of retries, and said nothing else.
const NO_ANSWER: &str = "the agent gave no answer after retries";

/// Bytes of a text to read; the reason is at its beginning.
const READ: usize = 16 * 1024;

/// A classified error.
#[derive(Clone, PartialEq, Debug)]
pub struct Trouble {
    what: &'static str,
    recovery: Recovery,
    retry: Option<Retry>,
}

/// The way to resolve an error.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
enum Recovery {
    /// Waiting.
    Transient,
    /// Nothing: the same prompt will fail again.
    Terminal,
    /// The user: an account, a key, a setting.
    User,
}

impl Trouble {
    /// Reads an error's text, JSON or not; None if no rule knows it.
    pub fn of(text: &str) -> Option<Self> {
        let text = plain(text);
        let (recovery, what) = rules::find(&text.to_lowercase())?;
        // For the others a hint to wait is wrong.
        let retry = (recovery == Recovery::Transient).then(|| Retry::of(&text)).flatten();
        Some(Self { what, recovery, retry })
    }

    /// Names it, such as `rate limited`.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// Whether waiting helps.
    pub fn is_transient(&self) -> bool {
        self.recovery == Recovery::Transient
    }

    /// When the error's text says to try again, if that can be told and is to come.
    pub fn again_at(&self, now: TimestampMs) -> Option<TimestampMs> {
        self.retry.as_ref()?.time(now)
    }

    /// Reads the whole message of a turn: some agents send an error as their answer, behind notes or without, or
    /// nothing but notes of retries. Returns the error's class, if it has one, and its text; None if the message is
    /// an answer, of errors or else.
    pub(crate) fn sent_as_answer(text: &str) -> Option<(Option<Self>, &str)> {
        let (text, retries) = rules::without_notes(text);
        if text.is_empty() && retries {
            return Some((None, NO_ANSWER));
        }
        Some((Some(Self::from_text(text)?), text))
    }

    /// Whether a message has nothing but notes, or nothing at all.
    pub(crate) fn has_only_notes(text: &str) -> bool {
        rules::without_notes(text).0.is_empty()
    }

    fn from_text(text: &str) -> Option<Self> {
        let is_short = text.chars().nth(LONGEST_ERROR).is_none();
        let lower = plain(text).to_lowercase();
        let beginning = rules::beginning_of_error(&lower).filter(|_| is_short)?;
        let is_error = rules::find(beginning).is_some() && !rules::is_prose(text, &lower);
        is_error.then(|| Self::of(text)).flatten()
    }

    /// Whether a message that begins so may be an error, when more of it is known.
    pub(crate) fn may_begin(text: &str) -> bool {
        let (rest, _) = rules::without_notes(text);
        rest.is_empty() || rules::may_begin(&plain(rest).to_lowercase())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recovery = match self.recovery {
            Recovery::Transient => "transient",
            Recovery::Terminal => "terminal",
            Recovery::User => "user's to mend",
        };
        write!(f, "{} ({recovery}", self.what)?;
        if let Some(retry) = &self.retry {
            write!(f, ", {retry}")?;
        }
        f.write_str(")")
    }
}

/// The text on one line, without the escapes of nested JSON.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut escapes = false;
    for c in text[..text.floor_char_boundary(READ)].chars() {
        match c {
            '\\' => escapes = true,
            'n' | 'r' | 't' if escapes => {
                escapes = false;
                plain.push(' ');
            }
            c => {
                escapes = false;
                plain.push(if c.is_whitespace() { ' ' } else { c });
            }
        }
    }
    plain
}
