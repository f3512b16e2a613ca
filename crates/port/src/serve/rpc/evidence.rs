//! Owns what is joined to a question from the journal: what the agent said and called before an access, in the
//! same turn, and what that call would write.

use std::path::Path;

use indexmap::IndexMap;
use serde_json::Value;

use super::events::read;
use crate::journal::{BlockedPayload, CallPayload, Event, EventType, Filter, MessagePayload};
use crate::model::{BlockedAccess, mask_commands, masked_line, wire_path};
use crate::preview::Wanted;
use crate::serve::shared::Shared;
use crate::serve::sight::Sight;
use crate::wire::ShownCall;

/// Events of a turn that are looked at, and bytes of their payloads.
const MOST_EVENTS: usize = 200;
const MOST_BYTES: usize = 1 << 20;

/// Bytes of a sentence, and of a call's arguments.
const LONGEST_SENTENCE: usize = 400;
const LONGEST_INPUT: usize = 4 << 10;

/// Names that agents give to the path and to the text in the arguments of their tools.
const PATHS: [&str; 7] =
    ["path", "file_path", "filePath", "filepath", "abs_path", "absolute_path", "target_file"];
const WHOLE: [&str; 4] = ["content", "contents", "file_text", "text"];
const OLD: [&str; 4] = ["old_string", "oldString", "old_str", "oldText"];
const NEW: [&str; 4] = ["new_string", "newString", "new_str", "newText"];

/// The journal's part of the turn of an access.
#[derive(Default, Debug)]
pub(super) struct Evidence {
    pub(super) said: Option<String>,
    call: Option<CallPayload>,
}

impl Evidence {
    /// Reads the journal; empty where there is none, and where the access belongs to no session.
    pub(super) async fn of(shared: &Shared, access: &BlockedAccess, sight: &Sight) -> Self {
        if access.key.session.as_str().is_empty() {
            return Self::default();
        }
        let session = format!("{}/{}", access.key.agent, access.key.session);
        let agent = access.key.agent.to_string();
        let sight = sight.clone();
        let events = read(shared, move |store| {
            let session = store.session_named(&session, Some(&agent))?;
            let types = [
                EventType::MESSAGE_USER,
                EventType::MESSAGE_ASSISTANT,
                EventType::TOOL_CALL,
                EventType::TOOL_RESULT,
                EventType::TURN_END,
                EventType::BLOCKED,
            ];
            let filter = Filter {
                session_id: Some(session.id),
                types: types.map(|kind| kind.as_str().to_owned()).to_vec(),
                last: true,
                limit: MOST_EVENTS,
                bytes: MOST_BYTES,
                ..Filter::default()
            };
            let mut events = store.events(&filter)?.events;
            for event in &mut events {
                sight.reduce(event);
            }
            Ok(events)
        });
        let workspace = shared.sources.workspace().unwrap_or_default();
        match events.await {
            Ok(events) => Self::from_events(&events, access, &workspace),
            Err(_) => Self::default(),
        }
    }

    fn from_events(events: &[Event], access: &BlockedAccess, workspace: &Path) -> Self {
        let is_it = |event: &Event| {
            event.kind == EventType::BLOCKED.as_str()
                && event.read::<BlockedPayload>().blocked_id.as_deref() == Some(access.id.as_str())
        };
        // Each start of a team counts its ids anew: the last one is this access.
        let Some(at) = events.iter().rposition(is_it) else { return Self::default() };
        let (before, after) = events.split_at(at);
        let ends = [EventType::MESSAGE_USER.as_str(), EventType::TURN_END.as_str()];
        if after.iter().any(|event| ends.contains(&&*event.kind)) {
            return Self::default();
        }
        let mut said = None;
        let mut open: IndexMap<String, CallPayload> = IndexMap::new();
        for event in before {
            let kind = EventType::ALL.iter().copied().find(|kind| kind.as_str() == event.kind);
            match kind {
                Some(EventType::MESSAGE_USER | EventType::TURN_END) => {
                    said = None;
                    open.clear();
                }
                Some(EventType::MESSAGE_ASSISTANT) => {
                    let text = event.read::<MessagePayload>().text;
                    said = text.as_deref().and_then(last_sentence).or(said);
                }
                Some(EventType::TOOL_CALL) => {
                    let call = event.read::<CallPayload>();
                    open.insert(call.tool_call_id.clone().unwrap_or_default(), call);
                }
                Some(EventType::TOOL_RESULT) => {
                    let id = event.read::<CallPayload>().tool_call_id.unwrap_or_default();
                    open.shift_remove(&id);
                }
                _ => {}
            }
        }
        for event in after.iter().filter(|it| it.kind == EventType::TOOL_RESULT.as_str()) {
            open.shift_remove(&event.read::<CallPayload>().tool_call_id.unwrap_or_default());
        }
        let about = |call: &CallPayload| names(call, &access.path, workspace);
        let call = match access.tool_call.as_deref() {
            Some(id) => open.get(id),
            None => open.values().rev().find(|call| about(call)),
        };
        Self { said, call: call.cloned() }
    }

    /// The tool call, as it is shown.
    pub(super) fn shown_call(&self) -> Option<ShownCall> {
        let call = self.call.as_ref()?;
        Some(ShownCall {
            tool_call_id: call.tool_call_id.clone().unwrap_or_default(),
            title: call.title.as_ref().and_then(|title| title.as_deref()).map(masked_line),
            kind: call.kind.clone(),
            input: call.input.clone().filter(|input| !input.is_null()).map(|mut input| {
                mask_commands(&mut input);
                let text = input.to_string();
                text[..text.floor_char_boundary(LONGEST_INPUT)].to_owned()
            }),
        })
    }

    /// The content that the tool call would give a file with this content, if it says so.
    pub(super) fn wanted(&self, path: &str, now: Option<&str>, workspace: &Path) -> Option<Wanted> {
        let call = self.call.as_ref().filter(|call| !call.truncated)?;
        let is_it = |value: &&Value| {
            text(value, &PATHS)
                .is_some_and(|named| wire_path(workspace, workspace, Path::new(named)) == path)
        };
        let contents = call.content.as_ref().and_then(Value::as_array).into_iter().flatten();
        let mut parts = contents.chain(call.input.as_ref()).filter(is_it);
        // Of several parts it is not known which come first.
        let part = parts.next().filter(|_| parts.next().is_none())?;
        let Some(new) = text(part, &NEW) else { return text(part, &WHOLE).map(Wanted::new) };
        match (text(part, &OLD).filter(|old| !old.is_empty()), now) {
            (Some(old), Some(now)) => {
                let mut found = now.match_indices(old);
                let is_plain = found.next().is_some() && found.next().is_none();
                is_plain.then(|| Wanted::new(&now.replacen(old, new, 1)))
            }
            // What has no place in a file that is there is inserted somewhere.
            (None, None) => Some(Wanted::new(new)),
            _ => None,
        }
    }
}

/// The text of the first member with one of these names.
fn text<'a>(value: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| value.get(name)?.as_str())
}

/// Whether a call names a path: in its locations, its contents or its arguments.
fn names(call: &CallPayload, path: &str, workspace: &Path) -> bool {
    let is_it = |named: &str| wire_path(workspace, workspace, Path::new(named)) == path;
    let of = |value: &Value| text(value, &PATHS).is_some_and(is_it);
    let listed = |list: &Value| list.as_array().is_some_and(|all| all.iter().any(of));
    listed(&call.locations)
        || call.content.as_ref().is_some_and(listed)
        || call.input.as_ref().is_some_and(of)
}

/// The last sentence of a text, on one line and bounded. What stands in a block of code is no sentence, unless there is
/// nothing else.
fn last_sentence(said: &str) -> Option<String> {
    let mut fence: Option<&str> = None;
    let (mut prose, mut code) = (None, None);
    for line in said.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match (fence_of(line), fence) {
            (Some(mark), None) => fence = Some(mark),
            (Some(mark), Some(open)) if mark.starts_with(open) && line == mark => fence = None,
            (_, Some(_)) => code = Some(line),
            (None, None) => prose = Some(line),
        }
    }
    let line = prose.or(code)?;
    let body = line.trim_end_matches(['.', '!', '?', ':', ' ']);
    let ends = |at: usize, end: char| {
        matches!(end, '.' | '!' | '?') && body[at + end.len_utf8()..].starts_with(' ')
    };
    let start = body.char_indices().rev().find(|(at, end)| ends(*at, *end));
    let sentence = start.map_or(line, |(at, end)| line[at + end.len_utf8()..].trim_start());
    Some(sentence[..sentence.floor_char_boundary(LONGEST_SENTENCE)].to_owned())
}

/// The mark with which a line begins or ends a block of code in Markdown: three or more backticks or tildes.
fn fence_of(line: &str) -> Option<&str> {
    let sign = line.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let (mark, rest) = line.split_at(line.len() - line.trim_start_matches(sign).len());
    // Three backticks may also stand around code within a line.
    (mark.len() >= 3 && !(sign == '`' && rest.contains('`'))).then_some(mark)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;
    use crate::model::{AgentId, BlockedStatus, SessionId, SessionKey};

    fn event(kind: EventType, payload: &Value) -> Event {
        Event {
            id: String::new(),
            parent_id: None,
            session_id: None,
            agent_id: None,
            sequence: None,
            depth: None,
            kind: kind.as_str().to_owned(),
            timestamp: 0,
            turn: None,
            payload: to_raw_value(payload).unwrap(),
        }
    }

    fn access() -> BlockedAccess {
        let key = SessionKey::new(AgentId::new("ui"), SessionId::new("s"));
        let of = eisen_testing::blocked_access("b1", key, BlockedStatus::Pending);
        BlockedAccess { path: "test/a.js".into(), ..of }
    }

    fn call(id: &str, input: &Value) -> Value {
        json!({ "tool_call_id": id, "title": format!("call {id}"), "locations": null, "input": input })
    }

    fn turn() -> Vec<Event> {
        vec![
            event(EventType::MESSAGE_ASSISTANT, &json!({ "text": "Of the turn before." })),
            event(EventType::TOOL_CALL, &call("0", &json!({ "path": "test/a.js" }))),
            event(EventType::MESSAGE_USER, &json!({ "text": "go on" })),
            event(
                EventType::MESSAGE_ASSISTANT,
                &json!({ "text": "Read v1.2.\n\nI see. I add a test for it now:\n" }),
            ),
            event(
                EventType::TOOL_CALL,
                &call("1", &json!({ "file_path": "/w/test/a.js", "content": "new\n" })),
            ),
            event(EventType::TOOL_CALL, &call("2", &json!({ "command": "ls" }))),
            event(EventType::BLOCKED, &json!({ "blocked_id": "b1" })),
            event(EventType::TOOL_CALL, &call("3", &json!({ "path": "test/a.js" }))),
        ]
    }

    #[test]
    fn the_call_that_names_the_path_and_the_last_sentence_of_its_turn_are_found() {
        let found = Evidence::from_events(&turn(), &access(), Path::new("/w"));
        assert_eq!(found.said.as_deref(), Some("I add a test for it now:"));
        let call = found.shown_call().unwrap();
        assert_eq!(call.tool_call_id, "1");
        assert_eq!(
            call.input.as_deref(),
            Some(r#"{"file_path":"/w/test/a.js","content":"new\n"}"#)
        );
        let wanted = found.wanted("test/a.js", None, Path::new("/w")).unwrap();
        assert_eq!(wanted.text(), Some("new\n"));
        assert!(found.wanted("test/b.js", None, Path::new("/w")).is_none());
    }

    #[test]
    fn secrets_of_a_command_are_not_shown() {
        let command = "curl -H 'Authorization: Bearer abc' http://x";
        let mut shell = call("1", &json!({ "command": command }));
        shell["title"] = command.into();
        let blocked = event(EventType::BLOCKED, &json!({ "blocked_id": "b1" }));
        let access = BlockedAccess { tool_call: Some("1".into()), ..access() };
        let events = [event(EventType::TOOL_CALL, &shell), blocked];
        let shown = Evidence::from_events(&events, &access, Path::new("/w")).shown_call().unwrap();
        for text in [shown.title.unwrap(), shown.input.unwrap()] {
            assert!(text.contains("Bearer ***") && !text.contains("abc"), "{text}");
        }
    }

    #[test]
    fn a_turn_that_is_over_explains_nothing() {
        let mut events = turn();
        events.push(event(EventType::TURN_END, &json!({})));
        let found = Evidence::from_events(&events, &access(), Path::new("/w"));
        assert!(found.said.is_none() && found.shown_call().is_none());
    }

    #[test]
    fn an_access_of_an_earlier_start_with_the_same_id_is_another() {
        let mut events = turn();
        events.push(event(EventType::TURN_END, &json!({})));
        events.extend(turn());
        let found = Evidence::from_events(&events, &access(), Path::new("/w"));
        assert_eq!(found.said.as_deref(), Some("I add a test for it now:"));
    }

    #[test]
    fn a_call_that_ended_explains_nothing() {
        let mut events = turn();
        for id in ["1", "2"] {
            events.insert(6, event(EventType::TOOL_RESULT, &call(id, &Value::Null)));
        }
        let found = Evidence::from_events(&events, &access(), Path::new("/w"));
        assert!(found.said.is_some() && found.shown_call().is_none());
    }

    #[test]
    fn an_edit_is_made_where_its_old_text_stands_once() {
        let input = json!({ "filePath": "test/a.js", "oldString": "b", "newString": "x" });
        let blocked = event(EventType::BLOCKED, &json!({ "blocked_id": "b1" }));
        let events = [event(EventType::TOOL_CALL, &call("1", &input)), blocked];
        let found = Evidence::from_events(&events, &access(), Path::new("/w"));
        let wanted = |now| found.wanted("test/a.js", now, Path::new("/w"));
        assert_eq!(wanted(Some("abc")).unwrap().text(), Some("axc"));
        assert!(
            wanted(Some("abcb")).is_none()
                && wanted(Some("ac")).is_none()
                && wanted(None).is_none()
        );
    }

    #[test]
    fn what_a_call_would_write_is_shown_only_if_it_is_certain() {
        let wanted = |input: Value, truncated: bool, now| {
            let mut payload = call("1", &input);
            payload["truncated"] = truncated.into();
            let blocked = event(EventType::BLOCKED, &json!({ "blocked_id": "b1" }));
            let events = [event(EventType::TOOL_CALL, &payload), blocked];
            let found = Evidence::from_events(&events, &access(), Path::new("/w"));
            found.wanted("test/a.js", now, Path::new("/w"))
        };
        let whole = json!({ "path": "test/a.js", "content": "new" });
        assert!(wanted(whole.clone(), false, Some("old")).is_some());
        assert!(wanted(whole, true, Some("old")).is_none());
        let inserted = json!({ "path": "test/a.js", "new_str": "x", "insert_line": 1 });
        assert!(wanted(inserted.clone(), false, Some("old")).is_none());
        assert!(wanted(inserted, false, None).is_some());
    }

    #[test]
    fn the_last_sentence_of_what_was_said() {
        for (said, last) in [
            ("One. Two! Three?", "Three?"),
            ("Only one", "Only one"),
            ("Edit src/a.rs now.", "Edit src/a.rs now."),
            ("First.\n  \n", "First."),
            ("I run this:\n```sh\nmake test\n```\n", "I run this:"),
            ("Cut off. So:\n~~~~\n~~~\nmake", "So:"),
            ("````\n```\n````\nDone so. ```x``` it is.", "```x``` it is."),
            ("```\nmake test\n```", "make test"),
        ] {
            assert_eq!(last_sentence(said).as_deref(), Some(last));
        }
        assert_eq!(last_sentence(" \n"), None);
        assert_eq!(last_sentence(&"ä".repeat(900)).unwrap().len(), LONGEST_SENTENCE);
    }
}
