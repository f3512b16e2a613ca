//! How limits are held, and what it comes to in words.

use crate::agent::Capacity;
use crate::config::Config;
use crate::process::{Groups, Holding, Launcher, marker};

use super::members;

/// Says how the limits of agents would be held if a team came up now.
pub fn how_limits_are_held() -> &'static str {
    match Holding::probe() {
        Holding::Cgroup => "by the kernel (cgroup)",
        Holding::Scope => {
            "by the kernel (cgroup) if systemd gives a scope, else by looking 4 times a second"
        }
        Holding::Polling => "by looking 4 times a second: there is no cgroup to be had",
    }
}

/// A launcher for this program that lets the kernel hold the limits of agents, if there are any
/// and it can. May wait for systemd.
pub(super) fn launcher(config: &Config) -> std::io::Result<Launcher> {
    let launcher = Launcher::this_program()?;
    if !config.agents.iter().any(|agent| members::limits(agent).is_any()) {
        return Ok(launcher);
    }
    match Groups::find(&format!("eisen-{}", marker())) {
        Ok(groups) => {
            tracing::info!(folder = %groups.folder().display(), "limits are held by the kernel");
            Ok(launcher.holding_limits_in(groups))
        }
        Err(why) => {
            tracing::info!(%why, "limits are held by looking at the processes 4 times a second");
            Ok(launcher)
        }
    }
}

pub(super) fn capacity(config: &Config) -> Capacity {
    let team = &config.team;
    Capacity { max_running: team.max_running, max_memory_mb: team.max_memory_mb }
}
