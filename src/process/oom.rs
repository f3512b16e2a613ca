//! Whom the kernel ends first when memory runs out.

use std::ffi::CStr;
use std::io::Write as _;

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::write;

/// What is added to a command's score, in thousandths of the memory there is: enough for a small
/// command to go before a large supervisor.
const MORE: i32 = 300;
const MOST: i32 = 1000;

/// Of whoever opens it.
const FILE: &CStr = c"/proc/self/oom_score_adj";

/// The score that a command of this process gets; None where there are no scores. The warden keeps
/// its own.
pub(super) fn score_of_command() -> Option<[u8; 4]> {
    let own: i32 = std::fs::read_to_string(FILE.to_str().ok()?).ok()?.trim().parse().ok()?;
    let mut score = *b"    ";
    // It only rises: to go below one's own takes a privilege.
    write!(&mut score[..], "{}", own.saturating_add(MORE).clamp(0, MOST)).ok()?;
    Some(score)
}

/// Gives this process a score. Allocates nothing, so that it may be called between fork and exec;
/// best effort, since nothing but the order of ends depends on it.
pub(super) fn set(score: &[u8]) {
    if let Ok(file) = open(FILE, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty()) {
        let _ = write(&file, score);
    }
}
