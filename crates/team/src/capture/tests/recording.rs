//! Whose change is recorded, however late or slow somebody writes.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime};

use eisen_base::task;
use tokio_util::sync::CancellationToken;

use crate::bus::{Backlog, Bus, Received, Subscriber};
use crate::capture::keeper::KeeperMsg;
use crate::capture::room::Room;
use crate::capture::scope::CaptureScope;
use crate::capture::table::locked;
use crate::capture::team::CaptureTeam;
use crate::capture::{AgentRun, Capture, Fullness, Moment, RunFiles, Stamp};
use crate::journal::{self, Filter, Journal, Keep, Store};
use crate::model::{
    AgentId, Event, FileCause, FileChange, FileChangeKind, OutsideFiles, Record, SeenBy, SessionId,
    SessionKey, Topic,
};
use crate::tests::eventually;
use crate::tracker::{self, OrchestratorView, TrackerHandle};

/// No process.
pub(super) const GONE: u32 = 1 << 30;

/// A run whose process is this one.
struct Run(Moment);

impl AgentRun for Run {
    fn epoch(&self) -> u64 {
        0
    }

    fn moment(&self, _: &Path, _: Instant) -> Moment {
        self.0.clone()
    }

    fn tool_call(&self, _: &SessionId, _: &Path, _: Instant) -> Option<Arc<str>> {
        None
    }

    fn processes(&self) -> Vec<u32> {
        vec![std::process::id()]
    }

    fn rings(&self, _: i64) -> bool {
        false
    }
}

/// Files are settled when a test says so: there is no keeper.
pub(super) struct Bench {
    capture: Capture,
    pub(super) files: RunFiles,
    tracker: TrackerHandle,
    events: Subscriber,
    pub(super) journal: Journal,
    /// Real.
    pub(super) root: PathBuf,
    _queue: mpsc::Receiver<KeeperMsg>,
    _folder: tempfile::TempDir,
}

async fn bench(moment: Moment) -> Bench {
    bench_of(moment, Keep::default(), Fullness::default()).await
}

pub(super) async fn bench_of(moment: Moment, keep: Keep, full: Fullness) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let bus = Bus::new(Backlog { events: 1000, bytes: 1 << 20 });
    let hour = Duration::from_hours(1);
    let settings = tracker::Settings {
        context_turns: 3,
        compaction_threshold: 0.5,
        decay_rate: 0.95,
        tick: hour,
        idle_tick: hour,
    };
    let view = OrchestratorView::None(SessionKey::new(AgentId::new("a"), SessionId::new("")));
    let mut events = bus.subscribe();
    events.want(Topic::Record);
    let cancel = CancellationToken::new();
    let (tracker, task) = TrackerHandle::spawn(settings, view, bus, cancel);
    task::spawn(task);
    let path = root.join("journal/journal.db");
    let settings = journal::Settings { team: "t".into(), path, keep, quotas: None };
    let journal = journal::open(settings).await.unwrap();
    let scope = CaptureScope::new(root.clone(), vec![root.join("journal")], keep.outside);
    let scope = Arc::new(scope);
    let kept = Room::new(journal.clone(), Arc::clone(&scope), full);
    let team = CaptureTeam::new(scope, kept, tracker.clone());
    let (requests, queue) = mpsc::channel();
    let runs = Arc::default();
    let capture = Capture { team: Arc::new(team), requests, tracker: tracker.clone(), runs };
    let files = capture.of_run(AgentId::new("a"), Arc::new(Run(moment)), true);
    Bench { capture, files, tracker, events, journal, root, _queue: queue, _folder: folder }
}

fn session() -> SessionId {
    SessionId::new("s")
}

impl Bench {
    pub(super) fn team(&self) -> &CaptureTeam {
        &self.capture.team
    }

    /// The changes that were recorded since the last call.
    pub(super) async fn changes(&mut self) -> Vec<(SessionKey, Arc<FileChange>)> {
        self.tracker.settled().await;
        let mut changes = Vec::new();
        while let Some(received) = self.events.try_recv() {
            let Received::Event(_, event) = received else { panic!("missed events") };
            if let Event::Record { key, record: Record::FileChanged(change), .. } = &**event {
                changes.push((key.clone(), Arc::clone(change)));
            }
        }
        changes
    }
}

#[tokio::test]
async fn of_files_outside_the_workspace_the_journal_has_what_it_is_to_keep() {
    for outside in OutsideFiles::ALL {
        let keep = Keep { outside, ..Keep::default() };
        let mut bench = bench_of(Moment::default(), keep, Fullness::default()).await;
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let (login, inside) = (home.join("auth.json"), bench.root.join("a"));
        fs::write(&login, "old secret").unwrap();
        for path in [&login, &inside] {
            bench.files.writes(GONE, path, None);
            fs::write(path, "new secret").unwrap();
            bench.team().settle(None);
        }
        let changes = bench.changes().await;
        let paths: Vec<_> = changes.iter().map(|(_, change)| &*change.path.text).collect();
        let login = login.to_str().unwrap();
        let expected = if outside == OutsideFiles::Nothing { vec!["a"] } else { vec![login, "a"] };
        assert_eq!(paths, expected, "{outside:?}");
        for (_, change) in changes {
            let is_kept = outside == OutsideFiles::Content || &*change.path.text == "a";
            let after = change.after.as_ref().unwrap();
            assert_eq!((after.stored, after.hash.is_some()), (is_kept, true), "{change:?}");
            assert_eq!(change.contents.take().is_empty(), !is_kept, "{outside:?}");
        }
    }
}

#[tokio::test]
async fn a_request_that_writes_slowly_is_the_author_of_what_it_writes() {
    let mut bench = bench(Moment { session: Some(session()), tool_call: None }).await;
    let path = bench.root.join("new/file");
    bench.files.replaces(&session(), &path, || {
        bench.team().settle(None);
        fs::create_dir(bench.root.join("new")).unwrap();
        bench.team().settle_due();
        fs::write(&path, "text").unwrap();
    });
    let changes = bench.changes().await;
    assert_eq!(changes.len(), 2);
    for (key, change) in changes {
        assert_eq!((change.cause, change.by), (FileCause::Agent, SeenBy::ClientHost));
        assert_eq!(key, SessionKey::new(AgentId::new("a"), session()));
    }
}

#[tokio::test]
async fn a_file_that_is_opened_and_not_written_is_nobodys_change() {
    let mut bench = bench(Moment::default()).await;
    let path = bench.root.join("file");
    fs::write(&path, "text").unwrap();
    bench.files.writes(GONE, &path, None);
    let file = File::options().append(true).open(&path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    drop(file);
    bench.team().settle(None);
    bench.team().noticed(&path, false);
    assert_eq!(bench.changes().await, []);
    // It is kept again when it is next opened.
    bench.files.writes(GONE, &path, None);
    fs::write(&path, "more").unwrap();
    bench.team().settle(None);
    let changes = bench.changes().await;
    let [(_, change)] = &changes[..] else { panic!("{changes:?}") };
    assert!(change.before.as_ref().unwrap().stored);
    assert_eq!(change.cause, FileCause::Agent);
}

#[tokio::test]
async fn a_file_that_is_written_and_moved_is_renamed_however_long_that_takes() {
    let mut bench = bench(Moment::default()).await;
    let [from, to] = ["from", "to"].map(|name| bench.root.join(name));
    fs::write(&from, "old").unwrap();
    bench.files.writes(GONE, &from, None);
    fs::write(&from, "new").unwrap();
    let file = bench.team().table.find(&from).unwrap();
    eventually("the file is due", async || locked(&file).is_due(Instant::now())).await;
    bench.files.renames(GONE, &from, &to);
    fs::rename(&from, &to).unwrap();
    bench.team().settle_due();
    bench.team().settle(None);
    let changes = bench.changes().await;
    let [(_, change)] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!(change.kind, FileChangeKind::Rename);
    let hashes = [&change.before, &change.after].map(|it| it.clone().unwrap().hash.unwrap());
    let hash = |text: &str| Arc::<str>::from(blake3::hash(text.as_bytes()).to_hex().as_str());
    assert_eq!(hashes, [hash("old"), hash("new")]);
}

#[tokio::test]
async fn what_an_old_descriptor_writes_is_of_a_turn_that_was_just_announced() {
    let mut bench = bench(Moment::default()).await;
    let path = bench.root.join("held");
    bench.files.writes(std::process::id(), &path, None);
    let mut held = OpenOptions::new().create(true).append(true).open(&path).unwrap();
    bench.team().settle(None);
    assert_eq!(bench.changes().await[0].0.session, SessionId::new(""));
    // Whatever the keeper's thread has heard of it.
    bench.team().announce_turn(&AgentId::new("a"), &session(), crate::capture::disk::now_ns());
    held.write_all(b"text").unwrap();
    bench.team().settle(None);
    assert_eq!(bench.changes().await[0].0.session, session());
}

#[tokio::test]
async fn what_is_written_by_one_name_of_a_file_is_a_change_of_all() {
    let mut bench = bench(Moment::default()).await;
    let root = bench.root.clone();
    let at = |name: &str| root.join(name);
    let stamp = |path: &Path| Stamp::of(&nix::sys::stat::stat(path).unwrap());
    fs::create_dir(at("deep")).unwrap();
    for [one, other] in [["a", "deep/b"], ["p", "deep/q"]] {
        fs::write(at(one), "old").unwrap();
        fs::hard_link(at(one), at(other)).unwrap();
    }
    for name in ["deep/q", "a"] {
        bench.files.writes(GONE, &at(name), Some(stamp(&at(name))));
        fs::write(at(name), "new").unwrap();
    }
    // It was made since the workspace was searched.
    bench.files.names(GONE, &at("p"), &at("r"));
    fs::hard_link(at("p"), at("r")).unwrap();
    bench.team().settle(None);
    let paths = |changes: Vec<(SessionKey, Arc<FileChange>)>| {
        let mut paths: Vec<_> = changes.iter().map(|(_, it)| it.path.text.to_string()).collect();
        paths.sort();
        paths.join(" ")
    };
    assert_eq!(paths(bench.changes().await), "a deep/b deep/q p r");
    bench.files.writes(GONE, &at("r"), Some(stamp(&at("r"))));
    fs::write(at("r"), "newer").unwrap();
    bench.team().settle(None);
    assert_eq!(paths(bench.changes().await), "deep/q p r");
}

#[tokio::test]
async fn what_is_not_followed_is_counted() {
    let bench = bench(Moment::default()).await;
    bench.team().leave_out(2);
    bench.team().leave_out(1);
    bench.team().record_left_out();
    bench.team().record_left_out();
    bench.journal.close().await;
    let store = Store::open(&bench.journal.settings().path).unwrap();
    let gaps = Filter { types: vec!["gap".to_owned()], ..Filter::default() };
    let gaps = store.events(&gaps).unwrap().events;
    assert_eq!(gaps.len(), 1);
    assert!(gaps[0].payload.get().contains("\"events\":3"), "{}", gaps[0].payload);
}
