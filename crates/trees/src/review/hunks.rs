//! The files and hunks between two trees of git.

use std::fs;
use std::path::Path;

use serde::Serialize;

use super::ReviewError;
use super::notes::Comment;
use crate::repository::GitError;
use crate::tree::{Worktree, WorktreeError};

/// Letters of the id of a hunk.
const ID: usize = 8;

/// Bytes of the diff of one file that are shown hunk by hunk; a longer one is a hunk without lines.
const LONGEST: usize = 4 << 20;

/// Files, and bytes of all, that are shown hunk by hunk; each further one is a hunk without lines.
const MOST_SHOWN: usize = 1000;
const MOST_BYTES: usize = 32 << 20;

/// A file that a branch changes.
#[derive(Clone, Debug, Serialize)]
pub struct ReviewedFile {
    pub path: String,
    pub status: FileStatus,
    pub added: usize,
    pub removed: usize,
    pub hunks: Vec<Hunk>,
    /// The lines of git's diff before the first hunk.
    #[serde(skip)]
    header: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileStatus {
    Added,
    Changed,
    Removed,
}

/// Lines that were changed together.
#[derive(Clone, Debug, Serialize)]
pub struct Hunk {
    /// Made of the path and the lines: it stays the same while they do.
    pub id: String,
    /// Where it is, as git says it; empty for a file that has no lines.
    pub header: String,
    /// Its lines, each with a space, `+` or `-` before it.
    pub lines: Vec<String>,
    /// Whether it came since the last look.
    pub is_new: bool,
    pub is_accepted: bool,
    pub comments: Vec<Comment>,
    /// The turns that wrote its lines, as far as journals know them.
    pub by: Vec<HunkOrigin>,
}

/// A turn that wrote lines of a hunk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HunkOrigin {
    pub run: String,
    pub agent: String,
    pub turn: Option<u64>,
    /// The first words of the turn's prompt.
    pub prompt: Option<String>,
    /// The title of the tool call.
    pub call: Option<String>,
}

impl Hunk {
    /// Whether it stands for all of a file that has no lines.
    pub(super) fn is_whole(&self) -> bool {
        self.header.is_empty()
    }
}

impl ReviewedFile {
    /// The patch of one hunk.
    pub(super) fn patch_of(&self, hunk: &Hunk) -> String {
        let mut patch = self.header.clone();
        for line in std::iter::once(&hunk.header).chain(&hunk.lines) {
            patch.push_str(line);
            patch.push('\n');
        }
        patch
    }
}

/// The files that differ between two trees, in the order of their paths.
pub(super) fn between(
    tree: &Worktree,
    base: &str,
    now: &str,
) -> Result<Vec<ReviewedFile>, GitError> {
    let mut list = tree.git();
    list.args(["diff-tree", "-r", "--no-renames", "--name-status", "-z", base, now]);
    let list = list.bytes()?;
    let mut fields = list.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let (mut files, mut bytes) = (Vec::new(), 0);
    while let (Some(status), Some(path)) = (fields.next(), fields.next()) {
        let status = match &*status {
            "A" => FileStatus::Added,
            "D" => FileStatus::Removed,
            _ => FileStatus::Changed,
        };
        let is_shown = files.len() < MOST_SHOWN && bytes < MOST_BYTES;
        let file = one(tree, base, now, path.into_owned(), status, is_shown)?;
        bytes += file.hunks.iter().flat_map(|hunk| &hunk.lines).map(String::len).sum::<usize>();
        files.push(file);
    }
    Ok(files)
}

fn one(
    tree: &Worktree,
    base: &str,
    now: &str,
    path: String,
    status: FileStatus,
    is_shown: bool,
) -> Result<ReviewedFile, GitError> {
    if !is_shown {
        let mut whole = Hunk::new("");
        let id = blake3::hash(format!("{path}\n{base}\n{now}").as_bytes());
        id.to_hex()[..ID].clone_into(&mut whole.id);
        let (hunks, header) = (vec![whole], String::new());
        return Ok(ReviewedFile { path, status, added: 0, removed: 0, hunks, header });
    }
    let mut diff = tree.git();
    diff.args(["-c", "core.quotePath=false", "diff", "--no-color", "--no-ext-diff"]);
    diff.args(["--no-textconv", "--no-renames", "--full-index"]);
    diff.args(["--src-prefix=a/", "--dst-prefix=b/", base, now, "--"]);
    let bytes = diff.arg(format!(":(literal,top){path}")).bytes()?;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST)]).into_owned();
    let start =
        if text.starts_with("@@") { 0 } else { text.find("\n@@").map_or(text.len(), |at| at + 1) };
    let is_text = bytes.len() <= LONGEST && str::from_utf8(&bytes).is_ok();
    let mut hunks: Vec<Hunk> = Vec::new();
    if is_text {
        for line in text[start..].split('\n').filter(|line| !line.is_empty()) {
            if line.starts_with("@@") {
                hunks.push(Hunk::new(line));
            } else if let Some(hunk) = hunks.last_mut() {
                hunk.lines.push(line.to_owned());
            }
        }
    }
    if hunks.is_empty() {
        hunks.push(Hunk::new(""));
    }
    let counted = |sign: char| {
        let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
        lines.filter(|line| line.starts_with(sign)).count()
    };
    let (added, removed) = (counted('+'), counted('-'));
    for hunk in &mut hunks {
        let changed = hunk.lines.iter().filter(|line| !line.starts_with(' '));
        let mut hasher = blake3::Hasher::new();
        hasher.update(path.as_bytes());
        for line in changed {
            hasher.update(b"\n").update(line.as_bytes());
        }
        if hunk.is_whole() {
            hasher.update(&bytes);
        }
        hasher.finalize().to_hex()[..ID].clone_into(&mut hunk.id);
    }
    Ok(ReviewedFile { path, status, added, removed, hunks, header: text[..start].to_owned() })
}

impl Hunk {
    fn new(header: &str) -> Self {
        Self {
            id: String::new(),
            header: header.to_owned(),
            lines: Vec::new(),
            is_new: false,
            is_accepted: false,
            comments: Vec::new(),
            by: Vec::new(),
        }
    }
}

/// Makes a file what it was in another commit.
pub(super) fn set_back(
    tree: &Worktree,
    base: &str,
    file: &ReviewedFile,
) -> Result<(), ReviewError> {
    let place = tree.path.join(&file.path);
    let above = Path::new(&file.path).ancestors().skip(1);
    let leads_out = |folder: &Path| {
        tree.path.join(folder).symlink_metadata().is_ok_and(|found| found.is_symlink())
    };
    if above.take_while(|folder| !folder.as_os_str().is_empty()).any(leads_out) {
        let why = "a link leads to it".to_owned();
        return Err(ReviewError::NotAlone(file.path.clone(), why));
    }
    if file.status == FileStatus::Added {
        return Ok(fs::remove_file(&place).map_err(WorktreeError::at(place))?);
    }
    let mut restore = tree.git();
    restore.args(["restore", "--source", base, "--worktree", "--"]);
    restore.arg(format!(":(literal,top){}", file.path)).bytes()?;
    Ok(())
}
