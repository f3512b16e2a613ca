//! Tests of the bound, the modes, the locks, the drafts, and of what a power cut leaves.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::time::Duration;

use nix::sys::stat::Mode;

use super::power_cut::{FoundContent, found_after, recorded, survives};
use super::*;

fn volatile(path: &Path) -> KeptFile<Volatile> {
    KeptFile::new(path, 8)
}

#[test]
fn what_was_written_is_read_and_past_the_bound_neither() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kept");
    let file = volatile(&path);
    assert_eq!(file.read().unwrap(), None);
    file.replace(b"12345678").unwrap();
    assert_eq!(file.read_text().unwrap().unwrap(), "12345678");
    let error = file.replace(b"123456789").unwrap_err();
    assert_eq!(
        (error.kind(), &*error.to_string()),
        (ErrorKind::FileTooLarge, "it has more than 8 bytes")
    );
    assert_eq!(file.read().unwrap().unwrap(), b"12345678");
    fs::write(&path, "123456789").unwrap();
    assert_eq!(file.read().unwrap_err().kind(), ErrorKind::FileTooLarge);
    assert_eq!(file.create(b"other").unwrap_err().kind(), ErrorKind::AlreadyExists);
    file.remove().unwrap();
    file.remove().unwrap();
    file.create(b"new").unwrap();
    assert_eq!(file.read().unwrap().unwrap(), b"new");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "a draft is left");
}

#[test]
fn a_torn_file_and_what_is_none_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kept");
    let file = volatile(&path);
    let why = |file: &KeptFile<Volatile>| {
        let error = file.read_json::<Vec<u8>>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        error.to_string()
    };
    fs::write(&path, "[1,").unwrap();
    assert_eq!(why(&file), "EOF while parsing a value at line 1 column 3");
    fs::write(&path, b"\xff").unwrap();
    assert_eq!(file.read_text().unwrap_err().kind(), ErrorKind::InvalidData);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(why(&file), "it is not a file");
    fs::remove_dir(&path).unwrap();
    // Nobody writes into it.
    nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
    assert_eq!(why(&file), "it is not a file");
}

#[cfg(target_os = "linux")]
#[test]
fn modes_are_private_whatever_the_umask() {
    for umask in [0, 0o022, 0o777] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/kept");
        let lock_file = folder.path().join("a/lock");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // The umask of this thread alone.
                nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS).unwrap();
                nix::sys::stat::umask(Mode::from_bits_truncate(umask));
                volatile(&path).replace(b"text").unwrap();
                lock(LockAt::File(&lock_file), Duration::ZERO).unwrap();
            });
        });
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!((mode(&path), mode(&lock_file)), (0o600, 0o600), "{umask:o}");
        for made in ["a", "a/b"] {
            assert_eq!(mode(&folder.path().join(made)), 0o700, "{umask:o}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    make_folder(folder.path()).unwrap();
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o755);
    make_private(folder.path()).unwrap();
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn a_lock_is_of_the_file_that_is_at_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let at = LockAt::File(&path);
    assert_eq!(lock(LockAt::Found(&path), PATIENCE).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(!is_locked(&path).unwrap());
    let first = lock(at, PATIENCE).unwrap();
    assert!(is_locked(&path).unwrap());
    assert!(try_lock(at).unwrap().is_none());
    let error = lock(at, Duration::from_millis(1)).unwrap_err().to_string();
    assert_eq!(error, format!("another process holds the lock {}", path.display()));
    let second = std::thread::scope(|scope| {
        let waits = scope.spawn(|| lock(at, PATIENCE).unwrap());
        // As the last holder of a run file does.
        fs::remove_file(&path).unwrap();
        drop(first);
        waits.join().unwrap()
    });
    assert_eq!(second.metadata().unwrap().ino(), fs::metadata(&path).unwrap().ino());
    // A lock of a file that was replaced keeps nobody away.
    fs::remove_file(&path).unwrap();
    assert!(try_lock(at).unwrap().is_some());
    symlink("elsewhere", folder.path().join("link")).unwrap();
    lock(LockAt::File(&folder.path().join("link")), PATIENCE).unwrap_err();
    assert!(!folder.path().join("elsewhere").exists());
    lock(LockAt::Found(folder.path()), PATIENCE).unwrap();
}

#[test]
fn a_draft_goes_once_its_writer_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let live = drafts::begin(folder.path()).unwrap();
    let (closed, dead) = drafts::begin(folder.path()).unwrap().keep().unwrap();
    drop(closed);
    fs::write(folder.path().join("draft-of-a-user"), "").unwrap();
    assert_eq!(dead_drafts(folder.path()).unwrap(), [&*dead]);
    for draft in [live.path(), &dead, &dead] {
        remove_draft(draft).unwrap();
    }
    assert!(live.path().exists() && !dead.exists());
    assert!(dead_drafts(&folder.path().join("none")).unwrap().is_empty());
}

#[test]
fn what_replaced_a_file_survives_a_power_cut_by_its_durability() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/kept");
    let durable = KeptFile::<Durable>::new(&path, 8);
    survives(&path, || durable.create(b"first").unwrap());
    survives(&path, || durable.replace(b"second").unwrap());
    survives(&path, || durable.remove().unwrap());
    survives(&path, || durable.replace(b"third").unwrap());

    let third = FoundContent::Content(b"third".into());
    let found = |replaces: &dyn Fn()| found_after(&third, &recorded(replaces).1, &path);
    let whole = KeptFile::<Whole>::new(&path, 8);
    let fourth = FoundContent::Content(b"fourth".into());
    assert_eq!(
        found(&|| whole.replace(b"fourth").unwrap()),
        BTreeSet::from([third.clone(), fourth.clone()])
    );
    assert_eq!(
        found(&|| volatile(&path).replace(b"fourth").unwrap()),
        BTreeSet::from([FoundContent::Torn, third.clone(), fourth])
    );
    assert_eq!(
        found(&|| whole.remove().unwrap()),
        BTreeSet::from([FoundContent::Nothing, third.clone()])
    );
}

#[test]
fn a_file_that_is_put_in_its_place_locked_is_never_seen_free() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ticket");
    let held: File = volatile(&path).replace_locked(b"text").unwrap();
    assert!(is_locked(&path).unwrap());
    drop(held);
    assert!(!is_locked(&path).unwrap());
}
