//! The accesses that a tool call requests permission for.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::ToolKind;

use super::ToolCallState;
use super::places::{absolute, locate};
use crate::extract::acp::named::judged;
use crate::extract::{Access, Target, Workspace, uri};
use crate::model::Action;

impl ToolCallState {
    /// The accesses for a zone to judge. None if the call has no certain reading.
    pub(crate) fn accesses(&self, cwd: &Path, workspace: &dyn Workspace) -> Option<Vec<Access>> {
        if self.is_team_tool() {
            return Some(Vec::new());
        }
        let mut accesses: Vec<Access> = Vec::new();
        let mut add = |path: PathBuf, target| {
            let access = Access { path, target };
            if !accesses.contains(&access) {
                accesses.push(access);
            }
        };
        let resolve = |path: &String, action| {
            let path = uri::exact_path_of(path)?;
            // A write creates the file under the whole name.
            let is_read = action == Action::Read;
            Some(if is_read { locate(&path, cwd, workspace) } else { absolute(&path, cwd) })
        };
        let reads_below = self.reads_below();
        let names_places = !self.locations.is_empty() || !self.paths.is_empty();
        let is_searched = reads_below && !names_places && !self.has_command;
        for folder in &self.folders {
            add(
                resolve(folder, Action::Read)?,
                if is_searched { Target::Search } else { Target::Cwd },
            );
        }
        let is_search = self.kind == Some(ToolKind::Search) && self.shape.searches;
        if is_searched && is_search && self.folders.is_empty() && !self.searches_web() {
            add(cwd.to_path_buf(), Target::Search);
        }
        let action = self.action();
        for path in self.locations.iter().chain(&self.paths) {
            let path = resolve(path, action)?;
            let is_folder = action == Action::Read && workspace.is_dir(&path);
            add(
                path,
                match action {
                    _ if !is_folder => Target::File(action),
                    _ if reads_below => Target::Search,
                    _ => Target::Cwd,
                },
            );
        }
        for path in self.written() {
            add(resolve(path, Action::Write)?, Target::File(Action::Write));
        }
        for path in &self.copied {
            add(resolve(path, Action::Read)?, Target::File(Action::Read));
        }
        let title = self.title_command(cwd, workspace);
        let named = self.commands.iter().chain(&title);
        for access in named.filter_map(|it| judged(it, workspace.root())) {
            add(access.path, access.target);
        }
        let only_title = self.kind == Some(ToolKind::Execute) && !self.has_command;
        let cut = self.unreadable || only_title && self.long_title;
        (!cut).then_some(accesses)
    }

    /// Whether it searches the web and not files: it has no pattern, and its title says so.
    fn searches_web(&self) -> bool {
        let title = self.title.iter().flat_map(|title| title.chars());
        let title: String =
            title.filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        let says_so = ["websearch", "searchweb", "theweb", "internet"];
        !self.shape.matches && says_so.iter().any(|words| title.contains(words))
    }

    /// Whether it reads below the folders that it names. Searches by name count like searches of
    /// contents; only a call that searches for nothing is a listing.
    fn reads_below(&self) -> bool {
        match self.kind {
            Some(ToolKind::Search) => self.shape.searches || self.last_input.is_none(),
            None | Some(ToolKind::Other) => self.shape.searches && !self.has_command,
            _ => false,
        }
    }
}
