//! How far a process is with a system call that the doorbell let go on, as `/proc` shows it.

use std::ffi::OsString;
use std::fs;

/// How far a process is with a call that the doorbell let go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ProcessCall {
    /// It is in none.
    None,
    /// It is in such a call.
    Inside,
    /// It may be: these threads of it run, or wait for a processor.
    Runs(Vec<ThreadProgress>),
    /// The system does not say it.
    Unknown,
}

/// A thread, and its times, which change once it runs.
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
    /// Looks at all threads of a process; `rings` says which calls count.
    pub(super) fn of(process: u32, rings: impl Fn(i64) -> bool) -> Self {
        let threads = fs::read_dir(format!("/proc/{process}/task"));
        // Without it the process is gone.
        let Ok(threads) = threads else { return Self::None };
        let mut running = Vec::new();
        for thread in threads.flatten() {
            let (folder, thread) = (thread.path(), thread.file_name());
            let call = match fs::read_to_string(folder.join("syscall")) {
                Ok(call) => call,
                // It ended meanwhile.
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
