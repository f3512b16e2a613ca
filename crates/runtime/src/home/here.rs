//! Finds what a folder belongs to: the configuration in it or above it, and the teams whose workspace it
//! lies in.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::config::is_name;
use crate::home::journals::{every_team, journal_place, workspace_of};
use crate::runs::is_of_run;

/// The name of a configuration that needs no `-c`.
pub const CONFIG: &str = "eisen.toml";

/// Bytes of a file that is read for a name: as many as a configuration may have.
const MOST_BYTES: u64 = 1 << 20;

/// Returns the `eisen.toml` of a folder: its own, else the nearest above it, up to the top of its git
/// repository. None: there is none. The error says why the nearest one above is not used: others could
/// change it.
pub fn config_of(folder: &Path) -> Result<Option<PathBuf>, String> {
    let own = folder.join(CONFIG);
    if own.symlink_metadata().is_ok() {
        return Ok(Some(own));
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(folder) = folder.canonicalize() else { return Ok(None) };
    let Some(top) = repository_of(&folder) else { return Ok(None) };
    let within = folder.ancestors().skip(1).take_while(|above| above.starts_with(top));
    let Some(file) =
        within.map(|above| above.join(CONFIG)).find(|file| file.symlink_metadata().is_ok())
    else {
        return Ok(None);
    };
    for place in [file.as_path(), file.parent().unwrap_or(top)] {
        let held = place.metadata().map_err(|error| format!("cannot be read: {error}"));
        if let Err(why) = held.and_then(|held| is_of_user(&held)) {
            let (file, place) = (file.display(), place.display());
            return Err(format!("{file} is not used, since {place} {why}; `-c {file}` uses it"));
        }
    }
    Ok(Some(file))
}

/// The top of the git repository that a folder lies in.
pub(crate) fn repository_of(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|above| above.join(".git").symlink_metadata().is_ok())
}

/// Whether only the user or root may change a file or folder. A group of the user's own, which has the
/// user's number, counts as the user.
fn is_of_user(held: &Metadata) -> Result<(), String> {
    let user = nix::unistd::geteuid().as_raw();
    if ![0, user].contains(&held.uid()) {
        return Err("belongs to another user".to_owned());
    }
    let by_group = held.mode() & 0o020 != 0 && ![0, user].contains(&held.gid());
    if by_group || held.mode() & 0o002 != 0 {
        return Err("may be changed by other users".to_owned());
    }
    Ok(())
}

/// The teams of a folder, running or gone, without runs: that of its configuration first, then those with
/// the deepest workspace that the folder lies in. A worktree of git that has none has those of its project.
pub fn teams_of(eisen_dir: &Path, folder: &Path) -> Vec<String> {
    let own = config_of(folder).ok().flatten().and_then(|file| team_of(&file));
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(here) = here.canonicalize() else { return own.into_iter().collect() };
    let mut found: Vec<(usize, String)> = Vec::new();
    for team in every_team(eisen_dir).into_iter().filter(|team| !is_of_run(team)) {
        let workspace = workspace_of(eisen_dir, &team).filter(|place| here.starts_with(place));
        found.extend(workspace.map(|place| (place.components().count(), team)));
    }
    let deepest = found.iter().map(|(depth, _)| *depth).max();
    let of_workspace = found.into_iter().filter(|(depth, _)| Some(*depth) == deepest);
    let mut teams: Vec<_> = own.into_iter().collect();
    for (_, team) in of_workspace {
        if !teams.contains(&team) {
            teams.push(team);
        }
    }
    match checkout_of(&here).filter(|_| teams.is_empty()) {
        Some(checkout) => teams_of(eisen_dir, &checkout),
        None => teams,
    }
}

/// The checkout of a repository that a linked worktree belongs to. The repository's own record of the worktree
/// has to lead back: else a file could name any project.
fn checkout_of(folder: &Path) -> Option<PathBuf> {
    let entry = repository_of(folder)?.join(".git");
    let named = |folder: &Path, text: &str| folder.join(text.trim_end()).canonicalize().ok();
    let git = named(entry.parent()?, text_of(&entry)?.strip_prefix("gitdir: ")?)?;
    if named(&git, &text_of(&git.join("gitdir"))?)? != entry {
        return None;
    }
    let common = named(&git, &text_of(&git.join("commondir"))?)?;
    common.parent().filter(|_| common.ends_with(".git")).map(Path::to_owned)
}

/// The teams of a folder that have a journal, running or gone.
pub fn journals_of(eisen_dir: &Path, folder: &Path) -> Vec<String> {
    let mut teams = teams_of(eisen_dir, folder);
    teams.retain(|team| journal_place(eisen_dir, team).is_file());
    teams
}

/// The name that a configuration gives its team; None where it names none, or cannot be read.
fn team_of(file: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        team: Option<Team>,
    }
    #[derive(Deserialize)]
    struct Team {
        name: Option<String>,
    }
    let named: Named = toml::from_str(&text_of(file)?).ok()?;
    named.team?.name.filter(|name| is_name(name))
}

fn text_of(file: &Path) -> Option<String> {
    let held = file.metadata().ok()?;
    if !held.is_file() || held.len() > MOST_BYTES {
        return None;
    }
    fs::read_to_string(file).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt as _;

    use tempfile::TempDir;

    use super::*;

    fn folders() -> (TempDir, PathBuf) {
        let place = TempDir::new().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("shop/src/deep")).unwrap();
        (place, root)
    }

    #[test]
    fn a_configuration_is_found_up_to_the_top_of_the_repository() {
        let (_place, root) = folders();
        let found = |folder: &str| config_of(&root.join(folder)).unwrap();
        fs::write(root.join("shop").join(CONFIG), "").unwrap();
        assert_eq!(found("shop"), Some(root.join("shop").join(CONFIG)));
        // Outside of a repository only the folder itself counts.
        assert_eq!(found("shop/src/deep"), None);
        fs::create_dir(root.join("shop/.git")).unwrap();
        assert_eq!(found("shop/src/deep"), Some(root.join("shop").join(CONFIG)));
        fs::write(root.join("shop/src").join(CONFIG), "").unwrap();
        assert_eq!(found("shop/src/deep"), Some(root.join("shop/src").join(CONFIG)));
        // One above the top of the repository is of another project.
        fs::write(root.join(CONFIG), "").unwrap();
        fs::remove_file(root.join("shop/src").join(CONFIG)).unwrap();
        fs::remove_file(root.join("shop").join(CONFIG)).unwrap();
        assert_eq!(found("shop/src"), None);
    }

    #[test]
    fn a_configuration_above_that_others_may_change_is_refused() {
        let (_place, root) = folders();
        fs::create_dir(root.join("shop/.git")).unwrap();
        let file = root.join("shop").join(CONFIG);
        fs::write(&file, "").unwrap();
        let allow = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        allow(&file, 0o666);
        let why = config_of(&root.join("shop/src")).unwrap_err();
        assert!(why.contains("may be changed by other users"), "{why}");
        assert_eq!(config_of(&root.join("shop")).unwrap(), Some(file.clone()));
        allow(&file, 0o644);
        allow(&root.join("shop"), 0o777);
        assert!(config_of(&root.join("shop/src")).is_err());
        allow(&root.join("shop"), 0o755);
        assert!(config_of(&root.join("shop/src")).unwrap().is_some());
    }

    #[test]
    fn the_teams_of_a_folder_are_those_of_its_configuration_and_of_the_deepest_workspace() {
        let (_place, root) = folders();
        let eisen_dir = root.join("eisen");
        let make = |team: &str, workspace: &str| {
            let folder = eisen_dir.join("teams").join(team);
            fs::create_dir_all(&folder).unwrap();
            let workspace = root.join(workspace).into_os_string();
            fs::write(folder.join("workspace"), workspace.into_encoded_bytes()).unwrap();
        };
        make("outer", "shop");
        make("inner", "shop/src");
        make("twin", "shop/src");
        make("other", "elsewhere");
        make("run-01JAN0000000000000000000AA", "shop/src/deep");
        let found = |folder: &str| teams_of(&eisen_dir, &root.join(folder));
        assert_eq!(found("shop"), ["outer"]);
        assert_eq!(found("shop/src/deep"), ["inner", "twin"]);
        assert!(found("").is_empty());
        fs::write(root.join("shop/src").join(CONFIG), "[team]\nname = \"twin\"\n").unwrap();
        assert_eq!(found("shop/src"), ["twin", "inner"]);
    }

    #[test]
    fn the_teams_of_a_worktree_are_those_of_its_project() {
        let (_place, root) = folders();
        let eisen_dir = root.join("eisen");
        let folder = eisen_dir.join("teams/shop");
        fs::create_dir_all(&folder).unwrap();
        fs::write(
            folder.join("workspace"),
            root.join("shop").into_os_string().into_encoded_bytes(),
        )
        .unwrap();
        let git = |args: &[&str]| {
            let name = ["-c", "user.name=a", "-c", "user.email=a@b"];
            let mut git = std::process::Command::new("git");
            let done = git.args(name).args(args).current_dir(root.join("shop")).output().unwrap();
            assert!(done.status.success(), "{done:?}");
        };
        git(&["init", "-q"]);
        git(&["commit", "-q", "--allow-empty", "-m", "first"]);
        git(&["worktree", "add", "-q", "../tree"]);
        fs::create_dir(root.join("tree/deep")).unwrap();
        let found = |folder: &str| teams_of(&eisen_dir, &root.join(folder));
        assert_eq!(found("tree/deep"), ["shop"]);
        // A folder that only says so is none of its worktrees.
        fs::create_dir(root.join("claims")).unwrap();
        fs::copy(root.join("tree/.git"), root.join("claims/.git")).unwrap();
        assert!(found("claims").is_empty());
    }
}
