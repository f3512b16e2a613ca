//! Grants that persons gave for a team: kept in the file of its overlay, and shown by `check`, `why` and `team
//! grants`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use crate::access::routes;
use crate::config::{Config, Layered, Overlay, Why};
use crate::home::here;
use crate::home::journals;
use crate::model::{Action, AgentId, TeamGrant};
use crate::routing::{GrantStore, opened_by};
use crate::team_file::kept_config;
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
pub(crate) fn open(
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

/// The grants for a team that does not run, by its configuration: that of the folder, the one that `up` made, or that
/// of its workspace. Without one, each agent counts as the team's.
pub fn of_team(eisen_dir: &Path, team: &str, folder: &Path) -> anyhow::Result<Vec<TeamGrant>> {
    let workspace = journals::workspace_of(eisen_dir, team).unwrap_or_default();
    let of_folder = |folder: &Path| here::config_of(folder).ok().flatten();
    let files = [
        of_folder(folder),
        kept_config(eisen_dir, team),
        of_folder(&workspace).filter(|_| workspace.is_absolute()),
    ];
    let read = |file: PathBuf| crate::team_file::read(&file, eisen_dir).ok();
    let is_its = |layered: &Layered| layered.config.team.name == team;
    if let Some(layered) = files.into_iter().flatten().filter_map(read).find(is_its) {
        return Ok(of_config(&layered.config, &layered.overlay));
    }
    let overlay = Overlay::read(&Overlay::path(eisen_dir, team))?;
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
    let grants = of_config(config, overlay).into_iter();
    let grants: Vec<_> = grants.filter(|grant| grant.applies && grant.agent == why.agent).collect();
    let denying = routes::denying(config, why, &zone);
    let opens_pattern = |grant: &&TeamGrant| widens(grant, &zone, &why.path, why.action);
    let found = grants.iter().find(|grant| {
        denying.is_none() && opens_pattern(grant) || is_of(grant, &zone, &why.path, why.action)
    });
    if let Some(grant) = found {
        why.allow_by(grant);
    } else if let (Some(rule), Some(grant)) = (denying, grants.iter().find(opens_pattern)) {
        let (number, id) = (rule.number, &grant.id);
        let _ = write!(why.rule, ", and rule {number} of [[routing]] keeps it from {id}");
    }
}

/// Whether the pattern of a grant opens a path.
fn widens(grant: &TeamGrant, zone: &Zone, path: &str, action: Action) -> bool {
    (grant.action == action || grant.action == Action::Write)
        && opened_by(grant).is_some_and(|pattern| zone.widens(&pattern, path, action))
}

/// Whether a grant is of this very path.
fn is_of(grant: &TeamGrant, zone: &Zone, path: &str, action: Action) -> bool {
    *grant.path == *path
        && grant.action == action
        && zone.is_grantable(path, action)
        && (grant.even_denied || zone.denied_by(path).is_none())
}
