//! The machine's abilities: the kernel's enforcement of zones, limits of resources, open files, git.

use std::collections::BTreeMap;

use crate::app::limit_enforcement;
use crate::care::doctor::Finding;
use crate::care::doctor::version::{NoVersion, Probe};
use crate::config::Port;
use crate::config::check::Kernel;
use crate::config::installed::find_program;
use crate::process::{LimitEnforcement, raise_descriptor_limit};
use crate::program::OWN_DESCRIPTORS;

/// Fewer open files than this make trouble in any team: clients, and pipes of each agent.
const FEWEST_FILES: u64 = 2 * OWN_DESCRIPTORS;

pub(super) fn kernel(kernel: &Kernel) -> Finding {
    const WHERE: &str = "docs/confinement.md says what each part is for";
    let missing = kernel.missing.join("; ");
    if kernel.holds && missing.is_empty() {
        return Finding::ok("kernel", "it can hold agents in their zones");
    }
    let message = if kernel.holds {
        format!("it can hold agents in their zones, but the kernel lacks {missing}")
    } else {
        format!("zones are enforced by the protocol only: the kernel lacks {missing}")
    };
    Finding::warning("kernel", message).mended_by(format!("a kernel that has it; {WHERE}"))
}

pub(super) fn limits() -> Finding {
    let message = format!("limits of agents are enforced {}", limit_enforcement());
    if LimitEnforcement::probe() == LimitEnforcement::Polling {
        let how = "start the team as a service or scope with `Delegate=yes`, or in a container that may \
                   write its cgroup";
        return Finding::warning("cgroup", message).mended_by(how);
    }
    Finding::ok("cgroup", message)
}

pub(super) fn open_files() -> Finding {
    match raise_descriptor_limit() {
        Ok(limit) => files_for(limit, Port::default().max_connections as u64),
        Err(error) => Finding::warning("open-files", format!("the limit can't be raised: {error}")),
    }
}

fn files_for(limit: u64, clients: u64) -> Finding {
    let served = limit.saturating_sub(OWN_DESCRIPTORS).min(clients);
    let message = format!("{limit} files may be open: the port serves {served} clients");
    let finding = match limit {
        ..FEWEST_FILES => Finding::error("open-files", message),
        _ if served < clients => Finding::warning("open-files", format!("{message} of {clients}")),
        _ => return Finding::ok("open-files", message),
    };
    finding.mended_by(
        "raise the hard limit: `ulimit -Hn 65536` as root, `LimitNOFILE=65536` in a service, or \
         `nofile` in /etc/security/limits.conf",
    )
}

pub(super) async fn git(path: &str, probe: &Probe) -> Finding {
    let Some(program) = find_program("git", path) else {
        let message = "git is not on PATH: agents use it, and so does `blame`";
        return Finding::warning("git", message)
            .mended_by("install git with the system's package manager");
    };
    let place = program.display();
    match probe.version(&program, &BTreeMap::new()).await {
        Ok(version) => Finding::ok("git", format!("git {version}, {place}")),
        Err(NoVersion::Unnamed(why) | NoVersion::Broken(why)) => {
            Finding::warning("git", format!("{place}: its version is not known: {why}"))
                .mended_by("install git with the system's package manager")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::care::doctor::Health;

    #[test]
    fn what_the_kernel_lacks_is_a_warning_that_names_it() {
        let found = |holds, missing: &[&str]| {
            let missing = missing.iter().map(|&name| name.to_owned()).collect();
            kernel(&Kernel { holds, missing })
        };
        assert_eq!(found(true, &[]).state, Health::Ok);
        for holds in [true, false] {
            let finding = found(holds, &["Landlock", "scopes"]);
            assert_eq!(finding.state, Health::Warning);
            assert!(finding.message.ends_with("lacks Landlock; scopes"), "{}", finding.message);
            assert_eq!(finding.message.contains("by the protocol only"), !holds);
            assert!(finding.fix.is_some());
        }
    }

    #[test]
    fn too_few_open_files_are_an_error_and_few_a_warning() {
        for (limit, state, served) in [
            (1_048_576, Health::Ok, "1000 clients"),
            (1256, Health::Ok, "1000 clients"),
            (1024, Health::Warning, "768 clients of 1000"),
            (256, Health::Error, "0 clients"),
        ] {
            let finding = files_for(limit, 1000);
            assert_eq!(finding.state, state, "{limit}");
            assert!(finding.message.ends_with(served), "{}", finding.message);
            assert_eq!(finding.fix.is_some(), state != Health::Ok);
        }
    }
}
