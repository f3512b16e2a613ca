//! Workspaces, and what is confined to them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eisen_core::bus::{Backlog, Bus};
use eisen_core::capture::{self, AgentRun, Capture, Moment, RunFiles, Stamp};
use eisen_core::confine::{Attempt, Confinement, Doorkeeper, FileCall};
use eisen_core::journal::{self, Journal};
use eisen_core::model::{Action, AgentId, SessionId, SessionKey};
use eisen_core::tracker::{self, OrchestratorView, TrackerHandle};
use eisen_core::zone::{Bounds, Confine, GitAccess, Reach, Zone, ZoneSpec};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub(crate) struct Place {
    /// Holds the workspace, and beside it what a supervisor keeps.
    folder: TempDir,
    workspace: PathBuf,
}

/// Lets nothing through that the bounds do not; may capture what is written.
struct Keeper(Arc<Bounds>, Option<RunFiles>);

/// A team's journal in a folder of its own, and the capture of one agent in a turn.
pub(crate) struct Captured {
    _journal: Journal,
    files: RunFiles,
    _folder: TempDir,
}

/// All processes may be the agent's.
struct OneTurn;

impl AgentRun for OneTurn {
    fn epoch(&self) -> u64 {
        0
    }

    fn moment(&self, _: &Path, _: Instant) -> Moment {
        Moment { session: Some(SessionId::new("s")), ..Moment::default() }
    }

    fn tool_call(&self, _: &SessionId, _: &Path, _: Instant) -> Option<Arc<str>> {
        None
    }

    fn processes(&self) -> Vec<u32> {
        let names = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.to_str()?.parse().ok()).collect()
    }

    fn rings(&self, call: i64) -> bool {
        eisen_core::confine::rings(call)
    }
}

impl Doorkeeper for Keeper {
    fn bounds(&self) -> Arc<Bounds> {
        Arc::clone(&self.0)
    }

    fn passed(&self, path: Arc<str>, _: Action) {
        std::hint::black_box(path);
    }

    fn changes(&self, process: u32, call: FileCall<'_>) {
        let Some(files) = &self.1 else { return };
        match call {
            FileCall::Write(path, stat) => files.writes(process, path, Some(Stamp::of(stat))),
            FileCall::Mode(path, stat) => files.marks(process, path, Stamp::of(stat)),
            FileCall::Name(path) => files.writes(process, path, None),
            FileCall::Link { of, name } => files.names(process, of, name),
            FileCall::Remove(path) => files.removes(process, path),
            FileCall::Rename { from, to, .. } => files.renames(process, from, to),
        }
    }

    fn blocked(&self, _: Attempt, _: oneshot::Sender<bool>) {}
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        for name in ["workspace", "eisen", "private"] {
            fs::create_dir(real.join(name)).unwrap();
        }
        Self { folder, workspace: real.join("workspace") }
    }

    /// A tree of folders of twenty files each.
    pub(crate) fn with_files(count: usize) -> Self {
        let place = Self::new();
        for file in place.named(count) {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, format!("// {}\n", file.display()).repeat(20)).unwrap();
        }
        place
    }

    /// The same, with 16 KB in each file.
    pub(crate) fn with_large_files(count: usize) -> Self {
        let place = Self::with_files(count);
        for file in place.named(count) {
            let text = file.display().to_string().repeat(1024);
            fs::write(&file, &text.as_bytes()[..16 << 10]).unwrap();
        }
        place
    }

    pub(crate) fn with_crate() -> Self {
        let place = Self::new();
        let manifest =
            "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
        fs::write(place.workspace.join("Cargo.toml"), manifest).unwrap();
        fs::create_dir(place.workspace.join("src")).unwrap();
        let main =
            "fn main() {\n    println!(\"{:?}\", std::env::args().collect::<Vec<_>>());\n}\n";
        fs::write(place.workspace.join("src/main.rs"), main).unwrap();
        place
    }

    pub(crate) fn commit_all(&self) {
        let who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
        for args in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "all"]] {
            let mut git = Command::new("git");
            let status = git.current_dir(&self.workspace).args(who).args(args).status().unwrap();
            assert!(status.success());
        }
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.workspace
    }

    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        let private = self.workspace.with_file_name("private");
        [("TMPDIR".to_owned(), private.display().to_string())].into()
    }

    pub(crate) fn confinement(&self) -> Arc<Confinement> {
        self.walled(&Arc::new(bounds(&self.workspace)))
    }

    /// Builds the wall of bounds, as each start of an agent does: they come with its configuration.
    pub(crate) fn walled(&self, bounds: &Arc<Bounds>) -> Arc<Confinement> {
        self.kept(bounds, None)
    }

    /// One whose writes are captured.
    pub(crate) fn captured(&self, captured: &Captured) -> Arc<Confinement> {
        self.kept(&Arc::new(bounds(&self.workspace)), Some(captured.files.clone()))
    }

    /// Starts a journal and the capture of an agent that writes here.
    pub(crate) fn capture(&self) -> Captured {
        let folder = tempfile::tempdir().unwrap();
        let bus = Bus::new(Backlog { events: 100_000, bytes: 1 << 30 });
        let path = folder.path().join("journal.db");
        let (team, keep) = ("bench".to_owned(), journal::Keep::default());
        let settings = journal::Settings { team, path, keep, quotas: None };
        let (journal, following) = journal::start(settings, bus.subscribe());
        tokio::spawn(following);
        let hour = Duration::from_secs(3600);
        let settings = tracker::Settings {
            context_turns: 3,
            compaction_threshold: 0.5,
            decay_rate: 0.95,
            tick: hour,
            idle_tick: hour,
        };
        let key = SessionKey::new(AgentId::new("a"), SessionId::new(""));
        let view = OrchestratorView::None(key);
        let (tracker, task) = TrackerHandle::spawn(settings, view, bus, CancellationToken::new());
        tokio::spawn(task);
        let settings = capture::Settings {
            workspace: self.workspace.clone(),
            left_out: Vec::new(),
            full: capture::Fullness::default(),
        };
        let capture = Capture::start(settings, journal.clone(), tracker).unwrap();
        let files = capture.of_run(AgentId::new("a"), Arc::new(OneTurn), true);
        Captured { _journal: journal, files, _folder: folder }
    }

    fn kept(&self, bounds: &Arc<Bounds>, files: Option<RunFiles>) -> Arc<Confinement> {
        let keeper = Arc::new(Keeper(Arc::clone(bounds), files));
        Arc::new(Confinement::build(bounds, &self.outside(), keeper).unwrap())
    }

    /// One in whose workspace no rule grants anything: the doorbell opens each file.
    pub(crate) fn confinement_without_rules(&self) -> Arc<Confinement> {
        let bounds = Arc::new(bounds(&self.workspace));
        let mut rules = bounds.rules();
        rules.retain(|rule| !rule.path.starts_with(&self.workspace));
        let keeper = Arc::new(Keeper(bounds, None));
        Arc::new(Confinement::behind(&rules, &self.outside(), keeper).unwrap())
    }

    fn outside(&self) -> PathBuf {
        self.folder.path().join("eisen")
    }

    fn named(&self, count: usize) -> impl Iterator<Item = PathBuf> {
        (0..count).map(|number| {
            let folder = number / 20;
            self.workspace.join(format!("src/room_{}/part_{folder}/{number}.rs", folder % 10))
        })
    }
}

/// Everything in the workspace but what is usually kept from agents.
pub(crate) fn bounds(workspace: &Path) -> Bounds {
    let beside = |name| workspace.with_file_name(name);
    let zone = Zone::compile(&ZoneSpec {
        denied: vec!["**/.env".to_owned()],
        git: GitAccess::Commit,
        ..ZoneSpec::new(workspace, vec!["**".to_owned()], beside("eisen"))
    });
    let reach = Reach::new(Confine::Workspace, beside("private"));
    Bounds::new(Arc::new(zone.unwrap()), reach).unwrap()
}

/// The files of a workspace, in no order that a disk has them in.
pub(crate) fn files(workspace: &Path) -> Vec<PathBuf> {
    let (mut files, mut pending) = (Vec::new(), vec![workspace.join("src")]);
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let into = if entry.file_type().unwrap().is_dir() { &mut pending } else { &mut files };
            into.push(entry.path());
        }
    }
    files
}
