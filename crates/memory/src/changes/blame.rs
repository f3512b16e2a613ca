//! The author of each line of a file, by content: follows the changes of the file from the oldest
//! on, and each line keeps the change that it came with.

mod versions;

use std::collections::HashMap;
use std::path::PathBuf;

use self::versions::Versions;
use super::contents::{ContentSource, content_of};
use super::event::{ChangeCause, FileChange};
use super::follow::FileHistory;
use super::merge::{MOST_MERGED, is_binary, lines};
use super::state::{FileKind, FileState};
use crate::journal::hash_of;

/// Maximum changes of one file that are followed; beyond this the oldest are left out.
const MOST_FOLLOWED: usize = 20_000;

/// The origin of lines.
#[derive(Clone, PartialEq, Debug)]
pub enum LineOrigin {
    /// They were there before the journal's first change of the file.
    Before,
    /// Written outside the team: by a person, or git.
    Outside,
    /// Their author is not known.
    Unknown,
    /// A change of an agent, or an undo or redo.
    Change(Box<FileChange>),
}

/// The lines of a file, each with its origin.
#[derive(Clone, Debug)]
pub struct Blame {
    /// The bytes of the file, which `lines` divides.
    pub content: Vec<u8>,
    /// Each origin that a line has, once, in the order of the first lines that have it.
    pub origins: Vec<LineOrigin>,
    /// For each line, the index of its origin in `origins`.
    pub lines: Vec<usize>,
}

/// Why a file has no blame.
#[derive(Debug, thiserror::Error)]
pub enum BlameError {
    /// The journal has no change of the path, or the file was deleted.
    #[error("there is no file {}{}", path.display(), .of.as_deref().unwrap_or_default())]
    NoFile {
        /// Relative to the workspace; absolute outside it.
        path: PathBuf,
        /// The end of the message, which says which of the two it is.
        of: Option<String>,
    },
    /// The path is a folder, or its content is binary or over 64 MiB.
    #[error("{} is no file with lines", .0.display())]
    NoLines(PathBuf),
    /// The content after the last change can't be read from the journal.
    #[error("what {} has is not known: {why}", path.display())]
    NotKnown {
        /// Relative to the workspace; absolute outside it.
        path: PathBuf,
        /// The reason, in words.
        why: String,
    },
}

impl Blame {
    /// The lines, with their ends, each with its origin.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &LineOrigin)> {
        let origins = self.lines.iter().map(|at| &self.origins[*at]);
        lines(&self.content).into_iter().zip(origins)
    }
}

/// The blame of a file that has the content `now`: on the disk, or in a commit. With None, the last
/// content in the journal.
pub fn blame(
    path: &std::path::Path,
    history: &FileHistory,
    contents: &dyn ContentSource,
    now: Option<Vec<u8>>,
) -> Result<Blame, BlameError> {
    let mut walk = BlameWalk { contents, versions: Versions::default(), origins: Vec::new() };
    let unread = walk.run(history);
    let content = match now {
        Some(content) => content,
        None => last_known(path, history, contents)?,
    };
    if is_binary(&content) || content.len() > MOST_MERGED {
        return Err(BlameError::NoLines(path.to_owned()));
    }
    let origin = match unread {
        _ if history.changes.is_empty() => LineOrigin::Before,
        None => LineOrigin::Outside,
        Some(unread) if unread.hash == Some(hash_of(&content)) => unread.origin,
        // It was changed again in an unknown way.
        Some(_) => LineOrigin::Unknown,
    };
    let brings_back = !matches!(origin, LineOrigin::Change(_));
    let origin = walk.number(origin);
    walk.versions.add(&content, origin, brings_back);
    Ok(walk.finish(content))
}

fn last_known(
    path: &std::path::Path,
    history: &FileHistory,
    contents: &dyn ContentSource,
) -> Result<Vec<u8>, BlameError> {
    let path = path.to_owned();
    let Some(last) = history.changes.last() else {
        return Err(BlameError::NoFile { path, of: Some(" in the journal".to_owned()) });
    };
    match &last.after {
        _ if last.denied => {
            let why = "a `denied` pattern matches it".to_owned();
            Err(BlameError::NotKnown { path, why })
        }
        None => Err(BlameError::NoFile { path, of: Some("; it was deleted".to_owned()) }),
        Some(state) if state.kind == FileKind::Folder => Err(BlameError::NoLines(path)),
        Some(state) => content_of(contents, state)
            .map_err(|missing| BlameError::NotKnown { path, why: missing.to_string() }),
    }
}

/// The last version, if its content is not known.
struct UnreadVersion {
    hash: Option<String>,
    /// The origin of the lines that the last known version does not have.
    origin: LineOrigin,
}

struct BlameWalk<'a> {
    contents: &'a dyn ContentSource,
    versions: Versions,
    origins: Vec<LineOrigin>,
}

impl BlameWalk<'_> {
    fn run(&mut self, history: &FileHistory) -> Option<UnreadVersion> {
        let left_out = history.changes.len().saturating_sub(MOST_FOLLOWED);
        let changes = &history.changes[left_out..];
        let mut known: Option<String> = None;
        // The changes since the last content that is known.
        let mut pending: Vec<&FileChange> = Vec::new();
        // Whether the content before them is known.
        let mut is_sure = true;
        for (at, change) in changes.iter().enumerate() {
            let is_new = pending.is_empty() && (at == 0 || hash_before(change) != known);
            if is_new && (at == 0 || change.before.is_some()) {
                // The first change, or the first after a missed one.
                let before = change.before.as_ref();
                let content = before.and_then(|state| self.content(state));
                is_sure = before.is_none() || content.is_some();
                let missed = if at == 0 { LineOrigin::Before } else { LineOrigin::Unknown };
                let origin = self.number(missed);
                match content {
                    Some(content) => self.versions.add(&content, origin, true),
                    None if at == 0 => self.versions.add(b"", origin, true),
                    None => {}
                }
            }
            pending.push(change);
            // Successive changes of one tool call count as one.
            if changes.get(at + 1).is_some_and(|next| are_one(change, next)) {
                continue;
            }
            // A file that is gone has no lines, but may come back.
            let Some(after) = &change.after else { continue };
            let Some(content) = self.content(after) else { continue };
            let origin = self.number(origin_if(is_sure, &pending));
            let brings_back = change.cause != ChangeCause::Agent;
            self.versions.add(&content, origin, brings_back);
            known.clone_from(&after.hash);
            is_sure = true;
            pending.clear();
        }
        let after = pending.last().and_then(|last| last.after.as_ref())?;
        Some(UnreadVersion { hash: after.hash.clone(), origin: origin_if(is_sure, &pending) })
    }

    fn content(&self, state: &FileState) -> Option<Vec<u8>> {
        let has_lines = state.kind == FileKind::File && state.size <= MOST_MERGED as u64;
        let content = has_lines.then(|| content_of(self.contents, state).ok()).flatten()?;
        Some(content).filter(|content| !is_binary(content))
    }

    fn number(&mut self, origin: LineOrigin) -> u32 {
        if self.origins.last() != Some(&origin) {
            self.origins.push(origin);
        }
        u32::try_from(self.origins.len() - 1).unwrap_or(u32::MAX)
    }

    /// Keeps only the origins that lines have.
    fn finish(self, content: Vec<u8>) -> Blame {
        let mut places: HashMap<u32, usize> = HashMap::new();
        let mut origins: Vec<LineOrigin> = Vec::new();
        let mut place = |number: &u32| {
            *places.entry(*number).or_insert_with(|| {
                let origin = &self.origins[*number as usize];
                let known = origins.iter().position(|it| it == origin);
                known.unwrap_or_else(|| {
                    origins.push(origin.clone());
                    origins.len() - 1
                })
            })
        };
        let lines = self.versions.origins().iter().map(&mut place).collect();
        Blame { content, origins, lines }
    }
}

fn hash_before(change: &FileChange) -> Option<String> {
    change.before.as_ref().and_then(|state| state.hash.clone())
}

/// Whether two successive changes are by one author, in one tool call.
fn are_one(one: &FileChange, next: &FileChange) -> bool {
    let author =
        |it: &FileChange| (it.cause.clone(), it.agent_id.clone(), it.session_id.clone(), it.turn);
    let follows = match (&one.after, &next.before) {
        (None, None) => true,
        (Some(after), Some(before)) => after.has_content_of(before),
        _ => false,
    };
    follows
        && one.cause == ChangeCause::Agent
        && author(one) == author(next)
        && one.tool_call_id == next.tool_call_id
        && one.contested == next.contested
}

/// The origin of lines that several changes made, when the content before them may be unknown.
fn origin_if(is_sure: bool, changes: &[&FileChange]) -> LineOrigin {
    // Lines of the last version that the team did not write, it did not write before either.
    let is_outside = changes.last().is_some_and(|last| last.cause == ChangeCause::Outside);
    if is_sure || is_outside { origin(changes) } else { LineOrigin::Unknown }
}

/// The origin of lines that several changes made together: known if all are by one author.
fn origin(changes: &[&FileChange]) -> LineOrigin {
    let Some(last) = changes.last() else { return LineOrigin::Unknown };
    let is_by_one = changes.windows(2).all(|pair| {
        let [one, other] = [pair[0], pair[1]];
        one.after.is_none()
            || (one.cause == other.cause
                && one.agent_id == other.agent_id
                && one.session_id == other.session_id
                && one.turn == other.turn)
    });
    match last.cause {
        _ if !is_by_one => LineOrigin::Unknown,
        ChangeCause::Outside => LineOrigin::Outside,
        ChangeCause::Unknown => LineOrigin::Unknown,
        ChangeCause::Agent | ChangeCause::Undo(_) | ChangeCause::Redo(_) => {
            LineOrigin::Change(Box::new((*last).clone()))
        }
    }
}

/// A short name of a block of lines by their content, wherever they stand.
pub(super) fn content_hash(block: &[u8]) -> String {
    format!("blake3:{}", &hash_of(block)[..16])
}
