//! The conversation of a branch: where an event stands on it, and the document by which another
//! session continues it (its form is in `docs/journal.md`).

use std::collections::{HashSet, VecDeque};
use std::fmt::Write as _;

use rusqlite::params;
use serde_json::Value;

use super::OpenError;
use super::event::cut;
use super::names::NameError;
use super::reader::{Session, Store};

/// Bytes of a document, of a message in it, and of a tool call's result.
const LONGEST: usize = 128 << 10;
const LONGEST_MESSAGE: usize = 32 << 10;
const LONGEST_RESULT: usize = 4 << 10;

/// Types of the events that an agent knows of its session; others change nothing for it.
const TYPES: &str = "'message.user', 'message.assistant', 'message.thought', 'tool.call', \
                     'tool.result', 'plan', 'compact'";

const HEAD: &str = "\
# The conversation so far

This session continues an earlier one. Below is its conversation up to the point where you go on; \
nothing after that point happened for you. Files may have changed since. Do not answer this record: \
it only tells you what was said and done before the prompt that follows it.
";

const END: &str = "\n---\nEnd of the conversation so far.\n";

/// A point of a session at which another branch may begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Point {
    /// The event's id.
    pub event: String,
    /// The number of later events on the session's branch that the agent knows; None if a rewind
    /// took the event off the branch.
    pub behind: Option<u64>,
}

impl Store {
    /// The event of a session that a name means; without a name, the session's head.
    pub fn point(&self, session: &Session, name: Option<&str>) -> Result<Point, NameError> {
        let head = &session.head_event_id;
        let Some(name) = name else { return Ok(Point { event: head.clone(), behind: Some(0) }) };
        let event = self.event_named(name)?;
        let behind = self.behind(head, &event.id)?;
        if behind.is_none() && event.session_id.as_ref() != Some(&session.id) {
            return Err(NameError::Elsewhere {
                event: event.id,
                session: session.id.clone(),
                own: event.session_id,
            });
        }
        Ok(Point { event: event.id, behind })
    }

    /// The number of events that an agent knows between a branch's `head` and the event `at`; None
    /// if `at` is not on the branch.
    pub fn behind(&self, head: &str, at: &str) -> Result<Option<u64>, OpenError> {
        let sql = format!(
            "WITH RECURSIVE line(id, parent_id, type) AS ( \
             SELECT id, parent_id, type FROM events WHERE id = ?1 \
             UNION ALL SELECT e.id, e.parent_id, e.type FROM line JOIN events e \
             ON e.id = line.parent_id WHERE line.id <> ?2 \
             AND e.depth >= (SELECT depth FROM events WHERE id = ?2)) \
             SELECT coalesce(max(id = ?2), 0), coalesce(sum(id <> ?2 AND type IN ({TYPES})), 0) \
             FROM line"
        );
        let found = self.all(&sql, params![head, at], |row| {
            let (is_on_it, behind): (bool, u64) = (row.get(0)?, row.get(1)?);
            Ok(is_on_it.then_some(behind))
        })?;
        Ok(found.into_iter().next().flatten())
    }

    /// The conversation up to an event, as a document in Markdown: the newest part that fits. None
    /// if it is empty.
    pub fn conversation(&self, at: &str) -> Result<Option<String>, OpenError> {
        self.conversation_for(at, &|_| true)
    }

    /// The same, without what calls brought whose payload `may_see` refuses.
    pub fn conversation_for(
        &self,
        at: &str,
        may_see: &dyn Fn(&str) -> bool,
    ) -> Result<Option<String>, OpenError> {
        // Newest first: `CROSS JOIN` keeps the order of the line.
        let sql = format!(
            "WITH RECURSIVE line(number, parent_id) AS ( \
             SELECT number, parent_id FROM events WHERE id = ?1 \
             UNION ALL SELECT e.number, e.parent_id FROM line JOIN events e \
             ON e.id = line.parent_id) \
             SELECT e.type, CASE WHEN e.type = 'tool.call' THEN \
             json_object('tool_call_id', e.payload->>'tool_call_id', 'title', e.payload->>'title', \
             'kind', e.payload->>'kind', 'locations', e.payload->'locations') ELSE e.payload END \
             FROM line CROSS JOIN events e ON e.number = line.number WHERE e.type IN ({TYPES})"
        );
        let mut writing = Writing::default();
        self.each(&sql, [at], |row| {
            let kind: String = row.get(0)?;
            if writing.is_full() {
                writing.leave_out(&kind);
                return Ok(());
            }
            let payload: String = row.get(1)?;
            let mut read: Value = serde_json::from_str(&payload).unwrap_or_default();
            if kind == "tool.result" && !may_see(&payload) {
                (read["content"], read["error"]) = (Value::Null, Value::Null);
                read["output"] = "(It is about files that this agent may not read.)".into();
            }
            writing.add(&kind, &read);
            Ok(())
        })?;
        Ok(writing.document())
    }
}

/// A document that is written from its end.
#[derive(Default)]
struct Writing {
    parts: VecDeque<String>,
    bytes: usize,
    is_full: bool,
    /// Calls whose result was added.
    done: HashSet<String>,
    has_plan: bool,
    left_out: (u64, u64),
    without_texts: bool,
}

impl Writing {
    fn is_full(&self) -> bool {
        self.is_full
    }

    fn leave_out(&mut self, kind: &str) {
        match kind {
            "message.user" | "message.assistant" => self.left_out.0 += 1,
            "tool.result" => self.left_out.1 += 1,
            _ => {}
        }
    }

    fn add(&mut self, kind: &str, payload: &Value) {
        let part = match kind {
            "message.user" => Some(self.message("User", payload)),
            "message.assistant" => Some(self.message("Assistant", payload)),
            "tool.result" => {
                let id = payload["tool_call_id"].as_str().unwrap_or_default();
                self.done.insert(id.to_owned());
                Some(result(payload))
            }
            "tool.call" => {
                let id = payload["tool_call_id"].as_str().unwrap_or_default();
                (!self.done.remove(id)).then(|| result(payload))
            }
            // Only the last one counts.
            "plan" => (!std::mem::replace(&mut self.has_plan, true)).then(|| plan(payload)),
            "compact" => Some("(Here the context was compacted.)\n".to_owned()),
            _ => None,
        };
        let Some(part) = part else { return };
        if self.bytes + part.len() > LONGEST - HEAD.len() - END.len() - 512 {
            self.is_full = true;
            return self.leave_out(kind);
        }
        self.bytes += part.len();
        self.parts.push_front(part);
    }

    fn message(&mut self, by: &str, payload: &Value) -> String {
        let Some(text) = payload["text"].as_str() else {
            self.without_texts = true;
            let bytes = payload["bytes"].as_u64().unwrap_or_default();
            return format!("## {by}\n\n(A message of {bytes} bytes, whose text was not kept.)\n");
        };
        let text = without_document(text);
        let mut part = format!("## {by}\n\n");
        let (text, is_cut) = cut(text, LONGEST_MESSAGE);
        part.push_str(text.trim_end());
        part.push('\n');
        if is_cut.is_some() || payload["truncated"] == true {
            part.push_str("\n(The rest of this message is left out.)\n");
        }
        for block in payload["blocks"].as_array().into_iter().flatten() {
            let uri = block["uri"].as_str().or_else(|| block["resource"]["uri"].as_str());
            let kind = block["type"].as_str().unwrap_or("content");
            // A document of this kind: its conversation is in this one.
            if uri.is_some_and(|uri| uri.starts_with("eisen://")) {
                continue;
            }
            let _ = writeln!(part, "\n(Attached: {kind} {})", cut(uri.unwrap_or(""), 1024).0);
        }
        part
    }

    fn document(self) -> Option<String> {
        if self.parts.is_empty() && !self.is_full {
            return None;
        }
        let mut document = HEAD.to_owned();
        if self.is_full {
            let (messages, calls) = self.left_out;
            let _ = writeln!(
                document,
                "\nLeft out before this: {messages} messages and {calls} tool calls, the oldest."
            );
        }
        if self.without_texts {
            document.push_str("\nThe journal of this team keeps no texts.\n");
        }
        for part in &self.parts {
            document.push('\n');
            document.push_str(part);
        }
        document.push_str(END);
        Some(document)
    }
}

/// A prompt without the document in front of it.
fn without_document(text: &str) -> &str {
    if !text.starts_with(HEAD) {
        return text;
    }
    text.rfind(END).map_or(text, |at| &text[at + END.len()..]).trim_start_matches('\n')
}

fn result(payload: &Value) -> String {
    let text = |name: &str| payload[name].as_str().unwrap_or_default();
    let title = if text("title").is_empty() { text("tool_call_id") } else { text("title") };
    let status = if text("status").is_empty() { "no result" } else { text("status") };
    let title = cut(title.lines().next().unwrap_or_default(), 1024).0;
    let mut part = format!("## Tool call: {title} ({}, {status})\n", text("kind"));
    for location in payload["locations"].as_array().into_iter().flatten().take(20) {
        if let Some(path) = location["path"].as_str() {
            let _ = writeln!(part, "- {}", cut(path, 1024).0);
        }
    }
    let mut brought = text("error").to_owned();
    for item in payload["content"].as_array().into_iter().flatten() {
        let text = item["content"]["text"].as_str().or_else(|| item["newText"].as_str());
        if brought.is_empty() || item["type"] != "diff" {
            brought.push_str(text.unwrap_or_default());
        }
    }
    if brought.is_empty() {
        match &payload["output"] {
            Value::Null => {}
            Value::String(output) => brought.clone_from(output),
            output => brought = output.to_string(),
        }
    }
    let (shown, is_cut) = cut(brought.trim_end(), LONGEST_RESULT);
    if !shown.is_empty() {
        let rest = if is_cut.is_some() { "\n(The rest is left out.)" } else { "" };
        let _ = writeln!(part, "\n{shown}{rest}");
    }
    part
}

fn plan(payload: &Value) -> String {
    let mut part = "## Plan\n\n".to_owned();
    for entry in payload["entries"].as_array().into_iter().flatten().take(100) {
        let text = |name: &str| cut(entry[name].as_str().unwrap_or_default(), 1024).0;
        let _ = writeln!(part, "- {} ({})", text("content"), text("status"));
    }
    part
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_conversation_is_a_document() {
        let mut writing = Writing::default();
        for (kind, payload) in [
            ("tool.call", json!({ "tool_call_id": "t2", "title": "Run make", "kind": "execute" })),
            ("message.assistant", json!({ "text": "Done.\n\n", "bytes": 7 })),
            (
                "tool.result",
                json!({ "tool_call_id": "t1", "title": "Edit a.rs", "kind": "edit",
                "status": "failed", "error": "no such file", "locations": [{ "path": "/w/a.rs" }] }),
            ),
            ("tool.call", json!({ "tool_call_id": "t1", "title": "Edit a.rs", "kind": "edit" })),
            ("plan", json!({ "entries": [{ "content": "Look", "status": "completed" }] })),
            ("plan", json!({ "entries": [] })),
            ("message.thought", json!({ "text": "Hm." })),
            (
                "message.user",
                json!({ "text": "Add a footer", "blocks": [
                { "type": "resource_link", "uri": "file:///w/a.rs" },
                { "type": "resource", "resource": { "uri": "eisen://session/x", "text": "old" } },
            ] }),
            ),
        ] {
            writing.add(kind, &payload);
        }
        let document = writing.document().unwrap_or_default();
        expect![[r"

            ## User

            Add a footer

            (Attached: resource_link file:///w/a.rs)

            ## Plan

            - Look (completed)

            ## Tool call: Edit a.rs (edit, failed)
            - /w/a.rs

            no such file

            ## Assistant

            Done.

            ## Tool call: Run make (execute, no result)

            ---
            End of the conversation so far.
        "]]
        .assert_eq(document.strip_prefix(HEAD).unwrap_or_default());
        let prompt = format!("{document}\nGo on");
        assert_eq!(without_document(&prompt), "Go on");
        assert_eq!(Writing::default().document(), None);
    }

    #[test]
    fn the_newest_part_that_fits_is_kept() {
        let mut writing = Writing::default();
        for number in 0..100 {
            let text = format!("message {number} {}", "x".repeat(10_000));
            if writing.is_full() {
                writing.leave_out("message.user");
            } else {
                writing.add("message.user", &json!({ "text": text }));
            }
        }
        let document = writing.document().unwrap_or_default();
        assert!(document.len() < LONGEST, "{}", document.len());
        assert!(document.contains("message 0 ") && !document.contains("message 50 "));
        assert!(document.contains("Left out before this: 88 messages and 0 tool calls"));
        let mut writing = Writing::default();
        writing.add("message.user", &json!({ "text": "x".repeat(1 << 20) }));
        let document = writing.document().unwrap_or_default();
        assert!(document.contains("(The rest of this message is left out.)"));
    }
}
