//! Lost updates, from the changes of files on the bus.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::conflicts::stale::Time;
use crate::model::{
    FileCause, FileChange, FileChangeKind, FileContents, FileKind, FileName, FileState, Record,
    SeenBy, now_ms,
};

/// A team whose changes of files are followed.
struct Followed {
    conflicts: Conflicts,
    bus: Bus,
    _cancel: tokio_util::sync::DropGuard,
}

fn followed() -> Followed {
    followed_in(Path::new("/nowhere"))
}

fn followed_in(workspace: &Path) -> Followed {
    let bus = Bus::new(Backlog::of(1000));
    let conflicts =
        Conflicts::new(ConflictRules::default(), workspace.to_owned(), bus, None, Waits::default());
    let cancel = CancellationToken::new();
    let bus = conflicts.0.bus.clone();
    tokio::spawn(conflicts.clone().follow(bus.subscribe(), cancel.clone()));
    Followed { conflicts, bus, _cancel: cancel.drop_guard() }
}

fn now() -> Time {
    file_time(Path::new("/nowhere"))
}

impl Followed {
    /// `by` wrote a file some nanoseconds from now; nobody of the team for an empty name.
    fn wrote(&self, by: &str, of: &str, versions: [Option<&str>; 2], later: Time) {
        let [before, after] = versions.map(|version| version.map(state));
        let cause = if by.is_empty() { FileCause::Outside } else { FileCause::Agent };
        self.publish(by, change(of, before, after, cause, now() + later));
    }

    fn publish(&self, by: &str, change: FileChange) {
        let record = Record::FileChanged(Arc::new(change));
        self.bus.publish(Event::Record {
            key: key(by),
            record,
            turn: None,
            timestamp_ms: now_ms(),
        });
    }

    async fn shown(&self) -> Vec<String> {
        self.conflicts.caught_up().await;
        // The contents are looked for in a task beside.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        self.conflicts.shown()
    }
}

fn state(hash: &str) -> FileState {
    let hash = Some(Arc::from(hash));
    FileState { kind: FileKind::File, mode: 0o644, size: 1, hash, stored: true }
}

fn change(
    of: &str,
    before: Option<FileState>,
    after: Option<FileState>,
    cause: FileCause,
    changed_ns: Time,
) -> FileChange {
    FileChange {
        kind: FileChangeKind::Write,
        path: FileName { text: of.into(), bytes: None },
        from: None,
        before,
        after,
        by: SeenBy::Doorbell,
        cause,
        tool_call: None,
        pid: None,
        contested: Vec::new(),
        changed_ns,
        ignored: false,
        denied: false,
        contents: Arc::new(FileContents::default()),
    }
}

const SECOND: Time = 1_000_000_000;

#[tokio::test]
async fn a_write_on_a_base_that_another_changed_is_a_lost_update() {
    let team = followed();
    team.conflicts.read(&key("a"), &path("f"));
    team.wrote("b", "f", [Some("0"), Some("1")], SECOND);
    team.wrote("a", "f", [Some("1"), Some("2")], 2 * SECOND);
    assert_eq!(team.shown().await, ["c1 lost_update observed a b"]);
    // Its next write builds on its own; the other's does not.
    team.wrote("a", "f", [Some("2"), Some("3")], 3 * SECOND);
    team.wrote("b", "f", [Some("3"), Some("4")], 4 * SECOND);
    let all = team.shown().await;
    assert_eq!(all, ["c1 lost_update observed a b", "c2 lost_update observed b a"]);
}

#[tokio::test]
async fn a_write_after_a_read_of_the_others_is_none() {
    let team = followed();
    team.wrote("b", "f", [Some("0"), Some("1")], -SECOND);
    team.conflicts.read(&key("a"), &path("f"));
    team.wrote("a", "f", [Some("1"), Some("2")], SECOND);
    // Other files, and other sessions of the same agent, are none either.
    team.wrote("a", "g", [Some("1"), Some("2")], SECOND);
    team.wrote("a", "g", [Some("2"), Some("3")], 2 * SECOND);
    assert!(team.shown().await.is_empty());
}

#[tokio::test]
async fn reads_and_writes_within_one_tick_are_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let team = followed_in(folder.path());
    for n in 0..200 {
        let of = format!("f{n}");
        let file = folder.path().join(&of);
        let write = |by: &str, before, after| {
            team.conflicts.writes(&key(by), &path(&of));
            std::fs::write(&file, after).unwrap();
            let stat = file.metadata().unwrap();
            let at = Time::from(stat.ctime()) * SECOND + Time::from(stat.ctime_nsec());
            team.publish(by, change(&of, before, Some(state(after)), FileCause::Agent, at));
        };
        write("b", None, "1");
        team.conflicts.read(&key("a"), &path(&of));
        write("a", Some(state("1")), "2");
    }
    assert!(team.shown().await.is_empty());
}

#[tokio::test]
async fn what_somebody_outside_wrote_is_lost_too() {
    let team = followed();
    team.conflicts.read(&key("a"), &path("f"));
    team.wrote("", "f", [Some("0"), Some("1")], SECOND);
    team.wrote("a", "f", [Some("1"), Some("2")], 2 * SECOND);
    assert_eq!(team.shown().await, ["c1 lost_update observed a"]);
    let message = team.conflicts.list(None).remove(0).message;
    assert!(message.contains("somebody outside the team"), "{message}");
}

#[tokio::test]
async fn files_that_many_write_by_the_way_are_left_out() {
    let team = followed();
    for of in ["target/x", ".git/index", "/tmp/x"] {
        for (at, by) in [(1, "a"), (2, "b")] {
            let (before, after) = (Some(state("0")), Some(state(by)));
            let at = now() + at * SECOND;
            let made = change(of, before, after, FileCause::Agent, at);
            team.publish(by, FileChange { ignored: of == "target/x", ..made });
        }
    }
    assert!(team.shown().await.is_empty());
}

#[tokio::test]
async fn reads_and_writes_that_are_remembered_are_bounded() {
    let team = followed();
    for n in 0..12_000 {
        team.conflicts.read(&key("a"), &path(&format!("f{n}")));
        team.conflicts.read(&key(&format!("a{n}")), &path("f"));
    }
    for n in 0..120_000 {
        let of = SessionKey::new(AgentId::new("a"), SessionId::new((n % 1000).to_string()));
        team.conflicts.read(&of, &path(&format!("g{n}")));
    }
    let text = format!("{:?}", team.conflicts.state().stales);
    assert!(text.matches("agent").count() < 1100 && text.matches("Point").count() < 101_100);
}
