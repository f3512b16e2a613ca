//! Selecting changes from a journal.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::*;
use super::file;
use crate::journal::{self, Blob, EventType, Journal, Keep, NewEvent, Place, Settings, Store};
use crate::model::{AgentId, SessionId, SessionKey};

/// A journal of its own, to append events of files to.
pub(crate) struct Team {
    _folder: TempDir,
    path: PathBuf,
    journal: Journal,
}

impl Team {
    pub(crate) async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("journal.db");
        let settings = Settings {
            team: "t".to_owned(),
            path: path.clone(),
            keep: Keep::default(),
            quotas: None,
        };
        let journal = journal::open(settings).await.unwrap();
        Self { _folder: folder, path, journal }
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.path).unwrap()
    }

    /// Appends an event of `who`: `agent/session`, or nobody of the team; returns its id.
    pub(crate) async fn append(
        &self,
        who: &str,
        turn: u64,
        kind: EventType,
        payload: Value,
    ) -> String {
        let place = match who.split_once('/') {
            Some((agent, session)) => {
                Place::Wire(SessionKey::new(AgentId::new(agent), SessionId::new(session)))
            }
            None => Place::Team,
        };
        let event = NewEvent::new(place, kind, &payload).in_turn(turn);
        self.journal.append(event).await.unwrap().id
    }

    /// Appends a change of a text file, with its contents; an empty text is no file.
    pub(crate) async fn write(
        &self,
        who: &str,
        turn: u64,
        path: &str,
        (before, after): (&str, &str),
    ) -> String {
        let state = |text: &str| (!text.is_empty()).then(|| file(text));
        let kind = match (before, after) {
            ("", _) => EventType::FILE_CREATE,
            (_, "") => EventType::FILE_DELETE,
            _ => EventType::FILE_WRITE,
        };
        let cause = if who.contains('/') { "agent" } else { who };
        let payload = json!({ "path": path, "before": state(before), "after": state(after),
            "by": "doorbell", "cause": cause, "tool_call_id": null, "pid": 7, "restorable": true });
        let texts = [before, after].into_iter().filter(|it| !it.is_empty());
        let blobs = texts.map(|text| Blob::new(text.as_bytes().to_vec())).collect();
        let place = match who.split_once('/') {
            Some((agent, session)) => {
                Place::Wire(SessionKey::new(AgentId::new(agent), SessionId::new(session)))
            }
            None => Place::Team,
        };
        let event = NewEvent::new(place, kind, &payload).in_turn(turn).with(blobs);
        self.journal.append(event).await.unwrap().id
    }
}

fn agent(id: &str) -> ChangeScope {
    ChangeScope { agent_id: Some(id.to_owned()), ..ChangeScope::default() }
}

fn shown(changes: &ChangeSet) -> Vec<(String, bool)> {
    let of = |(index, change): (usize, &FileChange)| {
        let who = change.agent_id.clone().unwrap_or_else(|| format!("{:?}", change.cause));
        (format!("{who} {}", change.path.display()), changes.is_own(index))
    };
    changes.all.iter().enumerate().map(of).collect()
}

#[tokio::test]
async fn a_scope_has_its_own_changes_and_what_others_did_to_the_files_later() {
    let team = Team::new().await;
    team.write("outside", 0, "a", ("", "0\n")).await;
    team.write("ui/s", 0, "a", ("0\n", "1\n")).await;
    let since = team.write("api/s", 0, "b", ("", "b\n")).await;
    team.write("api/s", 0, "a", ("1\n", "2\n")).await;
    team.write("outside", 0, "a", ("2\n", "3\n")).await;
    let renamed = json!({ "path": "c", "from": "a", "before": file("3\n"), "after": file("3\n"),
        "cause": "agent" });
    team.append("api/s", 1, EventType::FILE_RENAME, renamed).await;
    team.write("ui/s", 1, "d", ("", "d\n")).await;
    team.write("unknown", 0, "c", ("3\n", "4\n")).await;

    let changes = select(&team.store(), &agent("ui")).unwrap();
    let expected = [
        ("ui a", true),
        ("api a", false),
        ("Outside a", false),
        ("api c", false),
        ("ui d", true),
        ("Unknown c", false),
    ];
    assert_eq!(shown(&changes), expected.map(|(who, own)| (who.to_owned(), own)));
    let turn = ChangeScope { turn: Some(1), ..agent("ui") };
    assert_eq!(shown(&select(&team.store(), &turn).unwrap()), [("ui d".to_owned(), true)]);
    let after = ChangeScope { after: Some(since), ..ChangeScope::default() };
    let own: Vec<_> = select(&team.store(), &after).unwrap().own().cloned().collect();
    let paths: Vec<_> = own.iter().map(|change| change.path.to_str().unwrap()).collect();
    assert_eq!(paths, ["a", "c", "d"]);
    assert!(select(&team.store(), &agent("nobody")).unwrap().is_empty());
}

#[tokio::test]
async fn what_an_undo_took_back_is_no_ones_own_until_a_redo() {
    let team = Team::new().await;
    let first = team.write("ui/s", 0, "a", ("0\n", "1\n")).await;
    team.write("ui/s", 1, "a", ("1\n", "2\n")).await;
    let paths = json!([{ "path": "a", "before": file("2\n"), "after": file("1\n") }, { "x": 1 }]);
    let undo = json!({ "agent_id": "ui", "turns": [0], "events": [first], "paths": paths });
    let undo = team.append("ui/s", 1, EventType::UNDO, undo).await;
    let changes = select(&team.store(), &agent("ui")).unwrap();
    assert_eq!((changes.own().count(), changes.undone, changes.skipped), (1, 1, 1));
    assert_eq!(changes.all.last().unwrap().cause, ChangeCause::Undo(Some("ui".to_owned())));
    let redo = json!({ "undo_event_id": undo, "paths": [] });
    team.append("ui/s", 1, EventType::REDO, redo).await;
    assert_eq!(select(&team.store(), &agent("ui")).unwrap().own().count(), 2);
}

#[tokio::test]
async fn payloads_of_a_later_version_or_torn_ones_are_counted() {
    let team = Team::new().await;
    for payload in [
        json!({}),
        json!({ "path": 7 }),
        json!({ "path": "" }),
        json!({ "path": "a", "path_bytes": "%%" }),
        json!({ "path": "a", "before": { "kind": 1 } }),
        json!([1]),
        Value::Null,
    ] {
        team.append("ui/s", 0, EventType::FILE_WRITE, payload).await;
    }
    team.append("ui/s", 0, EventType::FILE_RENAME, json!({ "path": "a" })).await;
    team.append("ui/s", 0, EventType::UNDO, json!({ "paths": "all" })).await;
    // A kind and fields that are not known yet.
    let later = json!({ "path": "x", "path_bytes": "/w==", "after": { "kind": "fifo", "v": 2 },
        "by": "fanotify", "cause": "agent", "more": [] });
    team.append("ui/s", 0, EventType::FILE_CREATE, later).await;
    let changes = select(&team.store(), &agent("ui")).unwrap();
    assert_eq!(changes.skipped, 9);
    let [change] = &changes.all[..] else { panic!("{changes:?}") };
    assert_eq!(change.path.as_os_str().as_encoded_bytes(), b"\xff");
    assert_eq!((change.by, change.restorable), (By::Other, false));
    assert_eq!(change.after.as_ref().unwrap().kind, FileKind::Other);
}
