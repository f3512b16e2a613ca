//! What the start of a run comes to.

use std::path::PathBuf;

use crate::model::AgentId;

/// The helper of a run.
pub(in crate::app) struct StartedHelper {
    pub(in crate::app) agent: AgentId,
    pub(in crate::app) depth: u32,
    /// The run whose agent started it, or `TEAM/AGENT`.
    pub(in crate::app) parent: Option<String>,
    pub(in crate::app) command: Vec<String>,
    pub(in crate::app) model: Option<String>,
    /// The patterns of its zone.
    pub(in crate::app) zone: Vec<String>,
    /// Patterns that were asked for, and reach out of its parent's zone.
    pub(in crate::app) further: Vec<String>,
    pub(in crate::app) workspace: PathBuf,
}
