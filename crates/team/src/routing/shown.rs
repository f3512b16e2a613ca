//! An access as it is shown to whoever decides it.

use std::sync::Arc;

use crate::model::{AgentId, BlockedAccess};
use crate::preview::{FoundFile, LookedAtFile, Wanted};
use crate::zone::Zone;

/// An access as it is shown to whoever decides it.
#[derive(Clone, Debug)]
pub struct ShownAccess {
    pub access: BlockedAccess,
    pub file: FoundFile,
    /// The content that the agent wants to write, if it is known.
    pub wanted: Option<Wanted>,
    /// The process whose system call waits.
    pub caller: Option<u32>,
    /// Stands for the access, the file and what is wanted.
    pub version: String,
}

/// The facts that routing has of an access that can be shown.
#[derive(Debug)]
pub(super) struct Showable {
    pub(super) access: BlockedAccess,
    pub(super) wanted: Option<Wanted>,
    /// The process whose system call waits.
    pub(super) caller: Option<u32>,
    /// The zone that the access is outside of.
    pub(super) zone: Option<Arc<Zone>>,
    /// The agent to which it is shown, with its zone. None: to a person.
    pub(super) reader: Option<(AgentId, Option<Arc<Zone>>)>,
}

impl Showable {
    /// Reads the disk.
    pub(super) fn look(self) -> ShownAccess {
        let Self { access, wanted, caller, zone, reader } = self;
        let (zone, agent) = match &reader {
            Some((agent, zone)) => (zone.as_deref(), Some(agent)),
            None => (zone.as_deref(), None),
        };
        let found = LookedAtFile::look(zone, &access.path, agent);
        let about = [access.id.as_str(), &access.path, access.action.as_str()];
        let version = found.version(wanted.as_ref(), &about.map(str::as_bytes));
        ShownAccess { access, file: found.file, wanted, caller, version }
    }
}
