//! The fields of a tool call as one message carries them: `tool_call`, `tool_call_update`, or the
//! `toolCall` of a permission request.
//!
//! Each field is decoded by itself with the protocol's types, so that an odd one hides no other.

use std::borrow::Cow;

use agent_client_protocol_schema::v1::{ToolCallStatus, ToolKind};
use serde::de::DeserializeOwned;

use crate::extract::json::{Members, elements, text};
use crate::extract::uri;

/// Which message carried the fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    Call,
    Update,
    Permission,
}

#[derive(Debug)]
pub(crate) struct Fields<'a> {
    pub(crate) id: String,
    pub(crate) origin: Origin,
    pub(crate) kind: Option<ToolKind>,
    pub(crate) status: Option<ToolCallStatus>,
    pub(crate) title: Option<Cow<'a, str>>,
    pub(crate) locations: Vec<Location>,
    /// What the diffs in its content write.
    pub(crate) diffs: Vec<String>,
    /// What diffs of one file change.
    pub(crate) edits: Vec<Edit<'a>>,
    /// What they copy from.
    pub(crate) copied: Vec<String>,
    /// Texts of its content, as the JSON they came as: they are long, and rarely looked at.
    pub(crate) texts: Vec<&'a str>,
    pub(crate) input: Option<&'a str>,
    /// A path is there but cannot be read for certain.
    pub(crate) unreadable: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Location {
    pub(crate) path: String,
    /// The line of the file that it points to.
    pub(crate) line: Option<u32>,
}

/// A change of a file, its texts as the JSON they came as.
#[derive(Debug)]
pub(crate) struct Edit<'a> {
    pub(crate) path: String,
    pub(crate) old: Option<&'a str>,
    pub(crate) new: Option<&'a str>,
}

impl<'a> Fields<'a> {
    /// A message that says nothing of its call.
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
            unreadable: false,
        }
    }

    /// Returns None without an id: nothing could ever refer to it.
    pub(crate) fn of(members: &Members<'a>, origin: Origin) -> Option<Self> {
        let mut fields = Self {
            kind: members.get("kind").and_then(typed),
            status: members.get("status").and_then(status),
            title: members.text("title"),
            input: members.get("rawInput").filter(|raw| !matches!(*raw, "null" | "{}")),
            ..Self::none(members.text("toolCallId")?.into_owned(), origin)
        };
        for location in members.get("locations").and_then(elements).unwrap_or_default() {
            let Some(location) = Members::of(location) else { continue };
            let line = location.get("line").and_then(typed);
            if let Some(path) = fields.path(&location, "path") {
                fields.locations.push(Location { path, line });
            }
        }
        if let Some(content) = members.get("content") {
            // One that is added by itself is no array.
            elements(content).unwrap_or_else(|| vec![content]).into_iter().for_each(|item| {
                fields.content(item);
            });
        }
        Some(fields)
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
                // As version 2 has them: many files in one diff.
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

    /// Takes a change of an operation that is not known for one that writes all it names.
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

fn status(raw: &str) -> Option<ToolCallStatus> {
    // A call that was cancelled is over, in version 2.
    if raw == "\"cancelled\"" { Some(ToolCallStatus::Failed) } else { typed(raw) }
}

/// Decodes a field by the protocol's type; one that it does not know is left out.
pub(crate) fn typed<T: DeserializeOwned>(raw: &str) -> Option<T> {
    serde_json::from_str(raw).ok()
}
