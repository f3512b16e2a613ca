//! Why a prompt turn failed: from its error, or from a message sent in place of an answer.

use super::sessions::MessageHead;
use crate::extract::json::{Members, text};
use crate::extract::trouble::Trouble;

/// Bytes of a reason; some agents put a whole response of their model service into it.
const LONGEST: usize = 2000;

/// Reads an error of any shape.
pub(super) fn of_error(error: &str) -> String {
    named(Trouble::of(error), &message(error))
}

/// Reads a successful response; None if nothing marks it as a failure.
pub(super) fn of_answer(
    stop_reason: &str,
    meta: Option<&str>,
    head: &MessageHead,
) -> Option<String> {
    let meta = meta.and_then(Members::of).and_then(|meta| meta.get("error"));
    let (trouble, text) = match (stop_reason, meta) {
        ("refusal", Some(error)) => (Trouble::of(error), message(error)),
        ("refusal", None) => (Trouble::of(head.beginning()), head.beginning().to_owned()),
        ("end_turn", _) => (Trouble::from_text(head.whole()?), head.beginning().to_owned()),
        _ => return None,
    };
    trouble.map(|trouble| named(Some(trouble), text.trim()))
}

fn named(trouble: Option<Trouble>, message: &str) -> String {
    let cut = message.floor_char_boundary(LONGEST);
    let more = if cut < message.len() { "…" } else { "" };
    let message = &message[..cut];
    match trouble {
        Some(trouble) => format!("{trouble}: {message}{more}"),
        None => format!("{message}{more}"),
    }
}

/// The message of an error with the details in its data, which are often the useful part; the
/// error itself if it has no message.
fn message(error: &str) -> String {
    let members = Members::of(error);
    let message = members.as_ref().and_then(|error| error.text("message"));
    let Some(message) = message else {
        return text(error).map_or_else(|| error.to_owned(), Into::into);
    };
    let data = members.as_ref().and_then(|error| error.get("data"));
    let fields = data.and_then(Members::of);
    let field = |name| fields.as_ref().and_then(|fields| fields.text(name));
    let details = data.and_then(text).or_else(|| field("details")).or_else(|| field("message"));
    match details.filter(|details| !details.is_empty() && *details != message) {
        Some(details) => format!("{message}: {details}"),
        None => message.into_owned(),
    }
}
