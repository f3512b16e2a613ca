//! Records what an agent that is observed uses: each path once for a process and a tool call.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::model::{
    Action, Activity, ActivityKind, AgentId, PathUse, Record, SessionId, Via, wire_real,
};
use crate::process;
use crate::proxy::{LiveCalls, NamedPath};
use crate::tracker::TrackerHandle;
use crate::zone::Zone;

/// Uses that wait to be recorded; further ones are left out, with a warning in the log.
const MOST_WAITING: usize = 65_536;
/// Uses that are known between two tool calls; past that all are recorded anew.
const MOST_KNOWN: usize = 65_536;
/// Uses in a run that belong to no session, as the journal does not bound these; further ones are left out.
const MOST_WITHOUT_SESSION: usize = 50_000;
/// Bytes of a command line of which the program is taken.
const COMMAND_LINE: usize = 1024;
/// Programs that run others: the first argument that is no option says which.
const RUNNERS: [&str; 10] =
    ["node", "bun", "deno", "python", "python3", "ruby", "perl", "bash", "sh", "env"];

pub(super) struct Observing {
    running: Arc<LiveCalls>,
    known: Mutex<KnownUses>,
    queue: mpsc::Sender<WaitingUse>,
}

#[derive(Default)]
struct KnownUses {
    /// The value of [`LiveCalls::epoch`] for which they are known.
    epoch: u64,
    uses: HashSet<(Arc<str>, Action, u32)>,
    without_session: usize,
    /// The log has a warning about uses that are left out.
    is_full: bool,
}

struct WaitingUse {
    session: SessionId,
    at: Instant,
    workspace: Arc<Zone>,
    what: PathUse,
}

impl Observing {
    /// The task ends when the value is dropped.
    pub(super) fn new(
        agent: AgentId,
        tracker: TrackerHandle,
        running: Arc<LiveCalls>,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (queue, mut used) = mpsc::channel::<WaitingUse>(MOST_WAITING);
        let calls = Arc::clone(&running);
        let task = async move {
            while let Some(WaitingUse { session, at, workspace, mut what }) = used.recv().await {
                let place = NamedPath { wire: &what.path, workspace: workspace.workspace() };
                what.named |= calls.names(place);
                what.tool_call = calls.tool_call(&session, place, at);
                let kind = ActivityKind::Record(Record::PathUsed(Arc::new(what)));
                tracker.record(&agent, Activity { session, kind });
            }
        };
        (Self { running, known: Mutex::default(), queue }, task)
    }

    /// Never waits. `written` is the agent's zone as it is written.
    pub(super) fn used(
        &self,
        written: &Arc<Zone>,
        process: u32,
        (real, action): (&Path, Action),
        is_named: &dyn Fn() -> bool,
    ) {
        let Some((path, real)) = shown(written.workspace(), real, action) else { return };
        let path: Arc<str> = path.into();
        if !self.is_news(&path, action, process) {
            return;
        }
        let session = self.running.moment().session;
        if session.as_str().is_empty() && !self.known.lock().has_room() {
            return self.leave_out();
        }
        let what = PathUse {
            outside: !written.covers(real, action),
            path,
            action,
            via: Via::Kernel,
            tool_call: None,
            program: process::command_line(process, COMMAND_LINE).as_deref().and_then(program),
            named: is_named(),
        };
        let used = WaitingUse { session, at: Instant::now(), workspace: Arc::clone(written), what };
        if self.queue.try_send(used).is_err() {
            self.leave_out();
        }
    }

    fn leave_out(&self) {
        if !std::mem::replace(&mut self.known.lock().is_full, true) {
            tracing::warn!("an observed agent uses more paths than can be recorded");
        }
    }

    fn is_news(&self, path: &Arc<str>, action: Action, process: u32) -> bool {
        let mut known = self.known.lock();
        let epoch = self.running.epoch();
        if epoch != known.epoch || known.uses.len() >= MOST_KNOWN {
            known.epoch = epoch;
            known.uses.clear();
        }
        known.uses.insert((Arc::clone(path), action, process))
    }
}

impl KnownUses {
    /// Whether one more use that belongs to no session is recorded.
    fn has_room(&mut self) -> bool {
        self.without_session = self.without_session.saturating_add(1);
        self.without_session <= MOST_WITHOUT_SESSION
    }
}

/// A path as it is recorded. Of a git folder that is the folder itself, and only where it is written.
fn shown<'a>(workspace: &Path, real: &'a Path, action: Action) -> Option<(String, &'a Path)> {
    let git = real.ancestors().filter(|above| above.starts_with(workspace));
    let git = git.filter(|above| above.file_name().is_some_and(|name| name == ".git")).last();
    match git {
        Some(_) if action == Action::Read => None,
        Some(git) => Some((wire_real(workspace, git), real)),
        None if real == workspace => None,
        None => Some((wire_real(workspace, real), real)),
    }
}

/// The program of a command line, with what it runs if it runs another.
fn program(line: &str) -> Option<Arc<str>> {
    let name = |word: &str| Path::new(word).file_name()?.to_str().map(str::to_owned);
    let mut words = line.split_whitespace();
    let program = name(words.next()?)?;
    let program = program.trim_start_matches('-');
    if !RUNNERS.contains(&program) {
        return Some(program.into());
    }
    // A command or an expression is in its place.
    let runs = words.next().filter(|word| !word.starts_with('-')).and_then(name);
    Some(runs.map_or_else(|| program.into(), |runs| format!("{program} {runs}").into()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_program_is_named_with_what_it_runs() {
        for (line, named) in [
            ("/usr/bin/rg --json word", "rg"),
            ("node /w/node_modules/.bin/mocha --exit", "node mocha"),
            ("/bin/bash -c cat src/a.rs", "bash"),
            ("-bash", "bash"),
            ("python3 -m pytest", "python3"),
            ("sh", "sh"),
        ] {
            assert_eq!(program(line).as_deref(), Some(named), "{line}");
        }
        assert_eq!(program(" "), None);
    }

    #[test]
    fn uses_of_no_session_are_bounded() {
        let mut known = KnownUses::default();
        let recorded = (0..=MOST_WITHOUT_SESSION).filter(|_| known.has_room()).count();
        assert_eq!(recorded, MOST_WITHOUT_SESSION);
    }

    #[test]
    fn a_git_folder_is_one_path_and_only_when_written() {
        let workspace = Path::new("/w");
        let path = |real: &str, action| shown(workspace, Path::new(real), action).map(|it| it.0);
        assert_eq!(path("/w/.git/refs/heads/x", Action::Write).as_deref(), Some(".git"));
        assert_eq!(path("/w/a/.git/index", Action::Write).as_deref(), Some("a/.git"));
        assert_eq!(path("/w/.git/index", Action::Read), None);
        assert_eq!(path("/w/src/a.rs", Action::Read).as_deref(), Some("src/a.rs"));
        assert_eq!(path("/w", Action::Write), None);
    }
}
