//! Drafts of files that their writers did not put in place.

use std::path::{Path, PathBuf};
use std::time::Duration;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::care::garbage::files::{age, names_of, size};
use crate::care::garbage::{Garbage, Removal};
use crate::kept::dead_drafts;

/// The folders with files that are replaced, relative to `$EISEN_DIR`; `*` stands for each folder. All
/// others may have files of agents.
const FOLDERS: [&str; 15] = [
    "",
    "run",
    "teams",
    "teams/*",
    "teams/*/streams",
    "teams/*/tasks",
    "cooldowns",
    "batches",
    "runs/*",
    "slots",
    "slots/*",
    "slots/*/*",
    "slots/*/*/*",
    "trees",
    "trees/*",
];

/// Drafts of versions before the room `kept`, in these folders. They have no lock.
const OLD: [&str; 13] = [
    "**/.tmp??????",
    "teams/.??????",
    "teams/*/.??????",
    ".places-*",
    "core_sessions.tmp",
    "hub.new-*",
    "run/*.new",
    "teams/*/journal.db.undo.tmp",
    "teams/*/person.json.new",
    "teams/*/streams/*.new",
    "teams/*/tasks/t-*.new",
    "teams/*/tools.json.tmp",
    "slots/**/new",
];

/// How long a draft without a lock is left alone. Writing one took milliseconds.
const WRITING: Duration = Duration::from_mins(1);

/// The drafts whose writers are gone.
pub(super) fn dead(eisen_dir: &Path) -> Vec<Garbage> {
    let old = old();
    let is_old = |file: &PathBuf| {
        let is_named = file.strip_prefix(eisen_dir).is_ok_and(|file| old.is_match(file));
        let is_file = || file.symlink_metadata().is_ok_and(|found| found.is_file());
        is_named && is_file() && age(file).is_some_and(|age| age >= WRITING)
    };
    let mut drafts = Vec::new();
    for folder in FOLDERS.iter().flat_map(|pattern| folders(eisen_dir, pattern)) {
        drafts.extend(dead_drafts(&folder).unwrap_or_default());
        let names = names_of(&folder).unwrap_or_default().into_iter();
        drafts.extend(names.map(|name| folder.join(name)).filter(is_old));
    }
    drafts.into_iter().map(garbage).collect()
}

fn garbage(draft: PathBuf) -> Garbage {
    Garbage {
        what: format!("draft {}", draft.display()),
        reason: "its writer is gone".to_owned(),
        bytes: size(&draft),
        team: None,
        removal: Removal::Draft(draft),
    }
}

/// Matches the paths of old drafts, relative to `$EISEN_DIR`.
fn old() -> GlobSet {
    let mut globs = GlobSetBuilder::new();
    for glob in OLD {
        let glob = GlobBuilder::new(glob).literal_separator(true).build();
        glob.ok().map(|glob| globs.add(glob));
    }
    globs.build().unwrap_or_default()
}

/// The folders that a pattern stands for.
fn folders(within: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![within.to_owned()];
    for name in pattern.split('/').filter(|name| !name.is_empty()) {
        let below = |folder: PathBuf| {
            match name {
                "*" => names_of(&folder).unwrap_or_default(),
                name => vec![name.to_owned()],
            }
            .into_iter()
            .map(move |name| folder.join(name))
        };
        found = found.into_iter().flat_map(below).filter(|path| is_folder(path)).collect();
    }
    found
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs::{self, File};
    use std::time::SystemTime;

    use super::*;
    use crate::kept::{KeptFile, LockAt, Volatile, lock, remove_draft};

    #[test]
    fn a_draft_goes_once_its_writer_is_gone() {
        let eisen_dir = tempfile::tempdir().unwrap();
        let eisen_dir = eisen_dir.path();
        let write = |path: &str, age: Duration| {
            let path = eisen_dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "{").unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
            path
        };
        let mut dead = vec![
            write("runs/01ABC/.draft-dead", Duration::ZERO),
            write("trees/shop/.draft-dead", Duration::ZERO),
            write("teams/shop/streams/.draft-dead", Duration::ZERO),
        ];
        for old in [
            ".tmpAb12Cd",
            ".places-Ab12Cd",
            "core_sessions.tmp",
            "cooldowns/.tmpAb12Cd",
            "hub.new-17",
            "run/shop.new",
            "slots/codex/new",
            "slots/codex/a/b/new",
            "teams/.Ab12Cd",
            "teams/shop/.Ab12Cd",
            "teams/shop/journal.db.undo.tmp",
            "teams/shop/person.json.new",
            "teams/shop/streams/streams.json.new",
            "teams/shop/tasks/t-00000001.new",
            "teams/shop/tools.json.tmp",
        ] {
            dead.push(write(old, WRITING * 2));
        }
        let live = write("cooldowns/.draft-live", WRITING * 2);
        let _writer = lock(LockAt::Found(&live), Duration::ZERO).unwrap();
        for stays in [
            // Of agents and users.
            "teams/shop/private/ui/.draft-x",
            "teams/shop/private/ui/.tmpAb12Cd",
            "teams/shop/streams/files/a.new",
            "plugins/a.tmp",
            "teams/shop/tokens.json",
        ] {
            write(stays, WRITING * 2);
        }
        write("teams/shop/tasks/t-00000002.new", Duration::ZERO);
        let found = super::dead(eisen_dir);
        let paths = found.iter().map(|garbage| match &garbage.removal {
            Removal::Draft(path) => path.clone(),
            other => panic!("{other:?}"),
        });
        let mut paths: Vec<_> = paths.collect();
        paths.sort();
        dead.sort();
        assert_eq!(paths, dead);
        for path in &paths {
            remove_draft(path).unwrap();
        }
        assert!(super::dead(eisen_dir).is_empty() && live.exists());
        let whole = KeptFile::<Volatile>::new(eisen_dir.join("teams/shop/tokens.json"), 8);
        assert_eq!(whole.read().unwrap().unwrap(), b"{");
    }
}
