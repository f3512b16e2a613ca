//! The lint behind `check`: the effect of a configuration on the workspace as it is now.
//!
//! Starts nothing and changes nothing. Zones judge files by name, as the walk follows no symbolic
//! link; the target of an access is judged when it happens.

mod enforcement;
mod hints;
mod launch;
mod patterns;
mod profile_notes;
mod provider_notes;
mod remembered;
mod report;
mod routing;
mod sockets;
mod survey;

use std::path::{Path, PathBuf};

use self::enforcement::{Holding, Tier};
pub use self::hints::{hints, pattern_hint};
pub(super) use self::profile_notes::install;
pub use self::remembered::remembered;
use self::survey::Survey;
use super::launch::find_program;
use super::login_file::login_file;
use super::{Agent, Config, Enforce, Layered, Notify, NotifyBy, Provider};
use crate::model::{StreamSpec, TeamGrant};

/// The running kernel's support for the kernel tier.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// The kernel tier is available.
    pub holds: bool,
    /// Missing features, by name.
    pub missing: Vec<String>,
}

/// The result of `check`. `Display` is the whole report as plain text, the same for the same
/// configuration and files.
#[derive(Debug)]
pub struct Report {
    text: String,
    warnings: Vec<String>,
    agents: usize,
    files: u64,
}

impl Report {
    /// Settings that probably do not have the intended effect.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Adds the agents that were added and removed over the port.
    pub fn add_kept(&mut self, layered: &Layered) {
        let kept: Vec<String> =
            layered.said.iter().cloned().chain(layered.overlay.notes()).collect();
        report::add_list(&mut self.text, "kept from add_agent and remove_agent", &kept);
    }

    /// Adds what persons opened for the team.
    pub fn add_grants(&mut self, grants: &[TeamGrant]) {
        let grants: Vec<_> = grants.iter().map(TeamGrant::to_string).collect();
        report::add_list(
            &mut self.text,
            "allowed for the team (`eisen-core team grants`)",
            &grants,
        );
    }

    /// Adds what the last run saw of the team's tools.
    pub fn add_tools(&mut self, agents: &[String]) {
        report::add_list(&mut self.text, "tools of the team", agents);
    }

    /// Adds where the journal is.
    pub fn add_journal(&mut self, journal: String) {
        report::add_list(&mut self.text, "journal", &[journal]);
    }

    /// Returns the report in one line.
    pub fn summary(&self) -> String {
        format!(
            "{}, {}, {}",
            counted(self.agents as u64, "agent"),
            counted(self.files, "file"),
            counted(self.warnings.len() as u64, "warning"),
        )
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Checks a configuration for a machine with this kernel. `limits_held` describes how agents'
/// limits are enforced there, `hints` are earlier findings; `progress` receives the number of files
/// seen now and then.
pub fn check(
    config: &Config,
    kernel: &Kernel,
    limits_held: &str,
    hints: Vec<String>,
    progress: &mut dyn FnMut(u64),
) -> Report {
    let survey = Survey::of(&config.team.workspace, &config.agents, progress);
    let mut warnings = hints;
    if config.agents.is_empty() {
        warnings.push("there is no agent: add `[[agents]]`".to_owned());
    }
    warnings.extend(config.notify.iter().filter_map(notifier));
    warnings.extend(routing::warnings(config));
    for agent in &config.agents {
        warnings.extend(program(agent));
        warnings.extend(relations(config, agent));
        warnings.extend(kernel.warning(agent));
        warnings.extend(profile_notes::warnings(agent, kernel.tier(agent)));
        warnings.extend(launch::warnings(agent, kernel.tier(agent)));
        warnings.extend(share(config, agent));
    }
    let holding: Vec<_> = config.agents.iter().map(|agent| Holding::of(agent, kernel)).collect();
    warnings.extend(survey.warnings(config));
    warnings.extend(survey.sockets.warnings(config, kernel));
    let mut text = report::render(config, limits_held, &survey, &holding, &warnings);
    let notices: Vec<String> = config.notify.iter().map(Notify::describe).collect();
    report::add_list(&mut text, "notices to people", &notices);
    let providers: Vec<_> = config.shared.providers.values().map(Provider::describe).collect();
    report::add_list(&mut text, "providers of models", &providers);
    let streams: Vec<_> = config.streams.iter().map(StreamSpec::describe).collect();
    report::add_list(&mut text, "streams of the journal", &streams);
    let rules = config.routing.iter().zip(1..);
    let rules: Vec<_> = rules.map(|(rule, n)| format!("{n}. {}", rule.describe())).collect();
    report::add_list(
        &mut text,
        "rules of [[routing]], of which the first that matches decides",
        &rules,
    );
    Report { text, warnings, agents: config.agents.len(), files: survey.files }
}

fn notifier(notify: &Notify) -> Option<String> {
    let program = notify.program()?;
    let path = std::env::var("PATH").unwrap_or_default();
    if find_program(program, &path).is_some() {
        return None;
    }
    Some(match notify.by {
        NotifyBy::Desktop => "notify: there is no program `notify-send` on PATH, so that nothing \
                              shows on the desktop; install libnotify (Debian: libnotify-bin)"
            .to_owned(),
        _ => format!("notify: there is no program `{program}`"),
    })
}

fn program(agent: &Agent) -> Option<String> {
    let (id, program) = (&agent.id, agent.command.first()?);
    if found(program, agent).is_some() {
        return None;
    }
    if program.contains('/') {
        // A file that exists but can't be started has a hint of its own.
        let is_there = Path::new(program).exists();
        return (!is_there).then(|| format!("{id}: there is no program {program}"));
    }
    let install = install(&agent.profile).map(|how| format!("; {how}"));
    let install = install.unwrap_or_default();
    Some(format!("{id}: there is no program `{program}` on PATH{install}"))
}

fn relations(config: &Config, agent: &Agent) -> Vec<String> {
    let id = &agent.id;
    let mut warnings = Vec::new();
    // Without any zone they work together, which is meant so.
    if !agent.zone.own && config.agents.iter().any(|other| other.zone.own) {
        warnings.push(format!(
            "{id} has no zone: it may write everywhere in the workspace, and owns nothing"
        ));
    }
    let lead = config.orchestrator.agent.as_ref() == Some(id);
    if lead && !agent.session {
        warnings.push(format!("{id} orchestrates, but without a session it can't get briefings"));
    }
    if agent.autostart {
        let sleeping = |other: &&Agent| !other.autostart && agent.depends_on.contains(&other.id);
        for other in config.agents.iter().filter(sleeping) {
            warnings.push(format!("{id} waits for {}, which does not start by itself", other.id));
        }
    }
    warnings
}

fn share(config: &Config, agent: &Agent) -> Option<String> {
    let (all, own) = (config.team.max_memory_mb, agent.memory_mb?);
    (all > 0 && own > all).then(|| {
        format!(
            "{} may use {own} MB of memory, and the whole team {all} MB: it starts only while no \
             other agent runs",
            agent.id
        )
    })
}

impl Kernel {
    /// Returns the tier that would enforce an agent's zone here.
    fn tier(&self, agent: &Agent) -> Tier {
        match agent.zone.enforce {
            Enforce::Kernel => Tier::Kernel,
            Enforce::Auto if self.holds => Tier::Kernel,
            Enforce::Observe if self.holds && agent.remote.is_none() => Tier::Kernel,
            Enforce::Auto | Enforce::Protocol | Enforce::Observe => Tier::Protocol,
        }
    }

    fn warning(&self, agent: &Agent) -> Option<String> {
        if agent.zone.enforce != Enforce::Kernel {
            return None;
        }
        let lacks = if self.is_whole() { agent.bounds()?.held_alone()? } else { self.lacks() };
        Some(format!(
            "{} will not start: its zone must be held by the kernel, and {lacks}",
            agent.id
        ))
    }

    fn is_whole(&self) -> bool {
        self.holds && self.missing.is_empty()
    }

    fn lacks(&self) -> String {
        match &self.missing[..] {
            [] => "this system has no such kernel".to_owned(),
            missing => format!("this kernel lacks {}", missing.join(", ")),
        }
    }
}

/// Returns the file that `program` starts as this agent.
fn found(program: &str, agent: &Agent) -> Option<PathBuf> {
    let path = agent.env.get("PATH").cloned().or_else(|| std::env::var("PATH").ok());
    find_program(program, &path.unwrap_or_default())
}

/// Returns the file by which the agent is logged in.
fn found_login(agent: &Agent) -> Option<PathBuf> {
    let variable = |name: &str| agent.env.get(name).cloned().or_else(|| std::env::var(name).ok());
    login_file(&agent.profile.base, &variable)
}

/// Returns the path as the report shows it: relative to the workspace.
fn shown(path: &Path, workspace: &Path) -> String {
    crate::model::wire_path(workspace, workspace, path)
}

fn counted(count: u64, what: &str) -> String {
    match what.strip_suffix('y') {
        _ if count == 1 => format!("1 {what}"),
        Some(stem) => format!("{count} {stem}ies"),
        None if what.ends_with('s') => format!("{count} {what}es"),
        None => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests;
