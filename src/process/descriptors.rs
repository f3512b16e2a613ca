//! The limit of open descriptors: raised for this program, which may have a thousand clients, and
//! the original one for its children, since programs that use select(2) need it.

use std::io;
use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The soft limit at the program's start, set once it was raised.
static ORIGINAL: OnceLock<u64> = OnceLock::new();

/// Raises the soft limit to the hard one, and returns it. Children get the original limit. Call it
/// once, before the first child is started.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft >= hard {
        return Ok(soft);
    }
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    let _ = ORIGINAL.set(soft);
    Ok(hard)
}

/// The soft limit for children, if it differs from this program's.
pub(super) fn of_children() -> Option<u64> {
    ORIGINAL.get().copied()
}

/// Sets the soft limit, at most to the hard limit.
pub(super) fn set(soft: u64) -> io::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, soft.min(hard), hard)?)
}
