//! The folder of a run, `$EISEN_DIR/runs/ID`: its configuration, prompt, state and answer.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;
use serde_json::Value;
use ulid::Ulid;

use super::{Attachment, RunId, RunSpec, RunState, RunStatus};
use crate::kept::{self, Durability, Durable, HeldLock, KeptFile, LockAt, Volatile, Whole};
use crate::process;

/// Bytes of a file of a run that are read.
const LONGEST: u64 = 32 << 20;

/// The prefix of the name of a folder that is being removed.
const GONE: &str = "gone-";

/// The files with its configuration and its state.
const CONFIG: &str = "eisen.toml";
const STATE: &str = "state.toml";

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RunFolder {
    id: String,
    path: PathBuf,
}

/// Keeps others from changing the state of a run, or removing it; see [`RunFolder::try_hold`].
#[derive(Debug)]
pub struct RunHold {
    _lock: HeldLock,
}

impl RunFolder {
    pub fn create(eisen_dir: &Path, id: RunId) -> io::Result<Self> {
        let id = id.to_string();
        let path = folder_of_runs(eisen_dir).join(&id);
        kept::make_folder(&path)?;
        Ok(Self { id, path })
    }

    pub(super) fn of(eisen_dir: &Path, id: &str) -> Self {
        Self { id: id.to_owned(), path: folder_of_runs(eisen_dir).join(id) }
    }

    pub fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)
    }

    /// Takes the folder out of the runs, all at once; returns where it is now. Until then its state
    /// and answer stay together.
    pub fn set_aside(&self) -> io::Result<PathBuf> {
        let aside = self.path.with_file_name(format!("{GONE}{}", self.id));
        fs::rename(&self.path, &aside)?;
        Ok(aside)
    }

    /// Holds the run for as long as the result lives; None where another process does: it makes,
    /// performs, mends or removes it. Whether a run's supervisor lives is told by its state.
    pub fn try_hold(&self) -> io::Result<Option<RunHold>> {
        let lock = kept::try_lock(LockAt::Found(&self.path))?;
        Ok(lock.map(|lock| RunHold { _lock: lock }))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name of the team that has its agent.
    pub fn team(&self) -> String {
        format!("{}{}", super::TEAM_PREFIX, self.id)
    }

    /// Its parent, if that is a run.
    pub fn parent(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Genealogy {
            parent: Option<String>,
        }
        let state: Genealogy = toml::from_str(&self.read(STATE).ok()?).ok()?;
        state.parent.filter(|parent| Ulid::from_string(parent).is_ok())
    }

    /// The configuration of its team.
    pub fn config(&self) -> PathBuf {
        self.path.join(CONFIG)
    }

    /// Keeps its configuration, before its first state.
    pub fn keep_config(&self, text: &str) -> io::Result<()> {
        self.file::<Volatile>(CONFIG).replace(text.as_bytes())
    }

    /// The file with a detached run's standard error.
    pub fn console(&self) -> PathBuf {
        self.path.join("console")
    }

    /// Replaces its state. Only a final one is on the disk then: a run that has not ended does not
    /// survive a loss of power either.
    pub fn keep(&self, state: &RunState) -> io::Result<()> {
        let text = toml::to_string(state).map_err(io::Error::other)?;
        if state.status.is_final() {
            self.file::<Durable>(STATE).replace(text.as_bytes())
        } else {
            self.file::<Volatile>(STATE).replace(text.as_bytes())
        }
    }

    /// Replaces its answer. The final state that says that there is one follows, and syncs the folder.
    pub fn keep_answer(&self, text: &str) -> io::Result<()> {
        self.file::<Whole>("answer").replace(text.as_bytes())
    }

    /// Keeps what its agent is asked, before its first state.
    pub fn keep_asked(&self, spec: &RunSpec) -> io::Result<()> {
        self.keep_prompt(&spec.task)?;
        if !spec.files.is_empty() {
            self.keep_attachments(&spec.files)?;
        }
        spec.schema.as_ref().map_or(Ok(()), |schema| self.keep_schema(schema))
    }

    /// Keeps its prompt, before its first state.
    fn keep_prompt(&self, text: &str) -> io::Result<()> {
        self.file::<Volatile>("prompt").replace(text.as_bytes())
    }

    /// Keeps the files that go with the prompt, before its first state.
    fn keep_attachments(&self, all: &[Attachment]) -> io::Result<()> {
        let text = serde_json::to_string(all).map_err(io::Error::other)?;
        self.file::<Volatile>("attachments.json").replace(text.as_bytes())
    }

    pub fn attachments(&self) -> io::Result<Vec<Attachment>> {
        Ok(self.file::<Volatile>("attachments.json").read_json()?.unwrap_or_default())
    }

    /// Keeps the JSON Schema that its answer has to fit, before its first state.
    fn keep_schema(&self, schema: &Value) -> io::Result<()> {
        self.file::<Volatile>("schema.json").replace(schema.to_string().as_bytes())
    }

    pub fn schema(&self) -> io::Result<Option<Value>> {
        self.file::<Volatile>("schema.json").read_json()
    }

    pub fn prompt(&self) -> io::Result<String> {
        self.read("prompt")
    }

    pub fn answer(&self) -> io::Result<String> {
        self.read("answer")
    }

    pub fn has_answer(&self) -> bool {
        self.path.join("answer").is_file()
    }

    /// Its state. A run whose supervisor is gone without a final state is `lost`.
    pub fn state(&self) -> io::Result<RunState> {
        let state = self.kept()?;
        if state.status.is_final() || state.is_supervised() {
            return Ok(state);
        }
        // It may have ended between the two looks.
        let state = self.kept()?;
        if state.status.is_final() {
            return Ok(state);
        }
        let reason = Some("its supervisor is gone".to_owned());
        Ok(RunState { status: RunStatus::Lost, exit_code: Some(1), reason, ..state })
    }

    /// Its state as it was kept, whether or not its supervisor lives.
    pub fn kept(&self) -> io::Result<RunState> {
        let text = self.read(STATE)?;
        toml::from_str(&text).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
    }

    pub(super) fn read(&self, name: &str) -> io::Result<String> {
        self.file::<Volatile>(name).read_text()?.ok_or_else(|| Errno::ENOENT.into())
    }

    fn file<D: Durability>(&self, name: &str) -> KeptFile<D> {
        KeptFile::new(self.path.join(name), LONGEST)
    }
}

impl RunState {
    /// Whether its supervisor lives. A zombie does not.
    pub fn is_supervised(&self) -> bool {
        process::start_of(self.pid).is_some_and(|start| Some(start) == self.pid_start_time_ticks)
    }

    /// Sends a signal to its supervisor, if it has one of its own and has not ended.
    pub fn signal(&self, signal: Signal) {
        if self.has_own_team() && !self.status.is_final() && self.is_supervised() {
            let _ = kill(Pid::from_raw(self.pid.cast_signed()), signal);
        }
    }
}

/// All runs, the oldest first.
pub fn all_runs(eisen_dir: &Path) -> io::Result<Vec<RunFolder>> {
    let entries = match fs::read_dir(folder_of_runs(eisen_dir)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut runs = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().into_string();
        let id = name
            .ok()
            .filter(|name| Ulid::from_string(name).is_ok_and(|id| id.to_string() == *name));
        runs.extend(id.map(|id| RunFolder { id, path: entry.path() }));
    }
    runs.sort_unstable();
    Ok(runs)
}

/// The folders that a removal left when it was killed.
pub fn set_aside(eisen_dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder_of_runs(eisen_dir)).into_iter().flatten().flatten();
    let is_aside =
        |name: &str| name.strip_prefix(GONE).is_some_and(|id| Ulid::from_string(id).is_ok());
    let aside = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_aside));
    aside.map(|entry| entry.path()).collect()
}

fn folder_of_runs(eisen_dir: &Path) -> PathBuf {
    eisen_dir.join("runs")
}
