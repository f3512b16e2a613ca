//! Compares the contents of a write with those that others wrote, to tell a lost update from a write
//! that keeps them.

use std::path::Path;
use std::sync::Arc;

use eisen_base::task;
use tokio::sync::mpsc;

use super::Conflicts;
use super::stale::Version;
use crate::changes::loses;
use crate::journal::Store;
use crate::model::{AgentId, SessionKey};

/// A write over another content than its writer knew.
#[derive(Debug)]
pub(super) struct Suspect {
    pub(super) by: SessionKey,
    pub(super) path: Arc<str>,
    /// The number of the event behind its own.
    pub(super) position: u64,
    pub(super) others: Vec<AgentId>,
    pub(super) outside: bool,
    /// The version that the writer knew, the one that it wrote over, and the one that it wrote.
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
        let (this, file) = (self.clone(), journal.settings().path.clone());
        let versions = suspect.versions.clone();
        let comparing = task::spawn_blocking(move || {
            let [base, theirs, ours] = versions.map(|version| this.stored(&file, &version));
            Some(loses(&base?, &theirs?, &ours?))
        });
        comparing.await.ok()?
    }

    /// A content that a session knew; None if nothing has it.
    pub(super) async fn content(&self, version: Version) -> Option<Arc<[u8]>> {
        if let Some(content) = self.in_memory(&version) {
            return Some(content);
        }
        let journal = self.0.journal.as_ref()?;
        journal.settled(self.0.bus.position()).await.ok()?;
        let (this, file) = (self.clone(), journal.settings().path.clone());
        let reading = task::spawn_blocking(move || this.stored(&file, &version));
        reading.await.ok()?
    }

    /// A content, from memory or from the journal's file.
    fn stored(&self, file: &Path, version: &Version) -> Option<Arc<[u8]>> {
        self.in_memory(version).or_else(|| {
            let Version::Hash(hash) = version else { return None };
            Store::open(file).ok()?.content(hash).ok()?.map(Into::into)
        })
    }

    fn in_memory(&self, version: &Version) -> Option<Arc<[u8]>> {
        match version {
            Version::Missing => Some(Arc::default()),
            Version::Unknown => None,
            Version::Hash(hash) => self.bases(|bases| bases.get(hash)),
        }
    }
}
