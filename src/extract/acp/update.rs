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
    /// Paths of the diffs in its content.
    pub(crate) diffs: Vec<String>,
    /// Texts of its content, as the JSON they came as: they are long, and rarely looked at.
    pub(crate) texts: Vec<&'a str>,
    pub(crate) input: Option<&'a str>,
    /// A path is there but cannot be read for certain.
    pub(crate) unreadable: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Location {
    pub(crate) path: String,
    /// Whether it points into the file.
    pub(crate) has_line: bool,
}

impl<'a> Fields<'a> {
    /// Returns None without an id: nothing could ever refer to it.
    pub(crate) fn of(members: &Members<'a>, origin: Origin) -> Option<Self> {
        let mut fields = Self {
            id: members.text("toolCallId")?.into_owned(),
            origin,
            kind: members.get("kind").and_then(typed),
            status: members.get("status").and_then(typed),
            title: members.text("title"),
            locations: Vec::new(),
            diffs: Vec::new(),
            texts: Vec::new(),
            input: members.get("rawInput").filter(|raw| !matches!(*raw, "null" | "{}")),
            unreadable: false,
        };
        for location in members.get("locations").and_then(elements).unwrap_or_default() {
            let Some(location) = Members::of(location) else { continue };
            let has_line = location.get("line").is_some_and(|line| line != "null");
            if let Some(path) = fields.path(&location) {
                fields.locations.push(Location { path, has_line });
            }
        }
        for item in members.get("content").and_then(elements).unwrap_or_default() {
            fields.content(item);
        }
        Some(fields)
    }

    fn content(&mut self, item: &'a str) {
        let Some(item) = Members::of(item) else { return };
        match item.text("type").as_deref() {
            Some("diff") => {
                let path = self.path(&item);
                self.diffs.extend(path);
            }
            Some("content") => {
                let block = item.get("content").and_then(Members::of);
                self.texts.extend(block.and_then(|block| block.get("text")));
            }
            _ => {}
        }
    }

    fn path(&mut self, members: &Members<'_>) -> Option<String> {
        let raw = members.get("path")?;
        let path = text(raw);
        self.unreadable |= path.is_none();
        path.filter(|path| uri::path_of(path).is_some()).map(Cow::into_owned)
    }
}

/// Decodes a field by the protocol's type; one that it does not know is left out.
pub(crate) fn typed<T: DeserializeOwned>(raw: &str) -> Option<T> {
    serde_json::from_str(raw).ok()
}
