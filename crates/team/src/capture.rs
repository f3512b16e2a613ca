//! The exact changes of files: before, after, and author. Owns the last known content of files being written.
//!
//! ```text
//! doorbell, before a call goes on ─▶ register (reads what is there) ─┐
//! client host, around its write ───▶ register, settle ───────────────┤
//! watcher, after a change ─────────▶ notice ─────────────────────────┴▶ settle (reads again, compares) ─▶ tracker ─▶ journal
//! ```
//!
//! A possible writer of a path is *registered* with it before it writes. A path is *settled* when it is read again
//! and compared: soon after, when a turn begins or ends, before another agent writes it, when the team stops, and
//! on demand. The registered writer is the author of the change; it stays registered while it holds the file open.
//! Nothing here may fail a write. One that destroys a content which git tracks or would add is held until that is
//! safe. Other contents that can't be kept are marked.

mod catch_up;
mod change;
mod disk;
mod holders;
mod index;
mod keeper;
mod links;
mod loss;
mod losses;
mod own;
mod process_call;
mod publish;
mod room;
mod scope;
mod source;
mod table;
mod team;
mod tracked;
mod turns;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use self::disk::Fate;
use self::keeper::{Keeper, KeeperMsg};
use self::room::{Room, Unkept};
use self::scope::CaptureScope;
use self::source::{Cause, WriteSource};
use self::team::{CaptureTeam, Touched};
use crate::journal::Journal;
use crate::model::{AgentId, SessionId, SessionKey};
use crate::tracker::TrackerHandle;
use crate::zone::Zone;

pub use self::catch_up::KnownStates;
pub use self::disk::Stamp;
pub use self::losses::{Loss, Verdict};
pub use self::source::{AgentRun, Moment};

/// Maximum entries of a moved folder that are followed; past that only the folder is.
const MOST_MOVED: usize = 10_000;

/// How long a caller waits for files to be settled.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct Settings {
    pub workspace: PathBuf,
    /// Paths that are not recorded, with all paths that begin with them: the program's own files.
    pub left_out: Vec<PathBuf>,
    pub full: Fullness,
}

/// When the journal has no room for further contents of files, and what becomes of calls that would
/// destroy them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Fullness {
    /// Bytes of the journal past which it takes no more; None: no bound.
    pub at: Option<u64>,
    /// Whether such a call is held for a decision; else it goes on, and that is said.
    pub holds: bool,
}

/// Captures the changes of a team; cheap to clone.
#[derive(Clone)]
pub struct Capture {
    team: Arc<CaptureTeam>,
    requests: mpsc::Sender<KeeperMsg>,
    tracker: TrackerHandle,
    runs: Arc<AtomicU64>,
}

/// Captures the writes of one run of an agent; cheap to clone.
#[derive(Clone)]
pub struct RunFiles(Arc<OfRun>);

struct OfRun {
    capture: Capture,
    source: WriteSource,
    is_confined: bool,
}

/// Paths that the program itself writes, without events until this is dropped. Their contents then
/// count as known.
pub struct OwnWrites {
    team: Arc<CaptureTeam>,
    paths: Vec<PathBuf>,
}

/// A changed path, as the system reports it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Noticed {
    pub path: PathBuf,
    /// Whether it was created.
    pub is_new: bool,
}

impl Capture {
    /// Starts the thread that settles files. It ends with the last clone.
    pub fn start(settings: Settings, journal: Journal, tracker: TrackerHandle) -> io::Result<Self> {
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let left_out = settings.left_out.into_iter().map(real).collect();
        let outside = journal.settings().keep.outside;
        let scope = Arc::new(CaptureScope::new(real(settings.workspace), left_out, outside));
        let room = Room::new(journal, Arc::clone(&scope), settings.full);
        let team = Arc::new(CaptureTeam::new(scope, room, tracker.clone()));
        let (requests, queue) = mpsc::channel();
        let keeper = Keeper::new(Arc::clone(&team), queue);
        std::thread::Builder::new().name("capture".to_owned()).spawn(move || keeper.run())?;
        Ok(Self { team, requests, tracker, runs: Arc::default() })
    }

    /// Real.
    pub fn workspace(&self) -> &Path {
        self.team.scope.workspace()
    }

    /// Sets the zone of an agent: files that its `denied` patterns match are not read.
    pub fn set_zone(&self, agent: &AgentId, zone: Arc<Zone>) {
        self.team.scope.set_zone(agent, zone);
    }

    /// Captures the writes of a run of an agent, until the value is dropped.
    pub fn of_run(&self, agent: AgentId, run: Arc<dyn AgentRun>, is_confined: bool) -> RunFiles {
        let source = WriteSource::new(agent, self.runs.fetch_add(1, Ordering::Relaxed), run);
        if !is_confined {
            self.team.unconfined.fetch_add(1, Ordering::Relaxed);
        }
        RunFiles(Arc::new(OfRun { capture: self.clone(), source, is_confined }))
    }

    /// Counts an agent whose writes are not captured.
    pub fn add_unconfined(&self) {
        self.team.unconfined.fetch_add(1, Ordering::Relaxed);
    }

    /// Records what is on the disk and not known, of unknown cause: what a killed run wrote last.
    /// Blocks on the disk; call it before agents start.
    pub fn catch_up(&self, known: KnownStates, since_ms: u64) {
        // Whoever wrote it, nobody saw it.
        self.team.unconfined.fetch_add(1, Ordering::Relaxed);
        self.team.catch_up(known, since_ms);
        self.team.unconfined.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes in changes on the disk, by any author. Never waits.
    pub fn noticed(&self, changed: Vec<Noticed>) {
        let _ = self.requests.send(KeeperMsg::Noticed(changed));
    }

    /// Makes no events of these paths, which the program itself writes, until the value is dropped.
    /// Real paths.
    pub fn own_writes(&self, paths: Vec<PathBuf>) -> OwnWrites {
        self.team.own.add(&paths);
        OwnWrites { team: Arc::clone(&self.team), paths }
    }

    /// Waits until the changes of all files up to now are on the bus; returns whether they are in time.
    pub async fn settle(&self) -> bool {
        let (reply, settled) = oneshot::channel();
        let _ = self.requests.send(KeeperMsg::Settle(reply));
        let is_in_time = timeout(PATIENCE, settled).await.is_ok();
        self.tracker.settled().await;
        is_in_time
    }
}

impl RunFiles {
    /// Registers a process that is about to create, write, change or remove the entry at a real
    /// path; `stamp` if the entry is known to exist. Returns when the present content is kept.
    pub fn writes(&self, process: u32, path: &Path, stamp: Option<Stamp>) {
        self.register(Cause::Process(process), path, Touched { stamp, ..Touched::default() });
    }

    /// Registers a process that is about to change the mode of the entry at a real path.
    pub fn marks(&self, process: u32, path: &Path, stamp: Stamp) {
        let what = Touched { stamp: Some(stamp), fate: Fate::Stays, from: None };
        self.register(Cause::Process(process), path, what);
    }

    /// Registers a process that is about to give a file another name. Real paths.
    pub fn names(&self, process: u32, of: &Path, name: &Path) {
        self.0.capture.team.links.add(of, name);
        self.writes(process, name, None);
    }

    /// Registers a process that is about to remove the name of a file or folder. Returns when the
    /// file is kept.
    pub fn removes(&self, process: u32, path: &Path) {
        self.register(
            Cause::Process(process),
            path,
            Touched { fate: Fate::Goes, ..Touched::default() },
        );
    }

    /// Returns the loss that a change or removal of the file at a real path would cause now, if it waits for
    /// a decision.
    pub fn loss(&self, path: &Path) -> Option<Loss> {
        let (team, losses) = (&self.0.capture.team, self.0.source.losses());
        let unkept = self.unkept(path)?;
        let named = losses.to_decide(team.scope.workspace(), path, &unkept);
        Some(Loss { what: team.loss(&named, &unkept), named })
    }

    /// Whether there is such a loss.
    pub fn loses(&self, path: &Path) -> bool {
        self.unkept(path).is_some()
    }

    fn unkept(&self, path: &Path) -> Option<Unkept> {
        let team = &self.0.capture.team;
        let waits = team.holds_losses() && self.loss_verdict(path) != Some(Verdict::Allowed);
        if waits { team.refuses(path) } else { None }
    }

    /// Returns the decision of this turn on losses at a path.
    pub fn loss_verdict(&self, path: &Path) -> Option<Verdict> {
        self.0.source.losses().verdict(path)
    }

    /// Decides a loss, with all like it below its folder, until the next turn.
    pub fn decide_loss(&self, loss: Loss, verdict: Verdict) {
        self.0.source.losses().decide(loss.named, verdict);
    }

    /// The last loss that was said of the running turn.
    pub fn lost(&self) -> watch::Receiver<Option<String>> {
        self.0.source.losses().said()
    }

    /// Registers a process that is about to exchange the entries at two real paths.
    pub fn exchanges(&self, process: u32, one: &Path, other: &Path) {
        for path in [one, other] {
            let what = Touched { fate: Fate::Stays, ..Touched::default() };
            self.register(Cause::Process(process), path, what);
        }
    }

    /// Registers a process that is about to move a file or folder. Real paths.
    pub fn renames(&self, process: u32, from: &Path, to: &Path) {
        let cause = Cause::Process(process);
        let is_folder = std::fs::symlink_metadata(from).is_ok_and(|found| found.is_dir());
        let below = if is_folder { CaptureTeam::below(from, MOST_MOVED) } else { None };
        let below = below.unwrap_or_default();
        for path in std::iter::once(from).chain(below.iter().map(PathBuf::as_path)) {
            let Ok(inside) = path.strip_prefix(from) else { continue };
            let moved = if inside.as_os_str().is_empty() { to.to_owned() } else { to.join(inside) };
            self.register(cause, path, Touched { fate: Fate::Stays, ..Touched::default() });
            let from = Some(&path.into());
            self.register(cause, &moved, Touched { from, fate: Fate::Goes, ..Touched::default() });
        }
    }

    /// Writes a file for a session, with the folders above it that are missing.
    pub fn replaces<T>(&self, session: &SessionId, path: &Path, write: impl FnOnce() -> T) -> T {
        let missing = path.ancestors().skip(1).take_while(|above| !above.exists());
        let mut paths: Vec<_> = missing.chain([path]).collect();
        paths.sort_unstable();
        for path in &paths {
            let what = Touched { fate: Fate::Goes, ..Touched::default() };
            self.register(Cause::Request(session), path, what);
        }
        let writing = Replacing { files: self, session, paths };
        let done = write();
        drop(writing);
        done
    }

    /// The client read a file for a session.
    pub fn was_read(&self, session: &SessionId, path: &Path) {
        let OfRun { capture, source, .. } = &*self.0;
        let key = SessionKey::new(source.agent().clone(), session.clone());
        capture.tracker.file_read(key, capture.team.scope.name(path).text);
    }

    /// A turn begins; call it before the agent gets the prompt. Settles earlier writes.
    pub fn turn_began(&self, session: &SessionId) {
        let OfRun { capture, source, .. } = &*self.0;
        source.losses().begin();
        capture.team.announce_turn(source.agent(), session, disk::now_ns());
        let (agent, session, epoch) = (source.agent().clone(), session.clone(), source.epoch());
        self.send(KeeperMsg::Began { agent, session, epoch });
    }

    /// A turn has ended: settles its writes, and holds back the tracker's events of the agent until
    /// they are recorded.
    pub fn turn_ended(&self, session: &SessionId) {
        let OfRun { capture, source, .. } = &*self.0;
        let (agent, session, epoch) = (source.agent().clone(), session.clone(), source.epoch());
        let has_written = !capture.team.table.is_clean();
        let hold = has_written.then(|| capture.tracker.hold(&agent));
        self.send(KeeperMsg::Ended { agent, session, epoch, hold });
    }

    /// The name of a real path on the wire.
    pub fn name(&self, path: &Path) -> Arc<str> {
        self.0.capture.team.scope.name(path).text
    }

    /// Waits until the changes of all files up to now, of all agents, are on the bus.
    pub async fn settle_team(&self) {
        self.0.capture.settle().await;
    }

    /// Waits until the held back changes are recorded.
    pub async fn settled(&self) {
        let (reply, settled) = oneshot::channel();
        self.send(KeeperMsg::Done(reply));
        let _ = timeout(PATIENCE, settled).await;
    }

    fn register(&self, cause: Cause<'_>, path: &Path, what: Touched<'_>) {
        let OfRun { capture, source, .. } = &*self.0;
        if capture.team.register(source, cause, path, what) {
            self.send(KeeperMsg::Dirty);
        }
    }

    fn send(&self, request: KeeperMsg) {
        // The thread lives as long as this sender.
        let _ = self.0.capture.requests.send(request);
    }
}

/// Paths that the client host writes until this is dropped.
struct Replacing<'a> {
    files: &'a RunFiles,
    session: &'a SessionId,
    paths: Vec<&'a Path>,
}

impl Drop for Replacing<'_> {
    fn drop(&mut self) {
        let OfRun { capture, source, .. } = &*self.files.0;
        for path in &self.paths {
            capture.team.request_done(source, self.session, path);
        }
    }
}

impl Drop for OwnWrites {
    fn drop(&mut self) {
        for path in &self.paths {
            self.team.accept(path);
        }
        self.team.own.remove(&self.paths);
    }
}

impl Drop for OfRun {
    fn drop(&mut self) {
        let _ = self.capture.requests.send(KeeperMsg::Over {
            agent: self.source.agent().clone(),
            is_confined: self.is_confined,
        });
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").finish_non_exhaustive()
    }
}

impl fmt::Debug for OwnWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnWrites").field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl fmt::Debug for RunFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunFiles").field("agent", self.0.source.agent()).finish_non_exhaustive()
    }
}
