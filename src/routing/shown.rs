//! An access as it is shown to whoever decides it: the file as it is, what the agent wants to write,
//! and a version that stands for both.

use std::io::{self, ErrorKind, Read as _};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use super::Wanted;
use crate::model::{Action, AgentId, BlockedAccess, wire_real};
use crate::zone::{Permit, Zone};

/// Bytes of a file that are looked at.
const MOST_READ: u64 = 1 << 20;

/// Hexadecimal digits of a version.
const DIGITS: usize = 32;

/// An access as it is shown to whoever decides it.
#[derive(Clone, Debug)]
pub struct ShownAccess {
    pub access: BlockedAccess,
    pub file: FoundFile,
    /// What the agent wants to write, if it is known.
    pub wanted: Option<Wanted>,
    /// Stands for all that is shown.
    pub version: String,
}

/// The file of an access, as the disk has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FoundFile {
    Missing,
    There {
        /// At most 1 MiB, from the beginning.
        content: Vec<u8>,
        is_whole: bool,
    },
    /// It is not shown; why.
    Withheld(String),
}

/// What routing knows of an access that can be shown.
#[derive(Debug)]
pub(super) struct Showable {
    pub(super) access: BlockedAccess,
    pub(super) wanted: Option<Wanted>,
    /// The zone that the access is outside of.
    pub(super) zone: Option<Arc<Zone>>,
    /// The agent to which it is shown, with its zone. None: to a person.
    pub(super) reader: Option<(AgentId, Option<Arc<Zone>>)>,
}

/// What was shown of the content that an agent wants to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SeenContent(pub(super) Option<blake3::Hash>);

impl Showable {
    /// Reads the disk.
    pub(super) fn look(self) -> ShownAccess {
        let (file, hash) = match self.permit().and_then(|permit| read(&permit)) {
            Ok((content, is_whole, hash)) => (FoundFile::There { content, is_whole }, hash),
            Err(Unseen::Missing) => (FoundFile::Missing, blake3::hash(b"")),
            Err(Unseen::Withheld(why)) => {
                let hash = blake3::hash(why.as_bytes());
                (FoundFile::Withheld(why), hash)
            }
        };
        let Self { access, wanted, .. } = self;
        let version = version(&access, wanted.as_ref(), &file, hash);
        ShownAccess { access, file, wanted, version }
    }

    /// A permit for exactly the path that was judged, and not for one to which a link leads now.
    fn permit(&self) -> Result<Permit, Unseen> {
        let access = &self.access;
        let (zone, agent) = match &self.reader {
            Some((agent, zone)) => (zone.as_ref(), Some(agent)),
            None => (self.zone.as_ref(), None),
        };
        let Some(zone) = zone else { return Err(withheld("the agent has no zone here")) };
        let path = zone.workspace().join(&*access.path);
        let permit = zone.check_granted(&path, Action::Read, &|denied| {
            agent.is_none() && denied.path == access.path
        });
        let permit = permit.map_err(|denied| match agent {
            Some(agent) => {
                Unseen::Withheld(format!("the zone of `{agent}` does not let it see this"))
            }
            None if denied.path == access.path => withheld("it cannot be opened to any agent"),
            None => withheld(SWAPPED),
        })?;
        if wire_real(zone.workspace(), &permit.real) != *access.path {
            return Err(withheld(SWAPPED));
        }
        Ok(permit)
    }
}

const SWAPPED: &str = "its path leads to another place since it was judged";

/// Why a file is not shown.
enum Unseen {
    Missing,
    Withheld(String),
}

fn withheld(why: &str) -> Unseen {
    Unseen::Withheld(why.to_owned())
}

impl From<io::Error> for Unseen {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Self::Missing,
            _ => Self::Withheld(error.to_string()),
        }
    }
}

/// The beginning of a file, whether that is all, and a hash that changes with the file.
fn read(permit: &Permit) -> Result<(Vec<u8>, bool, blake3::Hash), Unseen> {
    let file = permit.open_read()?;
    let about = file.metadata()?;
    let mut content = Vec::new();
    file.take(MOST_READ + 1).read_to_end(&mut content)?;
    let is_whole = content.len() as u64 <= MOST_READ;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&content);
    if !is_whole {
        // What is behind is not read: its size and time stand for it.
        content.truncate(usize::try_from(MOST_READ).unwrap_or(usize::MAX));
        let time = about.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        hasher.update(&about.len().to_le_bytes());
        hasher.update(&time.unwrap_or_default().as_nanos().to_le_bytes());
    }
    Ok((content, is_whole, hasher.finalize()))
}

fn version(
    access: &BlockedAccess,
    wanted: Option<&Wanted>,
    file: &FoundFile,
    hash: blake3::Hash,
) -> String {
    let kind: &[u8] = match file {
        FoundFile::Missing => b"missing",
        FoundFile::There { .. } => b"there",
        FoundFile::Withheld(_) => b"withheld",
    };
    let wanted = wanted.map(|wanted| wanted.hash.as_bytes().as_slice()).unwrap_or_default();
    let (id, path) = (access.id.as_str().as_bytes(), access.path.as_bytes());
    let mut hasher = blake3::Hasher::new();
    for part in [id, path, access.action.as_str().as_bytes(), wanted, kind, hash.as_bytes()] {
        hasher.update(&part.len().to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().to_hex()[..DIGITS].to_owned()
}
