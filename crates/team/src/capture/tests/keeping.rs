//! Tests which contents are kept before they are destroyed, and how losses of others are told.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use serde_json::Value;

use super::recording::{Bench, GONE, bench_of};
use crate::capture::{Fullness, Moment, Stamp, Verdict};
use crate::journal::{Filter, Keep, Store};

const MEGA: usize = 1 << 20;

async fn bench(full: Fullness) -> Bench {
    bench_of(Moment::default(), Keep::default(), full).await
}

impl Bench {
    /// Files of a megabyte, each with another content.
    fn make(&self, names: &str, number: usize) -> Vec<PathBuf> {
        let make = |at: usize| {
            let path = self.root.join(format!("{names}{at}"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("{at:08}").repeat(MEGA / 8)).unwrap();
            path
        };
        (0..number).map(make).collect()
    }

    fn remove(&self, path: &PathBuf) {
        self.files.removes(GONE, path);
        fs::remove_file(path).unwrap();
    }

    /// Returns how many contents there were before the changes, and how many are stored.
    async fn stored(&mut self) -> (usize, usize) {
        self.team().settle(None);
        let changes = self.changes().await;
        let before: Vec<_> = changes.iter().filter_map(|(_, it)| it.before.as_ref()).collect();
        (before.len(), before.iter().filter(|state| state.stored).count())
    }

    fn kept(&self) -> Vec<PathBuf> {
        let folder = self.journal.settings().path.with_extension("db.kept");
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    async fn gaps(&self) -> Vec<Value> {
        self.journal.close().await;
        let store = Store::open(&self.journal.settings().path).unwrap();
        let filter = Filter { types: vec!["gap".to_owned()], ..Filter::default() };
        let gaps = store.events(&filter).unwrap().events;
        gaps.iter().map(|gap| serde_json::from_str(gap.payload.get()).unwrap()).collect()
    }
}

#[tokio::test]
async fn what_is_removed_at_once_is_kept_whatever_the_amount() {
    let mut bench = bench(Fullness::default()).await;
    let files = bench.make("big/", 150);
    let inode = fs::metadata(&files[149]).unwrap().ino();
    for file in &files {
        bench.remove(file);
    }
    assert_eq!(bench.stored().await, (150, 150));
    // The journal's queue has no room for all; the last ones are the files themselves.
    let kept = bench.kept();
    assert!(kept.len() >= 150 - 128, "{}", kept.len());
    assert!(kept.iter().any(|file| fs::metadata(file).unwrap().ino() == inode));
    let last = kept.iter().find(|file| fs::metadata(file).unwrap().ino() == inode).unwrap();
    let hash = last.file_name().unwrap().to_str().unwrap();
    assert_eq!(hash, blake3::hash(&fs::read(last).unwrap()).to_hex().as_str());
    assert!(bench.gaps().await.is_empty());
}

#[tokio::test]
async fn a_file_that_is_written_or_has_other_names_is_copied() {
    let mut bench = bench(Fullness::default()).await;
    let files = bench.make("f", 80);
    let linked = bench.root.join("linked");
    fs::hard_link(&files[78], &linked).unwrap();
    let (first, last) = files.split_at(78);
    for file in first {
        bench.remove(file);
    }
    bench.remove(&last[0]);
    fs::write(&linked, "another").unwrap();
    // It is overwritten in place.
    bench.files.writes(GONE, &last[1], None);
    fs::write(&last[1], "another").unwrap();
    assert_eq!(bench.stored().await, (80, 80));
    let is_right = |file: &PathBuf| {
        let hash = blake3::hash(&fs::read(file).unwrap()).to_hex();
        file.file_name().unwrap().to_str() == Some(hash.as_str())
    };
    assert!(bench.kept().iter().all(is_right));
}

#[tokio::test]
async fn of_what_git_ignores_as_much_is_kept_as_fits() {
    let mut bench = bench(Fullness::default()).await;
    fs::write(bench.root.join(".gitignore"), "/target\n").unwrap();
    let files = bench.make("target/", 80);
    for file in &files {
        bench.remove(file);
    }
    let (all, stored) = bench.stored().await;
    assert!(all == 80 && stored < 80, "{stored} of {all}");
    assert!(bench.kept().is_empty());
}

#[tokio::test]
async fn what_is_not_destroyed_is_not_kept_beside_the_journal() {
    let mut bench = bench(Fullness::default()).await;
    let files = bench.make("f", 70);
    for file in &files {
        bench.files.removes(GONE, file);
    }
    assert!(!bench.kept().is_empty());
    // None of the calls removed its file.
    assert_eq!(bench.stored().await, (0, 0));
    assert!(bench.kept().is_empty());
}

#[tokio::test]
async fn what_is_moved_or_gets_another_mode_and_then_destroyed_is_kept() {
    let mut bench = bench(Fullness::default()).await;
    let at = |name: &str| bench.root.join(name);
    // More than is kept of a content that nothing destroys.
    let content = [0_u8, 1].repeat(MEGA);
    let paths = ["moved", "marked", "first", "second"].map(at);
    for path in &paths {
        fs::write(path, &content).unwrap();
    }
    let [moved, marked, first, second] = &paths;
    let to = bench.root.join("to");
    bench.files.renames(GONE, moved, &to);
    fs::rename(moved, &to).unwrap();
    bench.remove(&to);
    bench.files.marks(GONE, marked, Stamp::of(&nix::sys::stat::stat(marked).unwrap()));
    bench.files.writes(GONE, marked, None);
    fs::write(marked, "new").unwrap();
    bench.files.exchanges(GONE, first, second);
    for path in [first, second] {
        bench.files.writes(GONE, path, None);
        fs::write(path, "new").unwrap();
    }
    bench.team().settle(None);
    let changes = bench.changes().await;
    let hash = blake3::hash(&content).to_hex();
    let of = |path: &str| {
        let all = changes.iter().map(|(_, change)| change);
        let mut before = all.filter(|it| &*it.path.text == path).filter_map(|it| it.before.clone());
        before.any(|state| state.stored && state.hash.as_deref() == Some(hash.as_str()))
    };
    for path in ["to", "marked", "first", "second"] {
        assert!(of(path), "{path}: {changes:?}");
    }
}

#[tokio::test]
async fn a_full_journal_is_told_of_once_for_a_folder_and_before_the_call() {
    let full = Fullness { at: Some(1), holds: false };
    let mut bench = bench(full).await;
    let files = bench.make("big/deep/", 3);
    bench.files.removes(GONE, &files[0]);
    let said = bench.files.lost().borrow().clone().unwrap();
    assert!(said.contains("3 files (3145728 bytes) at `big/deep`"), "{said}");
    assert!(said.contains("`max_mb`"), "{said}");
    fs::remove_file(&files[0]).unwrap();
    bench.remove(&files[1]);
    assert_eq!(bench.stored().await, (2, 0));
    let gaps = bench.gaps().await;
    let [gap] = &gaps[..] else { panic!("{gaps:?}") };
    assert_eq!((&gap["folder"], &gap["files"]), (&"big/deep".into(), &3.into()));
    assert_eq!(gap["bytes"], 3 << 20);
}

#[tokio::test]
async fn a_file_too_large_to_be_copied_is_told_of() {
    let mut bench = bench(Fullness::default()).await;
    let path = bench.root.join("huge");
    File::create(&path).unwrap().set_len((256 << 20) + 1).unwrap();
    bench.files.writes(GONE, &path, None);
    let has_reflinks = bench.files.lost().borrow().is_none();
    fs::write(&path, "small").unwrap();
    assert_eq!(bench.stored().await, (1, usize::from(has_reflinks)));
    assert_eq!(bench.gaps().await.len(), usize::from(!has_reflinks));
}

#[tokio::test]
async fn a_held_loss_is_decided_once_for_a_folder_and_turn() {
    let bench = bench(Fullness { at: Some(1), holds: true }).await;
    let files = bench.make("big/", 2);
    fs::write(bench.root.join("big/empty"), "").unwrap();
    assert!(!bench.files.loses(&bench.root.join("big/missing")));
    assert!(!bench.files.loses(&bench.root.join("big/empty")));
    let loss = bench.files.loss(&files[0]).unwrap();
    assert!(loss.what.contains("2 files"), "{}", loss.what);
    bench.files.decide_loss(loss, Verdict::Allowed);
    assert!(!bench.files.loses(&files[1]));
}

#[tokio::test]
async fn what_a_journal_had_room_for_before_the_call_is_kept() {
    // Some are held, then the journal is full.
    let full = Fullness { at: Some(40 << 20), holds: true };
    let mut bench = bench(full).await;
    let files = bench.make("big/", 60);
    let mut gone = 0;
    for file in files.iter().take_while(|file| !bench.files.loses(file)) {
        bench.remove(file);
        gone += 1;
    }
    assert!((20..60).contains(&gone), "{gone}");
    // New files take room before the removals are recorded.
    let new: Vec<_> = (0..60).map(|at| bench.root.join(format!("a{at}"))).collect();
    for path in &new {
        bench.files.writes(GONE, path, None);
        fs::write(path, path.to_string_lossy().repeat(MEGA / 8)).unwrap();
    }
    assert_eq!(bench.stored().await, (gone, gone));
}
