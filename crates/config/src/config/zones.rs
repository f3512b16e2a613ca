//! `[zones]` and `[agents.zone]`: checks the patterns, and collects them in a `ZoneSpec`.

mod seals;

use std::path::{Path, PathBuf};

use super::errors::quoted;
use super::fault::Fault;
use super::patterns::{checked, pattern, patterns};
use super::profiles::Profile;
use super::read::Table;
use super::secrets::Secrets;
use super::surroundings::Lookup;
use super::{Config, profiles, streams};
use crate::model::named;
use crate::zone::{Confine, GitAccess, ZoneSpec};

/// Settings for every agent; each agent's [`ZoneSpec`] includes them.
#[derive(Clone, Debug)]
pub struct Zones {
    /// Folders that builds create, relative to the workspace: shared, and created before agents
    /// start.
    pub build: Vec<String>,
    pub shared: Vec<String>,
    pub denied: Vec<String>,
    pub readable: Vec<String>,
    /// Every agent may read the files that common tools need.
    pub base: bool,
    pub git: GitAccess,
    pub secrets: Secrets,
}

/// The zone of an agent, with what the team says of all zones.
#[derive(Clone, Debug)]
pub struct AgentZone {
    /// The agent has a `[agents.zone]` table; without one it owns no paths.
    pub own: bool,
    pub spec: ZoneSpec,
    /// The agent's own patterns in `spec.denied`.
    pub denied: Vec<String>,
    /// The agent's own patterns in `spec.readable`.
    pub readable: Vec<String>,
    pub enforce: Enforce,
    pub confine: Confine,
    /// The agent's own patterns of external sockets that it may connect to.
    pub sockets: Vec<String>,
    pub observe_files: bool,
}

named! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Enforce {
        Auto = "auto",
        Kernel = "kernel",
        Protocol = "protocol",
        /// As `Auto`, but only what is closed stops the agent; what else its zone lacks is counted.
        Observe = "observe",
    }
}

impl Config {
    /// Denies all agents write access to the file itself and to the files that it names, and all
    /// access to the journal and to the files of streams; and write access to settings outside.
    pub(super) fn sealed(mut self, file: Option<&PathBuf>, lookup: &Lookup) -> Self {
        let prompts = self.agents.iter().filter_map(|agent| agent.prompt_file.as_ref());
        let protocols = self.agents.iter().filter_map(|agent| agent.plugin.as_ref());
        let libraries = self.plugins.iter().chain(protocols).map(|plugin| &plugin.path);
        let sealed: Vec<PathBuf> =
            file.into_iter().chain(prompts).chain(libraries).cloned().collect();
        for agent in &mut self.agents {
            agent.zone.spec.sealed.clone_from(&sealed);
            agent.zone.spec.journals.extend(self.journal.path.clone());
            agent.zone.spec.journals.extend(streams::files(&self.streams));
        }
        self.with_settings_sealed(lookup)
    }
}

/// The settings for every agent.
pub(super) struct TeamZones {
    pub(super) written: Zones,
    /// As written, and the base patterns.
    readable: Vec<String>,
    pub(super) workspace: PathBuf,
    eisen_dir: PathBuf,
    home: Option<String>,
}

pub(super) fn zones(
    zones: &Table<'_>,
    workspace: &Path,
    eisen_dir: &Path,
    home: Option<String>,
) -> TeamZones {
    let list = |key| patterns(zones, key, workspace).unwrap_or_default();
    let written = Zones {
        build: build(zones),
        shared: list("shared"),
        denied: list("denied"),
        readable: list("readable"),
        base: zones.flag("base", true),
        git: zones.choice("git"),
        secrets: zones.choice("secrets"),
    };
    let mut readable = written.readable.clone();
    if written.base {
        readable.extend(profiles::base_patterns().into_iter().map(str::to_owned));
    }
    TeamZones {
        written,
        readable,
        workspace: workspace.to_owned(),
        eisen_dir: eisen_dir.to_owned(),
        home,
    }
}

/// Reads `build`: folders of the workspace, without wildcards, since they are created.
fn build(zones: &Table<'_>) -> Vec<String> {
    let folder = |written: &str| {
        let folder = written.strip_suffix("/**").unwrap_or(written).trim_end_matches('/');
        let folder = folder.strip_prefix("./").unwrap_or(folder);
        let parts: Vec<&str> = folder.split('/').collect();
        let is_plain = |part: &&str| !matches!(*part, "" | "." | ".." | ".git" | "~");
        if parts.iter().all(is_plain) && !folder.contains(['*', '?', '[', '{', '\\', '!']) {
            return Ok(folder.to_owned());
        }
        Err((
            format!("{} is not a folder that can be created", quoted(written)),
            "write a folder relative to the workspace, without patterns, such as \"target\"; patterns \
             are for `shared`"
                .to_owned(),
        ))
    };
    checked(zones, "build", folder).unwrap_or_default()
}

/// Returns the patterns that every agent may write.
fn shared(zones: &Zones) -> Vec<String> {
    let built = zones.build.iter().map(|folder| below(folder));
    built.chain(zones.shared.iter().cloned()).collect()
}

fn below(folder: &str) -> String {
    format!("{}/**", globset::escape(folder))
}

impl Zones {
    /// Whether a pattern comes from a folder of `build`.
    pub(super) fn builds(&self, pattern: &str) -> bool {
        self.build.iter().any(|folder| below(folder) == pattern)
    }
}

named! {
    /// Whether an agent's client offers it terminals.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum TerminalAccess {
        Allow = "allow",
        Deny = "deny",
    }
}

/// Reads `[agents.zone]`; without one an agent may access the whole workspace, and owns nothing.
pub(super) fn agent_zone(agent: &Table<'_>, team: &TeamZones, profile: &Profile) -> AgentZone {
    let is_helper = agent.place_of("parent").is_some();
    // Who asks for an owner gets the parent.
    let own = agent.place_of("zone").is_some() && !is_helper;
    agent.section("zone", "agents.zone", |zone| {
        let of_parent = OF_PARENT.into_iter().filter(|_| is_helper);
        for span in of_parent.filter_map(|key| zone.place_of(key)) {
            let message = "a helper's zone is enforced as its parent's is";
            zone.fault(Fault::new(span, message).help("leave it out; write it at the parent"));
        }
        let list = |key| patterns(zone, key, &team.workspace);
        let allowed = list("allowed").unwrap_or_else(|| vec!["**".to_owned()]);
        let denied = list("denied").unwrap_or_default();
        let readable = list("readable").unwrap_or_default();
        let mut all_readable = [&team.readable[..], &readable].concat();
        if team.written.base {
            let further = profile.rule_files.iter().filter(|file| !team.readable.contains(file));
            all_readable.extend(further.cloned());
        }
        let secret = team.written.secrets.denied(profile, team.home.as_deref());
        AgentZone {
            own,
            spec: ZoneSpec {
                workspace: team.workspace.clone(),
                allowed,
                shared: shared(&team.written),
                denied: [&team.written.denied[..], &denied, &secret].concat(),
                asked: team.written.secrets.asked(),
                readable: all_readable,
                git: team.written.git,
                // Known when the team starts.
                branch: None,
                beside: Vec::new(),
                terminals: terminals(
                    zone,
                    ["url", "base_url"].iter().any(|key| agent.place_of(key).is_some()),
                ),
                eisen_dir: team.eisen_dir.clone(),
                // Known when the whole file is read.
                sealed: Vec::new(),
                journals: Vec::new(),
            },
            denied,
            readable,
            enforce: enforce(zone),
            confine: zone.choice("confine"),
            sockets: sockets(zone, &team.workspace),
            observe_files: zone.flag("observe_files", true),
        }
    })
}

/// Whether it is offered terminals. Those of one that runs elsewhere would run here, held by nothing: it is
/// offered none unless its table says so.
fn terminals(zone: &Table<'_>, runs_elsewhere: bool) -> bool {
    let access: TerminalAccess = zone.choice("terminals");
    access == TerminalAccess::Allow && !(runs_elsewhere && zone.place_of("terminals").is_none())
}

/// The keys that a helper always has from its parent.
const OF_PARENT: [&str; 5] = ["enforce", "confine", "sockets", "terminals", "observe_files"];

fn enforce(zone: &Table<'_>) -> Enforce {
    let enforce = zone.choice("enforce");
    // A configuration that requires the kernel must not get less silently.
    if enforce == Enforce::Kernel
        && !cfg!(target_os = "linux")
        && let Some(span) = zone.place_of("enforce")
    {
        zone.fault(
            Fault::new(span, "only the kernel of Linux can enforce a zone")
                .help("write \"auto\", which takes what the system has, or \"protocol\""),
        );
    }
    enforce
}

/// Reads `sockets`: absolute patterns.
fn sockets(zone: &Table<'_>, workspace: &Path) -> Vec<String> {
    let absolute = |written: &str| {
        if written.starts_with(['/', '~']) {
            return pattern(written, workspace);
        }
        Err((
            format!("the socket {} is not an absolute path", quoted(written)),
            "write one such as \"/run/postgresql/*\"; those that the team binds in the zone need not be listed"
                .to_owned(),
        ))
    };
    checked(zone, "sockets", absolute).unwrap_or_default()
}
