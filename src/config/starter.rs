//! The starter `eisen.toml` that `init` writes: the agents found on PATH, with a zone each from the
//! folders of the workspace. Reads the disk, and writes nothing.

mod builds;
mod parts;

use std::fmt::Write as _;
use std::path::Path;

use ignore::WalkBuilder;

use self::builds::Builds;
pub use self::parts::PartError;
use super::git_hooks::{self, HookPlace};
use super::installed::{KnownAgent, found, without_adapter};
use super::profiles::{Profile, built_in};
use crate::ignored::{Further, Ignored};

/// Folders whose subfolders are divided among a team, rather than the folders themselves.
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

/// A proposed team.
#[derive(Debug)]
pub struct Starter {
    /// Sorted by name.
    pub agents: Vec<Proposed>,
    /// The top of the workspace has files that every agent may read.
    top_files: bool,
    builds: Builds,
    /// What git runs at a commit, in the workspace.
    hooks: Vec<HookPlace>,
    /// Installed agents that lack the adapter to speak ACP.
    pub without_adapter: Vec<KnownAgent>,
}

/// An installed agent.
#[derive(Debug)]
pub struct Proposed {
    pub id: String,
    /// The name of its profile.
    pub name: &'static str,
    pub profile: &'static Profile,
    /// Patterns; empty if there are fewer folders than agents.
    pub allowed: Vec<String>,
}

impl Starter {
    /// Looks for agents in the folders of `path`, a PATH, and for folders in `workspace`.
    pub fn look(workspace: &Path, path: &str) -> Self {
        let found = profiles(path);
        let zones = zones(workspace, found.len());
        let agents = found.into_iter().zip(zones);
        let agents = agents.map(|((name, profile), allowed)| {
            let id = name.to_owned();
            Proposed { id, name, profile, allowed }
        });
        Self::with(workspace, path, agents.collect())
    }

    /// Like [`Starter::look`], but with the agents in `parts`, each with its folder: the name of a
    /// folder of the workspace, or `NAME=FOLDER`. The programs found are assigned in turn; if none
    /// is found, `opencode`.
    pub fn divide(workspace: &Path, path: &str, parts: &[String]) -> Result<Self, PartError> {
        let parts = parts::parts(workspace, parts)?;
        let mut programs = profiles(path);
        if programs.is_empty() {
            programs.extend(
                built_in().get_key_value("opencode").map(|(name, one)| (name.as_str(), one)),
            );
        }
        let agents = parts.into_iter().zip(programs.iter().copied().cycle());
        let agents = agents.map(|((id, folder), (name, profile))| {
            let allowed = vec![pattern(&folder)];
            Proposed { id, name, profile, allowed }
        });
        Ok(Self::with(workspace, path, agents.collect()))
    }

    fn with(workspace: &Path, path: &str, agents: Vec<Proposed>) -> Self {
        // Without the file that is about to be written.
        let is_top_file = |name: &str| !name.starts_with('.') && name != "eisen.toml";
        let top_files = walk(workspace, 1)
            .any(|file| is_file(&file) && is_top_file(&file.file_name().to_string_lossy()));
        let builds = Builds::look(workspace);
        let hooks = workspace.canonicalize().map(|it| git_hooks::places(&it)).unwrap_or_default();
        Self { agents, top_files, builds, hooks, without_adapter: without_adapter(path) }
    }

    /// Returns the text of the file.
    pub fn text(&self) -> String {
        let lead = self.agents.first().map_or("opencode", |agent| agent.id.as_str());
        let divided =
            self.agents.len() > 1 && self.agents.iter().all(|one| !one.allowed.is_empty());
        let mut text = TEAM.replace("LEAD", lead);
        text += &self.zones(divided);
        for known in &self.without_adapter {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "\n# {} is here, but not its ACP adapter, {}: {}.",
                known.title, known.programs, known.install
            );
        }
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

impl Starter {
    /// Writes the lists of `[zones]`. An agent that may write everything needs none.
    fn zones(&self, divided: bool) -> String {
        let Builds { systems, build, shared, readable } = &self.builds;
        let list = |key: &str, patterns: &[String]| {
            let patterns: Vec<String> = patterns.iter().map(|one| quoted(one)).collect();
            format!("{key} = [{}]\n", patterns.join(", "))
        };
        let mut text = String::new();
        let builds = divided && !systems.is_empty();
        if builds && !build.is_empty() {
            text += "# Folders that builds make: everybody may write there, and they are made before agents \
                     start.\n";
            text += &list("build", build);
        }
        text += "# Everybody may write these.\n";
        if builds && !shared.is_empty() {
            text += &list("shared", shared);
        } else {
            text += "#shared = [\"types/**\"]\n";
        }
        let mut all = Vec::new();
        if divided && self.top_files {
            all.push("[!.]*".to_owned());
        }
        if builds {
            let _ = writeln!(
                text,
                "# Everybody may read these: what builds by {} read, in the folders of others too. Narrow \
                 it\n# where agents are not to read each other's sources.",
                systems.join(", ")
            );
            all.extend(readable.iter().cloned());
        } else if !all.is_empty() {
            text += "# Everybody may read these: the files at the top, but for hidden ones.\n";
        }
        if divided && !self.hooks.is_empty() {
            text += if all.is_empty() {
                "# Everybody may read these: git runs or reads them at each commit.\n"
            } else {
                "# Git runs or reads the last of them at each commit.\n"
            };
            all.extend(self.hooks.iter().map(|place| place.pattern.clone()));
        }
        if all.is_empty() { text + NOT_READABLE } else { text + &list("readable", &all) }
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
            "# {title}.{login}\n[[agents]]\nid = \"{}\"\nprofile = \"{}\"\n\
             # Sent once it is ready.\n#prompt = \"Look around, and wait for tasks.\"\n\
             # By its own name for it; left out: its own choice.\n#model = \"…\"\n{zone}",
            self.id, self.name
        )
    }
}

const TEAM: &str = include_str!("starter/team.toml");

const NOT_READABLE: &str = r#"# Everybody may read these.
#readable = ["docs/**"]
"#;

const NOBODY: &str = include_str!("starter/nobody.toml");

/// Returns the profiles whose programs are in the folders of `path`, sorted by name.
fn profiles(path: &str) -> Vec<(&'static str, &'static Profile)> {
    found(path).map(|(name, profile, _)| (name, profile)).collect()
}

/// Divides the workspace among `count` agents; empty if there are not enough folders.
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

/// Returns the names of subfolders with files in them, except hidden and ignored ones.
fn folders(folder: &Path) -> Vec<String> {
    walk(folder, 1)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_dir()))
        .filter(|entry| walk(entry.path(), usize::MAX).any(|file| is_file(&file)))
        .filter_map(|entry| entry.file_name().to_str().map(str::to_owned))
        .filter(|name| !name.contains(char::is_control))
        .collect()
}

fn walk(folder: &Path, depth: usize) -> impl Iterator<Item = ignore::DirEntry> {
    let ignored = Ignored::new(folder, Further { above: true, of_user: false }).with_hidden();
    let mut walk = WalkBuilder::new(folder);
    walk.standard_filters(false).filter_entry(move |entry| !ignored.has(entry));
    walk.max_depth(Some(depth)).sort_by_file_name(Ord::cmp);
    walk.build().filter_map(Result::ok).filter(|entry| entry.depth() > 0)
}

fn is_file(entry: &ignore::DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file())
}

/// Returns a string of the file, with `$` escaped.
fn quoted(text: &str) -> String {
    toml::Value::String(text.replace('$', "$$")).to_string()
}

#[cfg(test)]
mod tests;
