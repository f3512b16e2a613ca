//! Shown writes that wait, and decisions on what was shown.

use std::fs;

use super::*;
use crate::model::{ConflictId, DecidedBy};
use crate::preview::{FoundFile, Wanted};
use crate::zone::{GitAccess, Zone, ZoneSpec};

/// A workspace in which `b` waits to write `src/f`, which `a` has locked.
struct Shop {
    folder: tempfile::TempDir,
    zone: Arc<Zone>,
    conflicts: Conflicts,
    events: Subscriber,
}

impl Shop {
    fn new(strategy: ConflictStrategy) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("src")).unwrap();
        fs::write(folder.path().join("src/f"), "before\n").unwrap();
        let spec = ZoneSpec {
            workspace: folder.path().to_owned(),
            allowed: vec!["src/**".to_owned()],
            asked: Vec::new(),
            readable: Vec::new(),
            shared: Vec::new(),
            denied: Vec::new(),
            terminals: true,
            git: GitAccess::None,
            branch: None,
            beside: Vec::new(),
            eisen_dir: folder.path().join("eisen"),
            sealed: Vec::new(),
            journals: Vec::new(),
        };
        let zone = Arc::new(Zone::compile(&spec).unwrap());
        let (conflicts, events) = conflicts(strategy, true);
        assert!(conflicts.writes_by("a", "src/f").passes());
        Self { folder, zone, conflicts, events }
    }

    fn wait(&self, text: Option<&str>) -> (Box<LockWait>, ConflictId) {
        let wait = self.conflicts.writes_by("b", "src/f").wait();
        if let Some(text) = text {
            wait.wants(Wanted::new(text));
        }
        let id = wait.conflict().id.clone();
        (wait, id)
    }

    async fn see(&self, id: &ConflictId) -> ShownConflict {
        self.conflicts.show(id, Some(Arc::clone(&self.zone))).await.unwrap()
    }

    async fn allow(&self, id: &ConflictId, version: &str) -> Result<Conflict, ResolveError> {
        let (allow, by) = (HeldDecision::Allow, DecidedBy::Person);
        self.conflicts.resolve_shown(id, allow, by, version, Some(Arc::clone(&self.zone))).await
    }

    /// The last line of a conflict: its status, and who decided it.
    fn last_line(&mut self) -> (ConflictStatus, Option<DecidedBy>) {
        let mut last = None;
        while let Some(crate::bus::Received::Event(_, event)) = self.events.try_recv() {
            let Event::Conflict(conflict) = &**event else { continue };
            last = Some((conflict.status, conflict.decided_by.clone()));
        }
        last.unwrap()
    }
}

#[tokio::test]
async fn what_changed_since_it_was_shown_is_not_decided() {
    let mut shop = Shop::new(ConflictStrategy::Person);
    let (wait, id) = shop.wait(Some("mine\n"));
    let shown = shop.see(&id).await;
    assert_eq!(
        shown.file,
        FoundFile::There { content: b"before\n".into(), is_whole: true },
        "{shown:?}"
    );
    assert_eq!(shown.wanted.as_ref().unwrap().text(), Some("mine\n"));
    let lock = shown.lock.as_ref().unwrap();
    assert_eq!((&*lock.path, lock.holder.agent.as_str()), ("src/f", "a"));
    assert!(lock.since_ms > 0);
    assert_eq!(shop.see(&id).await.version, shown.version);
    // Its holder writes on.
    fs::write(shop.folder.path().join("src/f"), "behind\n").unwrap();
    let changed = ResolveError::Changed(id.clone());
    assert_eq!(shop.allow(&id, &shown.version).await, Err(changed.clone()));
    let again = shop.see(&id).await;
    assert_ne!(again.version, shown.version);
    // The lock that it met has ended.
    shop.conflicts.turn_over(&AgentId::new("a"), &SessionId::new("s"));
    assert_eq!(shop.allow(&id, &again.version).await, Err(changed.clone()));
    let again = shop.see(&id).await;
    assert_eq!(again.lock, None);
    // It would write something else.
    wait.wants(Wanted::new("other\n"));
    assert_eq!(shop.allow(&id, &again.version).await, Err(changed));
    assert_eq!(shop.conflicts.shown(), ["c1 held pending b a"]);
    let again = shop.see(&id).await;
    shop.allow(&id, &again.version).await.unwrap();
    assert_eq!(shop.last_line(), (ConflictStatus::Allowed, Some(DecidedBy::Person)));
    wait.settled().await.unwrap();
    assert!(shop.conflicts.blocks(&AgentId::new("a"), "src/f"), "the writer has the lock");
}

#[tokio::test]
async fn the_first_decision_wins_before_the_write_hears_of_it() {
    let mut shop = Shop::new(ConflictStrategy::Person);
    let (wait, id) = shop.wait(None);
    let shown = shop.see(&id).await;
    assert_eq!((shown.wanted.is_none(), shop.conflicts.pending()), (true, 1));
    let no = HeldDecision::Deny { message: Some("Not now.".to_owned()) };
    let denied = shop.conflicts.resolve(&id, no, DecidedBy::Web).unwrap();
    assert_eq!((denied.status, &*denied.message), (ConflictStatus::Denied, "Not now."));
    assert_eq!(shop.conflicts.pending(), 0);
    let late = "c1 does not wait for a decision: it is denied by a person on the web";
    assert_eq!(shop.allow(&id, &shown.version).await.unwrap_err().to_string(), late);
    assert_eq!(
        shop.conflicts.show(&id, Some(Arc::clone(&shop.zone))).await.unwrap_err().to_string(),
        late,
        "nothing is shown any more"
    );
    let unknown = ConflictId::new("c9");
    let none = shop.conflicts.show(&unknown, Some(Arc::clone(&shop.zone))).await.unwrap_err();
    assert_eq!(none, ResolveError::Unknown(unknown));
    assert_eq!(wait.settled().await.unwrap_err().message, "Not now.");
    assert_eq!(shop.last_line(), (ConflictStatus::Denied, Some(DecidedBy::Web)));
}

#[tokio::test]
async fn a_write_that_is_withdrawn_after_its_decision_leaves_nothing() {
    let mut shop = Shop::new(ConflictStrategy::FirstWriterWins);
    let (first, id) = shop.wait(Some("mine\n"));
    let (next, _) = shop.wait(None);
    shop.conflicts.resolve(&id, HeldDecision::Allow, DecidedBy::Person).unwrap();
    drop(first);
    assert_eq!(shop.conflicts.shown(), ["c1 held allowed b a", "c2 held pending b a"]);
    assert_eq!(shop.last_line(), (ConflictStatus::Allowed, Some(DecidedBy::Person)));
    // The next in the queue is not behind it for ever.
    shop.conflicts.turn_over(&AgentId::new("a"), &SessionId::new("s"));
    next.settled().await.unwrap();
}

#[tokio::test]
async fn nothing_is_shown_but_the_file_that_was_judged() {
    let shop = Shop::new(ConflictStrategy::Person);
    let (_wait, id) = shop.wait(None);
    let at = shop.folder.path().join("src/f");
    fs::remove_file(&at).unwrap();
    assert_eq!(shop.see(&id).await.file, FoundFile::Missing);
    std::os::unix::fs::symlink("/etc/hostname", &at).unwrap();
    let file = shop.see(&id).await.file;
    assert!(matches!(&file, FoundFile::Withheld(why) if why.contains("another place")), "{file:?}");
    let file = shop.conflicts.show(&id, None).await.unwrap().file;
    assert!(matches!(&file, FoundFile::Withheld(why) if why.contains("no zone")), "{file:?}");
}
