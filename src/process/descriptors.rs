//! How many descriptors this program may have open, and how many its children: a port with a
//! thousand clients needs more than the usual soft limit, and programs that select(2) need that.

use std::io;
use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The soft limit that this program was started with, once it has another.
static GIVEN: OnceLock<u64> = OnceLock::new();

/// Raises the soft limit to the hard one, and returns it. Children still get what this program
/// was given. To be called once, before the first is started.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft >= hard {
        return Ok(soft);
    }
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    let _ = GIVEN.set(soft);
    Ok(hard)
}

/// The soft limit of children, where it is not this program's own.
pub(super) fn of_children() -> Option<u64> {
    GIVEN.get().copied()
}

/// Sets the soft limit; a hard one that is lower by now stays what it is.
pub(super) fn set(soft: u64) -> io::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, soft.min(hard), hard)?)
}
