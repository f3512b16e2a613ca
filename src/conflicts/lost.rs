//! Compares the contents of a write with those that others wrote, to tell a lost update from a write
//! that keeps them.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::Conflicts;
use super::stale::Version;
use crate::changes::loses;
use crate::journal::Store;
use crate::model::{AgentId, SessionKey};

/// A write whose base is older than another's write.
#[derive(Debug)]
pub(super) struct Suspect {
    pub(super) by: SessionKey,
    pub(super) path: Arc<str>,
    /// The number of the event behind its own.
    pub(super) position: u64,
    pub(super) others: Vec<AgentId>,
    pub(super) outside: bool,
    /// What the writer knew, what it wrote over, and what it wrote.
    pub(super) versions: [Version; 3],
}

/// Compares writes one after the other, until the sender is gone.
pub(super) async fn compare(conflicts: Conflicts, mut suspects: mpsc::Receiver<Suspect>) {
    while let Some(suspect) = suspects.recv().await {
        if conflicts.loses(&suspect).await.unwrap_or(true) {
            conflicts.report_lost(&suspect);
        } else {
            conflicts.report_kept(&suspect.by, &suspect.path);
        }
    }
}

impl Conflicts {
    /// Whether a write took something back; None if its contents are not known.
    async fn loses(&self, suspect: &Suspect) -> Option<bool> {
        let journal = self.0.journal.as_ref()?;
        // The contents are stored with the events that name them.
        journal.settled(suspect.position).await.ok()?;
        let (file, versions) = (journal.settings().path.clone(), suspect.versions.clone());
        let reading = tokio::task::spawn_blocking(move || contents(&file, versions));
        let [base, theirs, ours] = reading.await.ok()??;
        tokio::task::spawn_blocking(move || loses(&base, &theirs, &ours)).await.ok()
    }

    /// A content that the journal has, by its hash.
    pub(super) async fn content(&self, hash: Arc<str>) -> Option<Vec<u8>> {
        let journal = self.0.journal.as_ref()?;
        journal.settled(self.0.bus.position()).await.ok()?;
        let file = journal.settings().path.clone();
        let reading = tokio::task::spawn_blocking(move || content(&file, &Version::Hash(hash)));
        reading.await.ok()?
    }
}

fn contents(file: &Path, versions: [Version; 3]) -> Option<[Vec<u8>; 3]> {
    let [base, theirs, ours] = versions.map(|version| content(file, &version));
    Some([base?, theirs?, ours?])
}

fn content(file: &Path, version: &Version) -> Option<Vec<u8>> {
    match version {
        Version::Missing => Some(Vec::new()),
        Version::Unknown => None,
        Version::Hash(hash) => Store::open(file).ok()?.content(hash).ok()?,
    }
}
