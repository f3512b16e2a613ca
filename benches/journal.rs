//! What the journal costs, as ratios in one run: from the bus to the disk against bare inserts of the
//! same rows, and its search against the bare query. Rows are small: half of them usages, the rest
//! prompts, and calls with their results.
//!
//! The bare side has the same schema, settings and batches, and makes nothing of the rows: they are
//! read from the journal that was just written, and held in memory. What the relay costs with a journal
//! is measured by `cargo bench -- relay --journal`.
//!
//! With `--memory` it only writes 10,000,000 events, and prints what is resident after each tenth: it
//! needs some 5 GB below TMPDIR. `--memory 1000000` writes fewer.
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::figures::median;
use eisen_core::bus::{Backlog, Bus};
use eisen_core::journal::{self, APPLICATION_ID, Keep, Settings, Store, VERSION};
use eisen_core::model::{AgentId, Event, Record, SessionId, SessionKey, Usage, now_ms};
use rusqlite::{Connection, params};

/// Events of one round, and rounds of each side.
const EVENTS: u64 = 200_000;
const ROUNDS: usize = 5;

/// Rows of one transaction of the bare side: about those of the journal's writer under load.
const BATCH: usize = 4_096;

/// Rows that are searched, and searches of each side.
const SEARCHED: usize = 1_000_000;
const SEARCHES: usize = 20;

struct Row {
    id: String,
    parent: Option<String>,
    session: Option<String>,
    agent: Option<String>,
    sequence: Option<i64>,
    depth: Option<i64>,
    kind: String,
    timestamp: i64,
    turn: Option<i64>,
    payload: String,
    text: Option<String>,
}

pub(crate) fn run() {
    let mut args = std::env::args();
    if args.any(|arg| arg == "--memory") {
        let events = args.next().and_then(|count| count.parse().ok());
        return memory(events.unwrap_or(10_000_000));
    }
    // A smoke test, where it is run as one.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (events, rounds, searched) =
        if is_bench { (EVENTS, ROUNDS, SEARCHED) } else { (2_000, 1, 20_000) };
    let mut times = [Vec::new(), Vec::new()];
    let mut count = 0;
    for _ in 0..rounds {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.db");
        times[0].push(journal_round(&path, events));
        let rows = rows(&path);
        count = rows.len();
        times[1].push(bare_round(&path, &folder.path().join("bare.db"), &rows));
    }
    let [ours, bare] = times.map(median);
    #[expect(clippy::cast_precision_loss, reason = "millions")]
    let rate = count as f64 / ours;
    println!("{count} rows from the bus to the disk");
    println!("{:<34} {:>10.2}", "seconds, bare inserts", bare);
    println!("{:<34} {:>10.2}", "against bare inserts", ours / bare);
    println!("{:<34} {:>10.0}", "events a second", rate);
    search(searched);
}

fn journal_round(path: &Path, events: u64) -> f64 {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // All fits in: what the bus would drop is another question.
        let backlog = Backlog { events: usize::MAX, bytes: usize::MAX };
        let bus = Bus::new(backlog);
        let (team, quotas) = ("bench".to_owned(), None);
        let settings = Settings { team, path: path.to_owned(), keep: Keep::default(), quotas };
        let (journal, following) = journal::start(settings, bus.subscribe());
        let following = tokio::spawn(following);
        while journal.settled(bus.position()).await.is_err() {}
        let begun = Instant::now();
        for number in 0..events {
            bus.publish(event(number));
        }
        while journal.settled(bus.position()).await.is_err() {}
        let time = begun.elapsed().as_secs_f64();
        drop((bus, journal));
        following.await.unwrap();
        time
    })
}

/// Writes many events, and shows what is resident meanwhile.
fn memory(events: u64) {
    /// As many as the port keeps for its clients.
    const BACKLOG: Backlog = Backlog { events: 16_384, bytes: 16 << 20 };
    const AT_ONCE: u64 = 4_096;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut resident = Vec::new();
    runtime.block_on(async {
        let bus = Bus::new(BACKLOG);
        let settings = Settings {
            team: "bench".to_owned(),
            path: path.clone(),
            keep: Keep::default(),
            quotas: None,
        };
        let (journal, following) = journal::start(settings, bus.subscribe());
        let following = tokio::spawn(following);
        let mut number = 0;
        for tenth in 1..=10 {
            let begun = Instant::now();
            let end = events * tenth / 10;
            while number < end {
                for _ in 0..AT_ONCE.min(end - number) {
                    bus.publish(event(number));
                    number += 1;
                }
                while journal.settled(bus.position()).await.is_err() {}
            }
            resident.push(resident_kb());
            let (kb, time) = (resident.last().unwrap(), begun.elapsed().as_secs_f64());
            println!("{number:>9} events {kb:>9} KB {time:>7.1} s");
        }
        drop((bus, journal));
        following.await.unwrap();
    });
    let count = "SELECT count(*) FROM events WHERE type <> 'gap'";
    let written: u64 =
        Connection::open(&path).unwrap().query_row(count, [], |row| row.get(0)).unwrap();
    println!("{written} rows; resident at the end against the second tenth: {:.2}", {
        #[expect(clippy::cast_precision_loss, reason = "kilobytes")]
        let ratio = *resident.last().unwrap() as f64 / resident[1] as f64;
        ratio
    });
}

/// What of this process is in memory; 0 on systems without `/proc`.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

fn event(number: u64) -> Event {
    let key = SessionKey::new(AgentId::new("ui"), SessionId::new(format!("s{}", number / 8 % 8)));
    let call = number / 8;
    let record = match number % 8 {
        0 => {
            let prompt =
                format!(r#"[{{"type":"text","text":"make the margin {number} px wide"}}]"#);
            Record::Prompt(prompt.into())
        }
        1 => update(&format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"c{call}","title":"Read src/{call}.rs","kind":"read","status":"in_progress","rawInput":{{"path":"src/{call}.rs"}}}}"#
        )),
        2 => update(&format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"c{call}","status":"completed"}}"#
        )),
        _ => Record::Usage(Usage { used: number, size: 200_000, cost: None }),
    };
    Event::Record { key, record, turn: None, timestamp_ms: now_ms() }
}

fn update(text: &str) -> Record {
    Record::Update(Arc::from(text))
}

fn rows(path: &Path) -> Vec<Row> {
    let connection = Connection::open(path).unwrap();
    let sql = "SELECT e.*, f.text FROM events e LEFT JOIN events_fts f ON f.rowid = e.number \
               ORDER BY e.number";
    let mut statement = connection.prepare(sql).unwrap();
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Row {
            id: row.get("id")?,
            parent: row.get("parent_id")?,
            session: row.get("session_id")?,
            agent: row.get("agent_id")?,
            sequence: row.get("sequence")?,
            depth: row.get("depth")?,
            kind: row.get("type")?,
            timestamp: row.get("timestamp")?,
            turn: row.get("turn")?,
            payload: row.get("payload")?,
            text: row.get("text")?,
        })
    };
    statement.query_map([], read).unwrap().map(Result::unwrap).collect()
}

fn bare_round(like: &Path, path: &Path, rows: &[Row]) -> f64 {
    let mut connection = bare(like, path);
    let begun = Instant::now();
    for batch in rows.chunks(BATCH) {
        insert(&mut connection, batch);
    }
    begun.elapsed().as_secs_f64()
}

/// An empty database with the schema and the settings of a journal.
fn bare(like: &Path, path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY; \
             PRAGMA cache_size = -16000; PRAGMA journal_size_limit = 16777216;",
        )
        .unwrap();
    let journal = Connection::open(like).unwrap();
    let sql = "SELECT sql FROM sqlite_schema WHERE sql NOT NULL AND name NOT LIKE 'sqlite_%' \
               AND name NOT LIKE 'events_fts_%'";
    let mut statement = journal.prepare(sql).unwrap();
    for sql in statement.query_map([], |row| row.get::<_, String>(0)).unwrap() {
        connection.execute_batch(&sql.unwrap()).unwrap();
    }
    connection
}

fn insert(connection: &mut Connection, rows: &[Row]) {
    let transaction = connection.transaction().unwrap();
    let mut event = transaction
        .prepare_cached(
            "INSERT INTO events(id, parent_id, session_id, agent_id, sequence, depth, type, \
             timestamp, turn, payload) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )
        .unwrap();
    let mut found = transaction
        .prepare_cached("INSERT INTO events_fts(rowid, text) VALUES (last_insert_rowid(), ?1)")
        .unwrap();
    for row in rows {
        event
            .execute(params![
                row.id,
                row.parent,
                row.session,
                row.agent,
                row.sequence,
                row.depth,
                row.kind,
                row.timestamp,
                row.turn,
                row.payload
            ])
            .unwrap();
        if let Some(text) = &row.text {
            found.execute([text]).unwrap();
        }
    }
    drop((event, found));
    transaction.commit().unwrap();
}

/// The rows of one round over and over, under other ids.
fn search(searched: usize) {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first.db");
    journal_round(&first, 20_000.min(searched as u64));
    let mut rows = rows(&first);
    let path = folder.path().join("journal.db");
    let mut connection = bare(&first, &path);
    connection.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
    connection.pragma_update(None, "user_version", VERSION).unwrap();
    let mut number = 0;
    while number < searched {
        for row in &mut rows {
            number += 1;
            row.id = format!("{number:032x}");
            row.session = None;
        }
        insert(&mut connection, &rows);
    }
    let store = Store::open(&path).unwrap();
    let query = "SELECT rowid, snippet(events_fts, 0, '[', ']', '…', 16) FROM events_fts \
                 WHERE events_fts MATCH ?1 ORDER BY rank LIMIT 20";
    let mut times = [Vec::new(), Vec::new()];
    for turn in 0..SEARCHES {
        let word = format!("{}", turn * 8);
        let begun = Instant::now();
        assert!(!store.search(&format!("margin {word}"), 20).unwrap().is_empty());
        times[0].push(begun.elapsed().as_secs_f64());
        let begun = Instant::now();
        let mut statement = connection.prepare_cached(query).unwrap();
        let words = format!("\"margin\" \"{word}\"");
        let found = statement.query_map([words], |row| row.get::<_, String>(1)).unwrap();
        assert!(found.map(Result::unwrap).count() > 0);
        times[1].push(begun.elapsed().as_secs_f64());
    }
    let [ours, bare] = times.map(median);
    println!("\n{number} rows, a search by two words");
    println!("{:<34} {:>10.2}", "milliseconds, bare query", bare * 1e3);
    println!("{:<34} {:>10.2}", "against the bare query", ours / bare);
}
