//! The way in for a program without a team: a command that may use one folder, and what it was denied beside it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot};

use crate::confine::{Attempt, ConfineError, Confinement, Doorkeeper};
use crate::model::Action;
use crate::process::{Command, Launcher, Process, SpawnError, remove_folder, warden_main};
use crate::zone::{Bounds, Confine, GitAccess, Reach, Zone, ZoneSpec};

/// Denials that wait to be read; further ones are counted.
const MOST_WAITING: usize = 1024;

/// Runs as a warden, and never returns, if this process was started as one. A program that starts commands calls it
/// first in `main`, before it has threads: its own file is started once for each command, to hold that command's
/// processes together.
pub fn init() {
    if is_warden() {
        warden_main();
    }
}

/// Whether a launcher started this process to be a warden.
fn is_warden() -> bool {
    std::env::args_os().take(2).eq(["eisen-core", "warden"])
}

/// A folder, and the rules that hold a command to it. The command reads and writes below it, and reads what programs of
/// the system need; it may use devices such as `/dev/null` and `/dev/shm`. No other file can be opened, made, renamed or
/// removed. A `.git` may be written as a commit does it, its hooks and configuration not. The network is open, and the
/// command has the environment of this process. Needs Linux with Landlock.
pub struct Sandbox {
    folder: PathBuf,
    launcher: Launcher,
    denied: mpsc::Receiver<Denial>,
    missed: Arc<AtomicUsize>,
    /// The commands' `TMPDIR`, and the folder that none of them reaches.
    state: TempDir,
    variables: BTreeMap<String, String>,
}

/// Why a folder cannot hold commands.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The folder, or what is kept beside it, cannot be used.
    #[error("cannot use `{}`: {source}", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The rules for the folder cannot be made.
    #[error("the rules for the folder cannot be made: {0}")]
    Rules(String),
    /// The kernel cannot confine.
    #[error(transparent)]
    Kernel(#[from] ConfineError),
    /// `main` does not begin with [`init`], so each command would start this program again.
    #[error("`main` has to begin with `eisen_sandbox::init()`")]
    NotInitialized,
}

/// An access that was denied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denial {
    /// Relative to the folder; absolute if it lies outside.
    pub path: Arc<str>,
    /// Reading or writing.
    pub action: Action,
    /// The process that tried it.
    pub pid: u32,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} (process {})", self.action.as_str(), self.path, self.pid)
    }
}

/// A command that runs in a [`Sandbox`]. Dropping it kills all that the command started; [`Sandboxed::end`] also waits
/// for that.
pub struct Sandboxed {
    /// The command and all that it started.
    pub process: Process,
    /// The standard output and standard error of these processes, in one pipe.
    pub output: pipe::Receiver,
    /// The denials, in order; more than wait here are counted by [`Sandboxed::missed`]. The channel stays open until
    /// `process` is dropped or killed.
    pub denied: mpsc::Receiver<Denial>,
    missed: Arc<AtomicUsize>,
    state: TempDir,
}

impl Sandbox {
    /// Compiles the rules for `folder`. Reads the disk.
    pub fn new(folder: impl AsRef<Path>) -> Result<Self, SandboxError> {
        if is_warden() {
            return Err(SandboxError::NotInitialized);
        }
        let whole = vec!["**".to_owned()];
        Self::with_rules(folder, |real, private, closed| {
            let zone = ZoneSpec { git: GitAccess::Commit, ..ZoneSpec::new(real, whole, closed) };
            let zone = Zone::compile(&zone).map_err(|error| error.to_string())?;
            let bounds = Bounds::new(Arc::new(zone), Reach::new(Confine::Strict, private));
            bounds.map_err(|error| error.to_string())
        })
    }

    /// As [`Sandbox::new`], with rules of the caller's. `rules` gets the real folder, the commands' private `TMPDIR`, and
    /// a folder that no command reaches.
    pub fn with_rules(
        folder: impl AsRef<Path>,
        rules: impl FnOnce(&Path, &Path, &Path) -> Result<Bounds, String>,
    ) -> Result<Self, SandboxError> {
        let folder = folder.as_ref();
        let failed = |source| SandboxError::Folder { path: folder.to_owned(), source };
        let real = folder.canonicalize().map_err(failed)?;
        let state = tempfile::Builder::new().prefix("sandbox-").tempdir().map_err(failed)?;
        let place = state.path().canonicalize().map_err(failed)?;
        let (private, closed) = (place.join("tmp"), place.join("closed"));
        for path in [&private, &closed] {
            std::fs::create_dir(path).map_err(failed)?;
        }
        let bounds = rules(&real, &private, &closed).map_err(SandboxError::Rules)?;
        let bounds = Arc::new(bounds);
        let (sender, denied) = mpsc::channel(MOST_WAITING);
        let missed = Arc::<AtomicUsize>::default();
        let refuser =
            Refuser { bounds: Arc::clone(&bounds), denied: sender, missed: Arc::clone(&missed) };
        let confinement = Confinement::build(&bounds, &closed, Arc::new(refuser))?;
        let launcher = Launcher::this_program().map_err(failed)?.confined(Arc::new(confinement));
        Ok(Self { folder: real, launcher, denied, missed, state, variables: BTreeMap::new() })
    }

    /// Adds variables to the environment of its commands.
    #[must_use]
    pub fn with_variables(mut self, variables: BTreeMap<String, String>) -> Self {
        self.variables.extend(variables);
        self
    }

    /// Starts a command in the folder, without standard input.
    pub async fn spawn(
        self,
        program: impl Into<OsString>,
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Sandboxed, SpawnError> {
        let Self { folder, launcher, denied, missed, state, variables: mut env } = self;
        env.insert("TMPDIR".to_owned(), state.path().join("tmp").to_string_lossy().into_owned());
        let command = Command {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            cwd: folder,
            env,
        };
        let (process, output) = launcher.spawn_merged(&command).await?;
        Ok(Sandboxed { process, output, denied, missed, state })
    }
}

impl Sandboxed {
    /// Kills all that still runs, waits for its end, and removes the command's temporary files.
    pub async fn end(self) -> io::Result<()> {
        let Self { process, state, .. } = self;
        process.kill().await;
        remove_folder(&state.keep())
    }

    /// How many denials were not kept because too many waited.
    pub fn missed(&self) -> usize {
        self.missed.load(Ordering::Relaxed)
    }
}

/// Denies all that is outside the bounds, and says so.
struct Refuser {
    bounds: Arc<Bounds>,
    denied: mpsc::Sender<Denial>,
    missed: Arc<AtomicUsize>,
}

impl Doorkeeper for Refuser {
    fn bounds(&self) -> Arc<Bounds> {
        Arc::clone(&self.bounds)
    }

    fn passed(&self, _: Arc<str>, _: Action) {}

    fn blocked(&self, attempt: Attempt, _: oneshot::Sender<bool>) {
        let Attempt { path, action, pid, .. } = attempt;
        if self.denied.try_send(Denial { path, action, pid }).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}
