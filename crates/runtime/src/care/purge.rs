//! Takes a text out of the files below `$EISEN_DIR`. Each room registers what it keeps there; the room
//! `journal` does it for journals.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use crate::journal::Pattern;
use crate::kept::{Durable, KeptFile, LockAt, PATIENCE, lock};
use crate::model::{KeptFiles, KeptForm};
use crate::{config, hub, journal, plugin, process, runs, serve, session, slots, streams, tasks};
use crate::{tiers, tokens, tree, undo, web, zone};

/// Bytes of a file that is looked through.
const MOST_BYTES: u64 = 256 << 20;

/// The files of this room.
const OWN: [KeptFiles; 7] = [
    KeptFiles::new("console of a team", KeptForm::Log, &["logs/*.console", "logs/*.console.*"]),
    KeptFiles::new("configuration of a folder without one", KeptForm::Text, &["teams/*.toml"]),
    KeptFiles::new("batch", KeptForm::Text, &["batches/*"]),
    KeptFiles::new("accesses that wait for a person", KeptForm::Json, &["teams/*/person.json*"]),
    KeptFiles::new("tools of agents", KeptForm::Json, &["teams/*/tools.json*"]),
    KeptFiles::new(
        "place of a team",
        KeptForm::Fixed,
        &["teams/*/workspace", "teams/*/journal.path", "probed"],
    ),
    KeptFiles::new("draft of a file", KeptForm::Fixed, &["**/.draft-*", "**/.tmp*"]),
];

/// All that is kept below `$EISEN_DIR`. The first one that has a file says what becomes of it.
const ALL: [&[KeptFiles]; 18] = [
    &OWN,
    &session::KEPT,
    &tasks::KEPT,
    &runs::KEPT,
    &process::KEPT,
    &streams::KEPT,
    &config::KEPT,
    &tiers::KEPT,
    &undo::KEPT,
    &journal::KEPT,
    &zone::KEPT,
    &slots::KEPT,
    &serve::KEPT,
    &tokens::KEPT,
    &web::KEPT,
    &plugin::KEPT,
    &hub::KEPT,
    &tree::KEPT,
];

/// A file that had the text.
#[derive(Debug)]
pub struct PurgedFile {
    pub path: PathBuf,
    /// The kind of file, for people.
    pub what: &'static str,
    /// Why it has the text still.
    pub left: Option<String>,
}

/// Takes the text out of the files of a team, or of all, or with `dry_run` only finds it. What a running
/// process has in memory it may write again.
pub fn purge_files(
    eisen_dir: &Path,
    team: Option<&str>,
    pattern: &Pattern,
    dry_run: bool,
) -> io::Result<Vec<PurgedFile>> {
    let stores = Stores::new();
    let mut purged = Vec::new();
    for entry in entries(eisen_dir)? {
        let Ok(inside) = entry.path.strip_prefix(eisen_dir) else { continue };
        if team.is_some_and(|team| !is_of(team, inside)) {
            continue;
        }
        let store = stores.of(inside);
        let what = store.map_or("of no part of this program", |store| store.what);
        let mut left = None;
        let named = entry.path.file_name().is_some_and(|name| pattern.is_in(name.as_bytes()));
        if named {
            left = Some("its name has the text".to_owned());
        }
        let is_journals = store.is_some_and(|store| match store.form {
            KeptForm::Journal => true,
            // What it would take out is there still.
            KeptForm::Content => dry_run,
            _ => false,
        });
        if entry.is_file && !is_journals {
            match purge_file(&entry.path, store, pattern, dry_run) {
                Ok(PurgeOutcome::Nothing) if !named => continue,
                Ok(PurgeOutcome::Nothing | PurgeOutcome::Cleaned) => {}
                Ok(PurgeOutcome::Left(why)) => left = Some(why),
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => left = Some(error.to_string()),
            }
        } else if !named {
            continue;
        }
        purged.push(PurgedFile { path: entry.path, what, left });
    }
    Ok(purged)
}

/// The files that no part of this program has registered.
pub fn unregistered_files(eisen_dir: &Path) -> io::Result<Vec<PathBuf>> {
    let stores = Stores::new();
    let mut files = entries(eisen_dir)?;
    files.retain(|entry| {
        let inside = entry.path.strip_prefix(eisen_dir).unwrap_or(&entry.path);
        entry.is_file && stores.of(inside).is_none()
    });
    Ok(files.into_iter().map(|entry| entry.path).collect())
}

/// The registered files, each with its patterns.
struct Stores(Vec<(KeptFiles, Vec<GlobMatcher>)>);

impl Stores {
    fn new() -> Self {
        let matcher = |glob: &&str| {
            let made = GlobBuilder::new(glob).literal_separator(true).build();
            made.map(|glob| glob.compile_matcher()).ok()
        };
        let with = |store: &KeptFiles| (*store, store.files.iter().filter_map(matcher).collect());
        Self(ALL.into_iter().flatten().map(with).collect())
    }

    /// The one that has a file, by its path relative to `$EISEN_DIR`.
    fn of(&self, inside: &Path) -> Option<&KeptFiles> {
        let has = |globs: &[GlobMatcher]| globs.iter().any(|glob| glob.is_match(inside));
        self.0.iter().find(|(_, globs)| has(globs)).map(|(store, _)| store)
    }
}

struct StoredFile {
    path: PathBuf,
    is_file: bool,
}

/// All that is below a folder, in order. Follows no link.
fn entries(folder: &Path) -> io::Result<Vec<StoredFile>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            }
            found.push(StoredFile { path: entry.path(), is_file: kind.is_file() });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Whether a file is a team's, or the registry, which has sessions of all.
fn is_of(team: &str, inside: &Path) -> bool {
    let mut names = inside.iter().map(|name| name.to_string_lossy().into_owned());
    let (Some(first), second) = (names.next(), names.next().unwrap_or_default()) else {
        return false;
    };
    let begins = |ending: &str| second.starts_with(&format!("{team}{ending}"));
    match first.as_str() {
        "teams" => second == team || begins(".json"),
        "logs" => second == team || begins(".console"),
        "run" => begins("."),
        "runs" => runs::is_of_run(team) && team.ends_with(&second),
        first => first.starts_with("core_sessions"),
    }
}

enum PurgeOutcome {
    Nothing,
    /// Or only found, in a dry run.
    Cleaned,
    /// The text is there still; why.
    Left(String),
}

fn purge_file(
    path: &Path,
    store: Option<&KeptFiles>,
    pattern: &Pattern,
    dry_run: bool,
) -> io::Result<PurgeOutcome> {
    if fs::metadata(path)?.len() > MOST_BYTES {
        return Ok(PurgeOutcome::Left("it is too large to be looked through".to_owned()));
    }
    if !pattern.is_in_file(&fs::read(path)?) {
        return Ok(PurgeOutcome::Nothing);
    }
    let is_fixed = |form| matches!(form, KeptForm::Fixed | KeptForm::Content);
    let Some(store) = store.filter(|store| !is_fixed(store.form)) else {
        let why = "it can't be cleaned: remove it if nothing needs it";
        return Ok(PurgeOutcome::Left(why.to_owned()));
    };
    if dry_run {
        return Ok(PurgeOutcome::Cleaned);
    }
    let lock_file = store.lock.map(|name| path.with_file_name(name));
    let _lock = lock_file.map(|file| lock(LockAt::File(&file), PATIENCE)).transpose()?;
    clean(path, store.form, pattern)?;
    if pattern.is_in_file(&fs::read(path)?) {
        return Ok(PurgeOutcome::Left(
            "it has the text in a form that can't be replaced".to_owned(),
        ));
    }
    Ok(PurgeOutcome::Cleaned)
}

fn clean(path: &Path, form: KeptForm, pattern: &Pattern) -> io::Result<()> {
    if form == KeptForm::Log {
        return overwrite(path, pattern);
    }
    let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
    let purged = match form {
        KeptForm::Json => pattern.purged_json(&text),
        _ => pattern.purged(&text),
    };
    let Some(purged) = purged else { return Ok(()) };
    KeptFile::<Durable>::new(path, u64::MAX).replace(purged.as_bytes())
}

/// Puts as many bytes into the place of each match: what is appended meanwhile stays.
fn overwrite(path: &Path, pattern: &Pattern) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut text = Vec::new();
    (&file).take(MOST_BYTES).read_to_end(&mut text)?;
    for place in pattern.places(&text) {
        file.write_all_at(&vec![b'*'; place.len()], place.start as u64)?;
    }
    file.sync_data()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn write(dir: &Path, path: &str, text: &[u8]) -> PathBuf {
        let file = dir.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    fn purge(dir: &Path, team: Option<&str>, dry_run: bool) -> Vec<String> {
        let pattern = Pattern::text("hunter2").unwrap();
        let line = |it: PurgedFile| {
            let path = it.path.strip_prefix(dir).unwrap().display().to_string();
            let left = it.left.map(|why| format!(" LEFT {why}")).unwrap_or_default();
            format!("{path}: {}{left}", it.what)
        };
        purge_files(dir, team, &pattern, dry_run).unwrap().into_iter().map(line).collect()
    }

    #[test]
    fn a_secret_goes_from_all_stores_and_what_stays_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let files: [(&str, &[u8]); 8] = [
            ("teams/shop/tasks/t-1.json", br#"{"id":"t-1","result":"hunter2 works"}"#),
            ("core_sessions.json", br#"{"sessions":[{"session_id":"x-hunter2","n":1.50}]}"#),
            ("logs/shop/ui.log", b"1 it is hunter2\n"),
            ("logs/shop.console", b"2 it is hunter2\n"),
            ("runs/01K/prompt", b"use hunter2"),
            ("runs/01K/attachments.json", br#"["\u0068unter2"]"#),
            ("teams/shop/streams/hook.dead.ndjson", b"{\"event\":\"hunter2\"}\n{}\n"),
            ("teams/api/tasks/t-2.json", br#"{"id":"t-2","text":"hunter2"}"#),
        ];
        let paths = files.map(|(path, text)| write(dir, path, text));
        write(dir, "teams/shop/workspace", b"/shop/hunter2");
        write(dir, "teams/shop/novel", b"hunter2");
        write(dir, "teams/shop/tasks/t-3.json", br#"{"id":"t-3"}"#);
        let left = [
            "teams/shop/novel: of no part of this program LEFT it can't be cleaned: remove it if \
             nothing needs it",
            "teams/shop/workspace: place of a team LEFT it can't be cleaned: remove it if nothing \
             needs it",
        ];
        assert_eq!(purge(dir, None, true).len(), files.len() + left.len());
        for (path, (_, text)) in paths.iter().zip(files) {
            assert_eq!(fs::read(path).unwrap(), text, "a dry run changes nothing");
        }
        assert_eq!(purge(dir, Some("shop"), false).len(), 5 + left.len());
        assert!(fs::read_to_string(&paths[7]).unwrap().contains("hunter2"), "another team's");
        assert!(purge(dir, None, false).len() == 3 + left.len());
        assert_eq!(purge(dir, None, false), left);
        let now = paths.map(|path| fs::read_to_string(path).unwrap());
        assert_eq!(now[0], r#"{"id":"t-1","result":"[purged] works"}"#);
        assert_eq!(now[1], r#"{"sessions":[{"session_id":"x-[purged]","n":1.50}]}"#);
        assert_eq!(now[2], "1 it is *******\n");
        assert_eq!((&*now[4], &*now[5]), ("use [purged]", r#"["[purged]"]"#));
        assert_eq!(now[6], "{\"event\":\"[purged]\"}\n{}\n");
        assert_eq!(unregistered_files(dir).unwrap(), [dir.join("teams/shop/novel")]);
    }

    #[test]
    fn a_name_that_has_it_is_named() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "logs/hunter2/ui.log", b"");
        assert_eq!(
            purge(dir.path(), None, false),
            ["logs/hunter2: of no part of this program LEFT its name has the text"]
        );
    }
}
