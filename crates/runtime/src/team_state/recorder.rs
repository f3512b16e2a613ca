//! Records the sessions of the team's agents in the registry: opened, mode, model, closed. Sessions
//! stay in the registry when the team ends.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::watch::error::RecvError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::model::{Model, SessionKey, SessionMode};
use crate::serve;
use crate::session::{RegistryHandle, RegistryRequest, Upsert};
use crate::team_state::agent_owners::AgentOwners;
use crate::tracker::{SessionReport, TrackerHandle};

/// Capacity of the queue of requests to catch up; past that, senders wait.
const WAITING: usize = 64;

/// Starts recording; ends with `cancel`.
pub(crate) fn start(
    team: String,
    tracker: TrackerHandle,
    registry: RegistryHandle,
    owners: AgentOwners,
    cancel: CancellationToken,
) -> (serve::Recorder, impl Future<Output = ()>) {
    let (sender, requests) = mpsc::channel(WAITING);
    let recorder =
        Recorder { team, tracker, registry, owners, recorded: HashMap::new(), is_failing: false };
    (sender, async move {
        cancel.run_until_cancelled(recorder.run(requests)).await;
    })
}

/// Minimum time between two writes without a request: an agent that keeps changing its model must
/// not keep the disk busy.
const REST: Duration = Duration::from_millis(100);

/// Delay before a failed write is retried.
const RETRY: Duration = Duration::from_secs(5);

struct Recorder {
    team: String,
    tracker: TrackerHandle,
    registry: RegistryHandle,
    /// Whose a session is that nobody else has.
    owners: AgentOwners,
    /// The sessions as the registry has them.
    recorded: HashMap<SessionKey, Recorded>,
    /// The last write failed, and the failure was logged.
    is_failing: bool,
}

#[derive(Clone, PartialEq)]
struct Recorded {
    mode: SessionMode,
    model: Option<Model>,
    /// For the orchestrator: the other agents' sessions.
    providers: Vec<SessionKey>,
}

impl Recorder {
    async fn run(mut self, mut requests: mpsc::Receiver<oneshot::Sender<()>>) {
        let mut roster = self.tracker.roster();
        let mut rested = Instant::now();
        loop {
            let mut waiting = Vec::new();
            tokio::select! {
                taken = requests.recv_many(&mut waiting, WAITING) => if taken == 0 { return },
                changed = changed(&mut roster, rested) => if changed.is_err() { return },
                () = sleep(RETRY), if self.is_failing => {}
            }
            roster.mark_unchanged();
            self.catch_up().await;
            rested = Instant::now() + REST;
            for caught_up in waiting {
                let _ = caught_up.send(());
            }
        }
    }

    /// Sends the changes since the last call to the registry.
    async fn catch_up(&mut self) {
        // None: the tracker has ended; the sessions stay recorded.
        let Some(mut open) = self.tracker.sessions().await else { return };
        open.retain(|session| session.is_open);
        let now: HashMap<_, _> =
            open.iter().map(|session| (session.key.clone(), recorded(session, &open))).collect();
        let mut news: Vec<_> = open
            .iter()
            .filter(|session| self.recorded.get(&session.key) != now.get(&session.key))
            .map(|session| (session.key.clone(), self.upsert(&session.key, &now[&session.key])))
            .collect();
        let gone = self.recorded.keys().filter(|key| !now.contains_key(key));
        news.extend(gone.map(|key| (key.clone(), RegistryRequest::Close(key.clone()))));
        // All at once, so that the registry writes them together.
        let requests = news.into_iter().map(|(key, request)| {
            let answer = self.registry.ask(request);
            async { (key, answer.await) }
        });
        for (key, answer) in join_all(requests).await {
            match (answer, now.get(&key)) {
                (Ok(_), Some(session)) => drop(self.recorded.insert(key, session.clone())),
                (Ok(_), None) => drop(self.recorded.remove(&key)),
                (Err(error), _) if !self.is_failing => {
                    self.is_failing = true;
                    tracing::warn!(%error, "cannot record the team's sessions");
                    return;
                }
                (Err(_), _) => return,
            }
        }
        self.is_failing = false;
    }

    /// Leaves the fields that clients set unchanged.
    fn upsert(&self, key: &SessionKey, session: &Recorded) -> RegistryRequest {
        let was_orchestrator =
            self.recorded.get(key).is_some_and(|before| before.mode == SessionMode::Orchestrator);
        let is_orchestrator = session.mode == SessionMode::Orchestrator;
        let model = session.model.as_ref().map(|model| {
            to_raw_value(&json!({ "model_id": &*model.id, "name": &*model.name })).ok()
        });
        RegistryRequest::Upsert(Upsert {
            model: model.flatten(),
            providers: (is_orchestrator || was_orchestrator).then(|| session.providers.clone()),
            team: Some(self.team.clone()),
            owner: self.owners.of(&key.agent),
            ..Upsert::new(key.clone(), session.mode)
        })
    }
}

async fn changed(roster: &mut watch::Receiver<()>, rested: Instant) -> Result<(), RecvError> {
    roster.changed().await?;
    sleep_until(rested).await;
    Ok(())
}

fn recorded(session: &SessionReport, all: &[SessionReport]) -> Recorded {
    let others = all.iter().filter(|other| other.key.agent != session.key.agent);
    let providers = match session.mode {
        SessionMode::Orchestrator => others.map(|other| other.key.clone()).collect(),
        SessionMode::SingleAgent => Vec::new(),
    };
    Recorded { mode: session.mode, model: session.model.clone(), providers }
}

#[cfg(test)]
mod tests;
