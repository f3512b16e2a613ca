//! The starter `eisen.toml` that `init` writes: the agents found on PATH, and a zone for each made
//! of the workspace's folders. Reads the disk, and writes nothing.

use std::path::Path;

use ignore::WalkBuilder;

use super::check::install;
use super::launch::find_program;
use super::profiles::{Profile, built_in};

/// Folders whose parts are what a team divides, rather than themselves.
const CONTAINERS: [&str; 12] = [
    "apps",
    "components",
    "crates",
    "lib",
    "libs",
    "modules",
    "packages",
    "pkg",
    "plugins",
    "projects",
    "services",
    "src",
];

/// A team to begin with.
#[derive(Debug)]
pub struct Starter {
    /// In the order of their names.
    pub agents: Vec<Proposed>,
    /// Whether the workspace's top has files that every agent may read.
    top_files: bool,
}

/// An agent that is there to be launched.
#[derive(Debug)]
pub struct Proposed {
    /// Names its profile, and the agent.
    pub name: &'static str,
    pub profile: &'static Profile,
    /// Patterns; empty where the folders don't go round.
    pub allowed: Vec<String>,
}

/// An agent that a profile knows: what is looked for, and how it comes onto PATH.
#[derive(Debug)]
pub struct Known {
    pub name: &'static str,
    pub title: &'static str,
    pub programs: String,
    pub install: String,
}

/// The agents that `init` looks for.
pub fn known_agents() -> Vec<Known> {
    let known = |(name, profile): (&'static String, &'static Profile)| Known {
        name,
        title: &profile.title,
        programs: profile.programs().collect::<Vec<_>>().join(" or "),
        install: install(profile).unwrap_or_default(),
    };
    built_in().iter().map(known).collect()
}

impl Starter {
    /// Looks for agents in the folders of `path`, as PATH has them, and for folders in `workspace`.
    pub fn look(workspace: &Path, path: &str) -> Self {
        let is_there = |profile: &&Profile| {
            profile.programs().any(|program| find_program(program, path).is_some())
        };
        let found: Vec<_> = built_in().iter().filter(|(_, profile)| is_there(profile)).collect();
        let zones = zones(workspace, found.len());
        let agents = found.into_iter().zip(zones);
        let agents = agents.map(|((name, profile), allowed)| Proposed { name, profile, allowed });
        // The file that is to be written is none of the workspace's own.
        let is_top_file = |name: &str| !name.starts_with('.') && name != "eisen.toml";
        let top_files = walk(workspace, 1)
            .any(|file| is_file(&file) && is_top_file(&file.file_name().to_string_lossy()));
        Self { agents: agents.collect(), top_files }
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let lead = self.agents.first().map_or("opencode", |agent| agent.name);
        let divided =
            self.agents.len() > 1 && self.agents.iter().all(|one| !one.allowed.is_empty());
        let mut text = TEAM.replace("LEAD", lead);
        text += if divided && self.top_files { READABLE } else { NOT_READABLE };
        if self.agents.is_empty() {
            text += NOBODY;
        }
        for agent in &self.agents {
            text += "\n";
            text += &agent.text();
        }
        text
    }
}

impl Proposed {
    fn text(&self) -> String {
        let Profile { title, login, login_env, .. } = self.profile;
        let mut ways: Vec<String> = login_env.iter().map(|name| format!("${name}")).collect();
        if !login.is_empty() {
            ways.insert(0, format!("`{login}`"));
        }
        let login = match &ways[..] {
            [] => String::new(),
            ways => format!(" Logs in by {}.", ways.join(" or ")),
        };
        let zone = if self.allowed.is_empty() {
            "# What it may read and write, and owns; without this table: everything, and nothing.\n\
             #[agents.zone]\n#allowed = [\"src/**\"]\n"
                .to_owned()
        } else {
            let allowed: Vec<String> = self.allowed.iter().map(|one| quoted(one)).collect();
            let allowed = allowed.join(", ");
            format!(
                "# What it may read and write, and owns.\n[agents.zone]\nallowed = [{allowed}]\n"
            )
        };
        format!(
            "# {title}.{login}\n[[agents]]\nid = \"{0}\"\nprofile = \"{0}\"\n\
             # Sent once it is ready.\n#prompt = \"Look around, and wait for tasks.\"\n\
             # By its own name for it; left out: its own choice.\n#model = \"…\"\n{zone}",
            self.name
        )
    }
}

const TEAM: &str = r#"# A team of agents on this folder, for eisen-core.
#
#   eisen-core check    says what this file means, and what it lacks
#   eisen-core up       runs the team until Ctrl-C
#   eisen-core ps       shows how it does
#
# Every key has a default; docs/configuration.md of eisen-core has them all.

[team]
workspace = "."
# Where clients connect. Port 0 takes a free one.
listen = "127.0.0.1:17320"

# Who decides about what an agent wants outside its zone. Without an agent here: whoever is asked by
# `eisen-core blocked`, and answers by `eisen-core resolve`.
#[orchestrator]
#agent = "LEAD"
# It waits for the decision, instead of failing at once.
#on_block = "hold"

# For every agent. Patterns are globs relative to the workspace: `*` stays within one folder, `**`
# goes any depth.
[zones]
# Nobody may touch these.
#denied = ["**/.env", "**/*.pem"]
# Everybody may write these.
#shared = ["types/**"]
"#;

const READABLE: &str = r#"# Everybody may read these: the files at the top, but for hidden ones.
readable = ["[!.]*"]
"#;

const NOT_READABLE: &str = r#"# Everybody may read these.
#readable = ["docs/**"]
"#;

const NOBODY: &str = r#"
# No agent was found on PATH. Take away the `#` of one, or write a `command` of your own.
#[[agents]]
#id = "opencode"
#profile = "opencode"
#[agents.zone]
#allowed = ["src/**"]
"#;

/// What each of `count` agents gets of the workspace; nothing where there is not enough.
fn zones(workspace: &Path, count: usize) -> Vec<Vec<String>> {
    if count == 1 {
        return vec![vec!["**".to_owned()]];
    }
    let mut folders = folders(workspace);
    while folders.len() < count {
        let divisible = |folder: &String| {
            let name = folder.rsplit('/').next().unwrap_or(folder);
            CONTAINERS.contains(&name) && self::folders(&workspace.join(folder)).len() > 1
        };
        let Some(at) = folders.iter().position(divisible) else {
            return vec![Vec::new(); count];
        };
        let folder = folders.remove(at);
        let parts = self::folders(&workspace.join(&folder));
        folders.splice(at..at, parts.into_iter().map(|part| format!("{folder}/{part}")));
    }
    let share = |agent: usize| agent * folders.len() / count;
    let patterns =
        |agent: usize| folders[share(agent)..share(agent + 1)].iter().map(|folder| pattern(folder));
    (0..count).map(|agent| patterns(agent).collect()).collect()
}

fn pattern(folder: &str) -> String {
    format!("{}/**", globset::escape(folder))
}

/// The names of the folders in a folder that have files in them, those aside that are hidden or
/// that ignore files name.
fn folders(folder: &Path) -> Vec<String> {
    walk(folder, 1)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_dir()))
        .filter(|entry| walk(entry.path(), usize::MAX).any(|file| is_file(&file)))
        .filter_map(|entry| entry.file_name().to_str().map(str::to_owned))
        .filter(|name| !name.contains(char::is_control))
        .collect()
}

fn walk(folder: &Path, depth: usize) -> impl Iterator<Item = ignore::DirEntry> {
    let mut walk = WalkBuilder::new(folder);
    walk.git_global(false).require_git(false).max_depth(Some(depth)).sort_by_file_name(Ord::cmp);
    walk.build().filter_map(Result::ok).filter(|entry| entry.depth() > 0)
}

fn is_file(entry: &ignore::DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file())
}

/// A string of the file, in which a `$` is no variable.
fn quoted(text: &str) -> String {
    toml::Value::String(text.replace('$', "$$")).to_string()
}

#[cfg(test)]
mod tests;
