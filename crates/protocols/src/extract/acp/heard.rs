//! The parts of an agent's words that are kept: the beginning of a message, and troubles that it tells of.

use crate::extract::json::{Members, text};
use crate::extract::trouble::Trouble;

/// Bytes to keep of a turn's message, and of one that is compared.
const LONGEST_HEAD: usize = 512;
/// Bytes to keep of a message that begins as an error does: it may be one in place of an answer.
const LONGEST_ERROR: usize = 8_000;
/// Bytes of an error that an agent tells of; a longer one is not read.
const LONGEST_TOLD: usize = 64 << 10;

/// The beginning of the agent's message to its user.
#[derive(Debug, Default)]
pub(crate) struct MessageHead {
    pub(super) text: String,
    /// The message was longer.
    pub(super) is_cut: bool,
    /// The message begins as an error does.
    pub(super) may_be_error: bool,
}

/// The trouble that an agent tells of in fields of its own, in a `session_info_update` or a notification of
/// its own.
#[derive(Default, Debug)]
pub(crate) struct ToldTrouble {
    /// Its last error, as raw JSON.
    pub(super) error: Option<String>,
    /// The agent asks its model's service again by itself.
    pub(super) retries: bool,
    /// The agent says that its session can't go on.
    pub(super) is_broken: bool,
}

impl MessageHead {
    pub(super) fn add(&mut self, text: &str) {
        let longest = if self.may_be_error { LONGEST_ERROR } else { LONGEST_HEAD };
        let room = longest.saturating_sub(self.text.len());
        let fits = text.floor_char_boundary(room);
        self.text.push_str(&text[..fits]);
        self.is_cut |= fits < text.len();
    }

    /// As [`Self::add`], for a message that may be an error.
    pub(super) fn add_to_answer(&mut self, text: &str) {
        let whole = [self.text.as_str(), &text[..text.floor_char_boundary(LONGEST_HEAD)]].concat();
        self.may_be_error = Trouble::may_begin(&whole);
        self.add(text);
    }

    pub(crate) fn beginning(&self) -> &str {
        &self.text
    }

    /// None if the message was cut.
    pub(crate) fn whole(&self) -> Option<&str> {
        (!self.is_cut).then_some(&self.text)
    }
}

impl ToldTrouble {
    /// Reads the `_meta` of an update; returns the error that it names, as raw JSON.
    pub(super) fn learn(&mut self, meta: &Members<'_>) -> Option<&str> {
        let mut is_news = false;
        for own in meta.iter().filter_map(|(_, raw)| Members::of(raw)) {
            let error = own.get("error").filter(|it| *it != "null" && it.len() <= LONGEST_TOLD);
            if let Some(error) = error {
                let retries = Members::of(error).and_then(|error| error.get("willRetry"));
                self.retries = retries == Some("true");
                self.error = Some(error.to_owned());
                is_news = true;
            }
            if let Some(status) = own.get("threadStatus") {
                let kind = Members::of(status).and_then(|status| status.text("type"));
                self.is_broken = kind.or_else(|| text(status)).as_deref() == Some("systemError");
            }
        }
        self.error.as_deref().filter(|_| is_news)
    }

    /// Reads a `_session/retrying`, which has a `category` such as `rate_limited` and a `detail`; returns the error
    /// that it names, as raw JSON.
    pub(super) fn learn_retry(&mut self, params: &Members<'_>) -> Option<&str> {
        let words = ["category", "detail"].map(|name| params.text(name));
        let words: Vec<_> = words.iter().flatten().map(|word| &**word).collect();
        let error = serde_json::Value::from(words.join(": ")).to_string();
        let is_read = !words.is_empty() && error.len() <= LONGEST_TOLD;
        if is_read {
            self.retries = true;
            self.error = Some(error);
        }
        self.error.as_deref().filter(|_| is_read)
    }
}
