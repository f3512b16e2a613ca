//! Keeps the queue for a person in a file of the team's folder, so that what waits still waits when
//! the team starts again, and what a person allowed is still allowed.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eisen_base::task;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::home::journals::team_folder;
use crate::kept::{Durable, KeptFile};
use crate::model::{Action, AgentId, SessionId, SessionKey, Via};
use crate::routing::{AccessScope, Allowance, Queued, Request};
use crate::zone::Zone;

/// Bytes of a file that is read: a thousand accesses with the longest paths and reasons.
const LONGEST: u64 = 32 << 20;

/// An access of the queue, in the file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
struct KeptAccess {
    agent: String,
    session: String,
    path: String,
    action: String,
    via: String,
    reason: Option<String>,
    /// The access is a search of all below the path.
    #[serde(default)]
    search: bool,
    /// A person allowed it, and its agent has not tried it again.
    #[serde(default)]
    allowed: Option<KeptPermit>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
struct KeptPermit {
    even_denied: bool,
    /// Since 1970.
    expires_ms: Option<u64>,
}

/// The file of a team.
pub(crate) fn place(eisen_dir: &Path, team: &str) -> PathBuf {
    team_folder(eisen_dir, team).join("person.json")
}

/// The queue that an earlier run left, as the zones judge it now; empty if there is no file that can
/// be read. Reads the disk.
pub(crate) fn read(file: &Path, zones: &HashMap<AgentId, Arc<Zone>>) -> Vec<Queued> {
    let kept = kept(file).read_json::<Vec<KeptAccess>>().unwrap_or_else(|error| {
        tracing::warn!(%error, file = %file.display(), "can't read what waits for a person");
        None
    });
    let kept = kept.unwrap_or_default();
    let known = kept.len();
    let queued: Vec<_> = kept.into_iter().filter_map(|it| it.queued(zones)).collect();
    if queued.len() < known {
        let dropped = known - queued.len();
        tracing::warn!(
            dropped,
            "accesses wait for a person no more: of agents that left, or in their zones"
        );
    }
    queued
}

/// Keeps the queue in its file, until `cancel`.
pub(crate) async fn keep(
    file: PathBuf,
    mut queue: watch::Receiver<Arc<[Queued]>>,
    cancel: CancellationToken,
) {
    while let Some(Ok(())) = cancel.run_until_cancelled(queue.changed()).await {
        let waiting = queue.borrow_and_update().clone();
        write(&file, waiting).await;
    }
    let waiting = queue.borrow().clone();
    write(&file, waiting).await;
}

async fn write(file: &Path, queue: Arc<[Queued]>) {
    let place = file.to_owned();
    let writing = move || replace(&place, &queue.iter().map(KeptAccess::of).collect::<Vec<_>>());
    if let Ok(Err(error)) = task::spawn_blocking(writing).await {
        tracing::warn!(%error, file = %file.display(), "can't keep what waits for a person");
    }
}

/// Replaces the file; removes it if the queue is empty.
fn replace(file: &Path, queue: &[KeptAccess]) -> io::Result<()> {
    let file = kept(file);
    if queue.is_empty() { file.remove() } else { file.replace(&serde_json::to_vec(queue)?) }
}

/// The file, which has what a person decided.
fn kept(file: &Path) -> KeptFile<Durable> {
    KeptFile::new(file, LONGEST)
}

impl KeptAccess {
    fn of(queued: &Queued) -> Self {
        let Queued { access, permit } = queued;
        Self {
            agent: access.key.agent.to_string(),
            session: access.key.session.to_string(),
            path: access.path.to_string(),
            action: access.action.as_str().to_owned(),
            via: access.via.as_str().to_owned(),
            reason: access.reason.as_deref().map(str::to_owned),
            search: access.scope == AccessScope::Below,
            allowed: permit.map(|permit| KeptPermit {
                even_denied: permit.even_denied,
                expires_ms: permit.expires.map(to_ms),
            }),
        }
    }

    /// None if its agent is no more, or nothing is to decide.
    fn queued(self, zones: &HashMap<AgentId, Arc<Zone>>) -> Option<Queued> {
        let action = Action::ALL.into_iter().find(|action| action.as_str() == self.action)?;
        let via = Via::ALL.into_iter().find(|via| via.as_str() == self.via)?;
        let agent = AgentId::new(self.agent);
        let zone = zones.get(&agent)?;
        let place = zone.workspace().join(&self.path);
        let denied = if self.search {
            zone.check_search(&place).err()?
        } else {
            zone.check(&place, action).err()?
        };
        let permit = self.allowed.map(KeptPermit::permit);
        if permit.is_some() && !denied.grantable {
            return None;
        }
        let denied_by = if self.search {
            zone.search_denied_by(&denied.path)
        } else {
            zone.denied_by(&denied.path)
        };
        let key = SessionKey::new(agent, SessionId::new(self.session));
        let access = Request {
            denied_by,
            scope: if self.search { AccessScope::Below } else { AccessScope::Path },
            grantable: denied.grantable,
            reason: self.reason.map(Into::into),
            ..Request::again(key, denied.path, action, via)
        };
        Some(Queued { access, permit })
    }
}

impl KeptPermit {
    fn permit(self) -> Allowance {
        // A time that no clock shows is over.
        let at = |ms| UNIX_EPOCH.checked_add(Duration::from_millis(ms)).unwrap_or(UNIX_EPOCH);
        Allowance { even_denied: self.even_denied, expires: self.expires_ms.map(at) }
    }
}

fn to_ms(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::kept::power_cut::survives;

    #[test]
    fn what_a_person_decided_survives_a_power_cut() {
        let eisen_dir = tempfile::tempdir().unwrap();
        let file = place(eisen_dir.path(), "shop");
        let waits = KeptAccess {
            agent: "ui".to_owned(),
            session: "s".to_owned(),
            path: "docs/a.md".to_owned(),
            action: Action::Read.as_str().to_owned(),
            via: Via::ALL[0].as_str().to_owned(),
            reason: None,
            search: false,
            allowed: None,
        };
        let permit = KeptPermit { even_denied: false, expires_ms: None };
        let allowed = KeptAccess { allowed: Some(permit), ..waits.clone() };
        for queue in [&[waits][..], &[allowed], &[]] {
            survives(&file, || replace(&file, queue).unwrap());
        }
        assert!(!file.exists());
    }
}
