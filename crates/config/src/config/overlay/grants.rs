//! Grants that persons gave for the team, in the file of its overlay. Only the team itself, or a command while
//! it does not run, changes it there.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Overlay, OverlayError};
use crate::kept::{HeldLock, LockAt, PATIENCE, lock};
use crate::model::{Action, AgentId, DecidedBy, TeamGrant, quoted};
use crate::zone::GrantPattern;

/// Grants of one team.
const MOST: usize = 500;

/// How long a running team waits for the file: its agents wait with it.
const SHORT_PATIENCE: Duration = Duration::from_millis(250);

/// Bytes of a path.
const LONGEST_PATH: usize = 4096;

/// A grant, in the file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeptGrant {
    id: String,
    /// The workspace of the team then: another project may use its name.
    workspace: String,
    agent: String,
    path: String,
    action: String,
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    even_denied: bool,
    by: String,
    granted_ms: u64,
}

impl Overlay {
    /// The grants that persons gave for the team. One of another workspace, or of an agent that is none of the
    /// configuration's, does not apply.
    pub fn grants(&self, workspace: &Path, is_agent: impl Fn(&AgentId) -> bool) -> Vec<TeamGrant> {
        let here = workspace.to_string_lossy();
        let grants = self.grants.iter().filter_map(|kept| {
            let elsewhere = (*kept.workspace != *here).then(|| Arc::from(&*kept.workspace));
            let grant = kept.read(elsewhere).ok()?;
            let is_ours = !self.by_lead.contains(grant.agent.as_str());
            let applies = grant.elsewhere.is_none() && is_ours && is_agent(&grant.agent);
            Some(TeamGrant { applies, ..grant })
        });
        grants.collect()
    }

    /// Keeps these grants, and no others, in a file; agents that were added and removed stay as they are there. A file
    /// that others keep locked is an error soon.
    pub fn keep_grants(
        path: &Path,
        workspace: &Path,
        grants: &[TeamGrant],
    ) -> Result<(), OverlayError> {
        let _lock = locked(path, SHORT_PATIENCE)?;
        let grants = grants.iter().map(|grant| KeptGrant::of(grant, workspace)).collect();
        let overlay = Self { grants, ..Self::read(path)? };
        overlay.check_grants().map_err(|why| unusable(path, why))?;
        overlay.put(path)
    }

    /// Ends a grant in a file; returns it, or None if there is no such grant.
    pub fn revoke(path: &Path, id: &str) -> Result<Option<TeamGrant>, OverlayError> {
        let _lock = locked(path, PATIENCE)?;
        let mut overlay = Self::read(path)?;
        let Some(at) = overlay.grants.iter().position(|kept| kept.id == id) else {
            return Ok(None);
        };
        let revoked = overlay.grants.remove(at).read(None).ok();
        overlay.put(path)?;
        Ok(revoked)
    }

    /// A mistake in the grants, if there is one: a file that is wrong opens nothing.
    pub(super) fn check_grants(&self) -> Result<(), String> {
        if self.grants.len() > MOST {
            return Err(format!("has more than {MOST} grants"));
        }
        self.grants.iter().try_for_each(|kept| {
            let read = kept.read(None).map(drop);
            read.map_err(|why| format!("is wrong: the grant {}: {why}", quoted(&kept.id)))
        })
    }
}

/// Keeps others from changing a file meanwhile. Without its folder there is nothing to lose: a team makes that at
/// its first start.
pub(super) fn locked(path: &Path, patience: Duration) -> Result<Option<HeldLock>, OverlayError> {
    let folder = path.parent().filter(|folder| folder.is_dir());
    let lock = folder.map(|folder| lock(LockAt::Found(folder), patience)).transpose();
    lock.map_err(|cause| OverlayError::NotWritten { path: path.to_owned(), cause })
}

fn unusable(path: &Path, why: String) -> OverlayError {
    OverlayError::Unusable { path: path.to_owned(), why }
}

impl KeptGrant {
    fn of(grant: &TeamGrant, workspace: &Path) -> Self {
        let TeamGrant { id, agent, path, action, pattern, .. } = grant;
        let here = || workspace.to_string_lossy().into_owned();
        Self {
            id: id.clone(),
            workspace: grant.elsewhere.as_deref().map_or_else(here, str::to_owned),
            agent: agent.to_string(),
            path: path.to_string(),
            action: action.as_str().to_owned(),
            pattern: pattern.as_deref().map(str::to_owned),
            even_denied: grant.even_denied,
            by: grant.by.to_string(),
            granted_ms: grant.granted_ms,
        }
    }

    fn read(&self, elsewhere: Option<Arc<str>>) -> Result<TeamGrant, String> {
        let number = self.id.strip_prefix('g').unwrap_or_default();
        if number.is_empty() || number.len() > 9 || !number.bytes().all(|it| it.is_ascii_digit()) {
            return Err("its id is none such as `g1`".to_owned());
        }
        if self.path.is_empty() || self.path.len() > LONGEST_PATH {
            return Err("its path has no length that a path has".to_owned());
        }
        let action = Action::ALL.into_iter().find(|it| it.as_str() == self.action);
        let action = action.ok_or_else(|| "its action is neither read nor write".to_owned())?;
        let pattern = self.pattern.as_deref().map(GrantPattern::compile).transpose()?;
        if pattern.as_ref().is_some_and(|pattern| !pattern.matches(&self.path)) {
            return Err("its pattern does not match its path".to_owned());
        }
        let by = self.by.parse().map_err(|()| "nobody is known who gave it".to_owned())?;
        if !matches!(by, DecidedBy::Person | DecidedBy::Web) {
            return Err("no person gave it".to_owned());
        }
        Ok(TeamGrant {
            id: self.id.clone(),
            agent: AgentId::new(self.agent.as_str()),
            path: self.path.as_str().into(),
            action,
            pattern: pattern.map(|pattern| Arc::clone(pattern.text())),
            even_denied: self.even_denied,
            by,
            granted_ms: self.granted_ms,
            elsewhere,
            applies: true,
        })
    }
}
