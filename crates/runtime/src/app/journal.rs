//! Connects `[journal]` of the configuration with the room `journal`.

use std::io;
use std::path::Path;

use serde::Deserialize;
use serde_json::json;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::capture::Fullness;
use crate::config::{AgentTable, Config, JournalContent, OnFull, journal_path};
use crate::journal::{self, EventType, Journal, Keep, NewEvent, Place, Quotas, SpawnPayload};
use crate::model::{AgentId, TaskId, mask};
use crate::serve::{HelperEnd, live_teams};
use crate::wire::Reloaded;

/// The nice value of a thread that runs when no other does.
const LOWEST_PRIORITY: i32 = 19;

/// Bytes of the end of what a helper said.
const RESULT: usize = 4096;

/// The settings of a team's journal; None if it is switched off.
pub(crate) fn settings(config: &Config, eisen_dir: &Path) -> Option<journal::Settings> {
    let (team, config) = (config.team.name.clone(), &config.journal);
    let texts = config.content == JournalContent::Full;
    let keep = Keep { texts, outside: config.outside };
    let path = config.path.clone().unwrap_or_else(|| journal_path(eisen_dir, &team));
    let quotas = Some(Quotas { keep_days: config.keep_days, max_mb: config.max_mb });
    let settings = journal::Settings { team, path, keep, quotas };
    config.enabled.then_some(settings)
}

/// When the journal takes no more contents of files, and what becomes of calls that would destroy
/// them.
pub(crate) fn fullness(config: &Config) -> Fullness {
    let Config { journal, .. } = config;
    let at = journal.full_mb.map(|most| most.saturating_mul(1 << 20));
    Fullness { at, holds: journal.on_full == OnFull::Hold }
}

/// The reason that the journal of a configuration can't be written, as a hint.
pub fn journal_hint(config: &Config, eisen_dir: &Path) -> Option<String> {
    let settings = settings(config, eisen_dir)?;
    // A missing or corrupt file is no problem: a new one begins.
    let running = live_teams(eisen_dir).unwrap_or_default();
    let by_team = running.iter().any(|info| info.team == settings.team);
    if let Some(trouble) = journal::probe(&settings.path, by_team) {
        return Some(trouble.to_string());
    }
    let excess = journal::past(&settings.path, settings.quotas?).ok()??;
    let path = settings.path.display();
    Some(format!("the journal {path} loses a minute after the team's start: {excess}"))
}

/// The path of the team's journal, and whether it keeps texts.
pub fn journal_line(config: &Config, eisen_dir: &Path) -> String {
    match settings(config, eisen_dir) {
        None => "none".to_owned(),
        Some(settings) => {
            let keep = if settings.keep.texts { "" } else { ", without texts" };
            format!("{}{keep}", settings.path.display())
        }
    }
}

/// Runs `work` on a thread of its own that yields to all others: on a busy machine the journal falls
/// behind in place of the relays, up to the backlog of the bus.
pub(crate) async fn in_background(work: impl Future<Output = ()> + Send + 'static) {
    let (end, ended) = oneshot::channel();
    let run = move || -> io::Result<()> {
        // Zero names the calling thread. On failure the thread works with its old priority.
        let _ = rustix::process::setpriority_process(None, LOWEST_PRIORITY);
        Builder::new_current_thread().enable_time().build()?.block_on(work);
        let _ = end.send(());
        Ok(())
    };
    let started = std::thread::Builder::new().name("journal-feed".to_owned()).spawn(run);
    if started.is_err() || ended.await.is_err() {
        tracing::warn!("nothing is recorded in the journal: its thread cannot run");
    }
}

/// Records the changes of a reload.
pub(crate) fn reloaded(journal: Option<&Journal>, reloaded: &Reloaded) {
    let payload = serde_json::to_value(reloaded).unwrap_or_default();
    offer(journal, &json!({ "by": "reload", "changes": payload }));
}

/// Records that an agent was added over the port.
pub(crate) fn added(journal: Option<&Journal>, table: &AgentTable) {
    let mut config = serde_json::Value::from(table.clone());
    mask(&mut config);
    if let (Some(journal), Some(table)) = (journal, config.as_object_mut())
        && !journal.settings().keep.texts
    {
        table.retain(|key, _| key != "prompt");
    }
    let payload = json!({ "by": "add_agent", "agent_id": table.get("id"), "config": config });
    offer(journal, &payload);
}

/// Records that an agent was removed over the port.
pub(crate) fn removed(journal: Option<&Journal>, agent: &str) {
    offer(journal, &json!({ "by": "remove_agent", "agent_id": agent }));
}

/// Records that another candidate takes over for an agent, or none.
pub(crate) fn moved(journal: Option<&Journal>, payload: &serde_json::Value) {
    offer(journal, payload);
}

/// The part of a helper's table that is recorded.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SpawnedTable {
    id: Option<String>,
    zone: SpawnedZone,
    profile: serde_json::Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SpawnedZone {
    allowed: serde_json::Value,
}

/// Records that an agent started a helper.
pub(crate) fn spawned(journal: Option<&Journal>, parent: &AgentId, depth: u32, table: &AgentTable) {
    let Some(journal) = journal else { return };
    let SpawnedTable { id, zone, profile } =
        SpawnedTable::deserialize(serde_json::Value::from(table.clone())).unwrap_or_default();
    let payload = SpawnPayload { agent_id: id, depth, zone: zone.allowed, profile };
    let place = Place::Agent(parent.clone());
    journal.offer(NewEvent::new(place, EventType::SUBAGENT_SPAWN, &payload));
}

/// Records the end of a helper.
pub(crate) fn completed(journal: Option<&Journal>, end: &HelperEnd, usage: &[serde_json::Value]) {
    let Some(journal) = journal else { return };
    let HelperEnd { agent, task, state, reason, text } = end;
    let keeps_texts = journal.settings().keep.texts;
    let result = text.get(text.ceil_char_boundary(text.len().saturating_sub(RESULT))..);
    let payload = json!({
        "task": task.as_ref().map(TaskId::as_str),
        "state": state.as_str(),
        "reason": reason.as_ref().filter(|_| keeps_texts),
        "result": result.filter(|_| keeps_texts),
        "bytes": text.len(),
        "usage": usage,
    });
    let place = Place::Agent(agent.clone());
    journal.offer(NewEvent::new(place, EventType::SUBAGENT_COMPLETE, &payload));
}

fn offer(journal: Option<&Journal>, payload: &serde_json::Value) {
    if let Some(journal) = journal {
        journal.offer(NewEvent::new(Place::Team, EventType::CONFIG_CHANGE, payload));
    }
}
