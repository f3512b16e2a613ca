//! The starter `eisen.toml` that `init` writes: the agents found on PATH, on the whole folder or with a
//! folder each. `up` runs a team of the same text where there is no file. Reads the disk, and writes
//! nothing.

mod builds;
mod parts;

use std::fmt::Write as _;
use std::path::Path;

use ignore::WalkBuilder;

use self::builds::Builds;
pub use self::builds::build_folders;
pub use self::parts::PartError;
use super::git_hooks::{self, HookPlace};
use super::installed::{Installed, KnownAgent, Login, found, installed, without_adapter};
use super::profiles::{Profile, built_in};
use crate::ignored::{Further, Ignored};
use crate::model::ProviderKind;

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

/// Agents of a team that work on one folder together, unless others are named.
const MOST_AGENTS: usize = 3;

/// A proposed team.
#[derive(Debug)]
pub struct Starter {
    pub agents: Vec<Proposed>,
    /// The installed agents that are not among them, by the names of their profiles.
    pub further: Vec<&'static str>,
    /// Each agent has a folder of its own.
    is_divided: bool,
    /// The top of the workspace has files that every agent may read.
    top_files: bool,
    builds: Builds,
    /// The hooks in the workspace, which git runs at a commit.
    hooks: Vec<HookPlace>,
    /// The providers for which the environment has a key, of kinds that the agents take.
    providers: Vec<ProviderKind>,
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
    /// Patterns; empty: the whole folder, together with the others.
    pub allowed: Vec<String>,
}

impl Starter {
    /// Looks for agents in the folders of PATH, and takes some: those that are logged in first.
    pub fn look(workspace: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let path = variable("PATH").unwrap_or_default();
        let mut found = installed(&path, variable);
        found.sort_by_key(|agent| match agent.login {
            Login::Variable(_) | Login::File(_) | Login::Provider(_) => 0,
            Login::Unknown => 1,
            Login::NotFound(_) => 2,
        });
        let further = found.split_off(found.len().min(MOST_AGENTS));
        Self::together(workspace, &path, &found, &further).offering(variable)
    }

    /// As [`Starter::look`], with the installed agents of these profiles; the error names one that is not
    /// there.
    pub fn of(
        workspace: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
        names: &[String],
    ) -> Result<Self, NotInstalled> {
        let path = variable("PATH").unwrap_or_default();
        let mut found = installed(&path, variable);
        let mut taken = Vec::new();
        for name in names {
            let Some(at) = found.iter().position(|agent| agent.name == name) else {
                let there = found.iter().chain(&taken).map(|agent| agent.name).collect();
                return Err(NotInstalled { name: name.clone(), there });
            };
            taken.push(found.remove(at));
        }
        Ok(Self::together(workspace, &path, &taken, &found).offering(variable))
    }

    /// Offers providers for the keys that `variable` finds in the environment.
    #[must_use]
    pub fn offering(self, variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let is_taken = |kind: &ProviderKind| {
            let takes = |agent: &Proposed| agent.profile.providers.contains_key(kind);
            self.agents.iter().any(takes)
                && variable(kind.key_variable()).is_some_and(|key| !key.is_empty())
        };
        let providers = ProviderKind::ALL.into_iter().filter(is_taken).collect();
        Self { providers, ..self }
    }

    fn together(workspace: &Path, path: &str, agents: &[Installed], further: &[Installed]) -> Self {
        let agents = agents.iter().map(|agent| {
            let (id, name) = (agent.name.to_owned(), agent.name);
            Proposed { id, name, profile: agent.profile(), allowed: Vec::new() }
        });
        let mut starter = Self::with(workspace, path, agents.collect());
        starter.is_divided = false;
        starter.further = further.iter().map(|agent| agent.name).collect();
        starter
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
        let without_adapter = without_adapter(path);
        let (further, is_divided) = (Vec::new(), true);
        let providers = Vec::new();
        Self { agents, further, is_divided, top_files, builds, hooks, providers, without_adapter }
    }

    /// Returns the text of the file, for the folder in which it lies.
    pub fn text(&self) -> String {
        if !self.is_divided && !self.agents.is_empty() {
            return self.shared_text("");
        }
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
        text + &self.provider_text()
    }

    /// The tables of the providers that are offered, for the user to turn on.
    fn provider_text(&self) -> String {
        let mut text = String::new();
        if !self.providers.is_empty() {
            text += PROVIDERS;
        }
        for kind in &self.providers {
            let (name, variable) = (kind.as_str(), kind.key_variable());
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "#[providers.{name}]\n#kind = \"{name}\"\n#key = \"${{{variable}}}\"\n"
            );
        }
        text
    }
}

impl Starter {
    /// Returns the text for a team of this name on a folder elsewhere.
    pub fn text_for(&self, name: &str, workspace: &str) -> String {
        let (name, workspace) = (quoted(name), quoted(workspace));
        self.shared_text(&format!("[team]\nname = {name}\nworkspace = {workspace}\n"))
    }

    /// The text of agents that work on one folder together.
    fn shared_text(&self, team: &str) -> String {
        let mut text = format!("{SHARED}{team}");
        if self.agents.len() > 1 {
            text += "[conflicts]\n";
        }
        text += "\n";
        for Proposed { id, name, .. } in &self.agents {
            // Writing to a string cannot fail.
            let _ = write!(text, "[[agents]]\nid = \"{id}\"\nprofile = \"{name}\"\n");
        }
        text + &self.provider_text()
    }

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

const SHARED: &str = include_str!("starter/shared.toml");

/// A profile whose agent is not installed.
#[derive(Debug, thiserror::Error)]
#[error("`{name}` is not installed, or no profile; installed: {}", if .there.is_empty() { "none".to_owned() } else { .there.join(", ") })]
pub struct NotInstalled {
    name: String,
    there: Vec<&'static str>,
}

const NOT_READABLE: &str = r#"# Everybody may read these.
#readable = ["docs/**"]
"#;

const PROVIDERS: &str = "
# Takes this key from your environment, and leads model calls of agents through the team: they get a token in
# place of the key, and what they spend is counted. An agent that is logged in keeps its login.
";

const NOBODY: &str = include_str!("starter/nobody.toml");

/// Returns the profiles whose programs are in the folders of `path`, sorted by name.
fn profiles(path: &str) -> Vec<(&'static str, &'static Profile)> {
    found(path).map(|(name, profile, _)| (name, profile)).collect()
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
