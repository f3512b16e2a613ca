//! Tells the next attempt at a task what a lost one wrote, or takes that back.

use std::collections::BTreeSet;
use std::path::Path;

use crate::config::{OnFailover, SharedConfig};
use crate::failover::handover::PastWork;
use crate::failover::past_work::{look, take_back};
use crate::home::journals::journal_place;
use crate::journal::Store;
use crate::runs::{RunState, find_run};
use eisen_base::task;

/// Looks at what the agents of a run did that did not succeed, and takes their files back if the
/// configuration says so.
pub(super) async fn past_of(eisen_dir: &Path, state: &RunState, why: &str) -> Vec<PastWork> {
    let team = state.team.as_str();
    let config = find_run(eisen_dir, &state.id).ok().map(|run| run.config());
    let shared = SharedConfig::read(eisen_dir, config.as_deref());
    let undoes = shared.is_ok_and(|shared| shared.runs.on_failover == OnFailover::Undo);
    let journal = journal_place(eisen_dir, team);
    let agents = task::spawn_blocking(move || agents_in(&journal)).await;
    let mut all = Vec::new();
    for agent in agents.unwrap_or_default() {
        let candidate = state.profile.clone().unwrap_or_else(|| agent.clone());
        let what = why.to_owned();
        let mut past = PastWork { agent, candidate, what, with_run: true, ..PastWork::default() };
        if undoes {
            past.undone = Some(take_back(eisen_dir, team, &state.workspace, &past.agent).await);
        }
        past.done = Some(look(eisen_dir, team, &past).await);
        if past.summary().is_some() {
            all.push(past);
        }
    }
    all
}

/// The agents that had sessions in a journal.
fn agents_in(journal: &Path) -> BTreeSet<String> {
    let sessions = Store::open(journal).and_then(|store| store.sessions());
    sessions.unwrap_or_default().into_iter().map(|session| session.agent_id).collect()
}
