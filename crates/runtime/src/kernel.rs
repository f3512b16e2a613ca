//! Probes how far the running kernel can enforce zones, and warns about agents that get less than
//! full enforcement.

pub(crate) mod trial;

use crate::config::check::Kernel;
use crate::config::{Agent, Enforce};
use crate::process::Launcher;
use crate::team_file::mode::TeamMode;

/// Probes this machine's kernel. Must not be called from within an async runtime.
pub fn kernel() -> Kernel {
    let trial = || -> std::io::Result<Kernel> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let launcher = Launcher::this_program()?;
        Ok(runtime.block_on(trial::of_kernel(&launcher, &std::env::temp_dir())))
    };
    trial().unwrap_or_else(|error| Kernel { holds: false, missing: vec![error.to_string()] })
}

/// Warns about agents with `enforce = "auto"` that the kernel does not fully confine, and about those that are
/// only observed.
pub(crate) fn warn_of_tier<'a>(
    kernel: &Kernel,
    mode: TeamMode,
    agents: impl Iterator<Item = &'a Agent>,
) {
    let is_observed = |agent: &&Agent| mode.observe || agent.zone.enforce == Enforce::Observe;
    let (observed, agents): (Vec<_>, Vec<_>) = agents.partition(is_observed);
    let ids = |agents: &[&Agent]| {
        agents.iter().map(|agent| agent.id.as_str()).collect::<Vec<_>>().join(", ")
    };
    if !observed.is_empty() {
        tracing::warn!(
            agents = ids(&observed),
            "these agents are observed and not stopped: all of the workspace is open to them but what is \
             denied or asked for; `eisen-core team learn` proposes their zones"
        );
    }
    let auto: Vec<_> =
        agents.into_iter().filter(|agent| agent.zone.enforce == Enforce::Auto).collect();
    let agents = ids(&auto);
    let missing = kernel.missing.join(", ");
    if agents.is_empty() || kernel.holds && kernel.missing.is_empty() {
        return;
    }
    if kernel.holds {
        tracing::warn!(
            agents,
            missing,
            "the kernel enforces these zones only in part; `enforce = \"kernel\"` would refuse to \
             start"
        );
    } else {
        tracing::warn!(
            agents,
            missing,
            "these zones are enforced by the protocol only: this kernel cannot confine the agents, \
             and an agent with a shell can get past them; `enforce = \"protocol\"` accepts this"
        );
    }
}
