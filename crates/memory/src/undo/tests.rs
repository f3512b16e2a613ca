#![allow(clippy::unwrap_used)]

mod life;
mod outside;
mod properties;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::journal::{self, Blob, EventType, Journal, Keep, NewEvent, Place, Settings, hash_of};
use crate::model::{AgentId, OutsideFiles, SessionId, SessionKey};

/// A workspace with a journal, in which changes are recorded as the capture does.
struct Scene {
    folder: TempDir,
    journal: Journal,
    undoer: Undoer,
}

/// Mode and content of what is at a path; a folder has no content.
type OnDisk = (u32, char, Vec<u8>);

impl Scene {
    async fn new() -> Self {
        Self::that_keeps(Keep::default()).await
    }

    async fn that_keeps(keep: Keep) -> Self {
        let folder = TempDir::new().unwrap();
        let workspace = folder.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        let path = folder.path().join("journal.db");
        let settings = Settings { team: "t".to_owned(), path, keep, quotas: None };
        let journal = journal::open(settings).await.unwrap();
        let undoer = Undoer::alone(journal.clone(), &workspace);
        Self { folder, journal, undoer }
    }

    fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        self.workspace().join(path)
    }

    /// Does something, and records what changed as the agent's, or as nobody's.
    async fn doing(&self, agent: Option<&str>, turn: u64, action: impl FnOnce(&Path)) {
        let before = look(&self.workspace());
        action(&self.workspace());
        self.record(agent, turn, &before).await;
    }

    async fn record(&self, agent: Option<&str>, turn: u64, before: &BTreeMap<PathBuf, OnDisk>) {
        let after = look(&self.workspace());
        let mut paths: Vec<_> = before.keys().chain(after.keys()).collect();
        paths.sort();
        paths.dedup();
        let mut events = Vec::new();
        for path in paths {
            let (old, new) = (before.get(path), after.get(path));
            if old != new {
                events.push(event(agent, turn, path, old, new));
            }
        }
        self.journal.append_all(events).await.unwrap();
    }

    fn aim(agent: &str) -> Aim {
        Aim::Agent { agent: agent.to_owned(), session: None, turn: None, since: None }
    }

    async fn run(&self, aim: Aim) -> Result<Outcome, UndoError> {
        self.undoer
            .run(UndoRequest { aim, force: false, dry_run: false, outside: false, rewind: None })
            .await
    }

    async fn force(&self, aim: Aim) -> Result<Outcome, UndoError> {
        self.undoer
            .run(UndoRequest { aim, force: true, dry_run: false, outside: false, rewind: None })
            .await
    }

    async fn undo(&self, agent: &str) -> Result<Outcome, UndoError> {
        self.run(Self::aim(agent)).await
    }

    async fn redo(&self) -> Result<Outcome, UndoError> {
        self.run(Aim::LastUndo { agent: None }).await
    }
}

/// Everything below a folder.
fn look(root: &Path) -> BTreeMap<PathBuf, OnDisk> {
    let (mut all, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let found = fs::symlink_metadata(&path).unwrap();
            let mode = found.permissions().mode() & 0o7777;
            let standing = if found.is_symlink() {
                (0o777, 'l', fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec())
            } else if found.is_dir() {
                folders.push(path.clone());
                (mode, 'd', Vec::new())
            } else {
                (mode, 'f', fs::read(&path).unwrap())
            };
            all.insert(path.strip_prefix(root).unwrap().to_owned(), standing);
        }
    }
    all
}

fn event(
    agent: Option<&str>,
    turn: u64,
    path: &Path,
    old: Option<&OnDisk>,
    new: Option<&OnDisk>,
) -> NewEvent {
    let state = |standing: Option<&OnDisk>| {
        standing.map_or(Value::Null, |(mode, kind, content)| {
            let (hash, kind) = match kind {
                'd' => (Value::Null, "folder"),
                'l' => (json!(hash_of(content)), "symlink"),
                _ => (json!(hash_of(content)), "file"),
            };
            json!({
                "hash": hash, "size": content.len(), "mode": mode, "kind": kind, "stored": true,
            })
        })
    };
    let mut payload = json!({
        "path": path.to_string_lossy(), "before": state(old), "after": state(new),
        "cause": if agent.is_some() { "agent" } else { "outside" }, "restorable": true,
    });
    if path.to_str().is_none() {
        payload["path_bytes"] = json!(STANDARD.encode(path.as_os_str().as_bytes()));
    }
    let kind = match (old, new) {
        (None, _) => EventType::FILE_CREATE,
        (_, None) => EventType::FILE_DELETE,
        _ => EventType::FILE_WRITE,
    };
    let place = agent.map_or(Place::Team, |agent| {
        Place::Wire(SessionKey::new(AgentId::new(agent), SessionId::new("s")))
    });
    let contents = [old, new].into_iter().flatten().filter(|it| it.1 != 'd');
    let contents = contents.map(|(_, _, content)| Blob::new(content.clone())).collect();
    NewEvent::new(place, kind, &payload).in_turn(turn).with(contents)
}

fn write(root: &Path, path: &str, content: &str) {
    fs::write(root.join(path), content).unwrap();
}

fn mode(root: &Path, path: &str, mode: u32) {
    fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
}
