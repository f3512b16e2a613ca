#![allow(clippy::unwrap_used)]

mod contents;
mod earlier;
mod faults;
mod following;
mod sessions;
mod tasks;
mod upkeep;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use eisen_base::task;
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::migrations::migrate_to;
use super::*;
use crate::model::{AgentId, SessionId, SessionKey};

pub(super) fn key(name: &str) -> SessionKey {
    let (agent, session) = name.split_once('/').unwrap();
    SessionKey::new(AgentId::new(agent), SessionId::new(session))
}

pub(super) fn settings(folder: &Path) -> Settings {
    let path = folder.join("teams/t/journal.db");
    Settings { team: "t".to_owned(), path, keep: Keep::default(), quotas: None }
}

fn wire(name: &str, kind: EventType) -> NewEvent {
    NewEvent::new(Place::Wire(key(name)), kind, &json!({ "text": "some text" }))
}

pub(super) fn all(path: &Path) -> Vec<Event> {
    Store::open(path).unwrap().events(&Filter::default()).unwrap().events
}

pub(super) fn payload(event: &Event) -> Value {
    serde_json::from_str(event.payload.get()).unwrap()
}

async fn opened() -> (TempDir, PathBuf, Journal) {
    let folder = TempDir::new().unwrap();
    let settings = settings(folder.path());
    let path = settings.path.clone();
    (folder, path, open(settings).await.unwrap())
}

#[tokio::test]
async fn events_of_a_session_have_sequences_parents_and_depths() {
    let (_folder, path, journal) = opened().await;
    let first = journal.append(wire("a/s", EventType::SESSION_START)).await.unwrap();
    let second = journal.append(wire("a/s", EventType::MESSAGE_USER).in_turn(3)).await.unwrap();
    let other = journal.append(wire("b/s", EventType::SESSION_START)).await.unwrap();
    let none = NewEvent::new(Place::Agent(AgentId::new("a")), EventType::AGENT_STATE, &json!({}));
    journal.append(none).await.unwrap();
    assert_eq!((first.sequence, second.sequence, other.sequence), (Some(0), Some(1), Some(0)));
    assert_ne!(first.session_id, other.session_id);

    let events = all(&path);
    assert!(events.windows(2).all(|pair| pair[0].id < pair[1].id));
    assert_eq!(events[0].parent_id, None);
    assert_eq!(events[1].parent_id, Some(first.id.clone()));
    assert_eq!((events[1].depth, events[1].turn), (Some(1), Some(3)));
    let last = events.last().unwrap();
    assert_eq!((&last.session_id, last.sequence, last.depth), (&None, None, None));
    assert_eq!(last.agent_id.as_deref(), Some("a"));

    let store = Store::open(&path).unwrap();
    let session = store.sessions_named("a/s").unwrap().pop().unwrap();
    assert_eq!((&session.root_event_id, &session.head_event_id), (&first.id, &second.id));
    assert_eq!(session.status, "open");
    let prefix = &session.id[..13];
    assert!(store.sessions_named(prefix).unwrap().contains(&session));
    assert_eq!(store.meta("team").unwrap().as_deref(), Some("t"));
}

#[tokio::test]
async fn a_fork_begins_behind_its_branch_point_and_a_head_can_be_set_back() {
    let (_folder, path, journal) = opened().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(journal.append(wire("a/s", EventType::MESSAGE_USER)).await.unwrap());
    }
    let place = Place::Fork {
        parent: ids[1].id.clone(),
        agent: AgentId::new("b"),
        wire_session_id: Some("w".to_owned()),
    };
    let forked = NewEvent::new(place, EventType::SESSION_FORK, &json!({}));
    let forked = journal.append(forked).await.unwrap();
    let next = journal.append(wire("b/w", EventType::MESSAGE_USER)).await.unwrap();
    assert_eq!((forked.sequence, next.sequence), (Some(0), Some(1)));
    assert_eq!(forked.session_id, next.session_id);
    let store = Store::open(&path).unwrap();
    let event = store.event(&forked.id).unwrap().unwrap();
    assert_eq!((event.depth, event.parent_id), (Some(2), Some(ids[1].id.clone())));
    let line: Vec<_> = store.lineage(&next.id).unwrap().into_iter().map(|it| it.id).collect();
    assert_eq!(line, [&ids[0].id, &ids[1].id, &forked.id, &next.id].map(String::clone));

    let session = ids[0].session_id.clone().unwrap();
    let rewind = NewEvent::new(Place::Session(session), EventType::SESSION_REWIND, &json!({}));
    let rewind = journal.append(rewind.head(Head::Set(ids[0].id.clone()))).await.unwrap();
    assert_eq!(rewind.sequence, Some(3));
    let head = store.sessions_named("a/s").unwrap().pop().unwrap().head_event_id;
    assert_eq!(head, ids[0].id);
    let next = journal.append(wire("a/s", EventType::MESSAGE_USER)).await.unwrap();
    let next = store.event(&next.id).unwrap().unwrap();
    assert_eq!((next.sequence, next.depth), (Some(4), Some(1)));
    assert_eq!(next.parent_id, Some(ids[0].id.clone()));
}

#[tokio::test]
async fn what_names_something_unknown_is_refused_as_a_whole() {
    let (_folder, path, journal) = opened().await;
    journal.append(wire("a/s", EventType::SESSION_START)).await.unwrap();
    let unknown = NewEvent::new(Place::Session("x".to_owned()), EventType::UNDO, &json!({}));
    let both = vec![wire("a/s", EventType::MESSAGE_USER), unknown];
    assert!(matches!(journal.append_all(both).await, Err(AppendError::Unknown(_))));
    let next = journal.append(wire("a/s", EventType::MESSAGE_USER)).await.unwrap();
    assert_eq!(next.sequence, Some(1));
    assert_eq!(all(&path).len(), 2);
}

#[tokio::test]
async fn contents_are_stored_once_and_read_as_they_were() {
    let (_folder, path, journal) = opened().await;
    let (large, small) = (vec![b'x'; 100_000], vec![0, 159, 146, 150]);
    let blobs = || vec![Blob::new(large.clone()), Blob::new(small.clone())];
    for _ in 0..2 {
        journal.append(wire("a/s", EventType::FILE_WRITE).with(blobs())).await.unwrap();
    }
    let store = Store::open(&path).unwrap();
    assert_eq!(store.content(&hash_of(&large)).unwrap(), Some(large));
    assert_eq!(store.content(&hash_of(&small)).unwrap(), Some(small));
    assert_eq!(store.content("none").unwrap(), None);
    let connection = Connection::open(&path).unwrap();
    let sizes = "SELECT count(*), sum(length(data)) < 1000 FROM contents";
    let seen = connection.query_row(sizes, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    assert_eq!(seen, (2_i64, true));
}

#[tokio::test]
async fn events_are_filtered_paged_and_searched() {
    let (_folder, path, journal) = opened().await;
    for text in ["the quick fox", "a slow \"fox\"", "nothing; DROP TABLE events"] {
        let event = wire("a/s", EventType::MESSAGE_USER).found_by(text).in_turn(1).at(5_000);
        journal.append(event).await.unwrap();
    }
    journal.append(wire("a/s", EventType::TOOL_CALL)).await.unwrap();
    let store = Store::open(&path).unwrap();
    let count = |filter: Filter| store.events(&filter).unwrap().events.len();
    let types = |name: &str| Filter { types: vec![name.to_owned()], ..Filter::default() };
    assert_eq!(count(types("message")), 3);
    assert_eq!(count(types("message.user")), 3);
    assert_eq!(count(types("tool.result")), 0);
    assert_eq!(count(Filter { turn: Some(1), ..Filter::default() }), 3);
    assert_eq!(count(Filter { since: Some(5_001), ..Filter::default() }), 1);
    assert_eq!(count(Filter { agent_id: Some("b".to_owned()), ..Filter::default() }), 0);

    let page = store.events(&Filter { limit: 3, ..Filter::default() }).unwrap();
    assert_eq!(page.events.len(), 3);
    let page = store.events(&Filter { after: page.next, ..Filter::default() }).unwrap();
    assert_eq!((page.events.len(), page.next), (1, None));

    let found = |words: &str| store.search(words, 10).unwrap();
    assert_eq!(found("fox").len(), 2);
    assert_eq!(found("qui* fox")[0].snippet, "the [quick] [fox]");
    assert_eq!(found("\"slow fox\"").len(), 1);
    assert_eq!(found("DROP TABLE").len(), 1);
    for hostile in ["\"", "*", "a OR", "NEAR(", "", "^", "text:fox", "\0", "(((", "-fox"] {
        let _ = found(hostile);
    }
}

#[test]
fn every_version_becomes_the_last_one() {
    for version in 0..=VERSION {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate_to(&mut connection, 0, version).unwrap();
        if version >= 1 {
            let old =
                "INSERT INTO events(id, type, timestamp, payload) VALUES ('e', 'gap', 1, '{}')";
            connection.execute(old, []).unwrap();
        }
        migrate_to(&mut connection, version, VERSION).unwrap();
        let schema = |connection: &Connection| -> Vec<String> {
            let sql = "SELECT sql FROM sqlite_schema WHERE sql NOT NULL ORDER BY name";
            let mut statement = connection.prepare(sql).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        let mut fresh = Connection::open_in_memory().unwrap();
        migrate_to(&mut fresh, 0, VERSION).unwrap();
        assert_eq!(schema(&connection), schema(&fresh));
        let count = "SELECT count(*) FROM events";
        let kept: i32 = connection.query_row(count, [], |row| row.get(0)).unwrap();
        assert_eq!(kept, i32::from(version >= 1));
    }
}

#[test]
fn the_document_names_every_type_and_every_table() {
    let text = include_str!("../../../../docs/journal.md");
    assert!(text.contains(&format!("`PRAGMA application_id` is {APPLICATION_ID} ")));
    for kind in EventType::ALL {
        assert!(text.contains(&format!("`{}`", kind.as_str())), "{}", kind.as_str());
    }
    let mut connection = Connection::open_in_memory().unwrap();
    migrate_to(&mut connection, 0, VERSION).unwrap();
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' \
               AND name NOT LIKE 'events_fts_%'";
    let mut statement = connection.prepare(sql).unwrap();
    let names = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    for name in names.map(Result::unwrap) {
        assert!(text.contains(&format!("`{name}")), "{name}");
    }
}

/// A bus with a journal that follows it.
pub(super) fn following(
    settings: Settings,
) -> (crate::bus::Bus, Journal, tokio::task::JoinHandle<()>) {
    let backlog = crate::bus::Backlog { events: 10_000, bytes: 1 << 30 };
    let bus = crate::bus::Bus::new(backlog);
    let (journal, following) = start(settings, bus.subscribe());
    (bus, journal, task::spawn(following))
}

pub(super) fn update(name: &str, update: &Value) -> crate::model::Event {
    record(name, crate::model::Record::Update(Arc::from(update.to_string())))
}

pub(super) fn record(name: &str, record: crate::model::Record) -> crate::model::Event {
    crate::model::Event::Record {
        key: key(name),
        record,
        turn: None,
        timestamp_ms: crate::model::now_ms(),
    }
}
