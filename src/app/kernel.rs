//! What the running kernel can hold a zone with, in the words of the rooms that tell it.

use super::trial;
use crate::config::check::Kernel;
use crate::config::{Agent, Enforce};
use crate::process::Launcher;

/// Tries what this machine's kernel has, from outside of any runtime.
pub fn kernel() -> Kernel {
    let trial = || -> std::io::Result<Kernel> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let launcher = Launcher::this_program()?;
        Ok(runtime.block_on(trial::of_kernel(&launcher, &std::env::temp_dir())))
    };
    trial().unwrap_or_else(|error| Kernel { holds: false, missing: vec![error.to_string()] })
}

/// Says which agents get less than the kernel's whole tier without having asked for less.
pub(super) fn warn_of_tier<'a>(kernel: &Kernel, agents: impl Iterator<Item = &'a Agent>) {
    let auto = agents.filter(|agent| agent.zone.enforce == Enforce::Auto);
    let agents: Vec<_> = auto.map(|agent| agent.id.as_str()).collect();
    let (agents, missing) = (agents.join(", "), kernel.missing.join(", "));
    if agents.is_empty() || kernel.holds && kernel.missing.is_empty() {
        return;
    }
    if kernel.holds {
        tracing::warn!(
            agents,
            missing,
            "the kernel holds these zones only in part; `enforce = \"kernel\"` refuses to start so"
        );
    } else {
        tracing::warn!(
            agents,
            missing,
            "zones bind on the protocol only: the kernel cannot hold them, and an agent with a \
             shell can get past them; `enforce = \"protocol\"` says that this is meant"
        );
    }
}
