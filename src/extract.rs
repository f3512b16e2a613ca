//! A line of an agent's protocol → what it tells ([`Activity`]) and what it asks for ([`Gate`]).
//!
//! Pure: an extractor sees bytes and answers with records; it knows neither the zone that judges
//! nor the tracker that counts. ACP is built in.

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
use crate::model::{Action, Activity, AgentId, BlockedId, SessionId, Via};

pub use acp::Acp;
pub use disk::DiskWorkspace;

/// The extractor for ACP. Relative paths of a session whose folder is not known are taken against
/// `default_cwd`.
pub fn acp(agent_root: Arc<dyn Workspace>, default_cwd: PathBuf) -> Box<dyn Extractor> {
    Box::new(Acp::new(agent_root, default_cwd))
}

/// Reads along with one agent instance.
pub trait Extractor: Send {
    /// Appends what the line tells. Called once for each line that was relayed, both ways, in
    /// order; never for a line that the gate kept back.
    fn observe(&mut self, direction: Direction, line: &[u8], activities: &mut Vec<Activity>);

    /// Reads what a zoned agent's line asks its client for. Called before `observe`, for lines
    /// of the agent only.
    fn gate(&mut self, line: &[u8]) -> Gate;

    /// Gates a line, and observes it if it asks for nothing, or if `passes`, which is asked of all
    /// else, lets it pass: the same as one after the other, for those who can do both at one reading.
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

    /// Appends what lines told that were observed before: who takes its time about them says so
    /// elsewhere, and is asked then.
    fn catch_up(&mut self, _activities: &mut Vec<Activity>) {}

    /// Whether updates are to be told as they came ([`ActivityKind::Update`]), which is a copy of
    /// most of what an agent says. They are until this says otherwise.
    fn report_updates(&mut self, _wanted: bool) {}

    /// The line that refuses `ask` in the agent's own protocol, newline included; None for a
    /// notification, which has nobody to be told.
    fn refuse(&self, ask: &Ask, refusal: &Refusal) -> Option<Bytes>;

    /// The line that answers a read with `content`.
    fn answer(&self, ask: &Ask, content: &str) -> Option<Bytes>;

    /// The line by which a client cancels what the session does.
    fn cancel(&self, session: &SessionId) -> Bytes;

    /// Takes back what the session asks permission for, as a client must that cancels, in the place
    /// of one that doesn't know of it.
    fn withdraw(&mut self, _session: &SessionId) -> Withdrawal {
        Withdrawal::default()
    }

    /// Takes out of whole lines of the client what it answers to requests that were withdrawn: the
    /// agent must not be answered twice.
    fn without_late(&mut self, lines: Bytes) -> Bytes {
        lines
    }

    /// Whether the agent waits for its client: for an answer, or for a terminal that runs.
    fn awaits(&self) -> bool;

    /// Ends every running turn: the agent is gone.
    fn end(&mut self, reason: &str, activities: &mut Vec<Activity>);
}

/// What a line of the agent asks for.
#[derive(Debug)]
pub enum Gate {
    /// Nothing that a zone judges.
    Pass,
    Ask(Ask),
    /// Parsers could read it differently in what matters. It never passes; `replies` are the
    /// lines that tell the agent so, as far as its requests can be told.
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
    /// Whatever can be read below a folder.
    Search,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PermissionOption {
    pub id: String,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always`, or what the future brings.
    pub kind: String,
}

/// What is said, in lines, where requests are withdrawn.
#[derive(Default, Debug)]
pub struct Withdrawal {
    /// The answers that it waits for.
    pub to_agent: Bytes,
    /// What need not be answered any more.
    pub to_client: Bytes,
}

/// Why a request is refused.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// Outside the zone: -32001 with `data`, or a reject option.
    Outside { blocked: BlockedId, path: Arc<str>, owners: Vec<AgentId>, message: Option<String> },
    /// Its turn, session or request was cancelled: -32800, or `cancelled`.
    Cancelled,
    /// `terminals = "deny"`.
    NoTerminals,
}

/// What a path leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    Folder,
    /// A file, or what is neither.
    File,
}

/// What an extractor asks of the workspace: the one place where it meets the disk.
pub trait Workspace: Send + Sync {
    /// Absolute.
    fn root(&self) -> &Path;
    /// None where nothing is.
    fn entry(&self, path: &Path) -> Option<Entry>;

    fn exists(&self, path: &Path) -> bool {
        self.entry(path).is_some()
    }

    fn is_dir(&self, path: &Path) -> bool {
        self.entry(path) == Some(Entry::Folder)
    }

    /// Whether the path (absolute) is kept out of the map: `.git`, `node_modules`, `target`, …,
    /// and what the workspace's ignore files name.
    fn is_ignored(&self, path: &Path) -> bool;
    /// The text of a file (absolute) that has no more than `longest` bytes.
    fn text(&self, path: &Path, longest: usize) -> Option<String>;
}
