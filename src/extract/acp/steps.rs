//! The steps of a session, for finding loops: prompts, ended tool calls, whole messages. Equal ones
//! have equal hashes, also with the keys of their input in another order.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::chunks::Chunks;
use super::sessions::AcpSession;
use super::update::CallFields;
use super::{Acp, Reported};
use crate::extract::json::{Members, elements};
use crate::extract::uri;
use crate::model::{ActivityKind, Lines, SessionId, SessionStep, Source, Touch};

/// Bytes of a JSON text whose keys are sorted; a longer one is taken as it is.
const LONGEST_SORTED: usize = 256 << 10;

/// Levels of it that are sorted.
const DEEPEST: usize = 16;

/// Bytes of a title that are kept.
const LONGEST_TITLE: usize = 200;

/// Members of a raw output that have what a call returned.
const OUTPUTS: [&str; 11] = [
    "stdout",
    "stderr",
    "aggregated_output",
    "formatted_output",
    "output",
    "content",
    "contents",
    "text",
    "result",
    "error",
    "message",
];

/// Part of what calls of our own tools are called: these may be repeated.
const OWN: &str = "eisen";

/// What a tool call does, and what came of it.
#[derive(Clone, Default, Debug)]
pub(super) struct Digest {
    input: Option<u64>,
    result: Option<u64>,
    is_own: bool,
    is_taken: bool,
}

impl Digest {
    pub(super) fn absorb(&mut self, fields: &CallFields<'_>) {
        self.is_own |= fields.is_team_tool;
        self.is_own |= fields.title.as_ref().is_some_and(|title| title.contains(OWN));
        if let Some(input) = fields.input {
            self.is_own |= input.len() <= LONGEST_SORTED && input.contains(OWN);
            self.input = Some(sorted(input));
        }
        if !fields.texts.is_empty() || !fields.edits.is_empty() {
            let mut hasher = DefaultHasher::new();
            fields.texts.hash(&mut hasher);
            for edit in &fields.edits {
                (&edit.path, edit.new).hash(&mut hasher);
            }
            self.result = Some(hasher.finish());
        } else if self.result.is_none() {
            self.result = fields.output.and_then(output);
        }
    }

    /// The step of a call that ended; None if it was taken before, or is of our own.
    pub(super) fn take(
        &mut self,
        kind: impl Hash,
        completed: bool,
        title: Option<&str>,
        locations: &[String],
    ) -> Option<SessionStep> {
        if std::mem::replace(&mut self.is_taken, true) || self.is_own {
            return None;
        }
        // Terminals have output of their own, and some agents don't report what they read.
        let Some(result) = self.result else { return Some(SessionStep::CalledUnseen) };
        let mut call = DefaultHasher::new();
        kind.hash(&mut call);
        match self.input {
            Some(input) => input.hash(&mut call),
            None => (title, locations).hash(&mut call),
        }
        let mut ended = DefaultHasher::new();
        (completed, result).hash(&mut ended);
        let title = title.unwrap_or("a tool call");
        let title = title[..title.floor_char_boundary(LONGEST_TITLE)].into();
        Some(SessionStep::Called { call: call.finish(), result: ended.finish(), title })
    }
}

impl Acp {
    /// Reports the prompt as a step.
    pub(super) fn asked(&mut self, session: &SessionId, params: &Members<'_>) {
        if !self.finds_loops {
            return;
        }
        let mut hasher = DefaultHasher::new();
        params.get("prompt").hash(&mut hasher);
        let kind = ActivityKind::Step(SessionStep::Asked(hasher.finish()));
        self.reported.add(session, kind);
        if let Some(known) = self.sessions.get_mut(session) {
            known.read_messages();
        }
    }

    /// Reports the message that ends with the turn.
    pub(super) fn last_message(&mut self, session: &SessionId) {
        if self.finds_loops
            && let Some(known) = self.sessions.get_mut(session).filter(|known| !known.replays())
        {
            message_ended(known, session, &mut self.chunks, &mut self.reported);
        }
    }

    /// Reports the files that a prompt names.
    pub(super) fn prompt(&mut self, session: &SessionId, params: &Members<'_>) {
        for block in params.get("prompt").and_then(elements).unwrap_or_default() {
            let Some(block) = Members::of(block) else { continue };
            let (uri, touch) = match block.text("type").as_deref() {
                Some("resource") => {
                    let resource = block.get("resource").and_then(Members::of);
                    (resource.and_then(|resource| resource.text("uri")), Touch::UserProvided)
                }
                Some("resource_link") => (block.text("uri"), Touch::UserReferenced),
                _ => continue,
            };
            let path = uri.and_then(|uri| uri::path_of(&uri)).filter(|path| path.is_absolute());
            if let Some(path) = path {
                self.push_touch(session, &path, touch, Source::Prompt, Lines::default());
            }
        }
    }
}

/// Reports the agent's message that ends here, if it is short enough to be compared.
pub(super) fn message_ended(
    known: &mut AcpSession,
    session: &SessionId,
    chunks: &mut Chunks,
    reported: &mut Reported,
) {
    if let Some(text) = known.take_said() {
        let mut hasher = DefaultHasher::new();
        text.trim().hash(&mut hasher);
        let kind = ActivityKind::Step(SessionStep::Said(hasher.finish()));
        reported.add(session, kind);
    }
    // The next message is read again.
    chunks.forget(session);
}

/// The hash of a raw output; None if it does not say what the call returned. Ids, times and the like
/// in it don't matter.
fn output(raw: &str) -> Option<u64> {
    let Some(members) = Members::of(raw).filter(|_| raw.len() <= LONGEST_SORTED) else {
        return (raw.len() > "{}".len()).then(|| sorted(raw));
    };
    let known = OUTPUTS.map(|name| members.get(name));
    known.iter().any(Option::is_some).then(|| {
        let mut hasher = DefaultHasher::new();
        for value in known {
            value.map(sorted).hash(&mut hasher);
        }
        hasher.finish()
    })
}

/// The hash of a JSON text, whatever the order of its keys.
fn sorted(raw: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    if raw.len() > LONGEST_SORTED {
        raw.hash(&mut hasher);
    } else {
        sort_into(raw, DEEPEST, &mut hasher);
    }
    hasher.finish()
}

fn sort_into(raw: &str, depth: usize, hasher: &mut DefaultHasher) {
    let deeper = depth.checked_sub(1);
    match (raw.as_bytes().first(), deeper) {
        (Some(b'{'), Some(depth)) => {
            let members = Members::of(raw);
            let mut members: Vec<_> = members.iter().flat_map(Members::iter).collect();
            members.sort_unstable();
            for (key, value) in members {
                key.hash(hasher);
                sort_into(value, depth, hasher);
            }
        }
        (Some(b'['), Some(depth)) => {
            for item in elements(raw).unwrap_or_default() {
                sort_into(item, depth, hasher);
                0_u8.hash(hasher);
            }
        }
        _ => raw.hash(hasher),
    }
}

#[cfg(test)]
mod tests {
    use super::{output, sorted};

    #[test]
    fn an_output_is_what_a_call_returned() {
        let one = output(r#"{"call_id":"1","stdout":"3\n","duration":{"secs":1}}"#);
        assert_eq!(one, output(r#"{"call_id":"2","stdout":"3\n","duration":{"secs":7}}"#));
        assert_ne!(one, output(r#"{"call_id":"1","stdout":"4\n","duration":{"secs":1}}"#));
        assert!(one.is_some() && output("\"ok\"").is_some());
        for unknown in ["{}", "[]", "1", r#"{"exit_code":0,"terminal":"7"}"#] {
            assert_eq!(output(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let one = r#"{"a":1,"b":{"x":[1,{"p":1,"q":2}],"y":2}}"#;
        let other = r#"{"b":{"y":2,"x":[1,{"q":2,"p":1}]},"a":1}"#;
        assert_eq!(sorted(one), sorted(other));
        for different in [
            r#"{"a":1,"b":{"x":[{"p":1,"q":2},1],"y":2}}"#,
            r#"{"a":2,"b":{"x":[1,{"p":1,"q":2}],"y":2}}"#,
            r#"{"a":1}"#,
            "null",
        ] {
            assert_ne!(sorted(one), sorted(different), "{different}");
        }
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        assert_eq!(sorted(&deep), sorted(&deep));
    }
}
