//! The file and its lock.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::SystemTime;

use nix::fcntl::{Flock, FlockArg};
use tempfile::TempDir;

use super::*;
use crate::kept::power_cut::survives;
use eisen_base::task;

struct Disk {
    dir: TempDir,
    registry: RegistryHandle,
}

impl Disk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let registry = open(&dir.path().join("home"));
        Self { dir, registry }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("home").join(name)
    }

    fn write(&self, text: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path("")).unwrap();
        fs::write(self.path("core_sessions.json"), text).unwrap();
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path("core_sessions.json")).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("")).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn open(dir: &Path) -> RegistryHandle {
    let (registry, serving) = RegistryHandle::spawn(dir, CancellationToken::new());
    task::spawn(serving);
    registry
}

async fn create(registry: &RegistryHandle, session: &str) -> Result<Answer, RegistryError> {
    registry.ask(RegistryRequest::Upsert(upsert("ui", session))).await
}

async fn ids(registry: &RegistryHandle) -> Vec<String> {
    let Ok(Answer::List(list)) = registry.ask(RegistryRequest::List { agent: None }).await else {
        panic!("no list");
    };
    list.into_iter().map(|listed| listed.key.session.to_string()).collect()
}

#[tokio::test]
async fn the_file_is_private_and_nothing_else_is_left() {
    let disk = Disk::new();
    assert!(ids(&disk.registry).await.is_empty());
    assert!(!disk.path("").exists(), "reading makes nothing");
    create(&disk.registry, "s").await.unwrap();
    assert_eq!(disk.names(), ["core_sessions.json", "core_sessions.lock"]);
    let mode = |name: &str| fs::metadata(disk.path(name)).unwrap().mode() & 0o777;
    assert_eq!(
        (mode(""), mode("core_sessions.json"), mode("core_sessions.lock")),
        (0o700, 0o600, 0o600)
    );
}

#[tokio::test]
async fn what_others_write_is_read_and_what_changes_nothing_is_not_written() {
    let disk = Disk::new();
    create(&disk.registry, "s").await.unwrap();
    let other = open(&disk.path(""));
    create(&other, "t").await.unwrap();
    assert_eq!(ids(&disk.registry).await, ["t", "s"]);

    let number = || fs::metadata(disk.path("core_sessions.json")).unwrap().ino();
    let before = number();
    let ghost = key("ui", "ghost");
    assert!(disk.registry.ask(RegistryRequest::Activate(ghost.clone())).await.is_err());
    assert!(matches!(
        disk.registry.ask(RegistryRequest::Close(ghost)).await,
        Ok(Answer::Closed(false))
    ));
    assert_eq!(number(), before);
    let s = key("ui", "s");
    disk.registry.ask(RegistryRequest::Activate(s)).await.unwrap();
    assert_ne!(number(), before);
}

#[tokio::test]
async fn a_corrupt_file_is_kept_aside_and_a_new_one_begun() {
    let disk = Disk::new();
    let corrupt: [&[u8]; 5] = [b"", b"{\"sess", b"\xff\xfe{}", b"[1]", br#"{"sessions":[{}]}"#];
    for (n, text) in corrupt.iter().enumerate() {
        disk.write(text);
        // Whoever comes first, a reader or a writer.
        if n % 2 == 0 {
            assert!(ids(&disk.registry).await.is_empty());
        }
        create(&disk.registry, "s").await.unwrap();
        assert_eq!(ids(&disk.registry).await, ["s"]);
        let aside = |name: &String| name.starts_with("core_sessions.corrupt-");
        let kept: Vec<_> = disk.names().into_iter().filter(aside).collect();
        assert_eq!(kept.len(), n + 1, "none was overwritten");
        assert!(kept.iter().any(|name| fs::read(disk.path(name)).unwrap() == *text));
    }
}

#[tokio::test]
async fn a_disk_that_fails_is_named_and_loses_nothing() {
    let disk = Disk::new();
    create(&disk.registry, "s").await.unwrap();
    let before = disk.text();
    // Stands in for a full disk: the lock cannot be opened.
    fs::remove_file(disk.path("core_sessions.lock")).unwrap();
    fs::create_dir(disk.path("core_sessions.lock")).unwrap();
    let error = create(&disk.registry, "t").await.unwrap_err().to_string();
    assert!(error.contains("core_sessions.lock"), "{error}");
    assert_eq!(disk.text(), before);
    assert_eq!(ids(&disk.registry).await, ["s"]);
    fs::remove_dir(disk.path("core_sessions.lock")).unwrap();
    create(&disk.registry, "t").await.unwrap();

    // Neither a folder nor a pipe is taken for a file, or waited for.
    fs::remove_file(disk.path("core_sessions.json")).unwrap();
    fs::create_dir(disk.path("core_sessions.json")).unwrap();
    let error = create(&disk.registry, "t").await.unwrap_err().to_string();
    assert!(error.contains("core_sessions.json"), "{error}");
    fs::remove_dir(disk.path("core_sessions.json")).unwrap();
    nix::unistd::mkfifo(&disk.path("core_sessions.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let error = create(&disk.registry, "t").await.unwrap_err().to_string();
    assert!(error.ends_with("it is not a file"), "{error}");
    assert_eq!(disk.registry.active().await, None);
}

#[tokio::test]
async fn what_a_killed_writer_left_does_no_harm() {
    let disk = Disk::new();
    disk.write(r#"{"sessions":[{"agent_id":"ui","session_id":"s"}]}"#);
    fs::write(disk.path(".draft-0"), "{\"sess").unwrap();
    fs::set_permissions(disk.path("core_sessions.json"), Permissions::from_mode(0o644)).unwrap();
    create(&disk.registry, "t").await.unwrap();
    assert_eq!(ids(&disk.registry).await, ["t", "s"]);
    assert_eq!(disk.names(), [".draft-0", "core_sessions.json", "core_sessions.lock"]);
    let mode = fs::metadata(disk.path("core_sessions.json")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_held_lock_stops_changes_but_not_reads() {
    let disk = Disk::new();
    create(&disk.registry, "s").await.unwrap();
    let lock = fs::File::open(disk.path("core_sessions.lock")).unwrap();
    let held = Flock::lock(lock, FlockArg::LockExclusive).unwrap();
    let waiting = create(&disk.registry, "t");
    tokio::pin!(waiting);
    assert!(futures_util::poll!(&mut waiting).is_pending());
    assert_eq!(ids(&disk.registry).await, ["s"]);
    assert!(futures_util::poll!(&mut waiting).is_pending());
    held.unlock().unwrap();
    waiting.await.unwrap();

    let lock = fs::File::open(disk.path("core_sessions.lock")).unwrap();
    let _held = Flock::lock(lock, FlockArg::LockExclusive).unwrap();
    let late =
        disk.registry.ask_by(RegistryRequest::Upsert(upsert("ui", "u")), Instant::now()).await;
    let error = late.unwrap_err().to_string();
    assert!(error.starts_with("another process keeps") && error.contains(".lock"), "{error}");
    assert_eq!(ids(&disk.registry).await, ["t", "s"]);
}

#[tokio::test]
async fn the_active_session_is_followed_at_once() {
    let disk = Disk::new();
    assert_eq!(disk.registry.active().await, None);
    let other = open(&disk.path(""));
    for session in ["s", "t", "s"] {
        create(&other, session).await.unwrap();
        other.ask(RegistryRequest::Activate(key("ui", session))).await.unwrap();
        assert_eq!(disk.registry.active().await, Some(key("ui", session)));
    }
    // Of a file that has been there for a while only the looks are looked at.
    let age = |text: &str| {
        disk.write(text);
        let file = fs::File::options().write(true).open(disk.path("core_sessions.json")).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    };
    let active =
        |session: &str| format!(r#"{{"active":{{"agent_id":"ui","session_id":"{session}"}}}}"#);
    age(&active("old"));
    assert_eq!(disk.registry.active().await, Some(key("ui", "old")));
    age(&active("OLD"));
    assert_eq!(disk.registry.active().await, Some(key("ui", "old")), "read once");
    age(&active("other"));
    assert_eq!(disk.registry.active().await, Some(key("ui", "other")));
}

#[tokio::test]
async fn requests_of_many_tasks_are_all_served_in_few_writings() {
    let disk = Disk::new();
    let creating = (0..300).map(|n| {
        let registry = disk.registry.clone();
        task::spawn(async move { create(&registry, &format!("s{n}")).await.map(drop) })
    });
    for created in creating.collect::<Vec<_>>() {
        created.await.unwrap().unwrap();
    }
    assert_eq!(ids(&disk.registry).await.len(), 300);
}

#[tokio::test]
async fn a_program_that_stops_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let cancel = CancellationToken::new();
    let (registry, serving) = RegistryHandle::spawn(dir.path(), cancel.clone());
    cancel.cancel();
    serving.await;
    assert!(matches!(create(&registry, "s").await, Err(RegistryError::Stopping)));
}

#[test]
fn a_change_survives_a_power_cut() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("home");
    let file = file::RegistryFile::new(&folder);
    let later = Instant::now() + Duration::from_secs(60);
    let add = |session| {
        let request = RegistryRequest::Upsert(upsert("ui", session));
        file.update(later, |registry| registry.answer(request, 1).unwrap()).unwrap()
    };
    let path = folder.join("core_sessions.json");
    survives(&path, || add("s"));
    survives(&path, || add("t"));
}
