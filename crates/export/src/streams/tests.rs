//! Streams over a journal of their own.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::bus::{Backlog, Received};
use crate::journal::{self, EventType, Keep, NewEvent, Place, Store};
use crate::model::{AgentId, Event, FileTarget, SessionId, SessionKey, StreamScope, StreamTarget};
use crate::tests::eventually;

mod collector;
mod nats;
mod webhooks;

struct Bench {
    folder: TempDir,
    journal: Journal,
    bus: Bus,
    streams: Streams,
}

impl Bench {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("journal.db");
        let settings = journal::Settings {
            team: "shop".to_owned(),
            path,
            keep: Keep::default(),
            quotas: None,
        };
        let journal = journal::open(settings).await.unwrap();
        let bus = Bus::new(Backlog::of(1_000));
        let settings = Settings {
            team: "shop".to_owned(),
            folder: folder.path().join("streams"),
            journal: journal.clone(),
            bus: bus.clone(),
            cancel: CancellationToken::new(),
            first_pause: Duration::from_millis(10),
        };
        Self { folder, journal, bus, streams: Streams::new(settings) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Adds events to a session `AGENT/SESSION`.
    async fn append(&self, session: &str, kind: EventType, texts: std::ops::Range<u32>) {
        let (agent, id) = session.split_once('/').unwrap();
        let key = SessionKey::new(AgentId::new(agent), SessionId::new(id));
        let event =
            |text: u32| NewEvent::new(Place::Wire(key.clone()), kind, &json!({ "t": text }));
        self.journal.append_all(texts.map(event).collect()).await.unwrap();
    }

    fn file(&self) -> StreamSpec {
        let path = self.path("out.ndjson");
        let target = StreamTarget::File(FileTarget { path, max_bytes: 1 << 30, keep: 1 });
        let (scope, name) = (StreamScope::default(), "audit".to_owned());
        StreamSpec { name, target, scope, from_start: false, canary: false }
    }

    /// Waits until the file has so many lines.
    async fn lines(&self, count: usize) -> Vec<Value> {
        let path = self.path("out.ndjson");
        let all = || read(&path);
        eventually("all lines", async || all().len() >= count).await;
        let all = all();
        assert_eq!(all.len(), count, "{all:#?}");
        all
    }

    fn report(&self) -> StreamReport {
        self.streams.reports().pop().unwrap()
    }

    fn execute(&self, sql: &str) {
        Connection::open(self.path("journal.db")).unwrap().execute_batch(sql).unwrap();
    }
}

fn read(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn texts(lines: &[Value]) -> Vec<u64> {
    lines.iter().filter_map(|line| line["payload"]["t"].as_u64()).collect()
}

#[tokio::test]
async fn each_event_comes_once_and_in_order_also_over_a_restart() {
    let bench = Bench::new().await;
    bench.append("ui/s", EventType::MESSAGE_USER, 0..5).await;
    bench.streams.start(&bench.file()).await;
    bench.append("ui/s", EventType::MESSAGE_USER, 5..600).await;
    let lines = bench.lines(595).await;
    assert_eq!(texts(&lines), (5..600).collect::<Vec<_>>());
    let event = Store::open(&bench.path("journal.db")).unwrap();
    let event = event.event(lines[0]["id"].as_str().unwrap()).unwrap().unwrap();
    let mut expected = serde_json::to_value(&event).unwrap();
    expected["team"] = json!("shop");
    expected["number"] = json!(6);
    assert_eq!(lines[0], expected);
    eventually("it is noted", async || bench.report().position == Some(600)).await;
    assert_eq!((bench.report().delivered, bench.report().state), (595, StreamState::Ok));

    assert!(bench.streams.end("audit", false).await);
    bench.append("ui/s", EventType::MESSAGE_USER, 600..610).await;
    bench.streams.start(&bench.file()).await;
    bench.append("ui/s", EventType::MESSAGE_USER, 610..620).await;
    let lines = bench.lines(615).await;
    assert_eq!(texts(&lines), (5..620).collect::<Vec<_>>());

    // Forgotten, it is new.
    assert!(bench.streams.end("audit", true).await);
    bench.streams.start(&bench.file()).await;
    bench.append("ui/s", EventType::MESSAGE_USER, 620..621).await;
    assert_eq!(texts(&bench.lines(616).await).last(), Some(&620));
}

#[tokio::test]
async fn a_scope_has_what_fits_all_of_its_lists() {
    let bench = Bench::new().await;
    let file = bench.file();
    let scope = |agents: &[&str], sessions: &[&str], types: &[&str]| {
        let [agents, sessions, types] = [agents, sessions, types]
            .map(|list| list.iter().map(|name| (*name).to_owned()).collect());
        StreamScope { agents, sessions, types }
    };
    bench.append("ui/s", EventType::MESSAGE_USER, 0..1).await;
    bench.append("ui/s", EventType::TURN_END, 1..2).await;
    bench.append("api/s", EventType::TURN_END, 2..3).await;
    bench.append("api/x", EventType::TURN_FAILED, 3..4).await;
    let outside = NewEvent::new(Place::Team, EventType::GAP, &json!({ "t": 4 }));
    bench.journal.append(outside).await.unwrap();
    for (scope, expected) in [
        (scope(&[], &[], &[]), vec![0, 1, 2, 3, 4]),
        (scope(&["api"], &[], &[]), vec![2, 3]),
        (scope(&[], &["s"], &[]), vec![0, 1, 2]),
        (scope(&[], &["api/s", "x"], &[]), vec![2, 3]),
        (scope(&[], &[], &["turn", "gap"]), vec![1, 2, 3, 4]),
        (scope(&["ui", "api"], &["s"], &["turn.end"]), vec![1, 2]),
    ] {
        let stream = StreamSpec { scope, from_start: true, ..file.clone() };
        bench.streams.start(&stream).await;
        assert_eq!(texts(&bench.lines(expected.len()).await), expected);
        bench.streams.end("audit", true).await;
        fs::remove_file(bench.path("out.ndjson")).unwrap();
    }
}

#[tokio::test]
async fn one_that_fails_is_degraded_and_delivers_all_once_it_can() {
    let bench = Bench::new().await;
    let mut events = bench.bus.subscribe();
    fs::write(bench.path("out.ndjson"), "in the way").unwrap();
    bench.streams.start(&bench.file()).await;
    bench.append("ui/s", EventType::MESSAGE_USER, 0..10).await;
    let Some(Received::Event(_, event)) = events.recv().await else { panic!("no event") };
    let Event::Stream(report) = &**event else { panic!("{event:?}") };
    assert_eq!((report.state, report.failures), (StreamState::Degraded, 5));
    let why = report.reason.as_deref().unwrap();
    assert!(why.contains("not a file with lines of JSON"), "{why}");
    fs::remove_file(bench.path("out.ndjson")).unwrap();
    assert_eq!(texts(&bench.lines(10).await), (0..10).collect::<Vec<_>>());
    eventually("it is mended", async || bench.report().state == StreamState::Ok).await;
    assert_eq!(bench.report().reason, None);
}

#[tokio::test]
async fn what_left_the_journal_before_is_named() {
    let bench = Bench::new().await;
    bench.streams.start(&bench.file()).await;
    bench.append("ui/s", EventType::MESSAGE_USER, 0..4).await;
    bench.lines(4).await;
    bench.streams.end("audit", false).await;
    bench.append("ui/s", EventType::MESSAGE_USER, 4..20).await;
    // As quotas do: also the last one that it delivered.
    bench.execute("DELETE FROM events WHERE number BETWEEN 2 AND 9 OR number BETWEEN 12 AND 13");
    bench.streams.start(&bench.file()).await;
    let lines = bench.lines(4 + 9 + 2).await;
    let shown: Vec<_> = lines[4..]
        .iter()
        .map(|line| match line["type"].as_str().unwrap() {
            "lost" => format!("{}-{}:{}", line["from_number"], line["to_number"], line["events"]),
            _ => line["number"].to_string(),
        })
        .collect();
    assert_eq!(shown[..5], ["5-9:5", "10", "11", "12-13:2", "14"]);
    eventually("it is counted", async || bench.report().lost == 7).await;
    assert_eq!(bench.report().delivered, 9);
}

#[tokio::test]
async fn another_journal_is_delivered_from_its_start_and_so_is_one_with_a_damaged_cursor() {
    let bench = Bench::new().await;
    bench.streams.start(&bench.file()).await;
    bench.append("ui/s", EventType::MESSAGE_USER, 0..2).await;
    bench.lines(2).await;
    bench.streams.end("audit", false).await;
    bench.execute("UPDATE meta SET value = '7' WHERE key = 'created'");
    bench.streams.start(&bench.file()).await;
    let lines = bench.lines(5).await;
    assert_eq!((&lines[2]["type"], &lines[2]["events"]), (&json!("lost"), &Value::Null));
    assert_eq!(texts(&lines), [0, 1, 0, 1]);
    bench.streams.end("audit", false).await;
    fs::write(bench.path("streams/audit.cursor"), "{\"journal\":7").unwrap();
    bench.streams.start(&bench.file()).await;
    assert_eq!(texts(&bench.lines(7).await), [0, 1, 0, 1, 0, 1]);
}

#[tokio::test]
async fn the_last_events_are_delivered_at_the_end_of_the_journal() {
    let bench = Bench::new().await;
    bench.streams.start(&bench.file()).await;
    bench.append("ui/s", EventType::MESSAGE_USER, 0..300).await;
    bench.journal.close().await;
    bench.streams.clone().ended().await;
    assert_eq!(texts(&read(&bench.path("out.ndjson"))), (0..300).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_canary_line_says_how_far_it_is() {
    let bench = Bench::new().await;
    bench.append("ui/s", EventType::MESSAGE_USER, 0..3).await;
    bench.streams.start(&StreamSpec { canary: true, ..bench.file() }).await;
    let line = bench.lines(1).await.remove(0);
    let of = |key: &str| line[key].clone();
    assert_eq!(
        (of("type"), of("stream"), of("number")),
        (json!("canary"), json!("audit"), json!(3))
    );
}

#[tokio::test]
async fn a_session_is_delivered_again_with_its_origin_and_changes_nothing_else() {
    let bench = Bench::new().await;
    bench.append("ui/s", EventType::MESSAGE_USER, 0..300).await;
    bench.append("api/s", EventType::MESSAGE_USER, 300..302).await;
    let types = vec!["turn".to_owned()];
    let scope = StreamScope { types, ..StreamScope::default() };
    bench.streams.start(&StreamSpec { scope, ..bench.file() }).await;
    bench.append("ui/s", EventType::TURN_END, 302..303).await;
    let done = bench.streams.replay("audit", "ui/s").await.unwrap();
    assert_eq!((done.events, done.dead), (301, 0));
    let lines = bench.lines(302).await;
    let (again, live): (Vec<_>, Vec<_>) =
        lines.into_iter().partition(|line| line["origin"]["replay_id"] == *done.replay_id);
    assert_eq!(texts(&again), (0..300).chain([302]).collect::<Vec<_>>());
    assert_eq!((texts(&live), &live[0]["origin"]), (vec![302], &Value::Null));
    assert_eq!(bench.report().delivered, 1);
    for (stream, session, why) in [
        ("other", "ui/s", "there is no stream `other`"),
        ("audit", "nobody", "there is no session `nobody`"),
    ] {
        let error = bench.streams.replay(stream, session).await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
