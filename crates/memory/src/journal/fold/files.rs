//! Changes of files. Their contents go with their events.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{Fold, Row, place_of};
use crate::journal::event::{Blob, EventType, NewEvent, Place, cut};
use crate::journal::payload::PathUsePayload;
use crate::model::{
    AgentId, FileCause, FileChange, FileChangeKind, FileName, FileState, PathUse, SeenBy,
    SessionKey, TimestampMs,
};

/// Files that are recorded as read in one turn of a session.
const MOST_READS: usize = 1_000;

/// Uses of paths that are recorded in one turn of a session.
const MOST_USES: usize = 50_000;

/// Bytes of a path.
const LONGEST_PATH: usize = 4096;

impl Fold {
    pub(super) fn file_changed(&mut self, key: &SessionKey, change: &FileChange, at: TimestampMs) {
        let (place, turn) = match change.cause {
            FileCause::Agent => {
                let session = self.sessions.get(key).filter(|session| session.running > 0);
                (place_of(key), session.map(|session| session.turn))
            }
            FileCause::Outside | FileCause::Unknown => (Place::Team, None),
        };
        let kind = match change.kind {
            FileChangeKind::Write => EventType::FILE_WRITE,
            FileChangeKind::Create => EventType::FILE_CREATE,
            FileChangeKind::Delete => EventType::FILE_DELETE,
            FileChangeKind::Rename => EventType::FILE_RENAME,
        };
        // A file of a worktree is found by its whole path: others have the same file.
        let whole = |name: &FileName| match &change.tree {
            Some(tree) => tree.join(&*name.text).to_string_lossy().into_owned(),
            None => name.text.to_string(),
        };
        let mut found = cut(&whole(&change.path), LONGEST_PATH).0.into_owned();
        if let Some(from) = &change.from {
            found.push('\n');
            found.push_str(&cut(&whole(from), LONGEST_PATH).0);
        }
        let event = NewEvent::new(place, kind, &payload(change)).at(at).found_by(found);
        let contents = change.contents.take().into_iter();
        let contents = contents.map(|(hash, data)| Blob { hash: hash.to_string(), data });
        let event = NewEvent { turn, ..event }.with(contents.collect());
        self.rows.push(Row::Event(event));
    }
}

impl Fold {
    /// Records a read once for each file and turn, and not between turns.
    pub(super) fn file_read(
        &mut self,
        key: &SessionKey,
        path: &Arc<str>,
        by: SeenBy,
        at: TimestampMs,
    ) {
        let Some(session) = self.sessions.get_mut(key) else { return };
        let has_room = session.running > 0 && session.reads.len() < MOST_READS;
        if !has_room || !session.reads.insert(Arc::clone(path)) {
            return;
        }
        let tool_call = session.calls.only();
        let path = cut(path, LONGEST_PATH).0.into_owned();
        let payload = json!({ "path": &path, "by": by.as_str(), "tool_call_id": tool_call });
        self.push_found(key, EventType::FILE_READ, &payload, at, path);
    }
}

impl Fold {
    /// Records what an agent that is observed used, also between turns.
    pub(super) fn path_used(&mut self, key: &SessionKey, used: &PathUse, at: TimestampMs) {
        let session = self.sessions.get_mut(key);
        let count = session.map_or(0, |session| {
            session.uses += 1;
            session.uses
        });
        if count > MOST_USES {
            if count == MOST_USES + 1 {
                let payload =
                    json!({ "events": null, "reason": "too many paths used in one turn" });
                self.push(key, EventType::GAP, &payload, at);
            }
            return;
        }
        let path = cut(&used.path, LONGEST_PATH).0.into_owned();
        let payload = PathUsePayload {
            path: Some(path.clone()),
            action: used.action.as_str().to_owned(),
            via: used.via.as_str().to_owned(),
            tool_call_id: used.tool_call.as_deref().map(str::to_owned),
            program: used.program.as_deref().map(str::to_owned),
            named: used.named,
            outside: used.outside,
        };
        let turn = self.sessions.get(key).map(|session| session.turn);
        let event = NewEvent::new(place_of(key), EventType::PATH_USE, &payload).at(at);
        self.rows.push(Row::Event(NewEvent { turn, ..event.found_by(path) }));
    }
}

fn payload(change: &FileChange) -> Map<String, Value> {
    let mut payload = Map::new();
    let mut put = |name: &str, value: Value| payload.insert(name.to_owned(), value);
    let mut name = |field: &str, name: &FileName| {
        put(field, cut(&name.text, LONGEST_PATH).0.into());
        if let Some(bytes) = &name.bytes {
            put(&format!("{field}_bytes"), STANDARD.encode(bytes).into());
        }
    };
    if let Some(tree) = &change.tree {
        name("tree", &FileName::of(tree));
    }
    name("path", &change.path);
    if let Some(from) = &change.from {
        name("from", from);
    }
    let states = [change.before.as_ref(), change.after.as_ref()];
    let [before, after] = states.map(|state| state.filter(|_| !change.denied).map(state_of));
    put("before", json!(before));
    put("after", json!(after));
    put("by", change.by.as_str().into());
    put("cause", change.cause.as_str().into());
    put("tool_call_id", json!(change.tool_call.as_deref()));
    put("pid", json!(change.pid));
    if !change.contested.is_empty() {
        put("contested", change.contested.iter().map(AgentId::as_str).collect());
    }
    let restorable = !change.denied && states.into_iter().flatten().all(|state| state.stored);
    put("restorable", restorable.into());
    if change.ignored {
        put("ignored", true.into());
    }
    if change.denied {
        put("denied", true.into());
    }
    payload
}

fn state_of(state: &FileState) -> Value {
    json!({
        "hash": state.hash.as_deref(),
        "size": state.size,
        "mode": state.mode,
        "kind": state.kind.as_str(),
        "stored": state.stored,
    })
}
