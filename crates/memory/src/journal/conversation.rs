//! The conversation of a branch: where an event stands on it, and the document by which another
//! session continues it (its form is in `docs/journal.md`).

use std::collections::{HashSet, VecDeque};
use std::fmt::Write as _;

use rusqlite::params;
use serde_json::Value;

use super::OpenError;
use super::event::cut;
use super::names::NameError;
use super::payload::{CallPayload, MessagePayload, PlanPayload};
use super::reader::{Session, Store};
use crate::acp::{CallContent, CallLocation, ContentBlock, PlanStep, list};
use crate::line::or_default;

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

const WITHHELD: &str = "(It is about files that this agent may not read.)";

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

    /// As `conversation`, without results of calls whose payload `may_see` refuses.
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
            writing.add(&kind, &payload, kind != "tool.result" || may_see(&payload));
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

    /// Adds an event; of a result that may not be seen only its head.
    fn add(&mut self, kind: &str, payload: &str, may_see: bool) {
        let part = match kind {
            "message.user" => Some(self.message("User", or_default(payload))),
            "message.assistant" => Some(self.message("Assistant", or_default(payload))),
            "tool.result" => {
                let mut payload: CallPayload = or_default(payload);
                if !may_see {
                    (payload.content, payload.error) = (None, None);
                    payload.output = Some(WITHHELD.into());
                }
                self.done.insert(payload.tool_call_id.clone().unwrap_or_default());
                Some(result(&payload))
            }
            "tool.call" => {
                let payload: CallPayload = or_default(payload);
                let id = payload.tool_call_id.as_deref().unwrap_or_default();
                (!self.done.remove(id)).then(|| result(&payload))
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

    fn message(&mut self, by: &str, payload: MessagePayload) -> String {
        let Some(text) = payload.text else {
            self.without_texts = true;
            let bytes = payload.bytes;
            return format!("## {by}\n\n(A message of {bytes} bytes, whose text was not kept.)\n");
        };
        let text = without_document(&text);
        let mut part = format!("## {by}\n\n");
        let (text, is_cut) = cut(text, LONGEST_MESSAGE);
        part.push_str(text.trim_end());
        part.push('\n');
        if is_cut.is_some() || payload.truncated {
            part.push_str("\n(The rest of this message is left out.)\n");
        }
        for ContentBlock { kind, uri, resource, .. } in list(&payload.blocks.unwrap_or_default()) {
            let uri = uri.or(resource.uri).unwrap_or_default();
            let kind = kind.as_deref().unwrap_or("content");
            // A document of this kind: its conversation is in this one.
            if uri.starts_with("eisen://") {
                continue;
            }
            let _ = writeln!(part, "\n(Attached: {kind} {})", cut(&uri, 1024).0);
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

fn result(payload: &CallPayload) -> String {
    let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let title = payload.title.as_ref().and_then(text).or_else(|| text(&payload.tool_call_id));
    let title = title.unwrap_or_default();
    let status = text(&payload.status).unwrap_or_else(|| "no result".to_owned());
    let title = cut(title.lines().next().unwrap_or_default(), 1024).0;
    let kind = payload.kind.as_deref().unwrap_or_default();
    let mut part = format!("## Tool call: {title} ({kind}, {status})\n");
    for CallLocation { path } in list(&payload.locations).into_iter().take(20) {
        if let Some(path) = path {
            let _ = writeln!(part, "- {}", cut(&path, 1024).0);
        }
    }
    let mut brought = payload.error.clone().flatten().unwrap_or_default();
    for CallContent { kind, content, new_text, output, .. } in
        list(payload.content.as_ref().unwrap_or(&Value::Null))
    {
        if brought.is_empty() || kind.as_deref() != Some("diff") {
            brought.push_str(&content.text.or(new_text).or(output).unwrap_or_default());
        }
    }
    if brought.is_empty() {
        match &payload.output {
            None | Some(Value::Null) => {}
            Some(Value::String(output)) => brought.clone_from(output),
            Some(output) => brought = output.to_string(),
        }
    }
    let (shown, is_cut) = cut(brought.trim_end(), LONGEST_RESULT);
    if !shown.is_empty() {
        let rest = if is_cut.is_some() { "\n(The rest is left out.)" } else { "" };
        let _ = writeln!(part, "\n{shown}{rest}");
    }
    part
}

fn plan(payload: &str) -> String {
    let PlanPayload { entries, .. } = or_default(payload);
    let mut part = "## Plan\n\n".to_owned();
    for PlanStep { content, status } in list(&entries.unwrap_or_default()).into_iter().take(100) {
        let _ = writeln!(part, "- {} ({})", cut(&content, 1024).0, cut(&status, 1024).0);
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
            writing.add(kind, &payload.to_string(), true);
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
                writing.add("message.user", &json!({ "text": text }).to_string(), true);
            }
        }
        let document = writing.document().unwrap_or_default();
        assert!(document.len() < LONGEST, "{}", document.len());
        assert!(document.contains("message 0 ") && !document.contains("message 50 "));
        assert!(document.contains("Left out before this: 88 messages and 0 tool calls"));
        let mut writing = Writing::default();
        writing.add("message.user", &json!({ "text": "x".repeat(1 << 20) }).to_string(), true);
        let document = writing.document().unwrap_or_default();
        assert!(document.contains("(The rest of this message is left out.)"));
    }
}
