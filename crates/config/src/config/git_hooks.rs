//! The hooks that git runs at a commit and their files, as far as they lie in the workspace: hooks of husky
//! and the like, and the files that lead hooks in the git folder. An agent that commits has to read these.
//!
//! Reads git's configuration itself: a repository can make git run programs.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::Config;
use crate::model::{Action, fold};
use crate::zone::{GitAccess, Zone};

/// Bytes of a configuration of git that are read.
const LONGEST: u64 = 1 << 20;

/// The files by which managers of hooks are led whose hooks lie in the git folder.
const LEADING: [&str; 7] = [
    ".pre-commit-config.yaml",
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    ".lefthook.yaml",
    ".overcommit.yml",
    ".simple-git-hooks.json",
];

/// A place of the workspace that commits need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct HookPlace {
    /// A file that stands for the place, relative to the workspace.
    file: String,
    /// The folder that the place is, relative to the workspace; None: the file alone.
    folder: Option<String>,
    /// Git's use of the place, in words.
    why: String,
    /// The pattern that lets an agent read it.
    pub(super) pattern: String,
}

/// Finds the places of a workspace. Reads the disk.
pub(super) fn places(workspace: &Path) -> Vec<HookPlace> {
    let Some((top, git)) = repository(workspace) else { return Vec::new() };
    let of_user = std::env::var_os("HOME").map(PathBuf::from);
    let files = [
        Some(PathBuf::from("/etc/gitconfig")),
        of_user.as_ref().map(|home| home.join(".config/git/config")),
        of_user.as_ref().map(|home| home.join(".gitconfig")),
        Some(git.join("config")),
    ];
    // The last one counts.
    let named = files.iter().flatten().filter_map(|file| hooks_path(&read(file)?)).next_back();
    if let Some(named) = named {
        let home = of_user.unwrap_or_default();
        let folder = match named.strip_prefix("~/") {
            Some(named) => home.join(named),
            None => fold(&top.join(&named)),
        };
        return of_folder(workspace, &folder, &named).into_iter().collect();
    }
    if !has_hooks(&git.join("hooks")) {
        return Vec::new();
    }
    let leading = LEADING.into_iter().filter(|name| workspace.join(name).is_file());
    leading
        .map(|name| HookPlace {
            file: name.to_owned(),
            folder: None,
            why: "the hooks in the git folder read it".to_owned(),
            pattern: globset::escape(name),
        })
        .collect()
}

/// Returns a sentence for each place that agents who may commit can't read.
pub(super) fn hints(config: &Config) -> Vec<String> {
    if config.zones.git != GitAccess::Commit {
        return Vec::new();
    }
    let zones: Vec<(&str, Zone)> = config
        .agents
        .iter()
        .filter_map(|agent| Some((agent.id.as_str(), Zone::compile(&agent.zone.spec).ok()?)))
        .collect();
    let hint = |place: HookPlace| {
        let without =
            |(_, zone): &&(&str, Zone)| zone.check(Path::new(&place.file), Action::Read).is_err();
        let agents: Vec<&str> = zones.iter().filter(without).map(|(id, _)| *id).collect();
        (!agents.is_empty()).then(|| {
            format!(
                "{}: commits fail (\"cannot exec\", \"Permission denied\"), since `{}` can't be read \
                 and {}: add `{}` to `readable` of [zones]",
                agents.join(", "),
                place.file,
                place.why,
                place.pattern
            )
        })
    };
    places(&config.team.workspace).into_iter().filter_map(hint).collect()
}

/// Returns the place of hooks that has a path which an agent may not read; None for most paths.
pub(super) fn of(config: &Config, path: &str) -> Option<HookPlace> {
    let is_of = |place: &HookPlace| match &place.folder {
        Some(folder) => Path::new(path).starts_with(folder),
        None => path == place.file,
    };
    places(&config.team.workspace).into_iter().find(is_of)
}

impl HookPlace {
    pub(super) fn why(&self) -> &str {
        &self.why
    }
}

/// The place of a folder of hooks, if it lies in the workspace.
fn of_folder(workspace: &Path, folder: &Path, named: &str) -> Option<HookPlace> {
    let folder = folder.canonicalize().ok()?;
    let hook = hooks(&folder).next()?;
    let inside = folder.strip_prefix(workspace).ok()?;
    // Husky's own hooks, in `_`, run those beside it.
    let whole = if inside.ends_with("_") { inside.parent()? } else { inside };
    let whole = whole.to_str()?;
    let pattern =
        if whole.is_empty() { "**".to_owned() } else { format!("{}/**", globset::escape(whole)) };
    let file = inside.join(hook.file_name()?).to_str()?.to_owned();
    let why =
        format!("git runs it as a hook (`core.hooksPath` is {})", crate::model::quoted(named));
    Some(HookPlace { file, folder: Some(whole.to_owned()), why, pattern })
}

fn has_hooks(folder: &Path) -> bool {
    hooks(folder).next().is_some()
}

/// The hooks in a folder that git would run.
fn hooks(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let is_hook = |file: &PathBuf| {
        file.extension().is_none()
            && file.file_name().is_some_and(|name| name.len() > 2)
            && file.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut hooks: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_hook).collect();
    hooks.sort();
    hooks.into_iter()
}

/// The top of the repository around a workspace, and its git folder.
fn repository(workspace: &Path) -> Option<(PathBuf, PathBuf)> {
    let top = workspace.ancestors().find(|folder| folder.join(".git").exists())?;
    let entry = top.join(".git");
    let git = if entry.is_dir() {
        entry
    } else {
        top.join(read(&entry)?.strip_prefix("gitdir: ")?.trim_end())
    };
    let common = read(&git.join("commondir")).map(|common| git.join(common.trim_end()));
    Some((top.to_owned(), common.unwrap_or(git)))
}

fn read(file: &Path) -> Option<String> {
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > LONGEST {
        return None;
    }
    let mut text = String::new();
    File::open(file).ok()?.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The value of `core.hooksPath` in a configuration of git. What it includes is not read.
fn hooks_path(config: &str) -> Option<String> {
    let (mut is_core, mut found) = (false, None);
    for line in config.lines().map(str::trim) {
        let line = match line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            Some((section, rest)) => {
                is_core = section.trim().eq_ignore_ascii_case("core");
                rest.trim()
            }
            None => line,
        };
        let Some((key, value)) = line.split_once('=').filter(|_| is_core) else { continue };
        if key.trim().eq_ignore_ascii_case("hookspath") {
            let value = value.trim();
            let value = match value.strip_prefix('"').and_then(|value| value.split_once('"')) {
                Some((value, _)) => value,
                None => value.split(['#', ';']).next().unwrap_or_default().trim(),
            };
            found = Some(value.to_owned());
        }
    }
    found.filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn workspace(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        for (name, text) in files {
            let path = top.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        (folder, top)
    }

    fn patterns(files: &[(&str, &str)]) -> Vec<String> {
        let (_folder, top) = workspace(files);
        places(&top).into_iter().map(|place| place.pattern).collect()
    }

    #[test]
    fn hooks_in_the_workspace_are_found() {
        let hook = (".husky/_/pre-commit", "#!/bin/sh\n");
        let config = "[user]\n\thooksPath = no\n[Core]\n\tbare = false\n\thookspath = .husky/_\n";
        assert_eq!(patterns(&[(".git/config", config), hook]), [".husky/**"]);
        let quoted = "[core] hooksPath = \"ci [x]/hooks\" ; ours\n";
        let hook = ("ci [x]/hooks/commit-msg", "");
        assert_eq!(patterns(&[(".git/config", quoted), hook]), ["ci [[]x[]]/hooks/**"]);
        // No hook is there, or it is elsewhere.
        assert_eq!(patterns(&[(".git/config", config), (".husky/_/h.sh", "")]), [""; 0]);
        let elsewhere = "[core]\n\thooksPath = /bin\n";
        assert_eq!(patterns(&[(".git/config", elsewhere)]), [""; 0]);
    }

    #[test]
    fn what_leads_the_hooks_of_the_git_folder_is_found() {
        let leading = (".pre-commit-config.yaml", "repos: []\n");
        let config = (".git/config", "[core]\n");
        let sample = (".git/hooks/pre-commit.sample", "");
        assert_eq!(patterns(&[config, leading, sample]), [""; 0]);
        let hook = (".git/hooks/pre-commit", "");
        assert_eq!(patterns(&[config, leading, hook]), [".pre-commit-config.yaml"]);
    }
}
