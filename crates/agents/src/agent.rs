//! One agent: a pure transition function for its lifecycle, and an actor that performs the effects.
//! An agent knows nothing of other agents but the status of its dependencies.

mod actor;
mod admission;
mod concerns;
mod confinement;
mod doorkeeper;
mod handle;
mod lifecycle;
mod locks;
mod plugged;
mod prompts;
mod run;
mod slot_wait;
mod stalls;
mod writes;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::budget::Account;
use crate::capture::Capture;
use crate::client_host::HostSettings;
use crate::conflicts::Conflicts;
use crate::metrics::Tally;
use crate::model::{AgentId, OnLoop, OnViolation, TakenCandidate, TeamMemory, UsageScope};
use crate::process::{Command, Launcher, Limits};
use crate::proxy::ModelCalls;
use crate::routing::RoutingHandle;
use crate::tracker::TrackerHandle;
use crate::zone::{Bounds, Zone};
use admission::pending_or;

pub use admission::{Admission, Capacity};
pub use confinement::ZoneEnforcement;
pub use doorkeeper::{AgentDoorkeeper, DoorkeeperConfig};
pub use handle::AgentHandle;
pub use lifecycle::{Policy, Restarts};
pub use plugged::Plugin;
pub use prompts::{AgentError, Prompt};
pub use slot_wait::SlotWish;
pub use stalls::{STALL_AFTER, Silence, watch_over};

/// The settings that an agent is started with.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct AgentSettings {
    pub id: AgentId,
    /// Number of the configuration's edition; each run keeps the one it was started with.
    pub edition: u64,
    pub command: Command,
    /// File that receives its standard error.
    pub log: PathBuf,
    pub zone: Arc<Zone>,
    /// Limits that the kernel enforces; None without the kernel tier.
    pub bounds: Option<Arc<Bounds>>,
    /// Kernel features that are missing for full enforcement, by name.
    pub kernel_lacks: Arc<[String]>,
    /// Report the files that the agent opens; kernel tier only.
    pub observe_files: bool,
    /// After this time it ends a shell command by itself; None: that is not known.
    pub patience: Option<Duration>,
    /// Translates its protocol; None for an agent that speaks ACP.
    pub plugin: Option<Plugin>,
    pub host: HostSettings,
    /// How the `usage` of its answers counts.
    pub usage: UsageScope,
    /// The mode of its sessions in which it makes model calls that it never reports.
    pub uncounted_mode: Option<String>,
    /// Where what it spends is counted.
    pub account: Account,
    /// Its model calls, if they go by the team's endpoint.
    pub model_calls: Option<Arc<ModelCalls>>,
    /// Open a session once it is initialized.
    pub session: bool,
    /// Sent once the session is open.
    pub prompt: Option<String>,
    /// Permission requests go to the orchestrator.
    pub orchestrator_permits: bool,
    pub on_violation: OnViolation,
    pub on_loop: OnLoop,
    /// The agent receives the briefings on blocked accesses.
    pub is_orchestrator: bool,
    pub restarts: Restarts,
    /// Time without output and CPU use in a turn before the agent counts as stalled; zero disables
    /// the check.
    pub stall_after: Duration,
    /// Limits of the agent together with its terminals.
    pub limits: Limits,
    /// The agent exits when its standard input is closed.
    pub ends_on_eof: bool,
    /// Grace period after its standard input is closed, and again after SIGTERM.
    pub stop_grace: Duration,
    /// The slot that it takes for each run of its process; None: it needs none.
    pub slot: Option<SlotWish>,
    /// The candidate that its command is of, if it has a tier.
    pub candidate: Option<TakenCandidate>,
}

/// The handles that an agent shares with the rest of its team.
#[derive(Clone)]
pub struct Surroundings {
    pub launcher: Launcher,
    /// A folder that no zone grants; a wall is tested with a file in it.
    pub ungranted: PathBuf,
    pub bus: crate::bus::Bus,
    pub tracker: TrackerHandle,
    pub routing: RoutingHandle,
    pub admission: Admission,
    /// The memory that waits in this process for the agents.
    pub memory: TeamMemory,
    /// Captures the files that agents write; None without a journal.
    pub capture: Option<Capture>,
    /// Locks of files; None: conflicts are not looked for.
    pub conflicts: Option<Conflicts>,
    /// Counts relayed lines and stopped calls, once somebody reads that.
    pub tally: Arc<Tally>,
    /// File system access for extractors.
    pub workspace: Arc<dyn crate::extract::Workspace>,
}

impl Surroundings {
    /// The surroundings of an agent that works in this folder. In a worktree of its own no other agent writes its
    /// files, so none are locked.
    fn in_workspace(&self, folder: &Path) -> Self {
        let root = self.workspace.root();
        if folder == root || root.canonicalize().is_ok_and(|root| folder == root) {
            return self.clone();
        }
        let workspace = Arc::new(crate::extract::DiskWorkspace::new(folder.to_owned()));
        Self { workspace, conflicts: None, ..self.clone() }
    }
}

/// Returns a prompt of plain text as ACP content blocks.
pub fn text_blocks(text: &str) -> Vec<Value> {
    vec![serde_json::json!({ "type": "text", "text": text })]
}
