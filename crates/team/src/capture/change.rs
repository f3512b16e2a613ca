//! The known facts of a file's change: the registration of its writer before it, and the findings after it.

use std::path::Path;
use std::sync::Arc;

use super::disk::{Fate, Stamp};
use super::source::{Cause, WriteSource, Writer};
use super::turns::Turns;
use crate::model::{AgentId, FileContent, FileStamp, FileState, SeenBy, SessionId};

/// A registration.
#[derive(Clone, Copy)]
pub(super) struct Registration<'a> {
    pub(super) source: &'a WriteSource,
    pub(super) cause: Cause<'a>,
    pub(super) epoch: u64,
    /// The file's stamp, if it was read just now.
    pub(super) stamp: Option<Stamp>,
    pub(super) from: Option<&'a Arc<Path>>,
    pub(super) fate: Fate,
    pub(super) order: u64,
    pub(super) turns: &'a Turns,
}

/// A file that was found changed.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) path: Arc<Path>,
    pub(super) from: Option<Arc<Path>>,
    pub(super) order: u64,
    pub(super) before: Option<FileState>,
    pub(super) after: Option<FileState>,
    pub(super) contents: Vec<(Arc<str>, FileContent)>,
    /// None: no writer in the team is known.
    pub(super) author: Option<Author>,
    pub(super) contested: Vec<AgentId>,
    /// When it was changed, in nanoseconds since 1970.
    pub(super) changed_ns: i128,
    /// The file before and after.
    pub(super) stamps: [Option<FileStamp>; 2],
    pub(super) denied: bool,
}

#[derive(Debug)]
pub(super) struct Author {
    pub(super) agent: AgentId,
    pub(super) session: Option<SessionId>,
    pub(super) tool_call: Option<Arc<str>>,
    pub(super) process: Option<u32>,
    pub(super) by: SeenBy,
}

/// The last possible writer of a file with this stamp, and the agents of the others.
pub(super) fn authors(
    writers: &[Writer],
    path: &Path,
    stamp: Option<Stamp>,
    turns: &Turns,
) -> (Option<Author>, Vec<AgentId>) {
    let Some(last) = writers.last() else { return (None, Vec::new()) };
    let mut contested: Vec<AgentId> = Vec::new();
    for writer in writers {
        let agent = writer.source.agent();
        if agent != last.source.agent() && !contested.contains(agent) {
            contested.push(agent.clone());
        }
    }
    let moment = last.moment(path, stamp, turns);
    let author = Author {
        agent: last.source.agent().clone(),
        session: moment.session,
        tool_call: moment.tool_call,
        process: last.process,
        by: last.by,
    };
    (Some(author), contested)
}
