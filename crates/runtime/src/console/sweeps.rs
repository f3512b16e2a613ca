//! Sweeps (incidental accesses that were denied) of running turns, and hints how to allow them.

use std::collections::HashMap;
use std::path::Path;

use crate::config::Config;
use crate::model::{BlockedAccess, SessionKey};

/// Maximum sessions whose sweeps are remembered until their turn ends; past that, all are cleared.
const MOST_SESSIONS: usize = 1000;

pub(super) struct Sweeps {
    config: Config,
    latest: HashMap<SessionKey, BlockedAccess>,
}

impl Sweeps {
    /// `config` is the configuration at the team's start.
    pub(super) fn new(config: Config) -> Self {
        Self { config, latest: HashMap::new() }
    }

    pub(super) fn add(&mut self, access: &BlockedAccess) {
        // An access with an empty session id has no turn.
        if access.sweep.is_none() || access.harmless || access.key.session.as_str().is_empty() {
            return;
        }
        if self.latest.len() >= MOST_SESSIONS {
            self.latest.clear();
        }
        self.latest.insert(access.key.clone(), access.clone());
    }

    pub(super) fn has(&self, key: &SessionKey) -> bool {
        self.latest.contains_key(key)
    }

    /// Ends a session's turn; returns the hint about its sweep.
    pub(super) fn hint(&mut self, key: &SessionKey, program: &str) -> Option<String> {
        let access = self.latest.remove(key)?;
        let (agent, path, action) = (&key.agent, &access.path, access.action);
        let were = match access.sweep {
            Some(1) => "1 access was".to_owned(),
            count => format!("{} accesses were", count.unwrap_or_default()),
        };
        let mend = |path: &Path| self.config.why(agent, path, action).and_then(|why| why.mend);
        let path_itself = Path::new(&**path);
        // The common path of several accesses is a folder: suggest the pattern of its content.
        let below = || mend(&path_itself.join("x")).filter(|mend| mend.value.ends_with("/**"));
        // Don't suggest to allow the whole workspace or disk.
        let is_all = matches!(&**path, "." | "/");
        let mend = if is_all { None } else { mend(path_itself).or_else(below) };
        let mend = mend.map(|mend| format!("{mend}; ")).unwrap_or_default();
        Some(format!(
            "{were} denied in passing ({}: {action} {path}); if this made a command fail: \
             {mend}{program} why {agent} {path}",
            access.id,
        ))
    }
}
