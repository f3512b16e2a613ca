//! A change of one file, as an event's payload has it. Payloads are parsed leniently: changes that
//! can't be read are left out and counted.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::state::{FileKind, FileState, same};
use crate::journal::{Event, EventType};

/// The kind of a change of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// The content, mode or kind of an entry changed.
    Write,
    /// A file, symlink or folder was made.
    Create,
    /// The file, symlink or folder was removed.
    Delete,
    /// A file, symlink or folder moved to a path where nothing was.
    Rename,
}

/// The cause of a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangeCause {
    /// The event's agent.
    Agent,
    /// From outside the team: a person, git.
    Outside,
    /// The author is not known, as where an agent of the protocol tier ran meanwhile.
    Unknown,
    /// An undo of this agent's changes.
    Undo(Option<String>),
    /// An undo that was taken back.
    Redo(Option<String>),
}

/// The source that saw a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// The doorbell, which stops the calls of an agent's programs in the kernel tier.
    Doorbell,
    /// The client host, which wrote the file for the agent.
    ClientHost,
    /// The watcher, which found the change on the disk afterwards.
    Watcher,
    /// An undo or redo; or a source of a later version.
    Other,
}

/// A change of one path, as an event of the journal has it.
#[derive(Clone, PartialEq, Debug)]
pub struct FileChange {
    /// The event's id; several changes of an undo share one.
    pub event_id: String,
    /// Milliseconds since 1970.
    pub timestamp: u64,
    /// The agent of the event; None for events of the team.
    pub agent_id: Option<String>,
    /// The session's id in the journal; None if the session is not certain.
    pub session_id: Option<String>,
    /// The turn's number on the wire; None between turns, and if the turn is not certain.
    pub turn: Option<u64>,
    /// The kind of the change. For an undo or redo, the paths and states decide it.
    pub operation: Operation,
    /// Relative to the workspace; absolute outside it, and in a worktree of an agent.
    pub path: PathBuf,
    /// The path before a rename.
    pub from: Option<PathBuf>,
    /// The worktree of an agent that the file is in; None: it is in none.
    pub tree: Option<PathBuf>,
    /// The state at `path`, with a rename at `from`. None: there was no file, or a `denied` pattern matches.
    pub before: Option<FileState>,
    /// The state at `path` after the change; None if nothing is there, and where it is `denied`.
    pub after: Option<FileState>,
    /// The source that saw the change. The watcher may not know the content of `before`.
    pub by: By,
    /// The side that made the change: an agent, an undo or redo, or somebody outside.
    pub cause: ChangeCause,
    /// The only tool call that ran or that names the path; None if that is not certain.
    pub tool_call_id: Option<String>,
    /// The process that opened the file; None if it is not known.
    pub pid: Option<u32>,
    /// Other agents that wrote the file at the same time.
    pub contested: Vec<String>,
    /// Whether both states can be restored, as far as the event knows.
    pub restorable: bool,
    /// git ignores it.
    pub ignored: bool,
    /// A `denied` pattern matches it: only the fact of the change is known.
    pub denied: bool,
}

/// The types of events that change files.
pub(super) fn types() -> Vec<String> {
    [
        EventType::FILE_WRITE,
        EventType::FILE_CREATE,
        EventType::FILE_DELETE,
        EventType::FILE_RENAME,
        EventType::UNDO,
        EventType::REDO,
    ]
    .map(|kind| kind.as_str().to_owned())
    .to_vec()
}

/// Optional fields may be absent.
#[derive(Deserialize)]
struct Payload {
    tree: Option<String>,
    tree_bytes: Option<String>,
    path: String,
    path_bytes: Option<String>,
    from: Option<String>,
    from_bytes: Option<String>,
    before: Option<FileState>,
    after: Option<FileState>,
    by: Option<String>,
    cause: Option<String>,
    tool_call_id: Option<String>,
    pid: Option<u32>,
    #[serde(default)]
    contested: Option<Vec<String>>,
    restorable: Option<bool>,
    ignored: Option<bool>,
    denied: Option<bool>,
}

#[derive(Deserialize)]
struct UndoPayload {
    agent_id: Option<String>,
    /// The events whose changes of files an undo took back.
    events: Option<Vec<String>>,
    /// The undo that a redo took back.
    undo_event_id: Option<String>,
    paths: Option<Vec<serde_json::Value>>,
}

/// The part of an event about files.
#[derive(Default)]
pub(super) struct Parsed {
    pub(super) changes: Vec<FileChange>,
    /// Changes that could not be read.
    pub(super) skipped: usize,
    /// The events that an undo took back.
    pub(super) undone: Vec<String>,
    /// The undo that a redo took back.
    pub(super) redone: Option<String>,
}

impl FileChange {
    /// Whether the change is of `path`, as the name before or after.
    pub fn concerns(&self, path: &std::path::Path) -> bool {
        self.path == path || self.from.as_deref() == Some(path)
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.from.is_none() && !self.denied && same(self.before.as_ref(), self.after.as_ref())
    }
}

/// Reads an event of one of [`types`].
pub(super) fn parse(event: &Event) -> Parsed {
    let payload = event.payload.get();
    let kind = event.kind.as_str();
    let operation = match kind {
        "file.write" => Operation::Write,
        "file.create" => Operation::Create,
        "file.delete" => Operation::Delete,
        "file.rename" => Operation::Rename,
        _ => return parse_undo(event, kind == "undo"),
    };
    let read = serde_json::from_str::<Payload>(payload).ok();
    let change = read.and_then(|payload| change(event, Some(operation), payload, None));
    let skipped = usize::from(change.is_none());
    Parsed { changes: change.into_iter().collect(), skipped, ..Parsed::default() }
}

fn parse_undo(event: &Event, is_undo: bool) -> Parsed {
    let Ok(undo) = serde_json::from_str::<UndoPayload>(event.payload.get()) else {
        return Parsed { skipped: 1, ..Parsed::default() };
    };
    let agent = undo.agent_id.or_else(|| event.agent_id.clone());
    let cause = if is_undo { ChangeCause::Undo(agent) } else { ChangeCause::Redo(agent) };
    let paths = undo.paths.unwrap_or_default();
    let of = paths.len();
    let read = paths.into_iter().filter_map(|path| {
        let payload = serde_json::from_value::<Payload>(path).ok()?;
        change(event, None, payload, Some(cause.clone()))
    });
    let changes: Vec<_> = read.collect();
    Parsed {
        skipped: of - changes.len(),
        changes,
        undone: undo.events.filter(|_| is_undo).unwrap_or_default(),
        redone: undo.undo_event_id.filter(|_| !is_undo),
    }
}

fn change(
    event: &Event,
    operation: Option<Operation>,
    payload: Payload,
    cause: Option<ChangeCause>,
) -> Option<FileChange> {
    let tree = match payload.tree {
        Some(tree) => Some(bytes(tree, payload.tree_bytes)?),
        None => None,
    };
    // A path that is absolute already stays as it is.
    let whole = |path: PathBuf| tree.as_ref().map_or(path.clone(), |tree| tree.join(path));
    let path = whole(bytes(payload.path, payload.path_bytes)?);
    let from = match payload.from {
        Some(from) => Some(whole(bytes(from, payload.from_bytes)?)),
        None => None,
    };
    let operation = operation.unwrap_or(match (&from, &payload.before, &payload.after) {
        (Some(_), _, _) => Operation::Rename,
        (_, None, _) => Operation::Create,
        (_, _, None) => Operation::Delete,
        _ => Operation::Write,
    });
    // A rename needs the old name.
    if operation == Operation::Rename && from.is_none() {
        return None;
    }
    let from = from.filter(|from| operation == Operation::Rename && *from != path);
    let of_cause = |text: Option<&str>| match text {
        Some("agent") | None if event.agent_id.is_some() => ChangeCause::Agent,
        Some("outside") => ChangeCause::Outside,
        _ => ChangeCause::Unknown,
    };
    let stored = |state: &Option<FileState>| {
        state.as_ref().is_none_or(|it| it.stored && it.kind != FileKind::Other)
    };
    let denied = payload.denied.unwrap_or(false);
    let restorable = payload.restorable.unwrap_or(true);
    Some(FileChange {
        event_id: event.id.clone(),
        timestamp: event.timestamp,
        agent_id: event.agent_id.clone(),
        session_id: event.session_id.clone(),
        turn: event.turn,
        operation,
        path,
        from,
        tree,
        restorable: restorable && !denied && stored(&payload.before) && stored(&payload.after),
        before: payload.before,
        after: payload.after,
        by: match payload.by.as_deref() {
            Some("doorbell") => By::Doorbell,
            Some("client_host") => By::ClientHost,
            Some("watcher") => By::Watcher,
            _ => By::Other,
        },
        cause: cause.unwrap_or_else(|| of_cause(payload.cause.as_deref())),
        tool_call_id: payload.tool_call_id,
        pid: payload.pid,
        contested: payload.contested.unwrap_or_default(),
        ignored: payload.ignored.unwrap_or(false),
        denied,
    })
}

/// A name; its bytes in base64 win, since the text of a name that is not UTF-8 is not exact.
fn bytes(text: String, base64: Option<String>) -> Option<PathBuf> {
    let bytes = match base64 {
        Some(encoded) => STANDARD.decode(encoded).ok()?,
        None => text.into_bytes(),
    };
    let is_name = !bytes.is_empty() && !bytes.contains(&0);
    is_name.then(|| PathBuf::from(OsString::from_vec(bytes)))
}
