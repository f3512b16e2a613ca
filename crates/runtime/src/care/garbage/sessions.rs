//! Unused entries of the registry of sessions.

use std::collections::HashSet;
use std::path::Path;

use anyhow::Context as _;
use eisen_base::task;
use tokio_util::sync::CancellationToken;

use crate::care::garbage::{Garbage, Removal};
use crate::home::journals::{journal_place, teams_with_journals};
use crate::journal::{self, Store};
use crate::model::{AgentId, SessionId, SessionKey, now_ms};
use crate::session::{Answer, Listed, RegistryHandle, RegistryRequest};

const DAY_MS: u64 = 86_400_000;

/// The sessions of a journal, as the wire knows them.
pub(super) fn of_journal(path: &Path) -> Vec<SessionKey> {
    let sessions = Store::open(path).and_then(|store| store.sessions()).unwrap_or_default();
    let key = |session: journal::Session| {
        let wire = SessionId::new(session.wire_session_id?);
        Some(SessionKey::new(AgentId::new(session.agent_id), wire))
    };
    sessions.into_iter().filter_map(key).collect()
}

/// The entries of sessions whose journals go, and those that are too old. Never the active one, and
/// none that is open in a running team.
pub(super) async fn nobodys(
    eisen_dir: &Path,
    closed: Vec<SessionKey>,
    max_age_days: Option<u64>,
) -> anyhow::Result<Option<Garbage>> {
    let file = eisen_dir.join("core_sessions.json");
    if !file.exists() {
        return Ok(None);
    }
    let all = with_registry(eisen_dir, async |registry: &RegistryHandle| {
        match registry.ask(RegistryRequest::List { agent: None }).await? {
            Answer::List(list) => Ok(list),
            _ => Ok(Vec::new()),
        }
    })
    .await?;
    let closed: HashSet<_> = closed.into_iter().collect();
    let used = used(eisen_dir, &closed);
    let oldest = max_age_days.map(|days| now_ms().saturating_sub(days.saturating_mul(DAY_MS)));
    let goes = |session: &&Listed| {
        let is_old = oldest.is_some_and(|oldest| session.updated_at_ms <= oldest);
        let is_nobodys = is_old || closed.contains(&session.key);
        is_nobodys && !session.is_active && !used.contains(&session.key)
    };
    let keys: Vec<_> = all.iter().filter(goes).map(|session| session.key.clone()).collect();
    if keys.is_empty() {
        return Ok(None);
    }
    let bytes = std::fs::metadata(&file).map_or(0, |file| file.len());
    let why = max_age_days
        .map_or(String::new(), |days| format!(", or they are older than `--max-age-days` {days}"));
    Ok(Some(Garbage {
        what: format!("{} sessions in {}", keys.len(), file.display()),
        reason: format!("their team is gone{why}"),
        bytes: bytes / all.len().max(1) as u64 * keys.len() as u64,
        team: None,
        removal: Removal::Sessions(keys),
    }))
}

/// Sessions that are open in a running team, and those of removed journals that another journal
/// has, too.
fn used(eisen_dir: &Path, closed: &HashSet<SessionKey>) -> HashSet<SessionKey> {
    let mut used = HashSet::new();
    for team in teams_with_journals(eisen_dir) {
        let path = journal_place(eisen_dir, &team);
        let sessions = Store::open(&path).and_then(|store| store.sessions()).unwrap_or_default();
        if journal::is_written(&path) {
            let open = sessions.into_iter().filter(|session| session.status == "open");
            used.extend(open.filter_map(|session| {
                let wire = SessionId::new(session.wire_session_id?);
                Some(SessionKey::new(AgentId::new(session.agent_id), wire))
            }));
        } else if !of_journal(&path).iter().all(|key| closed.contains(key)) {
            used.extend(of_journal(&path).into_iter().filter(|key| closed.contains(key)));
        }
    }
    used
}

pub(super) async fn close(eisen_dir: &Path, keys: Vec<SessionKey>) -> anyhow::Result<()> {
    with_registry(eisen_dir, async |registry: &RegistryHandle| {
        for key in keys {
            registry.ask(RegistryRequest::Close(key)).await?;
        }
        Ok(())
    })
    .await
}

async fn with_registry<T>(
    eisen_dir: &Path,
    ask: impl AsyncFnOnce(&RegistryHandle) -> Result<T, crate::session::RegistryError>,
) -> anyhow::Result<T> {
    let cancel = CancellationToken::new();
    let (registry, serving) = RegistryHandle::spawn(eisen_dir, cancel.clone());
    let serving = task::spawn(serving);
    let answer = ask(&registry).await.context("cannot use the registry of sessions");
    cancel.cancel();
    let _ = serving.await;
    answer
}
