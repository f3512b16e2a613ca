//! The fields of a tool call in one message: `tool_call`, `tool_call_update`, or the `toolCall` of
//! a permission request.
//!
//! Each field is decoded by itself, so that a malformed one does not hide the others.

use std::borrow::Cow;

use agent_client_protocol_schema::v1::{ToolCallStatus, ToolKind};
use serde::de::DeserializeOwned;
use serde_json::Number;

use crate::extract::json::{Members, elements, text};
use crate::extract::uri;
use crate::line;
use crate::model::TEAM_SERVER;
use crate::wire;

/// Which message carried the fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    Call,
    Update,
    Permission,
}

#[derive(Debug)]
pub(crate) struct CallFields<'a> {
    pub(crate) id: String,
    pub(crate) origin: Origin,
    pub(crate) kind: Option<ToolKind>,
    pub(crate) status: Option<ToolCallStatus>,
    pub(crate) title: Option<Cow<'a, str>>,
    pub(crate) locations: Vec<Location>,
    /// Paths that the diffs in its content write.
    pub(crate) diffs: Vec<String>,
    /// The changes of diffs of one file.
    pub(crate) edits: Vec<Edit<'a>>,
    /// Sources of copies in its diffs.
    pub(crate) copied: Vec<String>,
    /// Texts of its content as raw JSON: they are long and rarely read.
    pub(crate) texts: Vec<&'a str>,
    pub(crate) input: Option<&'a str>,
    /// The agent's program says that it is a call of a tool of the team.
    pub(crate) is_team_tool: bool,
    pub(crate) output: Option<&'a str>,
    /// A path has no certain reading.
    pub(crate) unreadable: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Location {
    pub(crate) path: String,
    /// The line that it points to.
    pub(crate) line: Option<u32>,
}

/// A change of a file, with its texts as raw JSON.
#[derive(Debug)]
pub(crate) struct Edit<'a> {
    pub(crate) path: String,
    pub(crate) old: Option<&'a str>,
    pub(crate) new: Option<&'a str>,
}

impl<'a> CallFields<'a> {
    /// A message without fields.
    pub(crate) fn none(id: String, origin: Origin) -> Self {
        Self {
            id,
            origin,
            kind: None,
            status: None,
            title: None,
            locations: Vec::new(),
            diffs: Vec::new(),
            edits: Vec::new(),
            copied: Vec::new(),
            texts: Vec::new(),
            input: None,
            is_team_tool: false,
            output: None,
            unreadable: false,
        }
    }

    /// Returns None without an id.
    pub(crate) fn of(members: &Members<'a>, origin: Origin) -> Option<Self> {
        let mut fields = Self {
            kind: members.get("kind").and_then(kind),
            status: members.get("status").and_then(status),
            title: members.text("title"),
            input: members.get("rawInput").filter(|raw| !matches!(*raw, "null" | "{}")),
            is_team_tool: members.get("_meta").is_some_and(names_team_tool),
            output: members.get("rawOutput").filter(|raw| *raw != "null"),
            ..Self::none(id(members)?, origin)
        };
        // A single item may stand without an array.
        let each = |raw| elements(raw).unwrap_or_else(|| vec![raw]);
        members.get("locations").into_iter().flat_map(each).for_each(|it| fields.location(it));
        members.get("content").into_iter().flat_map(each).for_each(|it| fields.content(it));
        Some(fields)
    }

    fn location(&mut self, item: &str) {
        if let Some(location) = Members::of(item) {
            let line = location.get("line").and_then(typed);
            let name =
                ["path", "uri", "file"].into_iter().find(|name| location.get(name).is_some());
            if let Some(path) = name.and_then(|name| self.path(&location, name)) {
                self.locations.push(Location { path, line });
            }
        } else if let Some(path) = text(item).filter(|path| uri::path_of(path).is_some()) {
            self.locations.push(Location { path: path.into_owned(), line: None });
        }
    }

    fn content(&mut self, item: &'a str) {
        let Some(item) = Members::of(item) else { return };
        match item.text("type").as_deref() {
            Some("diff") => {
                let known = self.diffs.len();
                if let Some(path) = self.path(&item, "path") {
                    let (old, new) = (item.get("oldText"), item.get("newText"));
                    self.edits.push(Edit { path: path.clone(), old, new });
                    self.diffs.push(path);
                }
                // Version 2: many files in one diff.
                let changes = item.get("changes").filter(|raw| *raw != "null");
                for change in changes.and_then(elements).unwrap_or_default() {
                    self.change(change);
                }
                self.unreadable |= self.diffs.len() == known;
            }
            Some("content") => {
                let block = item.get("content").and_then(Members::of);
                self.texts.extend(block.and_then(|block| block.get("text")));
            }
            _ => {}
        }
    }

    /// Adds a change; an unknown operation counts as a write of all its paths.
    fn change(&mut self, change: &str) {
        let Some(change) = Members::of(change) else {
            self.unreadable = true;
            return;
        };
        let (old, path) = (self.path(&change, "oldPath"), self.path(&change, "path"));
        self.unreadable |= path.is_none();
        self.diffs.extend(path);
        if change.text("operation").as_deref() == Some("copy") {
            self.copied.extend(old);
        } else {
            self.diffs.extend(old);
        }
    }

    fn path(&mut self, members: &Members<'_>, name: &str) -> Option<String> {
        let raw = members.get(name)?;
        let path = text(raw);
        self.unreadable |= path.is_none();
        path.filter(|path| uri::path_of(path).is_some()).map(Cow::into_owned)
    }
}

/// Whether a `_meta`, which the agent's program writes and no model, names a tool of the team: as
/// `toolName`, or that in an object of the program's own.
fn names_team_tool(meta: &str) -> bool {
    let is_ours = |members: &Members<'_>| {
        let name = members.text("toolName").unwrap_or_default();
        let rest = name.strip_prefix("mcp__").and_then(|rest| rest.strip_prefix(TEAM_SERVER));
        let tool = rest.and_then(|rest| rest.strip_prefix("__"));
        tool.is_some_and(|tool| wire::tool_named(tool).is_some())
    };
    let Some(meta) = Members::of(meta) else { return false };
    is_ours(&meta) || meta.iter().filter_map(|(_, raw)| Members::of(raw)).any(|it| is_ours(&it))
}

/// Some agents use numbers as ids.
fn id(members: &Members<'_>) -> Option<String> {
    let raw = members.get("toolCallId")?;
    let number = || typed::<Number>(raw).map(|_| raw.to_owned());
    text(raw).map(Cow::into_owned).or_else(number)
}

/// Maps a kind that the protocol does not know by its word.
fn kind(raw: &str) -> Option<ToolKind> {
    let kind: ToolKind = typed(raw)?;
    let word = text(raw).filter(|_| kind == ToolKind::Other).unwrap_or_default().to_lowercase();
    Some(match word.as_str() {
        "read" | "view" | "open" => ToolKind::Read,
        "edit" | "write" | "create" | "update" | "modify" | "patch" | "replace" => ToolKind::Edit,
        "delete" | "remove" => ToolKind::Delete,
        "move" | "rename" => ToolKind::Move,
        "search" | "grep" | "find" | "glob" => ToolKind::Search,
        "execute" | "shell" | "bash" | "run" | "command" | "terminal" => ToolKind::Execute,
        _ => kind,
    })
}

/// Maps a status that the protocol does not know by its word: version 2 has `cancelled`.
fn status(raw: &str) -> Option<ToolCallStatus> {
    let word = text(raw)?.to_lowercase();
    Some(match word.as_str() {
        "pending" => ToolCallStatus::Pending,
        "completed" | "complete" | "success" | "succeeded" | "done" | "finished" | "ok" => {
            ToolCallStatus::Completed
        }
        "failed" | "failure" | "error" | "cancelled" | "canceled" | "rejected" | "denied"
        | "aborted" | "skipped" | "interrupted" => ToolCallStatus::Failed,
        // Any other word does not mean done.
        _ => ToolCallStatus::InProgress,
    })
}

/// Decodes a field by the protocol's type; None if it does not match.
pub(crate) fn typed<T: DeserializeOwned>(raw: &str) -> Option<T> {
    line::read(raw.as_bytes()).ok()
}
