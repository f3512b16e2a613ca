//! The sockets in agents' zones whose servers run already: a server acts for whoever connects.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::enforcement::Tier;
use super::{Kernel, shown};
use crate::config::Config;
use crate::config::errors::printable;
use crate::model::Action;

/// Sockets that are looked at; a workspace with more is not surveyed for further ones.
const MOST: usize = 1000;

/// The sockets of a workspace that somebody may serve.
#[derive(Debug)]
pub(super) struct Sockets {
    /// The names of the sockets that this machine's processes bound; None where the system does not
    /// list them.
    bound: Option<HashSet<OsString>>,
    /// Whether one of them may lie in the workspace, by its path.
    pub(super) may_be: bool,
    found: Vec<PathBuf>,
}

impl Sockets {
    /// Asks the system which sockets are bound.
    pub(super) fn of(workspace: &Path) -> Self {
        let paths = fs::read("/proc/net/unix").ok().map(|list| paths(&list));
        let is_near = |path: &PathBuf| path.is_relative() || path.starts_with(workspace);
        let may_be = paths.as_ref().is_some_and(|paths| paths.iter().any(is_near));
        let name = |path: &PathBuf| path.file_name().map(OsStr::to_owned);
        let bound = paths.map(|paths| paths.iter().filter_map(name).collect());
        Self { bound, may_be, found: Vec::new() }
    }

    pub(super) fn note(&mut self, path: &Path) {
        let is_bound =
            |bound: &HashSet<OsString>| path.file_name().is_some_and(|name| bound.contains(name));
        let is_new = self.found.len() < MOST && !self.found.iter().any(|one| one == path);
        if is_new && self.bound.as_ref().is_none_or(is_bound) {
            self.found.push(path.to_owned());
        }
    }

    /// Returns a sentence for each socket that an agent's zone lets it write.
    pub(super) fn warnings(&self, config: &Config, kernel: &Kernel) -> Vec<String> {
        let workspace = &config.team.workspace;
        let mut of: BTreeMap<&Path, Vec<&str>> = BTreeMap::new();
        let held = config.agents.iter().filter(|agent| kernel.tier(agent) == Tier::Kernel);
        for agent in held.filter(|_| !self.found.is_empty()) {
            let Some(bounds) = agent.bounds() else { continue };
            for path in &self.found {
                let path = path.as_path();
                if bounds.judge(path, Action::Write).is_ok() && !bounds.may_connect(path) {
                    of.entry(path).or_default().push(agent.id.as_str());
                }
            }
        }
        let warning = |(path, agents): (&Path, Vec<&str>)| {
            format!(
                "{}: the socket {} lies in the zone. Its server, which is not the team's, would act \
                 outside the zone for the agent, so connections are blocked; `sockets` of \
                 [agents.zone] with the absolute path allows them",
                agents.join(", "),
                printable(&shown(path, workspace), usize::MAX),
            )
        };
        of.into_iter().map(warning).collect()
    }
}

/// The paths in the kernel's list; abstract sockets have none.
fn paths(list: &[u8]) -> Vec<PathBuf> {
    // The path follows seven fields, and may have blanks itself.
    let path = |line: &[u8]| {
        let mut rest = line;
        for _ in 0..7 {
            rest = rest.trim_ascii_start();
            rest = &rest[memchr::memchr(b' ', rest)?..];
        }
        let path = rest.trim_ascii_start();
        (!path.starts_with(b"@")).then(|| PathBuf::from(OsStr::from_bytes(path)))
    };
    list.split(|&byte| byte == b'\n').skip(1).filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_is_read() {
        let list = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            ffff9c4a: 00000002 00000000 00010000 0001 01 23456 /run/dbus/a b\n\
            ffff9c4b: 00000003 00000000 00000000 0001 03 23457\n\
            ffff9c4c: 00000002 00000000 00010000 0001 01 23458 @/tmp/.X11-unix/X0\n\
            ffff9c4d: 00000002 00000000 00010000 0001 01 23459 dev.sock\n\
            ffff9c4e: 00000002 00000000 00010000 0001 01 23460 ./up/x.sock\n";
        assert_eq!(paths(list), ["/run/dbus/a b", "dev.sock", "./up/x.sock"].map(PathBuf::from));
    }
}
