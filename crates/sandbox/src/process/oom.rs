//! The OOM score of commands: when memory runs out, the kernel kills them before the supervisor.

use std::ffi::CStr;
use std::io::Write as _;

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::write;

/// Added to a command's score, in thousandths of all memory: the smallest command is killed before a supervisor
/// that takes most of the memory.
const MORE: i32 = 900;
const MOST: i32 = 1000;

/// The score of the process that opens it.
const FILE: &CStr = c"/proc/self/oom_score_adj";

/// The score for commands of this process; None on systems without scores.
pub(super) fn score_of_command() -> Option<[u8; 4]> {
    let own: i32 = std::fs::read_to_string(FILE.to_str().ok()?).ok()?.trim().parse().ok()?;
    let mut score = *b"    ";
    // Only a privileged process can lower its score.
    write!(&mut score[..], "{}", own.saturating_add(MORE).clamp(0, MOST)).ok()?;
    Some(score)
}

/// Sets the score of this process. Allocates nothing, so it can be called between fork and exec.
/// Errors are ignored: only the order of OOM kills depends on it.
pub(super) fn set(score: &[u8]) {
    if let Ok(file) = open(FILE, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty()) {
        let _ = write(&file, score);
    }
}
