//! Pinned data stays, data past a quota goes, and a purged text is in no byte.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

use super::{all, following, key, payload, record, settings, update, wire};
use crate::journal::writer::Work;
use crate::journal::{
    Blob, EventType, Filter, Journal, MARK, NewEvent, Pattern, PinKind, Place, Quotas, Settings,
    Store, excess, export, find, is_written, open, pin, prune, purge, unpin,
};
use crate::model::{AgentId, Record, now_ms};
use crate::tests::eventually;

const DAY: u64 = 86_400_000;

fn written(name: &str, content: &str) -> NewEvent {
    let blob = Blob::new(content.as_bytes().to_vec());
    let after = json!({ "hash": blob.hash, "size": content.len(), "stored": true });
    let payload = json!({ "path": "x", "before": null, "after": after, "restorable": true });
    NewEvent::new(Place::Wire(key(name)), EventType::FILE_WRITE, &payload).with(vec![blob])
}

fn sessions(path: &Path) -> Vec<String> {
    let sessions = Store::open(path).unwrap().sessions().unwrap();
    sessions.into_iter().map(|it| it.wire_session_id.unwrap_or_default()).collect()
}

fn types(path: &Path) -> Vec<String> {
    all(path).into_iter().map(|event| event.kind).collect()
}

fn contents(path: &Path) -> u64 {
    let connection = Connection::open(path).unwrap();
    connection.query_row("SELECT count(*) FROM contents", [], |row| row.get(0)).unwrap()
}

/// An ended session.
async fn ended(journal: &Journal, name: &str, at: u64, content: &str) {
    let start = wire(name, EventType::SESSION_START).at(at);
    let write = written(name, content).at(at);
    let end = wire(name, EventType::SESSION_END).at(at);
    journal.append_all(vec![start, write.found_by("zebra"), end]).await.unwrap();
}

/// Has the writer look at the quotas, and waits until it did.
async fn tick(journal: &Journal) {
    journal.work.send(Work::Tick).await.unwrap();
    // The first answer may come from the same batch.
    for _ in 0..2 {
        let (opened, is_open) = tokio::sync::oneshot::channel();
        journal.work.send(Work::Open(opened)).await.unwrap();
        is_open.await.unwrap().unwrap();
    }
}

/// Looks at the quotas twice: announces, and removes.
async fn keep_up(journal: &Journal, path: &Path) {
    let count = || types(path).iter().filter(|kind| *kind == "prune").count();
    let before = count();
    tick(journal).await;
    tick(journal).await;
    eventually("a prune is announced", async || count() > before).await;
}

#[tokio::test]
async fn old_sessions_go_after_they_were_announced_and_pinned_ones_stay() {
    let folder = TempDir::new().unwrap();
    let quotas = Quotas { keep_days: 3, max_mb: 0 };
    let settings = Settings { quotas: Some(quotas), ..settings(folder.path()) };
    let path = settings.path.clone();
    let journal = open(settings).await.unwrap();
    let old = now_ms() - 10 * DAY;
    let outside = NewEvent::new(Place::Team, EventType::GAP, &json!({})).at(old);
    journal.append(outside).await.unwrap();
    for (name, content) in [("a/old", "one"), ("a/kept", "two"), ("a/event", "three")] {
        ended(&journal, name, old, content).await;
    }
    journal.append(wire("a/open", EventType::SESSION_START).at(old)).await.unwrap();
    ended(&journal, "a/forked", old, "four").await;
    let forked = all(&path).pop().unwrap();
    let place = Place::Fork { parent: forked.id, agent: AgentId::new("b"), wire_session_id: None };
    journal.append(NewEvent::new(place, EventType::SESSION_FORK, &json!({}))).await.unwrap();
    ended(&journal, "a/new", now_ms(), "one").await;

    let store = Store::open(&path).unwrap();
    let kept = store.sessions_named("a/kept").unwrap().pop().unwrap();
    let session = store.sessions_named("a/event").unwrap().pop().unwrap();
    let filter = Filter { session_id: Some(session.id), ..Filter::default() };
    let event = store.events(&filter).unwrap().events.pop().unwrap();
    assert!(pin(&path, PinKind::Session, &kept.id).unwrap());
    assert!(!pin(&path, PinKind::Session, &kept.id).unwrap());
    assert!(pin(&path, PinKind::Event, &event.id).unwrap());

    tick(&journal).await;
    journal.append(wire("a/open", EventType::USAGE)).await.unwrap();
    let notice = journal.notice().unwrap();
    assert!(notice.contains("deletes in a minute: 1 session: older than "), "{notice}");
    assert!(sessions(&path).contains(&"old".to_owned()));

    keep_up(&journal, &path).await;
    assert_eq!(journal.notice(), None);
    assert_eq!(sessions(&path), ["kept", "event", "open", "forked", "", "new"]);
    // `one` is in a session that stays.
    assert_eq!(contents(&path), 4);
    assert_eq!(Store::open(&path).unwrap().search("zebra", 10).unwrap().len(), 4);
    let events = all(&path);
    let pruned = payload(events.last().unwrap());
    assert_eq!((&pruned["sessions"], &pruned["events"]), (&json!(1), &json!(4)));
    assert!(pruned["reason"].as_str().unwrap().ends_with("`keep_days` is 3"), "{pruned}");
    // The session goes on where another one was removed.
    let next = journal.append(wire("a/open", EventType::USAGE)).await.unwrap();
    assert_eq!(next.sequence, Some(2));

    assert!(unpin(&path, PinKind::Session, &kept.id).unwrap());
    keep_up(&journal, &path).await;
    assert!(!sessions(&path).contains(&"kept".to_owned()));
    assert_eq!(contents(&path), 3);
}

#[tokio::test]
async fn a_large_journal_loses_its_oldest_sessions_and_its_file_shrinks() {
    let folder = TempDir::new().unwrap();
    let quotas = Quotas { keep_days: 0, max_mb: 2 };
    let settings = Settings { quotas: Some(quotas), ..settings(folder.path()) };
    let path = settings.path.clone();
    let journal = open(settings).await.unwrap();
    let noise = |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..500_000).map(|_| random.alphanumeric()).collect::<String>()
    };
    for number in 0..8 {
        ended(&journal, &format!("a/s{number}"), now_ms() - 10 * DAY, &noise(number)).await;
    }
    journal.append(wire("a/open", EventType::SESSION_START)).await.unwrap();
    keep_up(&journal, &path).await;
    let left = sessions(&path);
    assert!(left.len() > 2 && !left.contains(&"s0".to_owned()), "{left:?}");
    assert!(left.ends_with(&["s7".to_owned(), "open".to_owned()]), "{left:?}");
    let connection = Connection::open(&path).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 2 << 20);
    let sound: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
}

#[tokio::test]
async fn what_is_open_stays_and_the_journal_says_that_it_is_too_large() {
    let folder = TempDir::new().unwrap();
    let quotas = Quotas { keep_days: 0, max_mb: 1 };
    let settings = Settings { quotas: Some(quotas), ..settings(folder.path()) };
    let path = settings.path.clone();
    let journal = open(settings).await.unwrap();
    let noise: String = std::iter::repeat_with(fastrand::alphanumeric).take(2_000_000).collect();
    ended(&journal, "a/of_this_week", now_ms() - 6 * DAY, "x").await;
    journal.append(wire("a/s", EventType::SESSION_START)).await.unwrap();
    journal.append(written("a/s", &noise)).await.unwrap();
    for _ in 0..4 {
        tick(&journal).await;
    }
    journal.append(wire("a/s", EventType::USAGE)).await.unwrap();
    let notice = journal.notice().unwrap();
    assert!(notice.contains("nothing in it can go"), "{notice}");
    let stays = ["session.start", "file.write", "session.end", "session.start", "file.write"];
    assert_eq!(types(&path), [&stays[..], &["usage"]].concat());
}

#[tokio::test]
async fn a_removal_that_was_killed_is_finished_and_a_gone_team_is_pruned() {
    let folder = TempDir::new().unwrap();
    let quotas = Quotas { keep_days: 3, max_mb: 0 };
    let settings = Settings { quotas: Some(quotas), ..settings(folder.path()) };
    let path = settings.path.clone();
    let journal = open(settings.clone()).await.unwrap();
    ended(&journal, "a/killed", now_ms() - 10 * DAY, "one").await;
    ended(&journal, "a/old", now_ms() - 9 * DAY, "two").await;
    ended(&journal, "a/new", now_ms(), "three").await;
    drop(journal);
    eventually("writing ends", async || !is_written(&path)).await;
    let connection = Connection::open(&path).unwrap();
    connection.execute("DELETE FROM sessions WHERE wire_session_id = 'killed'", []).unwrap();
    drop(connection);
    let journal = open(settings).await.unwrap();
    eventually("six events", async || all(&path).len() == 6).await;
    assert_eq!(contents(&path), 2);
    drop(journal);
    eventually("writing ends", async || !is_written(&path)).await;

    let found = excess(&path, None).unwrap().unwrap();
    assert_eq!(found.sessions, Some(1));
    assert_eq!(prune(&path, &found).unwrap().events, 3);
    assert_eq!(sessions(&path), ["new"]);
    assert_eq!(excess(&path, None).unwrap(), None);
    let found = excess(&path, Some(0)).unwrap().unwrap();
    assert!(found.to_string().ends_with("`--max-age-days` is 0"), "{found}");
    prune(&path, &found).unwrap();
    assert_eq!(types(&path), ["prune"]);
    assert_eq!(contents(&path), 0);
}

/// The files in the journal's folder that have these bytes.
fn files_with(path: &Path, bytes: &str) -> Vec<String> {
    let entries = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let has = |file: &std::path::PathBuf| {
        let content = fs::read(file).unwrap().to_ascii_lowercase();
        memchr::memmem::find(&content, bytes.as_bytes()).is_some()
    };
    entries.filter(has).map(|file| file.display().to_string()).collect()
}

#[tokio::test]
async fn what_is_purged_is_in_no_byte_of_a_running_journal() {
    let folder = TempDir::new().unwrap();
    let settings = settings(folder.path());
    let path = settings.path.clone();
    let (bus, journal, _ended) = following(settings);
    let chunk = |text: &str| {
        let content = json!({ "type": "text", "text": text });
        update("a/s", &json!({ "sessionUpdate": "agent_message_chunk", "content": content }))
    };
    let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "curl qzxhunter",
        "rawInput": { "qzxhunter": ["x\nQzxHunter"] } });
    bus.publish(record("a/s", Record::Opened { is_new: true }));
    // A complete message, which was a draft before, then one that is not complete.
    for text in ["it is QzxH", "unter, say", " I"] {
        bus.publish(chunk(text));
        journal.settled(bus.position()).await.unwrap();
    }
    bus.publish(update("a/s", &call));
    for text in ["again Qzx", "Hunter"] {
        bus.publish(chunk(text));
        journal.settled(bus.position()).await.unwrap();
    }
    journal.append(written("a/s", "the QzxHunter")).await.unwrap();
    journal.append(written("a/s", "harmless")).await.unwrap();
    let before = all(&path);
    assert!(!files_with(&path, "qzxhunter").is_empty());

    let pattern = Pattern::regex("(?i)qzxhunter").unwrap();
    let found = find(&path, &pattern).unwrap();
    assert_eq!((found.ids.len(), found.contents.len(), found.drafts), (2, 1, 1));
    assert_eq!(purge(&path, &pattern).unwrap(), found);
    assert!(find(&path, &pattern).unwrap().is_empty());
    assert_eq!(files_with(&path, "qzxhunter"), Vec::<String>::new());
    assert_eq!(files_with(&path, "qzxh"), Vec::<String>::new());

    let after = all(&path);
    assert_eq!(payload(&after[1])["text"], format!("it is {MARK}, say I"));
    assert_eq!(payload(&after[2])["input"][MARK][0], format!("x\n{MARK}"));
    let write = payload(&after[3]);
    assert_eq!((&write["after"]["stored"], &write["restorable"]), (&json!(false), &json!(false)));
    assert_eq!(after[4].payload.get(), before[4].payload.get());
    assert_eq!(payload(&after[5]), json!({ "events": 2, "contents": 1, "drafts": 1 }));
    // The team goes on behind it.
    journal.append(wire("a/s", EventType::USAGE)).await.unwrap();
    let last = all(&path);
    assert!(last.windows(2).all(|pair| pair[0].id < pair[1].id));
    assert_eq!(last.last().unwrap().sequence, Some(5));
    let mut exported = Vec::new();
    export(&path, &mut exported).unwrap();
    let exported = String::from_utf8(exported).unwrap();
    assert!(exported.contains(MARK) && !exported.to_lowercase().contains("qzxh"));
}
