//! Hashes of a tool call and of its result, for finding loops. Equal calls have equal hashes, also with the
//! keys of their input in another order.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::update::CallFields;
use crate::extract::json::{Members, elements};
use crate::model::SessionStep;

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

/// The hashes of a tool call and of its result.
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
