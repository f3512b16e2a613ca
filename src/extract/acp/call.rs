//! One tool call as it is pieced together from its messages, and the files that it names.
//!
//! Messages come in any order, repeat themselves, and leave out what was said before; what was
//! named stays named. Knows nothing of turns and of the wire.

mod asked;
mod lines;
mod places;

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol_schema::v1::{ToolCallStatus, ToolKind};

use super::input::{self, Shape};
use super::named::plain_touch;
use super::update::{CallFields, Origin};
use crate::extract::json::{is_json, text};
use crate::extract::shell::{self, patch};
use crate::extract::{Workspace, output, uri};
use crate::model::{Action, ActivityKind, Touch, fold, wire_real};

/// Paths of each sort that one call remembers; one that names more can't be judged whole, and a
/// permission for it is refused.
const MOST_PATHS: usize = 4096;
/// Bytes of the longest title that is read as a command line.
const LONGEST_TITLE: usize = 16 * 1024;

/// How far a call is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
enum Stage {
    /// Permission was asked for it, no more.
    #[default]
    Asked,
    /// There were updates of it, but not the call itself, which may still tell its kind.
    Updated,
    Begun,
}

#[derive(Clone, Default, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct ToolCallState {
    kind: Option<ToolKind>,
    status: Option<ToolCallStatus>,
    stage: Stage,
    /// Permission was asked for it: what it does may have been refused.
    asked: bool,
    title: Option<String>,
    /// The title is too long to be read as a command line.
    long_title: bool,
    locations: Vec<String>,
    /// Diffs, and what its input says is written.
    written: Vec<String>,
    /// What diffs copy from.
    copied: Vec<String>,
    paths: Vec<String>,
    folders: Vec<String>,
    commands: Vec<shell::NamedFile>,
    has_command: bool,
    shape: Shape,
    last_input: Option<u64>,
    /// Something it names could not be read for certain.
    unreadable: bool,
    /// What the last message changed may be a new touch.
    has_news: bool,
    lines: lines::CallLines,
    reported: HashSet<(Arc<str>, Touch)>,
    performed: HashSet<(Arc<str>, Action)>,
}

/// A file that a call touched.
pub(crate) struct Touched {
    pub(crate) path: PathBuf,
    /// As the wire shows it.
    pub(crate) wire: Arc<str>,
    pub(crate) touch: Touch,
}

impl ToolCallState {
    /// Takes over what a message says of the call, in a session that works in `cwd`.
    pub(crate) fn absorb(
        &mut self,
        fields: &CallFields<'_>,
        cwd: &Path,
        workspace: &dyn Workspace,
    ) {
        let before = self.reported_state();
        self.stage = self.stage.max(match fields.origin {
            Origin::Permission => Stage::Asked,
            Origin::Update => Stage::Updated,
            Origin::Call => Stage::Begun,
        });
        self.asked |= fields.origin == Origin::Permission;
        self.unreadable |= fields.unreadable;
        // Some ask to leave the workspace by a permission of the kind `other`, whatever the call does
        // there: what was said of the call itself is more.
        let says_less = fields.origin == Origin::Permission && fields.kind == Some(ToolKind::Other);
        self.kind = if says_less { self.kind.or(fields.kind) } else { fields.kind.or(self.kind) };
        self.status = fields.status.or(self.status);
        self.has_news = fields.title.is_some() && fields.title.as_deref() != self.title.as_deref();
        if let Some(title) = &fields.title {
            self.long_title = title.len() > LONGEST_TITLE;
            self.title = (!self.long_title).then(|| title.clone().into_owned());
        }
        let names_already = !self.paths.is_empty() || !self.folders.is_empty();
        let answers = fields.origin == Origin::Update && self.is(ToolCallStatus::Completed);
        for location in &fields.locations {
            // What a search finds is its answer, not what it was asked to look at.
            let is_hit = self.kind == Some(ToolKind::Search)
                && answers
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
        self.has_news |= before != self.reported_state();
    }

    /// What its touches depend on beside its title. What it names only grows.
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
        // Makers repeat the whole input in every update.
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
            // Some agents stream the input as text; it is one once it is whole.
            let is_input =
                |text: &Cow<'_, str>| text.trim_start().starts_with('{') && is_json(text);
            for input in fields.texts.iter().filter_map(|raw| text(raw)).filter(is_input) {
                self.absorb_input(&input, cwd, workspace);
            }
        }
        let names_none =
            self.locations.is_empty() && self.paths.is_empty() && self.written.is_empty();
        if self.kind == Some(ToolKind::Edit) && names_none {
            // Some agents show their diffs as text.
            let texts = fields.texts.iter().filter_map(|raw| text(raw));
            for text in texts.filter(|text| patch::is_unified(text)) {
                for path in patch::files(&text) {
                    self.unreadable |= !keep(&mut self.written, path);
                }
            }
        }
        if self.is(ToolCallStatus::Failed) && names_none && self.touch().is_some() {
            // All that is left of what was tried is the error's text.
            for text in fields.texts.iter().filter_map(|raw| text(raw)) {
                let tried = output::quoted(&text).into_iter().filter(|path| path.starts_with('/'));
                for path in tried {
                    keep(&mut self.paths, path);
                }
            }
        }
    }

    /// Whether the last message may have changed what it touches: each look at the disk costs more
    /// than the rest of a line, and makers repeat themselves.
    pub(crate) fn has_news(&self) -> bool {
        self.has_news
    }

    pub(crate) fn is_completed(&self) -> bool {
        self.is(ToolCallStatus::Completed)
    }

    /// The files that the call touched as far as is known, each once for each touch.
    pub(crate) fn touches(&self, cwd: &Path, workspace: &dyn Workspace) -> Vec<Touched> {
        let awaits_kind = self.stage < Stage::Begun && self.kind.is_none() && !self.ended();
        if self.stage == Stage::Asked || awaits_kind {
            return Vec::new();
        }
        let mut touches = Vec::new();
        let mut add = |path: PathBuf, touch| {
            let moves_folders = matches!(self.kind, Some(ToolKind::Delete | ToolKind::Move));
            let wire = wire_real(workspace.root(), &path).into();
            let on_map = match touch {
                Touch::Search => true,
                Touch::Write if moves_folders => true,
                // What was told was no folder then: the disk need not be asked again.
                _ => self.was_reported(&wire, touch) || !workspace.is_dir(&path),
            };
            if on_map {
                touches.push(Touched { path, wire, touch });
            }
        };
        let resolve =
            |path: &String| Some(fold(&places::place(&uri::path_of(path)?, cwd, workspace)));
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
            // A title is made for people: it may only look like a command.
            if workspace.exists(&path) {
                add(path, touch);
            }
        }
        touches
    }

    pub(crate) fn was_reported(&self, path: &Arc<str>, touch: Touch) -> bool {
        self.reported.contains(&(Arc::clone(path), touch))
    }

    /// Whether this is told for the first time.
    pub(crate) fn mark_reported(&mut self, path: &Arc<str>, touch: Touch) -> bool {
        self.reported.len() < MOST_PATHS && self.reported.insert((Arc::clone(path), touch))
    }

    /// What the call, now that it is done, accessed and was not told before.
    pub(crate) fn perform(
        &mut self,
        touches: Vec<Touched>,
        workspace: &dyn Workspace,
    ) -> Vec<ActivityKind> {
        let mut performed = Vec::new();
        for Touched { path, wire, touch } in touches {
            // The names in a folder are nobody's secret. Only a search may touch one.
            if touch == Touch::Search && workspace.is_dir(&path) {
                continue;
            }
            let action = if touch == Touch::Write { Action::Write } else { Action::Read };
            let path = wire;
            let is_new = self.performed.len() < MOST_PATHS
                && self.performed.insert((Arc::clone(&path), action));
            if is_new {
                performed.push(ActivityKind::Performed { path, action });
            }
        }
        performed
    }

    /// Whether its agent never said how it fares, nor asked for it.
    pub(crate) fn is_implicit(&self) -> bool {
        self.status.is_none() && self.stage == Stage::Begun && !self.asked
    }

    fn is(&self, status: ToolCallStatus) -> bool {
        self.status == Some(status)
    }

    pub(crate) fn ended(&self) -> bool {
        self.is(ToolCallStatus::Completed) || self.is(ToolCallStatus::Failed)
    }

    /// The touch that the kind alone tells.
    fn touch(&self) -> Option<Touch> {
        match self.kind? {
            ToolKind::Read | ToolKind::Execute => Some(Touch::Read),
            ToolKind::Edit | ToolKind::Delete | ToolKind::Move => Some(Touch::Write),
            ToolKind::Search => Some(Touch::Search),
            _ => None,
        }
    }

    /// The action of the call's paths where that must not be guessed too low.
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

    /// Where its commands run.
    fn folder(&self, cwd: &Path) -> PathBuf {
        let folder = self.folders.first().and_then(|folder| uri::path_of(folder));
        folder.map_or_else(|| cwd.to_path_buf(), |folder| cwd.join(folder))
    }
}

/// Adds a path that is not known yet; false if there is no room for it.
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
