//! Runs undos one after the other: checks them before, or shows them in a dry run.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use eisen_base::task;
use serde::{Serialize, Serializer};
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use super::aim::{UndoRequest, choose};
use super::apply::{Recovered, Site};
use super::disk::Disk;
use super::intent::{Intent, intent_path};
use super::path::FilePath;
use super::plan::{Plan, UndonePath};
use super::preview::{Preview, preview_of};
use super::writers::writer_of;
use super::{Obstacle, UndoError};
use crate::journal::{Journal, Keep, Store};

type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The running agents, as far as an undo depends on them.
pub trait LiveAgents: Send + Sync + 'static {
    /// Waits until the journal has all changes so far; fails if it takes too long.
    fn settle(&self) -> Waiting<'_, Result<(), UndoError>>;

    /// Why an agent's files can't be touched now; None if they can.
    fn busy<'a>(&'a self, agent: &'a str) -> Waiting<'a, Option<String>>;

    /// The processes of all agents. Blocks.
    fn processes(&self) -> Vec<i32>;

    /// Announces writes of these paths that are not an agent's, until the value is dropped.
    fn announce(&self, paths: Vec<PathBuf>) -> Box<dyn Send>;
}

/// No agent runs.
#[derive(Debug)]
struct Nobody;

impl LiveAgents for Nobody {
    fn settle(&self) -> Waiting<'_, Result<(), UndoError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn busy<'a>(&'a self, _: &'a str) -> Waiting<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    fn processes(&self) -> Vec<i32> {
        Vec::new()
    }

    fn announce(&self, _: Vec<PathBuf>) -> Box<dyn Send> {
        Box::new(())
    }
}

/// The result of an undo or of its dry run.
#[derive(Clone, Default, Debug)]
pub struct Outcome {
    /// The event; None if there was nothing to do, or in a dry run.
    pub event_id: Option<String>,
    /// The agent whose changes are taken back, or brought back by a redo. None if the undo named none.
    pub agent_id: Option<String>,
    /// The files that it wrote, or in a dry run would write, in the order of their paths.
    pub paths: Vec<UndonePath>,
    /// Files that can't be set back by merging. Forced ones get an old content, the others stay.
    pub obstacles: Vec<Obstacle>,
    /// Folders of the agent that stay, since others have files in them.
    pub staying: Vec<String>,
    /// Changes in `.git` that stay.
    pub of_git: usize,
    /// Changes outside the workspace that stay.
    pub outside: usize,
    /// The patch; from a dry run only.
    pub diff: Option<Vec<u8>>,
    /// The changes that the diff can't carry.
    pub not_in_diff: Vec<String>,
    /// The reason for which the undo would be refused; from a dry run only.
    pub refused: Option<String>,
}

impl Outcome {
    fn of(plan: &Plan) -> Self {
        Self {
            event_id: None,
            agent_id: plan.deed.agent().map(str::to_owned),
            paths: plan.paths(),
            obstacles: plan.obstacles.clone(),
            staying: plan.staying().collect(),
            of_git: plan.of_git,
            outside: plan.outside,
            diff: None,
            not_in_diff: Vec::new(),
            refused: None,
        }
    }

    fn shown(self, preview: Preview, refused: Option<&UndoError>) -> Self {
        Self {
            diff: Some(preview.patch),
            not_in_diff: preview.left_out,
            refused: refused.map(ToString::to_string),
            ..self
        }
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct ShownOutcome<'a> {
            event_id: &'a Option<String>,
            agent_id: &'a Option<String>,
            paths: &'a [UndonePath],
            obstacles: &'a [Obstacle],
            staying: &'a [String],
            of_git: usize,
            outside: usize,
            #[serde(flatten)]
            dry_run: Option<DryRun<'a>>,
        }
        #[derive(Serialize)]
        struct DryRun<'a> {
            diff: Cow<'a, str>,
            not_in_diff: &'a [String],
            refused: &'a Option<String>,
        }
        let dry_run = self.diff.as_ref().map(|diff| DryRun {
            diff: String::from_utf8_lossy(diff),
            not_in_diff: &self.not_in_diff,
            refused: &self.refused,
        });
        let Self { event_id, agent_id, paths, obstacles, staying, .. } = self;
        let (of_git, outside) = (self.of_git, self.outside);
        ShownOutcome { event_id, agent_id, paths, obstacles, staying, of_git, outside, dry_run }
            .serialize(serializer)
    }
}

/// Undoes in one workspace by one journal, one undo after the other; cheap to clone.
#[derive(Clone)]
pub struct Undoer {
    journal: Journal,
    workspace: Arc<Path>,
    surroundings: Arc<dyn LiveAgents>,
    turn: Arc<Mutex<()>>,
}

impl Undoer {
    /// An undoer for a team that runs. `surroundings` says which agents are in the way.
    pub fn new(journal: Journal, workspace: &Path, surroundings: Arc<dyn LiveAgents>) -> Self {
        Self { journal, workspace: workspace.into(), surroundings, turn: Arc::default() }
    }

    /// An undoer for a team that does not run.
    pub fn alone(journal: Journal, workspace: &Path) -> Self {
        Self::new(journal, workspace, Arc::new(Nobody))
    }

    /// Finishes or takes back an undo that was killed half-way. Call it before agents start.
    pub async fn recover(&self) -> Result<Option<Recovered>, UndoError> {
        if !intent_path(&self.journal.settings().path).exists() {
            return Ok(None);
        }
        self.blocking(|this, site| this.recover_with(&site)).await
    }

    /// Carries out a request. It goes on if the future is dropped.
    pub async fn run(&self, request: UndoRequest) -> Result<Outcome, UndoError> {
        self.blocking(move |this, site| this.run_with(&site, &request)).await
    }

    /// Runs `work` on a thread that may block, when it is its turn and the journal has all changes.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self, Site<'_>) -> Result<T, UndoError> + Send + 'static,
    ) -> Result<T, UndoError> {
        let this = self.clone();
        let working = task::spawn(async move {
            let turn = Arc::clone(&this.turn).lock_owned().await;
            let runtime = Handle::current();
            let working = task::spawn_blocking(move || {
                let _turn = turn;
                let settings = this.journal.settings().clone();
                runtime.block_on(this.surroundings.settle())?;
                // This also shows that this process holds the journal.
                runtime.block_on(this.journal.keep(Vec::new())).map_err(UndoError::Journal)?;
                let store = Store::open(&settings.path)?;
                let disk = open_workspace(&this.workspace)?;
                let site = Site { journal: &this.journal, store: &store, disk: &disk, runtime };
                work(&this, site)
            });
            working.await
        });
        let failed = |error: tokio::task::JoinError| UndoError::Busy(error.to_string());
        working.await.map_err(failed)?.map_err(failed)?
    }

    fn recover_with(&self, site: &Site<'_>) -> Result<Option<Recovered>, UndoError> {
        let _own = self.announced(site.unfinished_paths()?);
        site.recover()
    }

    fn run_with(&self, site: &Site<'_>, request: &UndoRequest) -> Result<Outcome, UndoError> {
        if !request.dry_run {
            self.recover_with(site)?;
        }
        let keep = self.journal.settings().keep;
        let plan = plan(site.store, site.disk, keep, request)?;
        let mut outcome = Outcome::of(&plan);
        let checked = self.check(site, &plan);
        if request.dry_run {
            let preview = preview_of(&plan, site.store, site.disk)?;
            return Ok(outcome.shown(preview, checked.err().as_ref()));
        }
        checked?;
        let rewind = request.rewind.clone();
        if !plan.is_empty() {
            let committed = site.apply(&plan, rewind, |paths| self.announced(paths))?;
            outcome.event_id = Some(committed.id);
        } else if let Some(rewind) = rewind {
            let appended = site.runtime.block_on(self.journal.append_synced(vec![rewind]));
            appended.map_err(UndoError::Journal)?;
        }
        Ok(outcome)
    }

    /// Whether the plan may be carried out now.
    fn check(&self, site: &Site<'_>, plan: &Plan) -> Result<(), UndoError> {
        if let Some(agent) = plan.deed.agent()
            && let Some(why) = site.runtime.block_on(self.surroundings.busy(agent))
        {
            return Err(UndoError::Busy(why));
        }
        plan.check()?;
        let files: Vec<_> =
            plan.targets.keys().filter_map(|path| Some((site.disk.id(path)?, path))).collect();
        let ids: HashSet<_> = files.iter().map(|(id, _)| *id).collect();
        let Some(writer) = writer_of(&ids, &self.surroundings.processes()) else { return Ok(()) };
        let path = files.iter().find(|(id, _)| *id == writer.file);
        let path = path.map(|(_, path)| path.to_string()).unwrap_or_default();
        Err(UndoError::Open { path, pid: writer.pid, name: writer.name })
    }

    fn announced(&self, paths: Vec<FilePath>) -> Box<dyn Send> {
        let paths = paths.into_iter().map(|path| self.workspace.join(path.as_path())).collect();
        self.surroundings.announce(paths)
    }
}

impl std::fmt::Debug for Undoer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Undoer").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

/// The dry run of an undo for a team that does not run. Only reads. Blocks.
pub fn preview(
    journal: &Path,
    workspace: &Path,
    keep: Keep,
    request: &UndoRequest,
) -> Result<Outcome, UndoError> {
    let path = intent_path(journal);
    let unread = |error| UndoError::Intent { path: path.clone(), error };
    if Intent::read(&path).map_err(unread)?.is_some() {
        return Err(UndoError::Unfinished);
    }
    let (store, disk) = (Store::open(journal)?, open_workspace(workspace)?);
    let plan = plan(&store, &disk, keep, request)?;
    let preview = preview_of(&plan, &store, &disk)?;
    Ok(Outcome::of(&plan).shown(preview, plan.check().err().as_ref()))
}

fn plan(store: &Store, disk: &Disk, keep: Keep, request: &UndoRequest) -> Result<Plan, UndoError> {
    Plan::new(store, disk, keep, choose(store, &request.aim)?, request)
}

fn open_workspace(workspace: &Path) -> Result<Disk, UndoError> {
    let failed = |error| UndoError::Workspace { path: workspace.to_owned(), error };
    Disk::open(workspace).map_err(failed)
}
