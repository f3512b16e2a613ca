//! Why a prompt turn brought nothing: by its error, or by what the agent said in an answer's stead.

use super::sessions::MessageHead;
use crate::extract::json::{Members, text};
use crate::extract::trouble::Trouble;

/// Bytes of a reason; some makers put a whole answer of their model service into it.
const LONGEST: usize = 2000;

/// Reads an error object, whatever its shape.
pub(super) fn of_error(error: &str) -> String {
    named(Trouble::of(error), &message(error))
}

/// Reads an answer that is no error by its form; None if nothing says that it is one.
pub(super) fn of_answer(
    stop_reason: &str,
    meta: Option<&str>,
    said: &MessageHead,
) -> Option<String> {
    let meta = meta.and_then(Members::of).and_then(|meta| meta.get("error"));
    let (trouble, text) = match (stop_reason, meta) {
        ("refusal", Some(error)) => (Trouble::of(error), message(error)),
        ("refusal", None) => (Trouble::of(said.beginning()), said.beginning().to_owned()),
        ("end_turn", _) => (Trouble::from_text(said.whole()?), said.beginning().to_owned()),
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

/// The message of an error, with what is hidden in its data, which is often all that helps; the
/// error itself if it has none.
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
