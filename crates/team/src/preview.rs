//! The view of an access or a write for whoever decides about it: the file as it is, what the agent wants
//! to write, and a version that stands for both.

mod wanted;

use std::io::{self, ErrorKind, Read as _};
use std::time::UNIX_EPOCH;

use crate::model::{Action, AgentId, wire_real};
use crate::zone::{Permit, Zone};

pub use wanted::{SeenContent, Wanted};

/// Bytes of a file that are looked at.
const MOST_READ: u64 = 1 << 20;

/// Hexadecimal digits of a version.
const DIGITS: usize = 32;

/// A file, as the disk has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FoundFile {
    Missing,
    There {
        /// At most 1 MiB, from the beginning.
        content: Vec<u8>,
        is_whole: bool,
    },
    /// The file is not shown; why.
    Withheld(String),
}

/// A file that was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LookedAtFile {
    pub file: FoundFile,
    /// Changes with the file.
    hash: blake3::Hash,
}

impl LookedAtFile {
    /// Looks at the file of a path as the wire has it, and at no other to which a link leads by now.
    /// `reader`: the agent that sees it, if its zone allows that; None: a person, who sees all that can
    /// be opened to an agent. Reads the disk.
    pub fn look(zone: Option<&Zone>, path: &str, reader: Option<&AgentId>) -> Self {
        let (file, hash) = match permit(zone, path, reader).and_then(|permit| read(&permit)) {
            Ok((content, is_whole, hash)) => (FoundFile::There { content, is_whole }, hash),
            Err(Unseen::Missing) => (FoundFile::Missing, blake3::hash(b"")),
            Err(Unseen::Withheld(why)) => {
                let hash = blake3::hash(why.as_bytes());
                (FoundFile::Withheld(why), hash)
            }
        };
        Self { file, hash }
    }

    /// Stands for the file, for what an agent wants to write there, and for what else is shown.
    pub fn version(&self, wanted: Option<&Wanted>, about: &[&[u8]]) -> String {
        let kind: &[u8] = match self.file {
            FoundFile::Missing => b"missing",
            FoundFile::There { .. } => b"there",
            FoundFile::Withheld(_) => b"withheld",
        };
        let wanted = wanted.map(|wanted| wanted.hash.as_bytes().as_slice()).unwrap_or_default();
        let mut hasher = blake3::Hasher::new();
        for part in about.iter().copied().chain([wanted, kind, self.hash.as_bytes()]) {
            hasher.update(&part.len().to_le_bytes());
            hasher.update(part);
        }
        hasher.finalize().to_hex()[..DIGITS].to_owned()
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

/// A permit for exactly the path that was judged, and not for one to which a link leads now.
fn permit(zone: Option<&Zone>, path: &str, reader: Option<&AgentId>) -> Result<Permit, Unseen> {
    let Some(zone) = zone else { return Err(withheld("the agent has no zone here")) };
    let whole = zone.workspace().join(path);
    let permit = zone
        .check_granted(&whole, Action::Read, &|denied| reader.is_none() && *denied.path == *path);
    let permit = permit.map_err(|denied| match reader {
        Some(agent) => Unseen::Withheld(format!("the zone of `{agent}` does not let it see this")),
        None if *denied.path == *path => withheld("it cannot be opened to any agent"),
        None => withheld(SWAPPED),
    })?;
    if wire_real(zone.workspace(), &permit.real) != *path {
        return Err(withheld(SWAPPED));
    }
    Ok(permit)
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
