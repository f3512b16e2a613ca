#![allow(clippy::unwrap_used)]

mod applying;
mod blaming;
mod merging;
mod reverting;
mod selecting;

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;
use crate::journal::hash_of;

/// A file with this content and mode 644.
pub(super) fn file(content: &str) -> Value {
    state(content, 0o644, "file")
}

pub(super) fn state(content: &str, mode: u32, kind: &str) -> Value {
    let hash = (kind != "folder").then(|| hash_of(content.as_bytes()));
    json!({ "hash": hash, "size": content.len(), "mode": mode, "kind": kind, "stored": true })
}

pub(super) fn read(state: Value) -> Option<FileState> {
    serde_json::from_value(state).unwrap()
}

/// A change of `a.txt`; a content of None is no file.
pub(super) fn change(number: u64, before: Option<&str>, after: Option<&str>) -> FileChange {
    let state = |content: Option<&str>| content.map(file).and_then(read);
    FileChange {
        tree: None,
        event_id: format!("e{number:04}"),
        timestamp: number,
        agent_id: Some("ui".to_owned()),
        session_id: None,
        turn: Some(0),
        operation: match (before, after) {
            (None, _) => Operation::Create,
            (_, None) => Operation::Delete,
            _ => Operation::Write,
        },
        path: PathBuf::from("a.txt"),
        from: None,
        before: state(before),
        after: state(after),
        by: By::Doorbell,
        cause: ChangeCause::Agent,
        tool_call_id: None,
        pid: None,
        contested: Vec::new(),
        restorable: true,
        ignored: false,
        denied: false,
    }
}

/// Contents by their hashes.
pub(super) fn contents(of: &[&str]) -> HashMap<String, Vec<u8>> {
    of.iter().map(|it| (hash_of(it.as_bytes()), it.as_bytes().to_vec())).collect()
}
