//! The progress of a process with a system call that the doorbell let go on, as `/proc` shows it.

use std::ffi::OsString;
use std::fs;

/// The progress of a process with a call that the doorbell let go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ProcessCall {
    /// The process is in no such call.
    None,
    /// The process is in such a call.
    Inside,
    /// The process may be in one: these threads run, or wait for a processor.
    Runs(Vec<ThreadProgress>),
    /// The system does not show it.
    Unknown,
}

/// A thread, and its times, which change as soon as it runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ThreadProgress {
    thread: OsString,
    times: Vec<u8>,
}

#[cfg(test)]
impl ThreadProgress {
    pub(super) fn new(thread: &str, times: &str) -> Self {
        Self { thread: thread.into(), times: times.into() }
    }
}

impl ProcessCall {
    /// Looks at all threads of a process; `rings` selects the calls that count.
    pub(super) fn of(process: u32, rings: impl Fn(i64) -> bool) -> Self {
        let threads = fs::read_dir(format!("/proc/{process}/task"));
        // Without the folder the process is gone.
        let Ok(threads) = threads else { return Self::None };
        let mut running = Vec::new();
        for thread in threads.flatten() {
            let (folder, thread) = (thread.path(), thread.file_name());
            let call = match fs::read_to_string(folder.join("syscall")) {
                Ok(call) => call,
                // The thread ended meanwhile.
                Err(_) if !folder.exists() => continue,
                Err(_) => return Self::Unknown,
            };
            let first = call.split_ascii_whitespace().next().unwrap_or_default();
            if first == "running" {
                let Ok(times) = fs::read(folder.join("schedstat")) else { return Self::Unknown };
                running.push(ThreadProgress { thread, times });
            } else if first.parse().is_ok_and(&rings) {
                return Self::Inside;
            }
        }
        if running.is_empty() { Self::None } else { Self::Runs(running) }
    }
}
