//! The subject of a permission request: a tool call in version 1 of the protocol; a tool call, a
//! command or nothing readable in version 2.

use super::strict::mimics;
use crate::extract::json::Members;

const SUBJECT: [&str; 4] = ["type", "toolCall", "command", "cwd"];

pub(crate) enum Subject<'a> {
    Call(Members<'a>),
    /// Its members are those of a `terminal/create`.
    Command(Members<'a>),
    /// Only a title for people.
    Unnamed,
}

impl<'a> Subject<'a> {
    /// Reads the parameters by their shape, not by the agreed version: a reader of the other
    /// version must not find another subject.
    pub(crate) fn of(params: &Members<'a>) -> Result<Self, &'static str> {
        let get = |name| params.get(name).filter(|raw| *raw != "null");
        let subject = match (get("toolCall"), get("subject")) {
            (Some(_), Some(_)) => return Err("it names a tool call and a subject"),
            (Some(call), None) => return Members::of(call).map(Self::Call).ok_or(NO_CALL),
            (None, Some(subject)) => Members::of(subject).ok_or("its subject is no object")?,
            // Version 1 has no title beside the tool call's own.
            (None, None) => return get("title").map(|_| Self::Unnamed).ok_or(NO_CALL),
        };
        if subject.iter().any(|(name, _)| mimics(name, &SUBJECT)) {
            return Err("a member of its subject is misspelt");
        }
        match subject.text("type").as_deref() {
            Some("tool_call") => {
                subject.get("toolCall").and_then(Members::of).map(Self::Call).ok_or(NO_CALL)
            }
            Some("command") => Ok(Self::Command(subject)),
            _ => Err("its subject is of a kind that is not known"),
        }
    }
}

const NO_CALL: &str = "it names no tool call";
