//! Connects `[journal]` of the configuration with the room `journal`.

use std::path::Path;

use serde_json::json;

use crate::config::{AgentTable, Config, JournalContent, journal_path};
use crate::journal::{self, EventType, Journal, Keep, NewEvent, Place};
use crate::serve::Reloaded;

/// The settings of a team's journal; None if it is switched off.
pub(super) fn settings(config: &Config, eisen_dir: &Path) -> Option<journal::Settings> {
    let (team, config) = (config.team.name.clone(), &config.journal);
    let keep = match config.content {
        JournalContent::Full => Keep::Full,
        JournalContent::Metadata => Keep::Metadata,
    };
    let path = config.path.clone().unwrap_or_else(|| journal_path(eisen_dir, &team));
    let settings = journal::Settings { team, path, keep };
    config.enabled.then_some(settings)
}

/// Records what a reload changed.
pub(super) fn reloaded(journal: Option<&Journal>, reloaded: &Reloaded) {
    let payload = serde_json::to_value(reloaded).unwrap_or_default();
    offer(journal, &json!({ "by": "reload", "changes": payload }));
}

/// Records that an agent was added over the port.
pub(super) fn added(journal: Option<&Journal>, table: &AgentTable) {
    let mut config = serde_json::Value::from(table.clone());
    journal::mask(&mut config);
    if let (Some(journal), Some(table)) = (journal, config.as_object_mut())
        && journal.settings().keep == Keep::Metadata
    {
        table.retain(|key, _| key != "prompt");
    }
    let payload = json!({ "by": "add_agent", "agent_id": table.get("id"), "config": config });
    offer(journal, &payload);
}

/// Records that an agent was removed over the port.
pub(super) fn removed(journal: Option<&Journal>, agent: &str) {
    offer(journal, &json!({ "by": "remove_agent", "agent_id": agent }));
}

fn offer(journal: Option<&Journal>, payload: &serde_json::Value) {
    if let Some(journal) = journal {
        journal.offer(NewEvent::new(Place::Team, EventType::CONFIG_CHANGE, payload));
    }
}
