//! Chooses how resource limits are enforced: by a cgroup, or by polling.

use crate::agent::Capacity;
use crate::config::Config;
use crate::process::{Groups, Launcher, LimitEnforcement, Sweeper, marker};

use crate::app::members;

/// Describes how the limits of agents would be enforced if a team started now.
pub fn limit_enforcement() -> &'static str {
    match LimitEnforcement::probe() {
        LimitEnforcement::Cgroup => "by the kernel (cgroup)",
        LimitEnforcement::Scope => {
            "by the kernel (cgroup) if systemd grants a scope, else by polling 4 times a second"
        }
        LimitEnforcement::Polling => "by polling 4 times a second: no cgroup is available",
    }
}

/// The launcher of a team's agents, with the warden of the first one, and the sweeper.
pub(crate) fn launcher(config: &Config) -> std::io::Result<(Launcher, Sweeper)> {
    let launcher = limited(config)?;
    launcher.prepare()?;
    let sweeper = Sweeper::start(&launcher)?;
    Ok((launcher, sweeper))
}

/// A launcher for this program; if an agent has limits and a cgroup is available, the kernel
/// enforces them. May wait for systemd.
fn limited(config: &Config) -> std::io::Result<Launcher> {
    let launcher = Launcher::this_program()?;
    if !config.agents.iter().any(|agent| members::limits(agent).is_any()) {
        return Ok(launcher);
    }
    match Groups::find(&format!("eisen-{}", marker())) {
        Ok(groups) => {
            tracing::info!(folder = %groups.folder().display(), "limits are enforced by the kernel");
            Ok(launcher.with_groups(groups))
        }
        Err(why) => {
            tracing::info!(%why, "limits are enforced by polling 4 times a second");
            Ok(launcher)
        }
    }
}

pub(crate) fn capacity(config: &Config) -> Capacity {
    let team = &config.team;
    Capacity { max_running: team.max_running, max_memory_mb: team.max_memory_mb }
}
