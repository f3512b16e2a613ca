//! The faults that keep a journal from being written, and the remains of a killed run.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

use super::{all, following, key, payload, record, settings, update, wire};
use crate::journal::trouble::TroubleKind;
use crate::journal::wal::damage;
use crate::journal::{
    Blob, EventType, Journal, NewEvent, OpenError, Place, Store, VERSION, hash_of, open,
};
use crate::model::Record;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A journal with one event, closed.
async fn kept(folder: &Path) -> std::path::PathBuf {
    let settings = settings(folder);
    let path = settings.path.clone();
    let (bus, journal, ended) = following(settings);
    journal.append(wire("a/s", EventType::USAGE)).await.unwrap();
    drop(bus);
    ended.await.unwrap();
    path
}

async fn trouble(journal: &Journal) -> TroubleKind {
    assert!(journal.append(wire("a/s", EventType::USAGE)).await.is_err());
    journal.trouble().unwrap().kind
}

#[tokio::test]
async fn only_its_user_reads_it() {
    let folder = TempDir::new().unwrap();
    let (_bus, journal, _ended) = following(settings(folder.path()));
    journal.append(wire("a/s", EventType::USAGE)).await.unwrap();
    let path = &journal.settings().path;
    assert_eq!((mode(path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(mode(&path.with_extension("db-wal")), 0o600);
}

#[tokio::test]
async fn a_killed_run_loses_no_message_that_was_growing() {
    let folder = TempDir::new().unwrap();
    let settings = settings(folder.path());
    let copy = folder.path().join("copy.db");
    let (bus, journal, _ended) = following(settings);
    bus.publish(record("a/s", Record::Opened { is_new: true }));
    for text in ["one ", "two"] {
        let content = json!({ "type": "text", "text": text });
        let chunk = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
        bus.publish(update("a/s", &chunk));
        journal.settled(bus.position()).await.unwrap();
    }
    // The files as they are at a SIGKILL.
    fs::copy(&journal.settings().path, &copy).unwrap();
    let log = journal.settings().path.with_extension("db-wal");
    fs::copy(log, copy.with_extension("db-wal")).unwrap();
    let reopened = super::Settings { path: copy.clone(), ..super::settings(folder.path()) };
    open(reopened).await.unwrap();
    let events = all(&copy);
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["session.start", "message.assistant", "session.end"]);
    let message = payload(&events[1]);
    assert_eq!((&message["text"], &message["incomplete"]), (&json!("one two"), &json!(true)));
    assert_eq!(payload(&events[2])["reason"], "interrupted");
}

#[tokio::test]
async fn a_journal_has_one_writer() {
    let folder = TempDir::new().unwrap();
    let (_bus, journal, _ended) = following(settings(folder.path()));
    journal.append(wire("a/s", EventType::USAGE)).await.unwrap();
    let second = open(settings(folder.path())).await;
    assert!(second.unwrap_err().to_string().contains("locked by another process"));
}

#[tokio::test]
async fn what_comes_while_it_is_locked_is_written_later() {
    let folder = TempDir::new().unwrap();
    let path = kept(folder.path()).await;
    let (bus, journal, _ended) = following(settings(folder.path()));
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    bus.publish(record("a/s", Record::Opened { is_new: true }));
    assert_eq!(trouble(&journal).await, TroubleKind::Locked);
    other.execute_batch("ROLLBACK").unwrap();
    while journal.append(wire("a/s", EventType::USAGE)).await.is_err() {}
    assert_eq!(journal.trouble(), None);
    let kinds: Vec<_> = all(&path).into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, ["usage", "session.end", "session.start", "usage"]);
}

#[tokio::test]
async fn a_corrupt_file_is_set_aside() {
    let folder = TempDir::new().unwrap();
    let path = kept(folder.path()).await;
    let damaged = vec![b'#'; 4096];
    fs::write(&path, &damaged).unwrap();
    let (_bus, journal, _ended) = following(settings(folder.path()));
    journal.append(wire("a/s", EventType::USAGE)).await.unwrap();
    assert_eq!(all(&path).len(), 1);
    let aside = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let aside: Vec<_> = aside.filter(|path| path.to_string_lossy().contains("corrupt")).collect();
    assert_eq!(aside.len(), 1);
    assert_eq!(fs::read(&aside[0]).unwrap(), damaged);
}

#[tokio::test]
async fn a_newer_or_foreign_file_is_left_as_it_is() {
    let folder = TempDir::new().unwrap();
    let path = kept(folder.path()).await;
    let set = |pragma: &str, value: i32| {
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, pragma, value).unwrap();
    };
    set("user_version", VERSION + 1);
    let (bus, journal, ended) = following(settings(folder.path()));
    assert_eq!(trouble(&journal).await, TroubleKind::Newer);
    assert!(matches!(Store::open(&path), Err(OpenError::Newer(_))));
    drop((journal, bus));
    ended.await.unwrap();
    set("user_version", VERSION);
    set("application_id", 7);
    let (_bus, journal, _ended) = following(settings(folder.path()));
    assert_eq!(trouble(&journal).await, TroubleKind::Other);
    assert!(matches!(Store::open(&path), Err(OpenError::Foreign(_))));
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_trouble_and_nothing_waits() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("teams"), "a file").unwrap();
    let (bus, journal, ended) = following(settings(folder.path()));
    for _ in 0..100 {
        bus.publish(record("a/s", Record::Opened { is_new: true }));
    }
    assert_eq!(trouble(&journal).await, TroubleKind::Other);
    drop(bus);
    ended.await.unwrap();
}

#[tokio::test]
async fn a_reader_cannot_make_the_log_grow_without_end() {
    let folder = TempDir::new().unwrap();
    let path = kept(folder.path()).await;
    let (_bus, journal, _ended) = following(settings(folder.path()));
    journal.append(wire("a/s", EventType::USAGE)).await.unwrap();
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM events").unwrap();
    let log = path.with_extension("db-wal");
    let size = || fs::metadata(&log).unwrap().len();
    let noise = || {
        let noise = std::iter::repeat_with(|| fastrand::u8(..)).take(500_000).collect();
        wire("a/s", EventType::FILE_WRITE).with(vec![Blob::new(noise)])
    };
    let mut tries = 0;
    while journal.append(noise()).await.is_ok() {
        tries += 1;
        assert!(tries < 100 && size() < 6 << 20, "{}", size());
    }
    let trouble = journal.trouble().unwrap();
    assert_eq!(trouble.kind, TroubleKind::Locked);
    assert!(trouble.why.contains("a program that reads it"), "{trouble}");
    reader.execute_batch("ROLLBACK").unwrap();
    while journal.append(wire("a/s", EventType::USAGE)).await.is_err() {}
    assert!(size() < 1 << 20, "{}", size());
}

#[tokio::test]
async fn an_event_does_not_say_that_a_content_is_stored_which_is_not() {
    let folder = TempDir::new().unwrap();
    let (_bus, journal, _ended) = following(settings(folder.path()));
    let there = Blob::new(b"there".to_vec());
    let states = json!({
        "before": { "hash": hash_of(b"gone"), "stored": true },
        "after": { "hash": there.hash, "stored": true },
        "restorable": true,
    });
    let place = || Place::Wire(key("a/s"));
    let event = NewEvent::new(place(), EventType::FILE_WRITE, &states).with(vec![there]);
    journal.append(event).await.unwrap();
    // What an agent says is kept as it is.
    journal.append(NewEvent::new(place(), EventType::UPDATE, &states)).await.unwrap();
    let events = all(&settings(folder.path()).path);
    let written = payload(&events[0]);
    assert_eq!(written["before"]["stored"], false);
    assert_eq!(
        (&written["after"]["stored"], &written["restorable"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(payload(&events[1]), states);
}

#[test]
fn damage_of_a_log_is_seen_and_a_frame_that_a_kill_tore_is_not() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("j.db");
    let connection = Connection::open(&path).unwrap();
    let sql = "PRAGMA journal_mode = WAL; CREATE TABLE t(x); INSERT INTO t VALUES (1); \
               INSERT INTO t VALUES (2); INSERT INTO t VALUES (3)";
    connection.execute_batch(sql).unwrap();
    let log = folder.path().join("j.db-wal");
    let sound = fs::read(&log).unwrap();
    let frames = (sound.len() - 32) / 4120;
    let damaged = |at: usize, length: usize| {
        let mut bytes = sound[..length].to_vec();
        bytes[at] ^= 0xff;
        fs::write(folder.path().join("copy"), bytes).unwrap();
        damage(&folder.path().join("copy")).unwrap()
    };
    assert_eq!(damage(&log).unwrap(), None);
    assert_eq!(damage(&folder.path().join("none")).unwrap(), None);
    for at in [0, 9, 25] {
        assert_eq!(damaged(at, sound.len()).as_deref(), Some("its header"));
    }
    let second = 32 + 4120 + 100;
    assert_eq!(damaged(second, sound.len()).as_deref(), Some("its frame 2"));
    assert_eq!(damaged(second, second + 1), None);
    assert_eq!(damaged(32 + (frames - 1) * 4120 + 100, sound.len()), None);
}
