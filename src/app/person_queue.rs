//! Keeps the accesses that wait for a person in a file of the team's folder, so that they still wait
//! when the team starts again.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::journaling::team_folder;
use crate::model::{Action, AgentId, BlockedAccess, SessionId, SessionKey, Via};
use crate::routing::{AccessScope, Request};
use crate::zone::Zone;

/// Bytes of a file that is read: a thousand accesses with the longest paths and reasons.
const LONGEST: u64 = 32 << 20;

/// An access that waits.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
struct QueuedAccess {
    agent: String,
    session: String,
    path: String,
    action: String,
    via: String,
    reason: Option<String>,
}

/// The file of a team.
pub(super) fn place(eisen_dir: &Path, team: &str) -> PathBuf {
    team_folder(eisen_dir, team).join("person.json")
}

/// The accesses that an earlier run left, as the zones judge them now; none if there is no file that
/// can be read. Reads the disk.
pub(super) fn read(file: &Path, zones: &HashMap<AgentId, Arc<Zone>>) -> Vec<Request> {
    let mut text = Vec::new();
    let read = File::open(file).and_then(|file| file.take(LONGEST).read_to_end(&mut text));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            tracing::warn!(%error, file = %file.display(), "can't read what waits for a person");
            return Vec::new();
        }
    }
    let waiting: Vec<QueuedAccess> = serde_json::from_slice(&text).unwrap_or_else(|error| {
        tracing::warn!(%error, file = %file.display(), "the file of what waits for a person is torn");
        Vec::new()
    });
    let known = waiting.len();
    let requests: Vec<_> = waiting.into_iter().filter_map(|it| it.request(zones)).collect();
    if requests.len() < known {
        let dropped = known - requests.len();
        tracing::warn!(
            dropped,
            "accesses wait for a person no more: of agents that left, or in their zones"
        );
    }
    requests
}

/// Keeps the queue in its file, until `cancel`.
pub(super) async fn keep(
    file: PathBuf,
    mut queue: watch::Receiver<Arc<[BlockedAccess]>>,
    cancel: CancellationToken,
) {
    while let Some(Ok(())) = cancel.run_until_cancelled(queue.changed()).await {
        let waiting = queue.borrow_and_update().clone();
        write(&file, waiting).await;
    }
    let waiting = queue.borrow().clone();
    write(&file, waiting).await;
}

async fn write(file: &Path, queue: Arc<[BlockedAccess]>) {
    let place = file.to_owned();
    let writing = move || replace(&place, &queue.iter().map(QueuedAccess::of).collect::<Vec<_>>());
    if let Ok(Err(error)) = tokio::task::spawn_blocking(writing).await {
        tracing::warn!(%error, file = %file.display(), "can't keep what waits for a person");
    }
}

/// Puts a whole file into the place, which only its owner can read; none if nothing waits.
fn replace(file: &Path, waiting: &[QueuedAccess]) -> io::Result<()> {
    if waiting.is_empty() {
        return match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let draft = file.with_extension("json.new");
    let mut options = File::options();
    let mut written = options.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    written.write_all(&serde_json::to_vec(waiting)?)?;
    written.sync_all()?;
    std::fs::rename(draft, file)
}

impl QueuedAccess {
    fn of(access: &BlockedAccess) -> Self {
        Self {
            agent: access.key.agent.to_string(),
            session: access.key.session.to_string(),
            path: access.path.to_string(),
            action: access.action.as_str().to_owned(),
            via: access.via.as_str().to_owned(),
            reason: access.reason.as_deref().map(str::to_owned),
        }
    }

    /// None if its agent is no more, or nothing is to decide.
    fn request(self, zones: &HashMap<AgentId, Arc<Zone>>) -> Option<Request> {
        let action = Action::ALL.into_iter().find(|action| action.as_str() == self.action)?;
        let via = Via::ALL.into_iter().find(|via| via.as_str() == self.via)?;
        let agent = AgentId::new(self.agent);
        let zone = zones.get(&agent)?;
        let denied = zone.check(&zone.workspace().join(&self.path), action).err()?;
        Some(Request {
            key: SessionKey::new(agent, SessionId::new(self.session)),
            denied_by: zone.denied_by(&denied.path),
            path: denied.path,
            action,
            via,
            scope: AccessScope::Path,
            hold: false,
            may_wait: true,
            grantable: denied.grantable,
            caller: None,
            reason: self.reason.map(Into::into),
        })
    }
}
