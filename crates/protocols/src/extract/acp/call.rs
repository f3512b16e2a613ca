//! The state of one tool call, merged from its messages, and the files it names.
//!
//! Messages come in any order, repeat themselves and leave out earlier fields; a path once named
//! stays. Does not know turns or the wire.

mod accesses;
mod lines;
mod places;

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol_schema::v1::{ToolCallStatus, ToolKind};

use super::digest::Digest;
use super::input::{self, Shape};
use super::named::plain_touch;
use super::update::{CallFields, Origin};
use crate::extract::json::{is_json, text};
use crate::extract::shell::{self, patch};
use crate::extract::{Workspace, output, uri};
use crate::model::{Action, ActivityKind, SessionStep, Touch, fold, wire_real};

/// Paths of each sort that one call keeps. A call with more cannot be judged as a whole: its
/// permission requests are refused.
const MOST_PATHS: usize = 4096;
/// Bytes of the longest title to read as a command line.
const LONGEST_TITLE: usize = 16 * 1024;

/// Which messages of a call were seen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
enum Stage {
    /// Only a permission request.
    #[default]
    PermissionRequested,
    /// Updates, but not yet the `tool_call`, which may still set the kind.
    Updated,
    Begun,
}

#[derive(Clone, Default, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct ToolCallState {
    kind: Option<ToolKind>,
    status: Option<ToolCallStatus>,
    stage: Stage,
    /// The call may have been refused.
    permission_requested: bool,
    title: Option<String>,
    /// The title is too long to read as a command line.
    long_title: bool,
    locations: Vec<String>,
    /// From diffs, and from the input's target paths.
    written: Vec<String>,
    /// Sources of copies in diffs.
    copied: Vec<String>,
    paths: Vec<String>,
    folders: Vec<String>,
    commands: Vec<shell::NamedFile>,
    has_command: bool,
    shape: Shape,
    last_input: Option<u64>,
    /// The agent's program says that it calls a tool of the team.
    is_team_tool: bool,
    /// The hashes of the call and of its result, for finding loops.
    digest: Digest,
    /// A path or command of it has no certain reading.
    unreadable: bool,
    /// The last message may have added a touch.
    is_changed: bool,
    lines: lines::CallLines,
    reported: HashSet<(Arc<str>, Touch)>,
    performed: HashSet<(Arc<str>, Action)>,
}

/// A file touched by a call.
pub(crate) struct Touched {
    pub(crate) path: PathBuf,
    /// The path as the wire shows it.
    pub(crate) wire: Arc<str>,
    pub(crate) touch: Touch,
}

impl ToolCallState {
    /// Merges the fields of a message; the session works in `cwd`.
    pub(crate) fn absorb(
        &mut self,
        fields: &CallFields<'_>,
        cwd: &Path,
        workspace: &dyn Workspace,
    ) {
        let before = self.reported_state();
        self.stage = self.stage.max(match fields.origin {
            Origin::Permission => Stage::PermissionRequested,
            Origin::Update => Stage::Updated,
            Origin::Call => Stage::Begun,
        });
        self.permission_requested |= fields.origin == Origin::Permission;
        self.unreadable |= fields.unreadable;
        self.is_team_tool |= fields.is_team_tool;
        // Some agents request permission to leave the workspace with the kind `other` for any call:
        // the call's own kind is better.
        let is_vague = fields.origin == Origin::Permission && fields.kind == Some(ToolKind::Other);
        self.kind = if is_vague { self.kind.or(fields.kind) } else { fields.kind.or(self.kind) };
        self.status = fields.status.or(self.status);
        self.is_changed =
            fields.title.is_some() && fields.title.as_deref() != self.title.as_deref();
        if let Some(title) = &fields.title {
            self.long_title = title.len() > LONGEST_TITLE;
            self.title = (!self.long_title).then(|| title.clone().into_owned());
        }
        let names_already = !self.paths.is_empty() || !self.folders.is_empty();
        let is_result = fields.origin == Origin::Update && self.is(ToolCallStatus::Completed);
        for location in &fields.locations {
            // The hits of a search are its result, not its input.
            let is_hit = self.kind == Some(ToolKind::Search)
                && is_result
                && (location.line.is_some() || names_already);
            if !is_hit {
                self.unreadable |= !keep(&mut self.locations, &location.path);
            }
        }
        for path in &fields.diffs {
            self.unreadable |= !keep(&mut self.written, path);
        }
        for path in &fields.copied {
            self.unreadable |= !keep(&mut self.copied, path);
        }
        if let Some(raw) = fields.input {
            self.absorb_input(raw, cwd, workspace);
        }
        self.absorb_texts(fields, cwd, workspace);
        self.is_changed |= before != self.reported_state();
    }

    /// The fields that the touches depend on, except the title. The named paths only grow.
    fn reported_state(&self) -> impl PartialEq + use<> {
        let named = [&self.locations, &self.written, &self.copied, &self.paths, &self.folders];
        let named = named.map(Vec::len);
        let commands = (self.commands.len(), self.has_command);
        let ended = (self.is_completed(), self.ended());
        (self.stage, self.kind, ended, named, commands, self.shape)
    }

    fn absorb_input(&mut self, raw: &str, cwd: &Path, workspace: &dyn Workspace) {
        let mut hasher = DefaultHasher::new();
        (raw, self.kind.map(|kind| std::mem::discriminant(&kind))).hash(&mut hasher);
        // Agents repeat the whole input in every update.
        if self.last_input.replace(hasher.finish()) == self.last_input {
            return;
        }
        let named = input::read(raw, self.kind);
        self.unreadable |= named.unreadable;
        self.shape = self.shape.or(named.shape);
        for (kept, named) in [
            (&mut self.paths, &named.paths),
            (&mut self.written, &named.written),
            (&mut self.folders, &named.folders),
        ] {
            for path in named {
                self.unreadable |= !keep(kept, path);
            }
        }
        for command in &named.commands {
            self.has_command = true;
            let reading = shell::read(command, &self.folder(cwd), workspace);
            self.unreadable |= !reading.whole;
            for named in reading.named {
                if self.commands.contains(&named) {
                    continue;
                }
                if self.commands.len() < MOST_PATHS {
                    self.commands.push(named);
                } else {
                    self.unreadable = true;
                }
            }
        }
    }

    fn absorb_texts(&mut self, fields: &CallFields<'_>, cwd: &Path, workspace: &dyn Workspace) {
        if self.kind.is_none() && fields.input.is_none() && !self.ended() {
            // Some agents stream the input as text, which parses once it is complete.
            let is_input =
                |text: &Cow<'_, str>| text.trim_start().starts_with('{') && is_json(text);
            for input in fields.texts.iter().filter_map(|raw| text(raw)).filter(is_input) {
                self.absorb_input(&input, cwd, workspace);
            }
        }
        let names_none =
            self.locations.is_empty() && self.paths.is_empty() && self.written.is_empty();
        if self.kind == Some(ToolKind::Edit) && names_none {
            // Some agents send their diffs as text.
            let texts = fields.texts.iter().filter_map(|raw| text(raw));
            for text in texts.filter(|text| patch::is_unified(text)) {
                for path in patch::files(&text) {
                    self.unreadable |= !keep(&mut self.written, path);
                }
            }
        }
        if self.is(ToolCallStatus::Failed) && names_none && self.touch().is_some() {
            // Only the error's text names the path.
            for text in fields.texts.iter().filter_map(|raw| text(raw)) {
                let tried = output::quoted(&text).into_iter().filter(|path| path.starts_with('/'));
                for path in tried {
                    keep(&mut self.paths, path);
                }
            }
        }
    }

    /// Whether the last message may have added a touch. Repeated messages are common, and each
    /// disk lookup costs more than the rest of a line.
    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Takes a message into the digest; returns the call as a step once, when it has ended.
    pub(crate) fn digested(&mut self, fields: &CallFields<'_>) -> Option<SessionStep> {
        self.digest.absorb(fields);
        let kind = self.kind.map(|kind| std::mem::discriminant(&kind));
        let completed = self.ended().then_some(self.is(ToolCallStatus::Completed))?;
        self.digest.take(kind, completed, self.title.as_deref(), &self.locations)
    }

    pub(crate) fn is_completed(&self) -> bool {
        self.is(ToolCallStatus::Completed)
    }

    /// The files touched so far, once for each kind of touch.
    pub(crate) fn touches(&self, cwd: &Path, workspace: &dyn Workspace) -> Vec<Touched> {
        let awaits_kind = self.stage < Stage::Begun && self.kind.is_none() && !self.ended();
        if self.stage == Stage::PermissionRequested || awaits_kind || self.is_team_tool() {
            return Vec::new();
        }
        let mut touches = Vec::new();
        let mut add = |path: PathBuf, touch| {
            let moves_folders = matches!(self.kind, Some(ToolKind::Delete | ToolKind::Move));
            let wire = wire_real(workspace.root(), &path).into();
            // A reported path was a file: no second disk lookup.
            let is_known = || self.was_reported(&wire, touch);
            let on_map = match touch {
                Touch::Search => true,
                Touch::Write if moves_folders => true,
                Touch::Write => is_known() || !workspace.is_dir(&path),
                // What is not there was not read.
                _ => is_known() || workspace.is_file(&path),
            };
            if on_map {
                touches.push(Touched { path, wire, touch });
            }
        };
        let resolve =
            |path: &String| Some(fold(&places::locate(&uri::path_of(path)?, cwd, workspace)));
        for path in self.written().filter_map(resolve) {
            add(path, Touch::Write);
        }
        for path in self.copied.iter().filter_map(resolve) {
            add(path, Touch::Read);
        }
        let touch = self.touch().unwrap_or(if self.shape.writes {
            Touch::Write
        } else if self.shape.searches {
            Touch::Search
        } else {
            Touch::Read
        });
        for path in self.locations.iter().chain(self.paths(cwd, workspace)).filter_map(resolve) {
            add(path, touch);
        }
        for path in self.title_files(cwd, workspace) {
            add(path, touch);
        }
        for (path, touch) in self.commands.iter().filter_map(plain_touch) {
            add(path, touch);
        }
        for (path, touch) in self.title_command(cwd, workspace).iter().filter_map(plain_touch) {
            // A title is prose: it may only look like a command.
            if workspace.exists(&path) {
                add(path, touch);
            }
        }
        touches
    }

    pub(crate) fn was_reported(&self, path: &Arc<str>, touch: Touch) -> bool {
        self.reported.contains(&(Arc::clone(path), touch))
    }

    /// Marks a touch as reported; false if it already was.
    pub(crate) fn mark_reported(&mut self, path: &Arc<str>, touch: Touch) -> bool {
        self.reported.len() < MOST_PATHS && self.reported.insert((Arc::clone(path), touch))
    }

    /// The accesses of a completed call that were not reported yet.
    pub(crate) fn perform(
        &mut self,
        touches: Vec<Touched>,
        workspace: &dyn Workspace,
    ) -> Vec<ActivityKind> {
        let mut performed = Vec::new();
        let by_program = self.has_command || self.kind == Some(ToolKind::Execute);
        for Touched { path, wire, touch } in touches {
            // Listing a folder is always allowed. Only a search touches folders.
            if touch == Touch::Search && workspace.is_dir(&path) {
                continue;
            }
            let action = if touch == Touch::Write { Action::Write } else { Action::Read };
            let path = wire;
            let is_new = self.performed.len() < MOST_PATHS
                && self.performed.insert((Arc::clone(&path), action));
            if is_new {
                performed.push(ActivityKind::Performed { path, action, by_program });
            }
        }
        performed
    }

    /// Whether the agent sent neither a status nor a permission request.
    pub(crate) fn is_implicit(&self) -> bool {
        self.status.is_none() && self.stage == Stage::Begun && !self.permission_requested
    }

    fn is(&self, status: ToolCallStatus) -> bool {
        self.status == Some(status)
    }

    pub(crate) fn ended(&self) -> bool {
        self.is(ToolCallStatus::Completed) || self.is(ToolCallStatus::Failed)
    }

    /// The touch implied by the kind.
    fn touch(&self) -> Option<Touch> {
        match self.kind? {
            ToolKind::Read | ToolKind::Execute => Some(Touch::Read),
            ToolKind::Edit | ToolKind::Delete | ToolKind::Move => Some(Touch::Write),
            ToolKind::Search => Some(Touch::Search),
            _ => None,
        }
    }

    /// The action on the call's paths; a write if in doubt.
    fn action(&self) -> Action {
        match self.kind {
            Some(
                ToolKind::Read
                | ToolKind::Search
                | ToolKind::Fetch
                | ToolKind::Think
                | ToolKind::Execute,
            ) => Action::Read,
            Some(ToolKind::Edit | ToolKind::Delete | ToolKind::Move) => Action::Write,
            _ if self.last_input.is_some() && !self.shape.writes && !self.shape.more_than_reads => {
                Action::Read
            }
            _ => Action::Write,
        }
    }

    /// Whether it calls a tool of the team, and names nothing that such a call does not have. Paths
    /// in its input are words to the team, and no accesses.
    pub(crate) fn is_team_tool(&self) -> bool {
        self.is_team_tool
            && matches!(self.kind, None | Some(ToolKind::Other))
            && self.written.is_empty()
            && self.copied.is_empty()
    }

    /// The working directory of its commands.
    fn folder(&self, cwd: &Path) -> PathBuf {
        let folder = self.folders.first().and_then(|folder| uri::path_of(folder));
        folder.map_or_else(|| cwd.to_path_buf(), |folder| cwd.join(folder))
    }
}

/// Adds a new path; false if there is no room for it.
fn keep(paths: &mut Vec<String>, path: &str) -> bool {
    if paths.iter().any(|known| known == path) {
        return true;
    }
    let has_room = paths.len() < MOST_PATHS;
    if has_room {
        paths.push(path.to_owned());
    }
    has_room
}
