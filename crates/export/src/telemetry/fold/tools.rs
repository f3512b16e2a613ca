//! Tool calls of a turn: `execute_tool` spans.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{SpanFold, contents};
use crate::model::{SessionKey, TEAM_SERVER, TimestampMs};
use crate::telemetry::names;
use crate::telemetry::span::{LONGEST_CONTENT, SpanDraft, cut};
use crate::wire;

/// Open calls of a turn.
const MOST_TOOLS: usize = 512;

/// Ended calls of a turn that are surely known, so that a late update begins no other span.
const MOST_ENDED: usize = 4_096;

/// Bytes of the contents of all open calls. Past it, what they say is left out.
pub(super) const MOST_CONTENT: usize = 64 << 20;

/// Bytes of an id, and of a tool's name.
const LONGEST_ID: usize = 256;
const LONGEST_NAME: usize = 128;

/// Kinds of the protocol.
const KINDS: [&str; 9] =
    ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode"];

pub(super) struct OpenTool {
    /// The id of its span.
    pub(super) id: u64,
    began: TimestampMs,
    named: Option<String>,
    kind: Option<String>,
    title: Option<String>,
    arguments: Option<String>,
    result: Option<String>,
    /// Contents were left out, for lack of room.
    is_cut: bool,
    /// The call gave a task.
    pub(super) has_given: bool,
}

/// The calls of a turn that are over, by a hash of their ids: the last ones.
#[derive(Default)]
pub(super) struct EndedCalls {
    hasher: RandomState,
    last: HashSet<u64>,
    /// As many calls before the last ones.
    earlier: HashSet<u64>,
}

#[derive(Deserialize)]
struct UpdateHead<'a> {
    #[serde(borrow, rename = "sessionUpdate", default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolCall<'a> {
    #[serde(borrow, rename = "toolCallId")]
    id: &'a RawValue,
    #[serde(borrow, default)]
    title: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    status: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    raw_input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    raw_output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

impl ToolCall<'_> {
    pub(super) fn id(&self) -> Arc<str> {
        let raw = self.id.get();
        // Some agents use numbers.
        let text = serde_json::from_str::<String>(raw);
        cut(text.as_deref().unwrap_or(raw), LONGEST_ID).into()
    }
}

impl EndedCalls {
    fn add(&mut self, id: &str) {
        if self.last.len() >= MOST_ENDED {
            self.earlier = std::mem::take(&mut self.last);
        }
        self.last.insert(self.hasher.hash_one(id));
    }

    fn contains(&self, id: &str) -> bool {
        let hash = self.hasher.hash_one(id);
        self.last.contains(&hash) || self.earlier.contains(&hash)
    }
}

impl OpenTool {
    fn new(id: u64, began: TimestampMs) -> Self {
        let (named, kind, title, arguments, result) = (None, None, None, None, None);
        let (is_cut, has_given) = (false, false);
        Self { id, began, named, kind, title, arguments, result, is_cut, has_given }
    }

    /// The name of a call of which nothing else is known.
    pub(super) fn name_of(call: &ToolCall<'_>) -> String {
        let mut tool = Self::new(0, 0);
        tool.absorb(call, false);
        tool.name().to_owned()
    }

    /// Bytes of its contents.
    fn content_bytes(&self) -> usize {
        let contents = [&self.title, &self.arguments, &self.result];
        contents.into_iter().flatten().map(String::len).sum()
    }

    fn absorb(&mut self, call: &ToolCall<'_>, contents: bool) {
        let by_meta = || call.meta.and_then(|meta| name_in(meta.get()));
        let by_title = || call.title.as_deref().and_then(team_tool).map(str::to_owned);
        self.named = by_meta().or_else(by_title).or(self.named.take());
        let kind = call.kind.as_deref().filter(|kind| KINDS.contains(kind));
        self.kind = kind.map(str::to_owned).or(self.kind.take());
        if contents {
            let short = |text: &str| cut(text, LONGEST_CONTENT).to_owned();
            self.title = call.title.as_deref().map(short).or(self.title.take());
            let value = |raw: Option<&RawValue>| raw.and_then(contents::value).map(|it| short(&it));
            self.arguments = value(call.raw_input).or(self.arguments.take());
            let result = value(call.raw_output).or_else(|| value(call.content));
            self.result = result.or(self.result.take());
        }
    }

    /// The tool's name, else its kind.
    pub(super) fn name(&self) -> &str {
        self.named.as_deref().or(self.kind.as_deref()).unwrap_or(names::OTHER)
    }

    /// Whether it may give a task to another agent.
    pub(super) fn delegates(&self) -> bool {
        let name = self.named.as_deref().unwrap_or_default();
        ["delegate_task", "start_helper"].iter().any(|tool| name.ends_with(tool))
    }
}

impl SpanFold {
    pub(super) fn update(&mut self, key: &SessionKey, raw: &str, at: TimestampMs) {
        let session = self.sessions.get(key);
        if !session.is_some_and(|session| session.turn.is_some() && !session.replays) {
            return;
        }
        let Ok(update) = serde_json::from_str::<UpdateHead<'_>>(raw) else { return };
        match &*update.kind {
            "tool_call" | "tool_call_update" => self.tool_call(key, raw, at),
            "agent_message_chunk" if self.settings.contents => {
                if let (Some(turn), Some(content)) = (self.turn(key), update.content) {
                    contents::add_chunk(&mut turn.answer, content.get());
                }
            }
            _ => {}
        }
    }

    fn tool_call(&mut self, key: &SessionKey, raw: &str, at: TimestampMs) {
        let Ok(call) = serde_json::from_str::<ToolCall<'_>>(raw) else { return };
        let (id, contents) = (call.id(), self.settings.contents);
        let Some(turn) = self.turn(key) else { return };
        if turn.ended_tools.contains(&id) {
            return;
        }
        if !turn.tools.contains_key(&id) {
            let oldest = turn.tools.keys().next().cloned();
            if let Some(oldest) = oldest.filter(|_| turn.tools.len() >= MOST_TOOLS) {
                self.end_tool(key, &oldest, None, at);
            }
            let tool = OpenTool::new((self.ids)(), at);
            let Some(turn) = self.turn(key) else { return };
            turn.tools.insert(Arc::clone(&id), tool);
        }
        let has_room = self.content_bytes < MOST_CONTENT;
        let Some(tool) = self.turn(key).and_then(|turn| turn.tools.get_mut(&id)) else { return };
        let before = tool.content_bytes();
        tool.absorb(&call, contents && has_room);
        tool.is_cut |= contents && !has_room;
        let after = tool.content_bytes();
        self.content_bytes = self.content_bytes - before + after;
        let status = call.status.as_deref();
        if status.is_some_and(|status| matches!(status, "completed" | "failed" | "cancelled")) {
            self.end_tool(key, &id, status, at);
        }
    }

    /// Ends the calls of a turn that are open.
    pub(super) fn end_tools(&mut self, key: &SessionKey, at: TimestampMs) {
        let Some(turn) = self.turn(key) else { return };
        let open: Vec<_> = turn.tools.keys().cloned().collect();
        for id in open {
            self.end_tool(key, &id, None, at);
        }
    }

    /// Ends a call; without a status its end did not come.
    fn end_tool(&mut self, key: &SessionKey, id: &Arc<str>, status: Option<&str>, at: TimestampMs) {
        let Some(spans) = self.turn_spans(key) else { return };
        let Some(turn) = self.turn(key) else { return };
        let Some(tool) = turn.tools.shift_remove(id) else { return };
        turn.ended_tools.add(id);
        self.content_bytes -= tool.content_bytes();
        let (operation, place) = (names::EXECUTE_TOOL, spans.agent.with_span(tool.id));
        let span = SpanDraft::new(operation, tool.name(), place, Some(spans.agent), tool.began);
        let mut span = span.operation(operation);
        span.put(names::TOOL_NAME, tool.name());
        span.put(names::TOOL_CALL_ID, id);
        span.put(names::AGENT_NAME, key.agent.as_str());
        span.put(names::CONVERSATION_ID, key.session.as_str());
        span.put_some(names::TOOL_KIND, tool.kind.as_deref());
        for (name, text) in [
            (names::TOOL_TITLE, &tool.title),
            (names::TOOL_ARGUMENTS, &tool.arguments),
            (names::TOOL_RESULT, &tool.result),
        ] {
            if let Some(text) = text {
                span.put_content(name, text);
            }
        }
        if status == Some("failed") {
            span.fail(names::TOOL_FAILED, "");
        }
        span.put_flag(names::INCOMPLETE, status.is_none() || tool.is_cut);
        self.done.push(span.end(at));
    }
}

/// The tool that a `_meta` names, which the agent's program writes: as `toolName`, or that in an
/// object of the program's own.
fn name_in(meta: &str) -> Option<String> {
    let meta: Map<String, Value> = serde_json::from_str(meta).ok()?;
    let own = meta.values().filter_map(Value::as_object);
    let mut all = std::iter::once(&meta).chain(own);
    let named = all.find_map(|object| object.get("toolName")?.as_str());
    named.filter(|name| is_name(name)).map(str::to_owned)
}

/// Whether a text is a name, and no path or command line.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    !text.is_empty() && text.len() <= LONGEST_NAME && text.bytes().all(is_plain)
}

/// The tool of the team that a title names: agents write the server's name before it.
fn team_tool(title: &str) -> Option<&'static str> {
    let title = title.strip_suffix(" (eisen MCP Server)").unwrap_or(title);
    let title = title.strip_prefix("mcp__").unwrap_or(title);
    let bare = title.strip_prefix(TEAM_SERVER);
    let name = bare.map_or(title, |rest| rest.trim_start_matches(['_', '/', '.', ':']));
    // Titles may be words of any meaning.
    let tool = wire::tool_named(name)?.name;
    (bare.is_some() || tool.contains('_')).then_some(tool)
}
