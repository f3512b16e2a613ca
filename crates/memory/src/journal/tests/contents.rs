//! Contents: large ones share chunks, and those of files outside the workspace can be removed.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::{all, opened, payload, wire};
use crate::journal::{
    Blob, EventType, Journal, NewEvent, Pattern, Place, Store, export, hash_of, import, outside,
    purge, remove_outside,
};

fn state(content: &[u8]) -> Value {
    json!({ "hash": hash_of(content), "size": content.len(), "stored": true })
}

async fn changed(journal: &Journal, path: &str, before: Option<&[u8]>, after: &[u8]) {
    let payload = json!({ "path": path, "before": before.map(state), "after": state(after) });
    let blobs = before.into_iter().chain([after]).map(|it| Blob::new(it.to_vec()));
    let event = NewEvent::new(Place::Team, EventType::FILE_WRITE, &payload);
    journal.append(event.with(blobs.collect())).await.unwrap();
}

fn count(path: &Path, table: &str) -> u64 {
    let connection = Connection::open(path).unwrap();
    connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

fn bytes(path: &Path) -> u64 {
    let connection = Connection::open(path).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    fs::metadata(path).unwrap().len()
}

/// A log of so many lines, as programs write them.
fn log(lines: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(3);
    let line = |at| {
        let (call, ms) = (random.u64(..), random.u32(..10_000));
        format!(
            "2026-11-28T18:{:02}:{:02}Z INFO call={call:016x} took {ms} ms\n",
            at / 60 % 60,
            at % 60
        )
    };
    (0..lines).map(line).collect::<String>().into_bytes()
}

#[tokio::test]
async fn a_log_that_grows_is_not_stored_whole_each_time() {
    let (folder, path, journal) = opened().await;
    let whole = log(10_000);
    let turns = 40;
    let until = |turn: usize| &whole[..whole.len() * turn / turns];
    for turn in 1..=turns {
        changed(&journal, "run.log", Some(until(turn - 1)), until(turn)).await;
    }
    // Whole versions are twenty times as much.
    let (size, most) = (bytes(&path), whole.len() as u64 * 3 / 2);
    assert!(size < most, "{size} bytes for {}", whole.len());
    let store = Store::open(&path).unwrap();
    for turn in 1..=turns {
        let hash = hash_of(until(turn));
        assert_eq!(store.content(&hash).unwrap().as_deref(), Some(until(turn)), "{turn}");
    }
    let mut exported = Vec::new();
    export(&path, &mut exported).unwrap();
    let other = folder.path().join("other.db");
    import(&mut &exported[..], &other, None).unwrap();
    let mut again = Vec::new();
    export(&other, &mut again).unwrap();
    assert!(exported == again);
}

#[tokio::test]
async fn chunks_go_with_the_last_content_that_has_them() {
    let (_folder, path, journal) = opened().await;
    let mut whole = log(4_000);
    changed(&journal, "a", None, &whole).await;
    let shared = count(&path, "chunks");
    whole.extend_from_slice(b"the last line has hunter2");
    changed(&journal, "a", None, &whole).await;
    assert!(shared > 2 && count(&path, "chunks") <= shared + 1);
    purge(&path, &Pattern::text("hunter2").unwrap()).unwrap();
    assert_eq!((count(&path, "contents"), count(&path, "chunks")), (1, shared));
    purge(&path, &Pattern::text("INFO").unwrap()).unwrap();
    let tables = ["contents", "chunks", "chunk_uses"].map(|table| count(&path, table));
    assert_eq!(tables, [0, 0, 0]);
}

#[tokio::test]
async fn contents_outside_the_workspace_are_found_and_removed_alone() {
    let (_folder, path, journal) = opened().await;
    let login = "/home/ada/.codex/auth.json";
    changed(&journal, login, Some(b"{\"token\":\"old-one\"}"), b"{\"token\":\"new-one\"}").await;
    changed(&journal, "src/a.rs", None, b"fn main() {}").await;
    // What a file of the workspace has, too, stays.
    changed(&journal, "/tmp/copy.rs", None, b"fn main() {}").await;
    let paths = json!([{ "path": login, "before": state(b"of an undo"), "after": null }]);
    let undo = NewEvent::new(Place::Team, EventType::UNDO, &json!({ "paths": paths }));
    journal.append(undo.with(vec![Blob::new(b"of an undo".to_vec())])).await.unwrap();
    journal.append(wire("a/s", EventType::MESSAGE_USER)).await.unwrap();

    let found = outside(&path).unwrap();
    assert_eq!((found.count(), found.bytes), (3, 2 * 19 + 10));
    assert_eq!(remove_outside(&path).unwrap(), found);
    assert_eq!(outside(&path).unwrap().count(), 0);
    assert_eq!(count(&path, "contents"), 1);
    let events = all(&path);
    assert_eq!(payload(&events[0])["after"]["stored"], false);
    assert_eq!(payload(&events[1])["after"]["stored"], true);
    assert_eq!(payload(&events[3])["paths"][0]["before"]["stored"], false);
    assert_eq!(payload(events.last().unwrap())["contents"], 3);
    let wal = path.with_file_name("journal.db-wal");
    for file in [&path, &wal] {
        let has = fs::read(file).unwrap_or_default();
        assert!(memchr::memmem::find(&has, b"new-one").is_none(), "{}", file.display());
    }
    assert!(Store::open(&path).unwrap().content(&hash_of(b"fn main() {}")).unwrap().is_some());
}
