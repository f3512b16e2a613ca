//! The limit of open descriptors: raised for this program, which may have a thousand clients, and
//! the original one for its children, since programs that use select(2) need it.

use std::io;
use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Descriptors that are enough for a team with all its clients. A lower hard limit is raised to it where
/// the system lets this user do that.
const ENOUGH: u64 = 65_536;

/// The soft limit at the program's start, set once it was raised.
static ORIGINAL: OnceLock<u64> = OnceLock::new();

/// Raises the soft limit to the hard one, and a low hard limit where that may be; returns the soft limit.
/// Children get the original one. Call it once, before the first child is started.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft >= hard.max(ENOUGH) {
        return Ok(soft);
    }
    let raised = hard < ENOUGH && setrlimit(Resource::RLIMIT_NOFILE, ENOUGH, ENOUGH).is_ok();
    let limit = if raised { ENOUGH } else { hard };
    if !raised && soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    if soft < limit {
        let _ = ORIGINAL.set(soft);
    }
    Ok(limit)
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
