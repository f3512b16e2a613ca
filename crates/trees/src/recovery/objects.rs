//! Writes a recovery into the repository: the bytes as blobs, the manifest, and one commit that holds them all.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::RecoveryError;
use super::manifest::{LeftOut, Manifest, SavedFile, SavedPath, VERSION};
use super::scan::{Marks, Scan, scan};
use crate::model::now_ms;
use crate::repository::GitCall;
use crate::tree::{Worktree, read_plain};

/// Where recoveries are.
pub(super) const REFERENCES: &str = "refs/eisen/trees";

/// Settings under which what git has written outlasts a power cut.
const DURABLE: [&str; 4] = ["-c", "core.fsync=objects,reference", "-c", "core.fsyncMethod=fsync"];

/// Whoever makes a recovery, where nobody else is named.
const NAME: &str = "eisen-core";
const MAIL: &str = "eisen-core@localhost";

/// Bytes of a log that are read.
const LONGEST_LOG: u64 = 4 << 20;

/// How often a recovery is written anew whose objects were removed meanwhile.
const MOST_TRIES: usize = 3;

/// Commits that only the log of a branch has, and that a recovery holds too.
const MOST_TIPS: usize = 64;

/// A recovery that was written, and what it accounts for.
#[derive(Debug)]
pub(crate) struct SavedRecovery {
    /// Its full name of a ref, and its commit.
    pub(crate) reference: String,
    pub(super) scan: Scan,
    pub(crate) manifest: Manifest,
}

impl SavedRecovery {
    pub(crate) fn left_out(&self) -> &[LeftOut] {
        &self.manifest.left_out
    }
}

/// Keeps all of a worktree that no commit has.
pub(crate) fn save(tree: &Worktree) -> Result<SavedRecovery, RecoveryError> {
    for _ in 0..MOST_TRIES {
        let saved = save_once(tree)?;
        // A `git prune` may have taken what no ref led to yet.
        let mut check = tree.repository().git();
        check.args(["rev-list", "--objects", "--quiet", &saved.reference, "--not"]);
        check.args(saved.manifest.head.iter().chain(&saved.manifest.tip));
        if check.bytes().is_ok() {
            return Ok(saved);
        }
        let mut forget = tree.repository().git();
        forget.args(["update-ref", "-d", &saved.reference]).bytes()?;
    }
    Err(RecoveryError::Strange(
        "another git removes objects meanwhile; nothing was removed".to_owned(),
    ))
}

fn save_once(tree: &Worktree) -> Result<SavedRecovery, RecoveryError> {
    let scan = scan(tree)?;
    let blobs = write_blobs(tree, &tree.path, &scan.kept)?;
    let own = files_below(&tree.git_dir)?;
    let own_blobs = write_blobs(tree, &tree.git_dir, &own)?;
    let ask = |name: &str| {
        let mut call = tree.git();
        // A git that was killed leaves a HEAD of zeros, which names no commit.
        call.args(["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]).text().ok()
    };
    let (mut tip, head) = (ask(&tree.reference()), ask("HEAD"));
    if tip.is_none() && head.is_none() {
        // Somebody removed its branch: it comes back where it was last.
        tip = tree.last_logged();
    }
    let manifest = Manifest {
        version: VERSION,
        branch: tree.branch.clone(),
        tip,
        head,
        files: saved(&scan.kept, &blobs),
        missing: scan.missing.iter().map(|path| SavedPath::of(path)).collect(),
        folders: scan.empty.iter().map(|path| SavedPath::of(path)).collect(),
        own: saved(&own, &own_blobs),
        left_out: scan.left_out.clone(),
    };
    let commit = commit(tree, &manifest)?;
    let reference = format!("{REFERENCES}/{}/{}", tree.name, now_ms());
    let mut update = durable(tree);
    update.args(["update-ref", &reference, &commit, ""]).bytes()?;
    Ok(SavedRecovery { reference, scan, manifest })
}

/// Removes a recovery again that has nothing but what the worktree's commit has.
pub(crate) fn drop_needless(tree: &Worktree, taken: &SavedRecovery) -> Result<(), RecoveryError> {
    let mut list = tree.repository().git();
    list.args(["ls-tree", "-r", "-z", "--full-tree", &tree.base]);
    let list = list.bytes()?;
    let committed: HashSet<(PathBuf, &str)> = list
        .split(|byte| *byte == 0)
        .filter_map(|line| {
            let tab = line.iter().position(|byte| *byte == b'\t')?;
            let object = str::from_utf8(&line[..tab]).ok()?.split(' ').nth(2)?;
            Some((std::ffi::OsStr::from_bytes(&line[tab + 1..]).into(), object))
        })
        .collect();
    let is_committed = |file: &SavedFile| {
        file.path.path().is_some_and(|path| committed.contains(&(path, file.object.as_str())))
    };
    if taken.manifest.files.iter().all(is_committed) {
        let mut forget = tree.repository().git();
        forget.args(["update-ref", "-d", &taken.reference]).bytes()?;
    }
    Ok(())
}

fn durable(tree: &Worktree) -> GitCall {
    let mut call = tree.repository().git();
    call.args(DURABLE);
    call
}

fn saved(files: &BTreeMap<PathBuf, Marks>, blobs: &[String]) -> Vec<SavedFile> {
    let each = files.iter().zip(blobs).map(|((path, marks), object)| SavedFile {
        path: SavedPath::of(path),
        mode: marks.mode,
        bytes: marks.bytes,
        changed: marks.changed,
        object: object.clone(),
    });
    each.collect()
}

/// Files of a folder, relative to it.
fn files_below(top: &Path) -> Result<BTreeMap<PathBuf, Marks>, RecoveryError> {
    let (mut files, mut ahead) = (BTreeMap::new(), vec![PathBuf::new()]);
    while let Some(folder) = ahead.pop() {
        let place = top.join(&folder);
        for entry in fs::read_dir(&place).map_err(RecoveryError::at(&place))? {
            let entry = entry.map_err(RecoveryError::at(&place))?;
            let found = entry.path().symlink_metadata().map_err(RecoveryError::at(entry.path()))?;
            let path = folder.join(entry.file_name());
            if found.is_dir() {
                ahead.push(path);
            } else if found.is_file() {
                files.insert(path, Marks::of(&found));
            }
        }
    }
    Ok(files)
}

/// Writes the bytes of files as blobs; returns their names, in order. No filter of git changes them.
fn write_blobs(
    tree: &Worktree,
    top: &Path,
    files: &BTreeMap<PathBuf, Marks>,
) -> Result<Vec<String>, RecoveryError> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let links = TempDir::new().map_err(RecoveryError::at(std::env::temp_dir()))?;
    let mut input = Vec::new();
    for (number, path) in files.keys().enumerate() {
        let place = top.join(path);
        let found = place.symlink_metadata().map_err(RecoveryError::at(&place))?;
        if found.is_symlink() {
            let named = fs::read_link(&place).map_err(RecoveryError::at(&place))?;
            let copy = links.path().join(number.to_string());
            fs::write(&copy, named.as_os_str().as_bytes()).map_err(RecoveryError::at(&copy))?;
            quote(&copy, &mut input);
        } else {
            // git's own message names no cause.
            fs::File::open(&place).map_err(RecoveryError::at(&place))?;
            quote(&place, &mut input);
        }
    }
    let mut write = durable(tree);
    write.args(["hash-object", "-w", "--no-filters", "--stdin-paths"]);
    let names = write.input(input).text()?;
    let names: Vec<_> = names.lines().map(str::to_owned).collect();
    if names.len() != files.len() {
        return Err(RecoveryError::Strange("git wrote fewer files than there are".to_owned()));
    }
    for (path, marks) in files {
        let place = top.join(path);
        let found = place.symlink_metadata().map_err(RecoveryError::at(&place))?;
        if Marks::of(&found) != *marks {
            return Err(RecoveryError::Changes(place));
        }
    }
    Ok(names)
}

/// Adds a line with a path, in the quotes of C.
fn quote(path: &Path, line: &mut Vec<u8>) {
    line.push(b'"');
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => line.extend([b'\\', *byte]),
            b' '..=b'~' => line.push(*byte),
            byte => {
                let _ = write!(line, "\\{byte:03o}");
            }
        }
    }
    line.extend(b"\"\n");
}

/// The commit of a recovery: files under their own names below `files`, what git takes no name of by numbers.
fn commit(tree: &Worktree, manifest: &Manifest) -> Result<String, RecoveryError> {
    let strange = |error: serde_json::Error| RecoveryError::Strange(error.to_string());
    let text = serde_json::to_vec_pretty(manifest).map_err(strange)?;
    let described = durable(tree).args(["hash-object", "-w", "--stdin"]).input(text).text()?;
    let mut lines = Vec::new();
    let mut add = |object: &str, path: &[u8]| {
        lines.extend(format!("100644 {object}\t").into_bytes());
        lines.extend(path);
        lines.push(0);
    };
    add(&described, b"manifest.json");
    for (number, file) in manifest.files.iter().enumerate() {
        let path = file.path.path().filter(|path| is_taken(path));
        match path {
            Some(path) => add(&file.object, Path::new("files").join(path).as_os_str().as_bytes()),
            None => add(&file.object, format!("other/{number}").as_bytes()),
        }
    }
    for (number, file) in manifest.own.iter().enumerate() {
        add(&file.object, format!("own/{number}").as_bytes());
    }
    for (number, object) in staged(tree)?.iter().enumerate() {
        add(object, format!("staged/{number}").as_bytes());
    }
    let folder = TempDir::new().map_err(RecoveryError::at(std::env::temp_dir()))?;
    let index = folder.path().join("index");
    let with_index = || {
        let mut call = durable(tree);
        call.args(["-c", "core.protectNTFS=false", "-c", "core.protectHFS=false"]);
        call.env("GIT_INDEX_FILE", &index);
        call
    };
    with_index().args(["update-index", "-z", "--index-info"]).input(lines).bytes()?;
    let written = with_index().arg("write-tree").text()?;
    let mut make = durable(tree);
    for role in ["AUTHOR", "COMMITTER"] {
        make.env(&format!("GIT_{role}_NAME"), NAME).env(&format!("GIT_{role}_EMAIL"), MAIL);
    }
    let what = format!("Recovery of the worktree {} (branch {})", tree.name, tree.branch);
    make.args(["commit-tree", &written, "-m", &what]);
    for parent in parents(tree, manifest) {
        make.args(["-p", &parent]);
    }
    Ok(make.text()?)
}

/// Whether git's index takes a path.
fn is_taken(path: &Path) -> bool {
    !path.iter().any(|name| name.eq_ignore_ascii_case(".git"))
}

/// The contents that only the worktree's index has.
fn staged(tree: &Worktree) -> Result<Vec<String>, RecoveryError> {
    let list = tree.git().args(["ls-files", "-s", "-z"]).bytes()?;
    let lines = list.split(|byte| *byte == 0).filter_map(|line| {
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let mut fields = str::from_utf8(&line[..tab]).ok()?.split(' ');
        let (mode, object) = (fields.next()?, fields.next()?);
        (mode != "160000").then(|| object.to_owned())
    });
    let indexed: HashSet<String> = lines.collect();
    let mut head = tree.git();
    let committed = head.args(["ls-tree", "-r", "--object-only", "--full-tree", "HEAD"]).text();
    let committed = committed.unwrap_or_default();
    let committed: HashSet<&str> = committed.lines().collect();
    let only = indexed.into_iter().filter(|object| !committed.contains(object.as_str()));
    let mut only: Vec<_> = only.collect();
    only.sort();
    Ok(only)
}

/// The commits that a recovery holds: where the worktree is, its branch, and what only logs have.
fn parents(tree: &Worktree, manifest: &Manifest) -> Vec<String> {
    let mut parents: Vec<String> = Vec::new();
    for commit in manifest.head.iter().chain(&manifest.tip) {
        if !parents.contains(commit) {
            parents.push(commit.clone());
        }
    }
    let logs = [tree.git_dir.join("logs/HEAD"), tree.common.join("logs").join(tree.reference())];
    let mut logged: Vec<String> = Vec::new();
    for file in logs {
        let text = read_plain(&file, LONGEST_LOG).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let new = text.lines().rev().filter_map(|line| line.split(' ').nth(1));
        let is_name = |name: &&str| {
            [40, 64].contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        for commit in new.filter(is_name).take(MOST_TIPS) {
            if !logged.iter().any(|known| known == commit) {
                logged.push(commit.to_owned());
            }
        }
    }
    if logged.is_empty() {
        return parents;
    }
    let mut wanted = logged.join("\n");
    for parent in &parents {
        wanted.push_str("\n^");
        wanted.push_str(parent);
    }
    let mut list = tree.repository().git();
    list.args(["rev-list", "--ignore-missing", "--stdin"]).input(wanted + "\n");
    let only_logged = list.text().unwrap_or_default();
    let only_logged: HashSet<&str> = only_logged.lines().collect();
    parents.extend(
        logged.into_iter().filter(|commit| only_logged.contains(commit.as_str())).take(MOST_TIPS),
    );
    parents
}

/// Reads what a recovery says of itself.
pub(crate) fn read_manifest(tree: &Worktree, reference: &str) -> Result<Manifest, RecoveryError> {
    let name = format!("{reference}:manifest.json");
    let text = tree.repository().git().args(["cat-file", "blob", &name]).bytes()?;
    let manifest = serde_json::from_slice::<Manifest>(&text);
    let manifest = manifest.map_err(|error| RecoveryError::Strange(error.to_string()))?;
    if manifest.version > VERSION {
        return Err(RecoveryError::Strange("a newer eisen-core made it".to_owned()));
    }
    Ok(manifest)
}
