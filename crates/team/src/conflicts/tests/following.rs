//! Lost updates, from the changes of files on the bus.

use std::path::Path;

use eisen_base::task;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::journal::hash_of;
use crate::model::{
    FileCause, FileChange, FileChangeKind, FileContents, FileKind, FileName, FileStamp, FileState,
    Record, SeenBy, now_ms,
};

/// A team whose changes of files are followed.
struct Followed {
    folder: tempfile::TempDir,
    conflicts: Conflicts,
    bus: Bus,
    _cancel: tokio_util::sync::DropGuard,
}

fn followed() -> Followed {
    let folder = tempfile::tempdir().unwrap();
    let bus = Bus::new(Backlog::of(1000));
    let rules = ConflictRules { strategy: ConflictStrategy::Merge, ..ConflictRules::default() };
    let conflicts =
        Conflicts::new(Some(rules), folder.path().to_owned(), bus, None, Waits::default());
    let cancel = CancellationToken::new();
    let bus = conflicts.0.bus.clone();
    task::spawn(conflicts.clone().follow(bus.subscribe(), cancel.clone()));
    Followed { folder, conflicts, bus, _cancel: cancel.drop_guard() }
}

impl Followed {
    /// `by` writes a file in one step; nobody of the team for an empty name. What it holds is known as it was.
    fn writes(&self, by: &str, of: &str, content: &str) {
        if !by.is_empty() {
            self.conflicts.writes(&key(by), &path(of));
        }
        let change = self.write(of, content, SeenBy::Doorbell);
        let cause = if by.is_empty() { FileCause::Outside } else { FileCause::Agent };
        self.publish(by, FileChange { cause, ..change });
    }

    /// A file that was there before.
    fn file(&self, of: &str, content: &str) {
        std::fs::write(self.folder.path().join(of), content).unwrap();
    }

    /// The client host puts a content in place for a session; `sent` is what that sent.
    fn puts(&self, by: &str, of: &str, content: &str, sent: &str) {
        self.conflicts.puts(&key(by), &path(of), content.as_bytes());
        let change = self.write(of, content, SeenBy::ClientHost);
        self.conflicts.has_put(&key(by), &path(of), sent.as_bytes(), sent != content);
        self.publish(by, change);
    }

    fn write(&self, of: &str, content: &str, by: SeenBy) -> FileChange {
        let (file, draft) = (self.folder.path().join(of), self.folder.path().join(".draft"));
        let (before, old) = seen(&file);
        std::fs::write(&draft, content).unwrap();
        std::fs::rename(&draft, &file).unwrap();
        let (after, new) = seen(&file);
        FileChange { stamps: [old, new], by, ..change(of, before, after) }
    }

    fn read(&self, by: &str, of: &str) {
        let content = std::fs::read(self.folder.path().join(of)).unwrap();
        self.conflicts.was_read(&key(by), &path(of), KnownContent::Whole(&content));
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

fn seen(file: &Path) -> (Option<FileState>, Option<FileStamp>) {
    let Ok(content) = std::fs::read(file) else { return (None, None) };
    let stamp = FileStamp::of(&file.symlink_metadata().unwrap());
    (Some(state(&hash_of(&content))), Some(stamp))
}

fn state(hash: &str) -> FileState {
    let hash = Some(Arc::from(hash));
    FileState { kind: FileKind::File, mode: 0o644, size: 1, hash, stored: true }
}

/// A change whose file has no time that is later than another's.
fn change(of: &str, before: Option<FileState>, after: Option<FileState>) -> FileChange {
    FileChange {
        tree: None,
        kind: FileChangeKind::Write,
        path: FileName { text: of.into(), bytes: None },
        from: None,
        before,
        after,
        by: SeenBy::Doorbell,
        cause: FileCause::Agent,
        tool_call: None,
        pid: None,
        contested: Vec::new(),
        changed_ns: 0,
        stamps: [None, None],
        ignored: false,
        denied: false,
        contents: Arc::new(FileContents::default()),
    }
}

#[tokio::test]
async fn a_write_on_a_base_that_another_changed_is_a_lost_update() {
    let team = followed();
    team.file("f", "0");
    team.conflicts.read(&key("a"), &path("f"));
    team.writes("b", "f", "1");
    team.writes("a", "f", "2");
    assert_eq!(team.shown().await, ["c1 lost_update observed a b"]);
    // Its next write builds on its own; the other's does not.
    team.writes("a", "f", "3");
    team.writes("b", "f", "4");
    let all = team.shown().await;
    assert_eq!(all, ["c1 lost_update observed a b", "c2 lost_update observed b a"]);
}

#[tokio::test]
async fn a_write_after_a_read_of_the_others_is_none() {
    let team = followed();
    for n in 0..200 {
        let of = format!("f{n}");
        team.writes("b", &of, "1");
        // By a way that shows what is read, and by one that does not.
        match n % 2 {
            0 => team.conflicts.read(&key("a"), &path(&of)),
            _ => team.read("a", &of),
        }
        team.writes("a", &of, "2");
    }
    // Other files, and other sessions of the same agent, are none either.
    team.writes("a", "g", "1");
    team.writes("a", "g", "2");
    assert!(team.shown().await.is_empty());
}

#[tokio::test]
async fn what_is_known_is_told_by_content_and_not_by_the_order_of_events() {
    let team = followed();
    team.file("f", "0");
    team.read("a", "f");
    team.writes("b", "f", "1");
    team.read("c", "f");
    // `a` reads anew before anybody hears of its write, which was over what it had not read.
    team.puts("a", "f", "2", "2");
    team.read("a", "f");
    assert_eq!(team.shown().await, ["c1 lost_update observed a b"]);
    // `c` knows what `b` wrote, and not what `a` did.
    team.puts("c", "f", "3", "3");
    let all = team.shown().await;
    assert_eq!(all, ["c1 lost_update observed a b", "c2 lost_update observed c a"]);
}

#[tokio::test]
async fn the_base_of_a_merge_is_what_the_session_knows() {
    let team = followed();
    let base = async |content: &str| {
        let present = PresentContent::of(Some(content.as_bytes()));
        team.conflicts.merge_base(&key("a"), "f", &present).await
    };
    team.file("f", "1\n2\n3\n");
    team.read("a", "f");
    assert!(base("1\n2\n3\n").await.is_none());
    team.puts("b", "f", "1\n2\nB\n", "1\n2\nB\n");
    let known = base("1\n2\nB\n").await.unwrap();
    assert_eq!(known.merge(b"A\n2\n3\n", b"1\n2\nB\n").unwrap(), b"A\n2\nB\n");
    assert!(known.merge(b"1\n2\nA\n", b"1\n2\nB\n").is_none());
    // It knows what it sent, and not what that was merged with.
    team.puts("a", "f", "A\n2\nB\n", "A\n2\n3\n");
    let known = base("A\n2\nB\n").await.unwrap();
    assert_eq!(known.merge(b"AA\n2\n3\n", b"A\n2\nB\n").unwrap(), b"AA\n2\nB\n");
    team.read("a", "f");
    assert!(base("A\n2\nB\n").await.is_none());
}

#[tokio::test]
async fn what_somebody_outside_wrote_is_lost_too() {
    let team = followed();
    team.file("f", "0");
    team.conflicts.read(&key("a"), &path("f"));
    team.writes("", "f", "1");
    team.writes("a", "f", "2");
    assert_eq!(team.shown().await, ["c1 lost_update observed a"]);
    let message = team.conflicts.list(None).remove(0).message;
    assert!(message.contains("somebody outside the team"), "{message}");
}

#[tokio::test]
async fn files_that_many_write_by_the_way_are_left_out() {
    let team = followed();
    for of in ["target/x", ".git/index", "/tmp/x"] {
        for by in ["a", "b"] {
            let made = change(of, Some(state("0")), Some(state(by)));
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
        team.conflicts.was_read(&of, &path(&format!("g{n}")), KnownContent::Missing);
    }
    let text = format!("{:?}", team.conflicts.state().stales);
    assert!(text.matches("agent").count() < 1100 && text.matches("Known").count() < 101_100);
}
