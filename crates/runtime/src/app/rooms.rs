//! The rooms behind the port that `up` and `observe` share, each a task that ends with `cancel`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use eisen_base::task::{self, TaskSet};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::app::graph;
use crate::app::journal::in_background;
use crate::branches::{TeamTrees, shared_changes};
use crate::bus::{Backlog, Bus};
use crate::capture::{self, Capture};
use crate::config::{self, Config};
use crate::conflicts::{self, Conflicts};
use crate::home::environment::TeamEnvironment;
use crate::hub::Neighbours;
use crate::journal::{self, Journal, Store};
use crate::model::{BlockedStatus, masked_line};
use crate::notes;
use crate::process::command_line;
use crate::routing::{self, Orchestrator, RoutingHandle};
use crate::runs::TeamRuns;
use crate::serve::{Handles, Recorder, RemoteTeams, Tokens, ToolUses};
use crate::session::RegistryHandle;
use crate::streams::{self, Streams};
use crate::supervisor::Roster;
use crate::tasks::{Tasks, Waits};
use crate::team_state::agent_owners::AgentOwners;
use crate::team_state::tool_use;
use crate::telemetry::Traceparent;
use crate::tracker;
use crate::tracker::{OrchestratorView, TrackerHandle};
use crate::watch::GraphHandle;

/// Bytes of a command line that a card shows.
const LONGEST_COMMAND: usize = 4 << 10;

/// The last steps of a team, once its agents have ended and their work is known: the journal is closed,
/// and clients get their last lines.
pub(crate) type Closing = BoxFuture<'static, ()>;

pub(crate) struct Wiring {
    pub(crate) cancel: CancellationToken,
    pub(crate) tasks: TaskSet,
    pub(crate) bus: Bus,
    pub(crate) tracker: TrackerHandle,
    pub(crate) registry: RegistryHandle,
    pub(crate) owners: AgentOwners,
    /// None: switched off.
    pub(crate) journal: Option<Journal>,
    /// None without a journal, or before it is started.
    pub(crate) capture: Option<Capture>,
    /// None before it is started. Without rules it looks at no writes.
    pub(crate) conflicts: Option<Conflicts>,
    /// The waits between agents.
    pub(crate) waits: Waits,
    /// The trace context for agents; None without telemetry.
    pub(crate) trace: Option<Traceparent>,
    /// None without a journal, or before they are started.
    streams: Option<Streams>,
    /// None: agents start no runs.
    runs: Option<TeamRuns>,
    /// None: the team is in no hub.
    pub(crate) neighbours: Option<Neighbours>,
    graph: Option<GraphHandle>,
    tool_uses: ToolUses,
    /// None before they are kept.
    tasks_given: Option<Tasks>,
}

impl Wiring {
    /// Starts the tracker, the registry and, by its settings, the journal.
    pub(crate) fn start(
        bus: Bus,
        tracker: config::Tracker,
        view: OrchestratorView,
        eisen_dir: &Path,
        journal: Option<journal::Settings>,
    ) -> Self {
        let (cancel, mut tasks) = (CancellationToken::new(), TaskSet::default());
        // Before the first event. It ends with the bus, so that it gets all events.
        let journal = journal.map(|settings| {
            let (journal, following) = journal::start(settings, bus.subscribe());
            tasks.spawn(in_background(following));
            journal
        });
        let settings = tracker_settings(tracker);
        let (tracker, tracking) = TrackerHandle::spawn(settings, view, bus.clone(), cancel.clone());
        tasks.spawn(tracking);
        let (registry, keeping) = RegistryHandle::spawn(eisen_dir, cancel.clone());
        tasks.spawn(keeping);
        Self {
            cancel,
            tasks,
            bus,
            tracker,
            registry,
            owners: AgentOwners::default(),
            journal,
            capture: None,
            conflicts: None,
            waits: Waits::default(),
            trace: None,
            streams: None,
            runs: None,
            neighbours: None,
            graph: None,
            tool_uses: ToolUses::default(),
            tasks_given: None,
        }
    }

    /// Has the turns of sessions that are opened again numbered behind those that the journal has.
    pub(crate) async fn go_on_behind_turns(&self) {
        let Some(journal) = self.journal.clone().filter(|journal| !journal.is_new()) else {
            return;
        };
        // One that can't be written may be readable.
        let _ = journal.opened().await;
        let read = move || Store::open(&journal.settings().path)?.turns_of_sessions();
        match task::spawn_blocking(read).await {
            Ok(Ok(turns)) => self.tracker.go_on_behind(turns),
            Ok(Err(error)) => tracing::warn!(
                %error,
                "turns of sessions that go on are numbered from 0: the journal can't be read"
            ),
            Err(_) => {}
        }
    }

    /// Captures the changes of files from now on, if there is a journal.
    pub(crate) fn capture_files(
        &mut self,
        workspace: PathBuf,
        left_out: Vec<PathBuf>,
        full: capture::Fullness,
    ) {
        let Some(journal) = self.journal.clone() else { return };
        let mut left_out = left_out;
        left_out.push(journal.settings().path.clone());
        let settings = capture::Settings { workspace, left_out, full };
        let started = Capture::start(settings, journal, self.tracker.clone());
        let failed = |error: &_| tracing::warn!(%error, "changes of files are not recorded");
        self.capture = started.inspect_err(failed).ok();
    }

    /// Keeps conflicts from now on; looks for those of writes if there are rules for them.
    pub(crate) fn find_conflicts(
        &mut self,
        rules: Option<conflicts::ConflictRules>,
        workspace: &Path,
    ) {
        let looks = rules.is_some();
        let (bus, journal, waits) = (self.bus.clone(), self.journal.clone(), self.waits.clone());
        let conflicts = Conflicts::new(rules, workspace.to_owned(), bus, journal, waits);
        if looks {
            let following = conflicts.clone().follow(self.bus.subscribe(), self.cancel.clone());
            self.tasks.spawn(following);
        }
        self.conflicts = Some(conflicts);
    }

    /// Watches the workspace of an unconfined agent, for which an editor writes files.
    pub(crate) fn watch_unconfined(&mut self, workspace: &Path, eisen_dir: &Path, graph: bool) {
        let full = capture::Fullness::default();
        self.capture_files(workspace.to_owned(), vec![eisen_dir.to_owned()], full);
        if let Some(capture) = &self.capture {
            capture.add_unconfined();
        }
        if graph {
            self.keep_graph(workspace.to_owned());
        }
    }

    /// Returns the variables by which agents find their team.
    pub(crate) fn environment(
        &self,
        config: &Config,
        address: SocketAddr,
        tools_address: Option<SocketAddr>,
        depth: u32,
        tokens: &Tokens,
    ) -> TeamEnvironment {
        let name = &config.team.name;
        TeamEnvironment::new(name, address, tools_address, depth, tokens, self.trace)
    }

    /// Notes the workspace in the journal.
    pub(crate) fn note_workspace(&self, workspace: &Path) {
        if let Some(journal) = &self.journal {
            journal.note_workspace(workspace);
        }
    }

    /// Notes what agents use of the team's tools, from now on.
    pub(crate) fn note_tools(&mut self, file: PathBuf) {
        let (uses, events) = (self.tool_uses.clone(), self.bus.subscribe());
        self.tasks.spawn(tool_use::note(file, uses, events, self.cancel.clone()));
    }

    /// Keeps the code graph of a workspace from now on, if it can be started.
    pub(crate) fn keep_graph(&mut self, workspace: PathBuf) {
        let (bus, cancel) = (self.bus.clone(), self.cancel.clone());
        self.graph = graph::keep(
            workspace,
            bus,
            &self.tracker,
            self.capture.clone(),
            cancel,
            &mut self.tasks,
        );
    }

    pub(crate) fn route(&mut self, settings: routing::Settings) -> RoutingHandle {
        let elsewhere = match &settings.orchestrator {
            Orchestrator::Elsewhere { agent, .. } => Some(agent.clone()),
            _ => None,
        };
        let lead = match &settings.orchestrator {
            Orchestrator::Agent(agent) => Some(agent.clone()),
            Orchestrator::Elsewhere { .. } | Orchestrator::External(_) | Orchestrator::Nobody => {
                None
            }
        };
        let (bus, tracker) = (self.bus.clone(), self.tracker.clone());
        let (routing, deciding) = RoutingHandle::spawn(settings, bus, tracker, self.cancel.clone());
        self.tasks.spawn(deciding);
        if let Some((lead, neighbours)) = elsewhere.zip(self.neighbours.clone()) {
            let briefing = neighbours.brief(lead, routing.clone());
            let cancel = self.cancel.clone();
            self.tasks.spawn(async move {
                cancel.run_until_cancelled(briefing).await;
            });
        }
        if self.conflicts.is_some() {
            let (events, cancel) = (self.bus.subscribe(), self.cancel.clone());
            self.tasks.spawn(notes::conflicts::follow(events, routing.clone(), lead, cancel));
        }
        routing
    }

    /// Finds what two worktrees of agents both change, from now on.
    pub(crate) fn compare_branches(&mut self, trees: &TeamTrees, routing: &RoutingHandle) {
        let Some(conflicts) = self.conflicts.clone() else { return };
        let (bus, cancel) = (self.bus.clone(), self.cancel.clone());
        let (trees, routing) = (trees.clone(), routing.clone());
        self.tasks.spawn(shared_changes::follow(bus, trees, conflicts, routing, cancel));
    }

    /// Keeps the tasks that agents are given, from now on.
    pub(crate) fn keep_tasks(&mut self, folder: PathBuf, routing: &RoutingHandle, roster: Roster) {
        let (bus, notes_to) = (self.bus.clone(), routing.clone());
        let routing = routing.clone();
        let events = bus.subscribe();
        let tasks = Tasks::open(Some(folder), bus);
        self.tasks_given = Some(tasks.clone());
        let standing = move || {
            let (routing, roster) = (routing.clone(), roster.clone());
            async move { (routing.list(Some(BlockedStatus::Pending)).await, roster.statuses()) }
        };
        self.tasks.spawn(tasks.clone().follow(events, standing, self.cancel.clone()));
        let (events, tracker) = (self.bus.subscribe(), self.tracker.clone());
        let noting = notes::tasks::follow(events, tasks, tracker, notes_to, self.cancel.clone());
        self.tasks.spawn(noting);
    }

    /// Delivers what the journal has from now on, if there is one.
    pub(crate) fn deliver(&mut self, team: &str, folder: PathBuf) -> Option<Streams> {
        let (journal, bus) = (self.journal.clone()?, self.bus.clone());
        let (team, cancel) = (team.to_owned(), self.cancel.clone());
        let first_pause = streams::FIRST_PAUSE;
        let settings = streams::Settings { team, folder, journal, bus, cancel, first_pause };
        Some(self.streams.insert(Streams::new(settings)).clone())
    }

    /// Keeps the runs that agents start, from now on; `depth` counts the teams above this one.
    pub(crate) fn keep_runs(&mut self, eisen_dir: &Path, team: &str, depth: u32) -> TeamRuns {
        self.runs.insert(TeamRuns::new(eisen_dir.to_owned(), team, depth)).clone()
    }

    /// The sources of the port; `recorder` with the name of the team.
    pub(crate) fn sources(
        &self,
        routing: &RoutingHandle,
        team: Option<(Recorder, &config::Config)>,
    ) -> Handles {
        let (recorder, config) = team.unzip();
        let lead = config.and_then(|config| config.orchestrator.agent.clone());
        Handles {
            tracker: self.tracker.clone(),
            routing: routing.clone(),
            registry: self.registry.clone(),
            graph: self.graph.clone(),
            journal: self.journal.clone().map(|journal| (journal, self.bus.clone())),
            capture: self.capture.clone(),
            team: config.map(|config| config.team.name.clone()),
            recorder,
            follows_active: lead.is_none(),
            lead,
            default_agent: config.and_then(|config| config.gateway.default.clone()),
            tasks: self.tasks_given.clone(),
            conflicts: self.conflicts.clone(),
            runs: self.runs.clone(),
            scoped_tokens: None,
            elsewhere: self.neighbours.clone().map(|it| Arc::new(it) as Arc<dyn RemoteTeams>),
            lead_elsewhere: config.and_then(|config| config.orchestrator.elsewhere.clone()),
            tool_uses: self.tool_uses.clone(),
            waits: self.waits.clone(),
            command_line: |pid| command_line(pid, LONGEST_COMMAND).map(|line| masked_line(&line)),
        }
    }

    /// Ends every task, and then `last`. Past `limit` a client that does not read loses its last
    /// lines.
    pub(crate) async fn end(mut self, last: impl Future<Output = ()>, limit: Duration) {
        if let Some(runs) = &self.runs {
            // Their agents have ended.
            let _ = tokio::time::timeout(limit, runs.settled()).await;
        }
        if let Some(capture) = &self.capture {
            capture.settle().await;
        }
        if let Some(journal) = &self.journal {
            journal.note_run(None);
        }
        if let Some(streams) = self.streams {
            self.tasks.spawn(streams.ended());
        }
        self.cancel.cancel();
        drop((self.bus, self.tracker, self.registry, self.graph, self.journal, self.capture));
        drop(self.conflicts);
        drop(self.tasks_given);
        let _ = tokio::time::timeout(limit, async {
            self.tasks.join_all().await;
            last.await;
        })
        .await;
    }
}

pub(crate) fn tracker_settings(tracker: config::Tracker) -> tracker::Settings {
    tracker::Settings {
        context_turns: tracker.context_turns,
        compaction_threshold: tracker.compaction_threshold,
        decay_rate: tracker.decay_rate,
        tick: tracker.tick,
        idle_tick: tracker.idle_tick,
    }
}

pub(crate) fn backlog(port: config::Port) -> Backlog {
    Backlog { events: port.backlog, bytes: port.backlog_bytes }
}
