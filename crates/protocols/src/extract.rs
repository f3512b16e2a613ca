//! Reads the lines of an agent's protocol: into activities ([`Activity`]), and into requests that
//! a zone judges ([`Gate`]). ACP is built in.
//!
//! Does not know zones or the tracker; only [`Workspace`] touches the disk.

mod acp;
mod disk;
mod json;
mod output;
mod shell;
mod trouble;
mod uri;

#[cfg(test)]
mod testing;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::line::Direction;
#[cfg(doc)]
use crate::model::ActivityKind;
use crate::model::{
    Action, Activity, AgentId, BlockedId, ConflictId, SessionId, UpdateDetail, Via,
};

pub use acp::Acp;
pub use disk::DiskWorkspace;
pub use trouble::Trouble;

/// The extractor for ACP. Without a known folder, relative paths resolve against `default_cwd`.
pub fn acp(agent_root: Arc<dyn Workspace>, default_cwd: PathBuf) -> Box<dyn Extractor> {
    Box::new(Acp::new(agent_root, default_cwd))
}

/// Reads the lines of one agent instance.
pub trait Extractor: Send {
    /// Appends the activities of a line. Called once for each relayed line, in both directions and
    /// in order; never for a line that the gate stopped.
    fn observe(&mut self, direction: Direction, line: &[u8], activities: &mut Vec<Activity>);

    /// Reads the request in a zoned agent's line, before `observe` gets the line.
    fn gate(&mut self, line: &[u8]) -> Gate;

    /// Calls `gate`, then `observe` if the line holds no gated request or `passes` accepts it.
    /// Implementations can do both in one pass over the line.
    fn gate_and_observe(
        &mut self,
        line: &[u8],
        passes: &mut dyn FnMut(Gate) -> bool,
        activities: &mut Vec<Activity>,
    ) {
        let gate = self.gate(line);
        if matches!(gate, Gate::Pass) || passes(gate) {
            self.observe(Direction::ToClient, line, activities);
        }
    }

    /// Appends the activities of lines observed earlier, for extractors that work asynchronously.
    fn catch_up(&mut self, _activities: &mut Vec<Activity>) {}

    /// Whether an agent's line since the last call was more than housekeeping, such as its commands, modes or
    /// usage.
    fn take_progress(&mut self) -> bool {
        true
    }

    /// How to report [`ActivityKind::Update`], most of an agent's traffic; the default is each.
    fn report_updates(&mut self, _detail: UpdateDetail) {}

    /// Whether there is an update whose chunks are merged, and that is not reported yet.
    fn merges(&self) -> bool {
        false
    }

    /// Appends the update whose chunks are merged so far.
    fn flush_updates(&mut self, _activities: &mut Vec<Activity>) {}

    /// The line that refuses `ask` in the agent's protocol, newline included; None for a
    /// notification, which expects no response.
    fn refuse(&self, ask: &Ask, refusal: &Refusal) -> Option<Bytes>;

    /// The text that a request to write a file would put there, by its line; None if it is not known.
    fn wanted(&self, _line: &[u8]) -> Option<String> {
        None
    }

    /// The line that answers a read with `content`.
    fn answer(&self, ask: &Ask, content: &str) -> Option<Bytes>;

    /// The line with which a client cancels the session's turn.
    fn cancel(&self, session: &SessionId) -> Bytes;

    /// Answers the session's pending permission requests as cancelled. A client that cancels must
    /// do so itself; this stands in for one that does not know of the cancellation.
    fn withdraw(&mut self, _session: &SessionId) -> Withdrawal {
        Withdrawal::default()
    }

    /// Removes responses to withdrawn requests: the agent must not get two responses.
    fn without_late(&mut self, lines: Bytes) -> Bytes {
        lines
    }

    /// Whether the agent waits for its client: for a response, or for a running terminal.
    fn awaits(&self) -> bool;

    /// Ends every running turn, after the agent exited.
    fn end(&mut self, reason: &str, activities: &mut Vec<Activity>);
}

/// The gate's reading of one agent line.
#[derive(Debug)]
pub enum Gate {
    /// The line holds nothing that a zone judges.
    Pass,
    Ask(Ask),
    /// Two parsers could read different requests. The line never passes; `replies` are the error
    /// responses to the requests that have a readable id.
    Ambiguous {
        why: &'static str,
        replies: Vec<Bytes>,
    },
}

/// A request that a zone judges.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The request's id as the JSON it came as; None for a notification.
    pub id: Option<Box<RawValue>>,
    pub session: SessionId,
    pub via: Via,
    /// In the order of the request.
    pub accesses: Vec<Access>,
    /// Options of a permission request.
    pub options: Vec<PermissionOption>,
    /// The request asks for permission to call a tool of the team, in a call that is under way.
    pub is_team_tool: bool,
}

/// One path that a request names; `path` is absolute, unresolved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    pub path: PathBuf,
    pub target: Target,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    File(Action),
    /// A working directory, or a folder that is listed.
    Cwd,
    /// Everything readable below a folder.
    Search,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PermissionOption {
    pub id: String,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always`, or a value not known yet.
    pub kind: String,
}

/// The lines to send when requests are withdrawn.
#[derive(Default, Debug)]
pub struct Withdrawal {
    /// The responses that the agent waits for.
    pub to_agent: Bytes,
    /// Notifications that cancel the requests.
    pub to_client: Bytes,
}

/// Why a request is refused.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// Outside the zone: -32001 with `data`, or a reject option.
    Outside { blocked: BlockedId, path: Arc<str>, owners: Vec<AgentId>, message: Option<String> },
    /// Its turn, session or request was cancelled: -32800, or `cancelled`.
    Cancelled,
    /// Another agent has the file locked: -32001 with `data`.
    Locked { conflict: ConflictId, path: Arc<str>, holder: AgentId, message: String },
    /// `terminals = "deny"`.
    NoTerminals,
}

/// The type of a directory entry, links followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    Folder,
    /// Anything that is not a folder.
    File,
}

/// The extractor's only access to the disk.
pub trait Workspace: Send + Sync {
    /// Absolute.
    fn root(&self) -> &Path;
    /// None if the path does not exist.
    fn entry(&self, path: &Path) -> Option<Entry>;

    fn exists(&self, path: &Path) -> bool {
        self.entry(path).is_some()
    }

    /// Whether the path is there, and no folder.
    fn is_file(&self, path: &Path) -> bool {
        self.entry(path) == Some(Entry::File)
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.entry(path) == Some(Entry::Folder)
    }

    /// Whether the map leaves out the path (absolute): `.git`, `node_modules`, `target`, …, and
    /// matches of the workspace's ignore files.
    fn is_ignored(&self, path: &Path) -> bool;
    /// The text of a file (absolute) of at most `longest` bytes.
    fn text(&self, path: &Path, longest: usize) -> Option<String>;
}
