//! Why an agent may or may not access a path, by the configuration alone: the rule, the owners, and
//! the pattern that would change it. Reads the disk as zones do, and does not need a running team.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use super::places::{is_built, is_lock};
use super::{Agent, Config, Enforce, Secrets, git_hooks, profiles};
use crate::model::{Action, AgentId, TeamGrant, quoted, wire_real};
use crate::zone::{GitAccess, Reason, WirePatterns, Zone, ZoneSpec};

/// The result for one access. `Display` is a few lines of text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Why {
    pub agent: AgentId,
    /// As on the wire: relative to the workspace, absolute outside.
    pub path: Arc<str>,
    pub action: Action,
    pub allowed: bool,
    /// The rule that decides, in words.
    pub rule: String,
    /// The agents that own the path.
    pub owners: Vec<AgentId>,
    /// The change that would allow it; None if it is allowed, or no change would.
    pub mend: Option<Mend>,
    /// The grant of the team that allows it, such as `g1`.
    pub grant: Option<String>,
}

/// A change of the configuration that would allow an access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mend {
    /// `[zones]`, or `[agents.zone] of ui`.
    pub section: String,
    pub key: &'static str,
    /// The value to add to the key, or to remove from `denied`; for `git`, its new value.
    pub value: String,
}

/// Whether the default list of secrets names a path.
fn is_secret(path: &str) -> bool {
    WirePatterns::compile(&Secrets::Ask.asked(), true).is_ok_and(|list| list.matches(path))
}

/// Why a worktree of a task may not write a part of its repository.
const OF_OTHERS: &str = "all worktrees of the repository share it, and a task writes its own branch alone: in place of \
                         `git stash`, `git commit -m wip` keeps work on the branch";

impl Config {
    /// Explains an access of an agent to a path, relative to the workspace or absolute; None if
    /// there is no such agent.
    pub fn why(&self, agent: &AgentId, path: &Path, action: Action) -> Option<Why> {
        let agent = self.agents.iter().find(|one| one.id == *agent)?;
        let zone = Zone::compile(&agent.zone.spec).ok()?;
        let why = zone.why(path, action);
        let submodule = why.real.as_deref().and_then(|real| zone.submodule(real));
        let mut result = Why {
            agent: agent.id.clone(),
            owners: self.owners(&why.path),
            path: why.path,
            action,
            allowed: why.allowed,
            rule: self.rule(agent, &why.reason, why.allowed, submodule),
            mend: None,
            grant: None,
        };
        if result.allowed {
            return Some(result);
        }
        let outside = why.real.filter(|real| !real.starts_with(zone.workspace()));
        let is_outside = outside.is_some();
        if let Some(real) = outside
            && why.reason == Reason::NoPattern
            && agent.zone.enforce != Enforce::Protocol
            && agent.bounds().is_some_and(|bounds| bounds.judge(&real, action).is_ok())
        {
            result.allowed = true;
            "it lies outside the workspace, where `confine` lets the agent's programs go on where the \
             kernel holds the zone; what it asks its client for is denied"
                .clone_into(&mut result.rule);
            return Some(result);
        }
        let is_observed = agent.zone.enforce == Enforce::Observe && !is_outside;
        if why.reason == Reason::NoPattern && is_observed && is_secret(&result.path) {
            result.rule +=
                "; the agent is observed, but this file is asked for, as one with secrets";
        } else if why.reason == Reason::NoPattern && is_observed {
            result.allowed = true;
            result.rule += ", but the agent is observed: it is let pass, and counted";
            return Some(result);
        }
        if why.reason == Reason::NoPattern
            && action == Action::Read
            && let Some(place) = git_hooks::of(self, &result.path)
        {
            let _ = write!(result.rule, ", and {}", place.why());
        }
        result.mend = self.mend(agent, &result, &why.reason);
        Some(result)
    }

    /// The agents whose own zone has a path.
    pub fn owners(&self, path: &str) -> Vec<AgentId> {
        let own = self.zoned().filter(|(_, zone)| zone.owns(path));
        own.map(|(agent, _)| agent.id.clone()).collect()
    }

    fn zoned(&self) -> impl Iterator<Item = (&Agent, Zone)> {
        let own = self.agents.iter().filter(|agent| agent.zone.own);
        own.filter_map(|agent| Some((agent, Zone::compile(&agent.zone.spec).ok()?)))
    }

    fn rule(
        &self,
        agent: &Agent,
        reason: &Reason,
        allowed: bool,
        submodule: Option<&Path>,
    ) -> String {
        match reason {
            Reason::NoPath => "no path leads there".to_owned(),
            Reason::EisenDir => "it lies in $EISEN_DIR, which is closed to all agents".to_owned(),
            Reason::Journal => "it is the team's journal, which is closed to all agents".to_owned(),
            Reason::Git if !allowed && agent.zone.spec.branch.is_some() => OF_OTHERS.to_owned(),
            Reason::Git => self.git_rule(allowed, submodule),
            Reason::Pattern { list, pattern } if *list == "allowed" && !agent.zone.own => {
                format!("{} has no [agents.zone], and so `{pattern}`", agent.id)
            }
            Reason::Pattern { list: "shared", pattern } if self.zones.builds(pattern) => {
                format!("`{pattern}` by `build` of [zones]")
            }
            Reason::Pattern { list, pattern } => {
                let section = self.section(agent, list, pattern);
                match *list {
                    "asked" => format!("`{pattern}` is a secret, and a person is asked: {section}"),
                    "denied" if section == SECRETS => format!("`{pattern}` is a secret: {section}"),
                    list => format!("`{pattern}` in `{list}` of {section}"),
                }
            }
            Reason::NoPattern => format!("no pattern of {}'s zone matches it", agent.id),
        }
    }

    fn git_rule(&self, allowed: bool, submodule: Option<&Path>) -> String {
        let git = self.zones.git.as_str();
        let folder = submodule.map_or_else(
            || "a git folder".to_owned(),
            |name| format!("the git folder of the submodule {}", quoted(&name.to_string_lossy())),
        );
        match (allowed, self.zones.git, submodule) {
            (true, _, None) => format!("`git = \"{git}\"` of [zones]"),
            (true, ..) => format!("`git = \"{git}\"` of [zones]: it lies in {folder}"),
            (false, GitAccess::Commit, _) => format!(
                "it lies in {folder}, of which `git = \"commit\"` of [zones] lets be written what a \
                 commit writes: objects, refs, logs, HEAD, the index and messages"
            ),
            _ => format!("it lies in {folder}, and [zones] has `git = \"{git}\"`"),
        }
    }

    /// Returns the section in which a pattern of an agent's zone is written.
    fn section(&self, agent: &Agent, list: &str, pattern: &String) -> String {
        let is_teams = match list {
            "allowed" => false,
            "shared" => true,
            "denied" if self.zones.denied.contains(pattern) => true,
            "denied" if agent.zone.denied.contains(pattern) => false,
            "denied" | "asked" => return SECRETS.to_owned(),
            _ if self.zones.readable.contains(pattern) => true,
            _ if agent.zone.readable.contains(pattern) => false,
            _ if profiles::base_patterns().contains(&pattern.as_str()) => {
                return "the built-in ones (`base`)".to_owned();
            }
            _ => return "its launch profile".to_owned(),
        };
        if is_teams { "[zones]".to_owned() } else { of(agent) }
    }

    fn mend(&self, agent: &Agent, why: &Why, reason: &Reason) -> Option<Mend> {
        let mend = match reason {
            Reason::Git => return mend_git(agent, why),
            Reason::Pattern { list, pattern } if ["denied", "asked"].contains(list) => {
                let section = self.section(agent, list, pattern);
                if section == SECRETS {
                    let section = "[zones]".to_owned();
                    return Some(Mend { section, key: "secrets", value: "allow".to_owned() });
                }
                return Some(Mend { section, key: "denied", value: pattern.clone() });
            }
            // No change, or a pattern for the path's other spelling.
            Reason::NoPath | Reason::EisenDir | Reason::Journal | Reason::Pattern { .. } => {
                return None;
            }
            Reason::NoPattern => self.pattern_for(agent, why),
        };
        let mut spec = agent.zone.spec.clone();
        let pattern = if mend.key == "build" { below(&mend.value) } else { mend.value.clone() };
        if why.action == Action::Read { &mut spec.readable } else { &mut spec.allowed }
            .push(pattern);
        allows(&spec, why).then_some(mend)
    }

    /// Returns the pattern that would allow a path which no pattern matches. Build output becomes
    /// shared; otherwise the agent gets the folder if it has no owner, or the path alone.
    fn pattern_for(&self, agent: &Agent, why: &Why) -> Mend {
        let path = &*why.path;
        let reads = why.action == Action::Read;
        let folder = agent.zone.spec.workspace.join(path).is_dir();
        let teams = |key, value| Mend { section: "[zones]".to_owned(), key, value };
        let own = |key, value| Mend { section: of(agent), key, value };
        if let Some(place) = built(path, folder) {
            return match place.find(['*', '?', '[', '{', '\\', '!']) {
                None if !reads => teams("build", place),
                _ => teams(if reads { "readable" } else { "shared" }, below(&place)),
            };
        }
        let key = if reads { "readable" } else { "allowed" };
        let exact = if folder { below(path) } else { globset::escape(path) };
        if path.starts_with('/') || !why.owners.is_empty() {
            return own(key, exact);
        }
        let zones: Vec<Zone> = self.zoned().map(|(_, zone)| zone).collect();
        let mut folders: Vec<&str> = path
            .match_indices('/')
            .map(|(at, _)| &path[..at])
            .chain(folder.then_some(path))
            .collect();
        folders.retain(|folder| !zones.iter().any(|zone| zone.owns_below(folder)));
        match folders.first() {
            Some(folder) => own(key, below(folder)),
            // A file at the top without an owner.
            None if !path.contains('/') && reads => teams("readable", exact),
            None if is_lock(path) => teams("shared", exact),
            None => own(key, exact),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agent, path, action, rule, .. } = self;
        let may = if self.allowed { "may" } else { "may not" };
        write!(f, "{agent} {may} {} {path}: {rule}", action.as_str())?;
        match &self.owners[..] {
            [] => write!(f, "\n  owned by nobody")?,
            owners => {
                let owners: Vec<&str> = owners.iter().map(AgentId::as_str).collect();
                write!(f, "\n  owned by {}", owners.join(", "))?;
            }
        }
        match &self.mend {
            Some(mend) => write!(f, "\n  to allow it: {mend}"),
            None if self.allowed => Ok(()),
            None => write!(f, "\n  no pattern allows it"),
        }
    }
}

/// Where the lists of secrets are switched on.
const SECRETS: &str = "`secrets` of [zones]";

impl fmt::Display for Mend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { section, key, value } = self;
        let value = toml::Value::String(value.replace('$', "$$"));
        match *key {
            "denied" => write!(f, "take {value} out of `denied` of {section}, or make it narrower"),
            "git" | "secrets" => write!(f, "set `{key} = {value}` in {section}"),
            _ => write!(f, "add {value} to `{key}` of {section}"),
        }
    }
}

impl Why {
    /// A person opened it for the team.
    pub fn allow_by(&mut self, grant: &TeamGrant) {
        self.allowed = true;
        self.mend = None;
        self.rule = format!("{grant}: `eisen-core team grants revoke {}` ends that", grant.id);
        self.grant = Some(grant.id.clone());
    }

    pub fn json(&self) -> serde_json::Value {
        let mend = self.mend.as_ref().map(|Mend { section, key, value }| {
            json!({ "section": section, "key": key, "value": value })
        });
        let owners: Vec<&str> = self.owners.iter().map(AgentId::as_str).collect();
        json!({
            "agent_id": self.agent.as_str(),
            "path": &*self.path,
            "action": self.action.as_str(),
            "allowed": self.allowed,
            "rule": self.rule,
            "owners": owners,
            "grant": self.grant,
            "mend": mend,
        })
    }
}

fn mend_git(agent: &Agent, why: &Why) -> Option<Mend> {
    let mend = |access: GitAccess| {
        let spec = ZoneSpec { git: access, ..agent.zone.spec.clone() };
        let value = access.as_str().to_owned();
        allows(&spec, why).then(|| Mend { section: "[zones]".to_owned(), key: "git", value })
    };
    mend(GitAccess::Read).or_else(|| mend(GitAccess::Commit))
}

fn allows(spec: &ZoneSpec, why: &Why) -> bool {
    Zone::compile(spec).is_ok_and(|zone| zone.why(Path::new(&*why.path), why.action).allowed)
}

/// Returns the build folder that contains a path.
fn built(path: &str, folder: bool) -> Option<String> {
    let mut place = PathBuf::new();
    let names: Vec<_> = Path::new(path).iter().collect();
    for (at, name) in names.iter().enumerate() {
        place.push(name);
        let is_folder = folder || at + 1 < names.len();
        if is_folder && name.to_str().is_some_and(is_built) {
            return Some(wire_real(Path::new("/"), &place));
        }
    }
    None
}

fn below(folder: &str) -> String {
    format!("{}/**", globset::escape(folder))
}

fn of(agent: &Agent) -> String {
    format!("[agents.zone] of {}", agent.id)
}
