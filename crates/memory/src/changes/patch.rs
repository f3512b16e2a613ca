//! The change of a file as a patch in git's format, which `git apply` takes.

mod binary;
mod hunks;

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use super::contents::{ContentSource, content_of};
use super::entry::{EntrySource, FileEntry};
use super::merge::{MOST_MERGED, is_binary};
use super::net::{Net, NetChange};
use super::quote::quoted;
use super::state::{FileKind, FileState};

use binary::blob_id;

pub(super) use binary::hex;

/// The kind of a line of a patch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PatchLine {
    /// A line in front of the hunks, such as `diff --git`, `rename from` and `---`.
    Header,
    /// The line with `@@` that begins a hunk.
    Hunk,
    /// A line that both sides have, a line of a binary patch, or the note of a missing line end.
    Context,
    /// A line of the old content alone; it begins with `-`.
    Removed,
    /// A line of the new content alone; it begins with `+`.
    Added,
}

/// The lines of a patch, with their ends.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct PatchLines {
    bytes: Vec<u8>,
    ends: Vec<(PatchLine, usize)>,
}

/// The change of one file.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct FilePatch {
    /// The path before, relative to the workspace; the same as `path` if the file was not moved.
    pub from: PathBuf,
    /// The path after, relative to the workspace; for a removed file, the path before.
    pub path: PathBuf,
    /// The patch in git's format.
    pub lines: PatchLines,
    /// The number of lines of the new content alone; 0 for a binary patch.
    pub added: usize,
    /// The number of lines of the old content alone; 0 for a binary patch.
    pub removed: usize,
    /// The sizes before and after, if either is binary.
    pub binary: Option<(usize, usize)>,
    /// The part of the change that the patch can't carry.
    pub note: Option<String>,
}

/// A change that is not in a patch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// Relative to the workspace; absolute outside it.
    pub path: PathBuf,
    /// The reason as a clause about the file, such as `it is a folder`.
    pub why: String,
}

impl PatchLines {
    pub(super) fn push(&mut self, kind: PatchLine, line: &[u8]) {
        self.bytes.extend_from_slice(line);
        self.ends.push((kind, self.bytes.len()));
    }

    fn header(&mut self, line: &str) {
        self.push(PatchLine::Header, format!("{line}\n").as_bytes());
    }

    fn named(&mut self, words: &str, name: &[u8]) {
        self.push(PatchLine::Header, &[words.as_bytes(), name, b"\n"].concat());
    }

    /// All lines, one after the other. Contents need not be UTF-8.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Each line, with its kind and its line end.
    pub fn iter(&self) -> impl Iterator<Item = (PatchLine, &[u8])> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(_, end)| *end));
        let spans = starts.zip(&self.ends);
        spans.map(|(start, (kind, end))| (*kind, &self.bytes[start..*end]))
    }
}

/// A file as git has it.
struct Side {
    /// `100644`, `100755` or `120000`.
    mode: &'static str,
    content: Vec<u8>,
}

/// The patch of one change. An error tells why a patch can't carry it.
pub fn patch(change: &NetChange, contents: &dyn ContentSource) -> Result<FilePatch, LeftOut> {
    let left_out = |why: &str| LeftOut { path: change.to.clone(), why: why.to_owned() };
    let inside = |path: &'_ PathBuf| -> PathBuf {
        let inside = change.tree.as_ref().and_then(|tree| path.strip_prefix(tree).ok());
        inside.unwrap_or(path).to_owned()
    };
    let (from, to) = (inside(&change.from), inside(&change.to));
    for path in [&from, &to] {
        if path.is_absolute() {
            return Err(left_out("it is outside the workspace"));
        }
        if path.components().any(|part| is_gits_own(part)) {
            return Err(left_out("it is git's own, and no patch may change it"));
        }
    }
    let before = side(change.before.as_ref(), contents).map_err(|why| left_out(&why))?;
    let after = side(change.after.as_ref(), contents).map_err(|why| left_out(&why))?;
    let mut patch = FilePatch {
        from: change.from.clone(),
        path: if change.after.is_some() { change.to.clone() } else { change.from.clone() },
        note: permissions(change),
        ..FilePatch::default()
    };
    if let Some(tree) = &change.tree {
        // git reads over it.
        patch.lines.named("worktree ", tree.as_os_str().as_encoded_bytes());
    }
    let begins = patch.lines.ends.len();
    match (before, after) {
        (None, None) => return Err(left_out("it is a folder")),
        (Some(before), Some(after)) if before.mode[..2] != after.mode[..2] => {
            // The type differs: git removes the old file and makes the new one.
            patch.write(&from, &from, Some(&before), None);
            patch.write(&to, &to, None, Some(&after));
        }
        (Some(before), None) => patch.write(&from, &from, Some(&before), None),
        (None, after) => patch.write(&to, &to, None, after.as_ref()),
        (before, after) => patch.write(&from, &to, before.as_ref(), after.as_ref()),
    }
    if patch.lines.ends.len() == begins {
        let why = patch.note.unwrap_or_else(|| "nothing in it changed that git knows".to_owned());
        return Err(LeftOut { path: patch.path, why });
    }
    Ok(patch)
}

/// The change of a text as a unified diff; `old` is None of a new file.
pub fn unified(path: &Path, old: Option<&[u8]>, new: &[u8]) -> PatchLines {
    let mut lines = PatchLines::default();
    let path = path.strip_prefix("/").unwrap_or(path);
    match old {
        Some(_) => lines.named("--- ", &quoted("a/", path)),
        None => lines.named("--- ", b"/dev/null"),
    }
    lines.named("+++ ", &quoted("b/", path));
    hunks::write(old.unwrap_or_default(), new, &mut lines);
    lines
}

/// The changes that no patch of the files carries: denied files, and folders that are or were
/// empty.
pub fn not_in_patch(net: &Net) -> Vec<LeftOut> {
    let of_denied = net.denied.iter().map(|path| LeftOut {
        path: path.clone(),
        why: "it changed, but a `denied` pattern matches it, so its content is not kept".to_owned(),
    });
    let files = || net.files.iter().filter(|file| !file.is_folder());
    let new = files().filter(|file| file.after.is_some()).flat_map(|file| file.to.ancestors());
    let old = files().filter(|file| file.before.is_some()).flat_map(|file| file.from.ancestors());
    let (new, old): (HashSet<_>, HashSet<_>) = (new.collect(), old.collect());
    let of_folders = net.files.iter().filter_map(move |folder| {
        let has_new = new.contains(folder.to.as_path());
        let has_old = old.contains(folder.from.as_path());
        let [was, is] = [&folder.before, &folder.after]
            .map(|entry| entry.as_ref().filter(|it| it.state.kind == FileKind::Folder));
        let why = match (was, is) {
            (None, None) => return None,
            (None, Some(_)) if has_new => return None,
            (None, Some(_)) => "it is a new folder, and empty".to_owned(),
            (Some(_), None) if has_old => return None,
            (Some(_), None) => "it was an empty folder, and is gone".to_owned(),
            (Some(_), Some(_)) if folder.is_rename() && has_new => return None,
            (Some(_), Some(_)) if folder.is_rename() => {
                format!("it is an empty folder, and was {}", folder.from.display())
            }
            (Some(was), Some(is)) => {
                let (was, is) = (was.state.permissions(), is.state.permissions());
                format!("it is a folder; its permissions are {is:o}, and were {was:o}")
            }
        };
        Some(LeftOut { path: folder.to.clone(), why })
    });
    of_denied.chain(of_folders).collect()
}

fn is_gits_own(part: Component<'_>) -> bool {
    part.as_os_str().eq_ignore_ascii_case(".git")
}

/// None if git has nothing there: no file, or a folder.
fn side(entry: Option<&FileEntry>, contents: &dyn ContentSource) -> Result<Option<Side>, String> {
    let Some(FileEntry { state, source }) = entry else { return Ok(None) };
    let mode = match state.kind {
        FileKind::Folder => return Ok(None),
        FileKind::Symlink => "120000",
        _ if state.permissions() & 0o100 != 0 => "100755",
        _ => "100644",
    };
    let content = match source {
        EntrySource::Merged(content) => content.clone(),
        _ => content_of(contents, state).map_err(|missing| missing.to_string())?,
    };
    Ok(Some(Side { mode, content }))
}

/// A change of permissions that git does not keep.
fn permissions(change: &NetChange) -> Option<String> {
    let [before, after] = [change.before.as_ref()?, change.after.as_ref()?].map(|it| &it.state);
    let [was, is] = [before, after].map(FileState::permissions);
    let are_files = before.kind == FileKind::File && after.kind == FileKind::File;
    let is_kept = was & 0o100 != is & 0o100;
    let differ = are_files && was != is && !is_kept;
    differ.then(|| format!("its permissions are {is:o}, and were {was:o}"))
}

impl FilePatch {
    fn write(&mut self, from: &Path, to: &Path, before: Option<&Side>, after: Option<&Side>) {
        let lines = &mut self.lines;
        let empty: &[u8] = &[];
        let [old, new] = [before, after].map(|side| side.map_or(empty, |side| &side.content[..]));
        let is_big = old.len().max(new.len()) > MOST_MERGED;
        let binary = is_big || is_binary(old) || is_binary(new);
        let (a, b) = (quoted("a/", from), quoted("b/", to));
        let mut body = PatchLines::default();
        let mut counts = hunks::Counts::default();
        if !binary {
            counts = hunks::write(old, new, &mut body);
        }
        let differ = old != new;
        let modes = [before, after].map(|side| side.map(|side| side.mode));
        let is_whole = modes.contains(&None);
        if !is_whole && from == to && !differ && modes[0] == modes[1] {
            return;
        }
        lines.push(PatchLine::Header, &[b"diff --git ", &a[..], b" ", &b[..], b"\n"].concat());
        match modes {
            [None, Some(mode)] => lines.header(&format!("new file mode {mode}")),
            [Some(mode), None] => lines.header(&format!("deleted file mode {mode}")),
            [Some(old), Some(new)] if old != new => {
                lines.header(&format!("old mode {old}"));
                lines.header(&format!("new mode {new}"));
            }
            _ => {}
        }
        if from != to {
            let kept = if differ { counts.kept } else { old.len() };
            let similar = (kept * 100).checked_div(old.len().max(new.len())).unwrap_or(100);
            lines.header(&format!("similarity index {similar}%"));
            lines.named("rename from ", &quoted("", from));
            lines.named("rename to ", &quoted("", to));
        }
        if differ || is_whole {
            let digits = if binary { 40 } else { 7 };
            let id = |side: Option<&Side>| {
                let id = side.map_or_else(|| "0".repeat(40), |side| blob_id(&side.content));
                id[..digits].to_owned()
            };
            let mode = match modes {
                [Some(old), Some(new)] if old == new => format!(" {old}"),
                _ => String::new(),
            };
            lines.header(&format!("index {}..{}{mode}", id(before), id(after)));
        }
        if differ && binary {
            self.binary = Some((old.len(), new.len()));
            lines.header("GIT binary patch");
            for content in [new, old] {
                for line in &binary::literal(content) {
                    lines.push(PatchLine::Context, line);
                }
                lines.push(PatchLine::Context, b"\n");
            }
        } else if differ {
            let name = |side: Option<&Side>, name: Vec<u8>| match side {
                None => b"/dev/null".to_vec(),
                // Without the tab, a name would end at its first space.
                Some(_) if name.contains(&b' ') => [&name[..], b"\t"].concat(),
                Some(_) => name,
            };
            lines.named("--- ", &name(before, a));
            lines.named("+++ ", &name(after, b));
            for (kind, line) in body.iter() {
                lines.push(kind, line);
            }
        }
        self.added += counts.added;
        self.removed += counts.removed;
    }
}
