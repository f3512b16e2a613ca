//! The lines that a tool call reads or writes in each of its files.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use agent_client_protocol_schema::v1::ToolKind;

use super::{MOST_PATHS, ToolCallState, Touched};
use crate::extract::acp::lines::{LONGEST_TEXT, of_change, of_input};
use crate::extract::acp::update::{CallFields, Edit};
use crate::extract::json::text;
use crate::extract::{Workspace, uri};
use crate::model::{Lines, Touch, wire_path};

#[derive(Clone, Default, Debug)]
pub(super) struct CallLines {
    files: HashMap<Arc<str>, Lines>,
    /// Files with unreported lines, and the touches that reported them since.
    unreported: HashMap<Arc<str>, Vec<Touch>>,
    /// Hashes of the edits read so far: agents repeat them in every update.
    edits: HashSet<u64>,
}

impl ToolCallState {
    /// Merges the lines in a message, after [`Self::absorb`]. Reads the files that it edits: most
    /// edits carry texts, not line numbers.
    pub(crate) fn absorb_lines(
        &mut self,
        fields: &CallFields<'_>,
        cwd: &Path,
        workspace: &dyn Workspace,
    ) {
        let wire =
            |path: &str| uri::path_of(path).map(|path| wire_path(workspace.root(), cwd, &path));
        let reads = self.touch() == Some(Touch::Read) || self.kind.is_none();
        let reads = reads && !self.shape.writes && !self.shape.searches;
        let range = fields.input.filter(|_| reads).and_then(of_input);
        if let (Some(range), [path]) = (&range, &*self.paths) {
            let file = wire(path);
            self.add(file, range);
        }
        for location in &fields.locations {
            // The hits of a search are not what it reads.
            let is_hit = self.kind == Some(ToolKind::Search);
            let Some(line) = location.line.filter(|_| !is_hit) else { continue };
            // A read without a range may point to its first line.
            let whole =
                reads && line == 1 && range.is_none() && self.paths.contains(&location.path);
            let lines = if whole { Lines::all() } else { Lines::range(line, line) };
            self.add(wire(&location.path), &lines);
        }
        for edit in &fields.edits {
            if let Some(lines) = self.changed(edit, cwd, workspace) {
                let file = wire(self.whole(&edit.path));
                self.add(file, &lines);
            }
        }
    }

    /// The known lines of a file.
    pub(crate) fn lines_of(&self, file: &Touched) -> Lines {
        self.lines.files.get(&file.wire).cloned().unwrap_or_default()
    }

    /// Marks a file's lines as reported for its touch; false if they already were.
    pub(crate) fn mark_lines_reported(&mut self, file: &Touched) -> bool {
        let Some(touches) = self.lines.unreported.get_mut(&file.wire) else { return false };
        let is_new = !touches.contains(&file.touch);
        if is_new {
            touches.push(file.touch);
        }
        is_new
    }

    /// Marks all known lines as reported.
    pub(crate) fn lines_reported(&mut self) {
        self.lines.unreported.clear();
    }

    fn add(&mut self, file: Option<String>, lines: &Lines) {
        let Some(file) = file.filter(|_| lines.are_known()).map(Arc::<str>::from) else { return };
        if !self.lines.files.contains_key(&file) && self.lines.files.len() >= MOST_PATHS {
            return;
        }
        let known = self.lines.files.entry(Arc::clone(&file)).or_default();
        let before = known.clone();
        known.extend(lines);
        if *known != before {
            self.lines.unreported.insert(file, Vec::new());
            self.is_changed = true;
        }
    }

    /// The lines that an edit changes; None if the edit was read before, or has no text.
    fn changed(&mut self, edit: &Edit<'_>, cwd: &Path, workspace: &dyn Workspace) -> Option<Lines> {
        let new = edit.new.filter(|new| new.len() <= LONGEST_TEXT)?;
        let old = edit.old.filter(|old| *old != "null");
        if old.is_some_and(|old| old.len() > LONGEST_TEXT) {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        (&edit.path, old, new).hash(&mut hasher);
        let is_new =
            self.lines.edits.len() < MOST_PATHS && self.lines.edits.insert(hasher.finish());
        if !is_new {
            return None;
        }
        let path = cwd.join(uri::path_of(self.whole(&edit.path))?);
        let disk = workspace.text(&path, LONGEST_TEXT);
        let old = old.map(text).map_or(Some(None), |old| old.map(Some))?;
        Some(of_change(disk.as_deref(), old.as_deref(), &text(new)?))
    }
}
