//! Which lines of its files a tool call names.

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
    /// Of which more is known than was told, and as what they were told since.
    news: HashMap<Arc<str>, Vec<Touch>>,
    /// Changes that were looked at: makers repeat them in every update.
    changes: HashSet<u64>,
}

impl ToolCallState {
    /// Takes over what a message says of lines, once all else is absorbed. Asks for the text of
    /// files that it changes: most name what they change and not where.
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
            // What a search finds is not what it looks at.
            let is_hit = self.kind == Some(ToolKind::Search);
            let Some(line) = location.line.filter(|_| !is_hit) else { continue };
            // A read that names no range names the line where it begins.
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

    /// What is known of a file's lines.
    pub(crate) fn lines_of(&self, file: &Touched) -> Lines {
        self.lines.files.get(&file.wire).cloned().unwrap_or_default()
    }

    /// Whether more of them is known than was told of this touch; from now on it is told.
    pub(crate) fn mark_lines_reported(&mut self, file: &Touched) -> bool {
        let Some(told) = self.lines.news.get_mut(&file.wire) else { return false };
        let is_new = !told.contains(&file.touch);
        if is_new {
            told.push(file.touch);
        }
        is_new
    }

    /// Takes all that is known for told.
    pub(crate) fn lines_reported(&mut self) {
        self.lines.news.clear();
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
            self.lines.news.insert(file, Vec::new());
            self.has_news = true;
        }
    }

    /// The lines that an edit changes; None if it was looked at before, or names no text.
    fn changed(&mut self, edit: &Edit<'_>, cwd: &Path, workspace: &dyn Workspace) -> Option<Lines> {
        let new = edit.new.filter(|new| new.len() <= LONGEST_TEXT)?;
        let old = edit.old.filter(|old| *old != "null");
        if old.is_some_and(|old| old.len() > LONGEST_TEXT) {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        (&edit.path, old, new).hash(&mut hasher);
        let is_new =
            self.lines.changes.len() < MOST_PATHS && self.lines.changes.insert(hasher.finish());
        if !is_new {
            return None;
        }
        let path = cwd.join(uri::path_of(self.whole(&edit.path))?);
        let disk = workspace.text(&path, LONGEST_TEXT);
        let old = old.map(text).map_or(Some(None), |old| old.map(Some))?;
        Some(of_change(disk.as_deref(), old.as_deref(), &text(new)?))
    }
}
