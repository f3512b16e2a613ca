//! Grants that persons gave for a team: kept in the file of its overlay, and shown by `check`, `why` and `team
//! grants`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use crate::config::{Config, Overlay, Why};
use crate::model::{Action, AgentId, TeamGrant};
use crate::routing::{GrantStore, opened_by};
use crate::zone::Zone;

/// Where a team keeps what persons opened.
#[derive(Debug)]
struct OverlayFile {
    path: PathBuf,
    workspace: PathBuf,
    /// The agents of the configuration at the team's start: others may have any name.
    agents: Vec<AgentId>,
}

impl GrantStore for OverlayFile {
    fn keep(&self, grants: &[TeamGrant]) -> Result<(), String> {
        let is_new = |grant: &&TeamGrant| grant.applies && !self.agents.contains(&grant.agent);
        if let Some(TeamGrant { agent, .. }) = grants.iter().find(is_new) {
            return Err(format!(
                "`{agent}` is no agent of the configuration at the team's start: allow it for the session"
            ));
        }
        Overlay::keep_grants(&self.path, &self.workspace, grants).map_err(|error| error.to_string())
    }
}

/// The grants that a team has, and the place where it keeps more.
pub(super) fn open(
    config: &Config,
    eisen_dir: &Path,
) -> anyhow::Result<(Vec<TeamGrant>, Arc<dyn GrantStore>)> {
    let path = Overlay::path(eisen_dir, &config.team.name);
    let overlay = Overlay::read(&path)?;
    let granted = of_config(config, &overlay);
    let own = config.agents.iter().map(|agent| &agent.id);
    let own = own.filter(|agent| !overlay.by_lead().contains(agent.as_str()));
    let (workspace, agents) = (config.team.workspace.clone(), own.cloned().collect());
    let store = OverlayFile { path, workspace, agents };
    Ok((granted, Arc::new(store)))
}

/// The grants for the team of a configuration.
pub fn of_config(config: &Config, overlay: &Overlay) -> Vec<TeamGrant> {
    overlay.grants(&config.team.workspace, |agent| config.agent(agent).is_some())
}

/// The grants for a team that does not run, whose configuration nobody names.
pub fn of_team(eisen_dir: &Path, team: &str) -> anyhow::Result<Vec<TeamGrant>> {
    let overlay = Overlay::read(&Overlay::path(eisen_dir, team))?;
    let workspace = super::journaling::workspace_of(eisen_dir, team).unwrap_or_default();
    Ok(overlay.grants(&workspace, |_| true))
}

/// Ends a grant of a team that does not run; None if there is no such grant.
pub fn revoke(eisen_dir: &Path, team: &str, id: &str) -> anyhow::Result<Option<TeamGrant>> {
    Overlay::revoke(&Overlay::path(eisen_dir, team), id).context("the grant stays")
}

/// Adds to an explanation what a person opened for the team.
pub fn explain(why: &mut Why, config: &Config, overlay: &Overlay) {
    let Some(agent) = config.agent(&why.agent).filter(|_| !why.allowed) else { return };
    let Ok(zone) = Zone::compile(&agent.zone.spec) else { return };
    let found = of_config(config, overlay)
        .into_iter()
        .find(|grant| grant.applies && covers(grant, &zone, &why.agent, &why.path, why.action));
    if let Some(grant) = found {
        why.allow_by(&grant);
    }
}

fn covers(grant: &TeamGrant, zone: &Zone, agent: &AgentId, path: &str, action: Action) -> bool {
    if grant.agent != *agent || !(grant.action == action || grant.action == Action::Write) {
        return false;
    }
    opened_by(grant).is_some_and(|pattern| zone.widens(&pattern, path, action))
        || *grant.path == *path
            && grant.action == action
            && zone.is_grantable(path, action)
            && (grant.even_denied || zone.denied_by(path).is_none())
}
