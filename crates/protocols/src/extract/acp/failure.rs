//! Why a prompt turn failed: from its error, or from a message sent in place of an answer.

use super::heard::{MessageHead, ToldTrouble};
use super::sessions::AcpSession;
use crate::extract::json::{Members, text};
use crate::extract::trouble::Trouble;

/// Bytes of a reason; some agents put a whole response of their model service into it.
const LONGEST: usize = 2000;

/// Reads an error of any shape.
pub(super) fn of_error(error: &str) -> String {
    named(Trouble::of(error), &message(error))
}

/// Reads a successful response to a prompt; None if nothing marks it as a failure. `did_work`: the turn had
/// a tool call, or its agent reported what it used; or that agent never does.
pub(super) fn of_answer(
    stop_reason: &str,
    meta: Option<&str>,
    session: &AcpSession,
    did_work: bool,
) -> Option<String> {
    let head = &session.message;
    let meta = meta.and_then(Members::of).and_then(|meta| meta.get("error"));
    let (trouble, text) = match (stop_reason, meta) {
        ("refusal", Some(error)) => (Trouble::of(error), message(error)),
        ("refusal", None) => (Trouble::of(head.beginning()), head.beginning().to_owned()),
        ("end_turn", _) => match of_told(&session.told, head) {
            Some(failure) => return Some(failure),
            None if did_work => return None,
            None => {
                let (trouble, text) = Trouble::sent_as_answer(head.whole()?)?;
                return Some(named(trouble, text.trim()));
            }
        },
        _ => return None,
    };
    trouble.map(|trouble| named(Some(trouble), text.trim()))
}

/// Why a turn failed by what its agent said in fields of its own.
fn of_told(told: &ToldTrouble, head: &MessageHead) -> Option<String> {
    let error = told.error.as_ref().filter(|_| !told.retries || told.is_broken);
    error.map(|error| of_error(error)).or_else(|| {
        let said = head.beginning().trim();
        told.is_broken.then(|| match Trouble::of(said) {
            None if said.is_empty() => "the agent's session can't go on".to_owned(),
            trouble => named(trouble, said),
        })
    })
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
    let beside = || members.as_ref().and_then(|error| error.text("additionalDetails"));
    let details = data.and_then(text).or_else(|| field("details")).or_else(|| field("message"));
    let details = details.or_else(beside);
    match details.filter(|details| !details.is_empty() && *details != message) {
        Some(details) => format!("{message}: {details}"),
        None => message.into_owned(),
    }
}
