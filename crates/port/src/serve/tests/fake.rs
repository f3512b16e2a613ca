//! A team without agents: the test sets its state, and reads the requests that it got.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::{Notify, OnceCell, mpsc};
use tokio::time::timeout;

use super::{recorded, samples};
use crate::bus::{Backlog, Bus, Rendered};
use crate::conflicts::{self, HeldDecision, ShownConflict};
use crate::journal::Journal;
use crate::model::{
    AgentId, AgentStatus, BlockedAccess, BlockedId, BlockedStatus, BudgetReport, Conflict,
    ConflictId, DecidedBy, Delta, Event, GraphDelta, GraphSnapshot, Snapshot, TeamGrant,
    UsageReport,
};
use crate::routing::{Decider, Decision, ResolveError, ShownAccess};
use crate::serve::{BoxFuture, Refused, Sources};
use crate::session::{Answer, Registry, RegistryError, RegistryRequest};
use crate::tasks::Tasks;
use crate::tokens::ScopedTokens;
use crate::tracker::{Settings, Snapshots};
use crate::watch::GraphState;

mod team;

pub(in crate::serve) struct Fake {
    pub(in crate::serve) bus: Bus,
    pub(in crate::serve) snapshots: Mutex<Vec<Snapshot>>,
    pub(in crate::serve) agents: Mutex<Vec<AgentStatus>>,
    pub(in crate::serve) graph: Mutex<Option<GraphSnapshot>>,
    pub(in crate::serve) budgets: Mutex<Vec<BudgetReport>>,
    pub(in crate::serve) registry: Mutex<Registry>,
    /// The requests, in order, as `Debug` shows them.
    pub(in crate::serve) asked: Mutex<Vec<String>>,
    /// Something happens right before and right after snapshots are taken.
    pub(in crate::serve) racing: AtomicBool,
    /// Whether requests get the journal to write to; what is read of it is there in any case.
    pub(in crate::serve) keeps_journal: AtomicBool,
    tasks: Tasks,
    /// With its folder.
    journal: OnceCell<(TempDir, Journal)>,
    /// With their folder.
    scoped: OnceLock<(TempDir, ScopedTokens)>,
    /// Lets prompts of the agent `slow` end.
    pub(in crate::serve) release: Notify,
    /// Hears of each prompt of the agent `slow` that begins or is dropped.
    slow: mpsc::UnboundedSender<&'static str>,
    heard: Mutex<mpsc::UnboundedReceiver<&'static str>>,
}

impl Fake {
    pub(in crate::serve) fn new(backlog: usize) -> Arc<Self> {
        Self::with(Backlog::of(backlog))
    }

    pub(in crate::serve) fn with(backlog: Backlog) -> Arc<Self> {
        let (slow, heard) = mpsc::unbounded_channel();
        let bus = Bus::encoding(backlog, crate::serve::encode);
        Arc::new(Self {
            tasks: Tasks::open(None, bus.clone()),
            bus,
            snapshots: Mutex::new(vec![samples::snapshot(), samples::other_snapshot()]),
            agents: Mutex::new(vec![samples::agent("ui"), samples::failed_agent()]),
            graph: Mutex::new(Some(samples::graph())),
            budgets: Mutex::default(),
            registry: Mutex::default(),
            asked: Mutex::default(),
            racing: AtomicBool::new(false),
            keeps_journal: AtomicBool::new(false),
            journal: OnceCell::new(),
            scoped: OnceLock::new(),
            release: Notify::new(),
            slow,
            heard: Mutex::new(heard),
        })
    }

    /// Touches a file in the session at `index`, as the tracker would: the state, then the bus.
    pub(in crate::serve) fn touch(&self, index: usize, path: &str) {
        let mut snapshots = self.snapshots.lock().unwrap();
        let snapshot = &mut snapshots[index];
        snapshot.seq += 1;
        snapshot.nodes.retain(|node| *node.path != *path);
        snapshot.nodes.push(samples::node(path, 1.0));
        self.bus.publish(Event::Delta(Delta {
            key: snapshot.key.clone(),
            mode: snapshot.mode,
            seq: snapshot.seq,
            updates: vec![samples::node(path, 1.0)],
            removed: Vec::new(),
        }));
    }

    /// Brings the graph to `seq`, as its keeper would: the state, then the bus.
    pub(in crate::serve) fn publish_graph(&self, seq: u64) {
        self.graph.lock().unwrap().as_mut().unwrap().seq = seq;
        self.bus.publish(Event::GraphDelta(GraphDelta { seq, ..samples::graph_delta() }));
    }

    /// Waits for what next becomes of a prompt of the agent `slow`.
    pub(in crate::serve) async fn heard(&self) -> &'static str {
        let heard = poll_fn(|context| self.heard.lock().unwrap().poll_recv(context));
        timeout(Duration::from_secs(20), heard).await.expect("a prompt in time").unwrap()
    }

    fn ask(&self, what: String) {
        self.asked.lock().unwrap().push(what);
    }

    fn known(&self, agent: &AgentId) -> Result<AgentStatus, Refused> {
        let agents = self.agents.lock().unwrap();
        agents.iter().find(|status| status.agent == *agent).cloned().ok_or_else(|| {
            Refused::new(404, format!("there is no agent `{agent}`; there are ui, api"))
        })
    }
}

impl Sources for Fake {
    fn own_patterns(&self) -> BoxFuture<'_, HashMap<AgentId, Vec<String>>> {
        let of_ui = (AgentId::new("ui"), vec!["src/ui/**".to_owned()]);
        Box::pin(async { HashMap::from([of_ui]) })
    }

    fn snapshots(&self) -> BoxFuture<'_, Snapshots> {
        Box::pin(async {
            let racing = self.racing.swap(false, Ordering::Relaxed);
            if racing {
                self.touch(1, "before.ts");
                self.bus.publish(Event::Agent(samples::agent("ui")));
            }
            let snapshots = {
                let snapshots = self.snapshots.lock().unwrap();
                let sessions = snapshots.iter().cloned().map(|it| Arc::new(Rendered::new(it)));
                Snapshots { as_of: self.bus.position(), sessions: sessions.collect() }
            };
            if racing {
                self.touch(1, "after.ts");
            }
            snapshots
        })
    }

    fn usages(&self) -> BoxFuture<'_, Vec<UsageReport>> {
        Box::pin(async { vec![samples::usage()] })
    }

    fn blocked(&self, status: Option<BlockedStatus>) -> BoxFuture<'_, Vec<BlockedAccess>> {
        Box::pin(async move {
            let mut old = samples::blocked(BlockedStatus::Denied);
            old.id = BlockedId::new("b0");
            let mut all = vec![old, samples::blocked(BlockedStatus::Pending)];
            all.retain(|access| status.is_none_or(|status| access.status == status));
            all
        })
    }

    fn journal(&self) -> Option<Journal> {
        let is_kept = self.keeps_journal.load(Ordering::SeqCst);
        self.journal.get().filter(|_| is_kept).map(|(_, journal)| journal.clone())
    }

    fn scoped_tokens(&self) -> Option<ScopedTokens> {
        let (_, tokens) = self.scoped.get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            let tokens = ScopedTokens::open(folder.path()).unwrap();
            (folder, tokens)
        });
        Some(tokens.clone())
    }

    fn tasks(&self) -> Option<Tasks> {
        Some(self.tasks.clone())
    }

    fn tracking(&self) -> Option<Settings> {
        let tick = Duration::from_secs(3_600);
        Some(Settings {
            context_turns: 8,
            compaction_threshold: 0.5,
            decay_rate: 0.5,
            tick,
            idle_tick: tick,
        })
    }

    fn recorded(&self) -> BoxFuture<'_, Option<Journal>> {
        Box::pin(async {
            let (_, journal) = self.journal.get_or_init(recorded::journal).await;
            Some(journal.clone())
        })
    }

    fn resolve(
        &self,
        id: BlockedId,
        decision: Decision,
        by: Decider,
    ) -> BoxFuture<'_, Result<BlockedAccess, ResolveError>> {
        Box::pin(async move {
            self.ask(format!("{id} {decision:?} {by:?}"));
            samples::resolved(id, &decision, &by)
        })
    }

    fn grants(&self) -> BoxFuture<'_, Vec<TeamGrant>> {
        Box::pin(async { vec![samples::grant()] })
    }

    fn revoke_grant(&self, id: String) -> BoxFuture<'_, Result<TeamGrant, ResolveError>> {
        Box::pin(async move {
            self.ask(format!("revoke {id}"));
            Some(samples::grant()).filter(|it| it.id == id).ok_or(ResolveError::UnknownGrant(id))
        })
    }

    fn resolve_shown(
        &self,
        id: BlockedId,
        decision: Decision,
        by: Decider,
        version: String,
    ) -> BoxFuture<'_, Result<BlockedAccess, ResolveError>> {
        match &*version {
            samples::VERSION => self.resolve(id, decision, by),
            _ => Box::pin(async { Err(ResolveError::Changed(id)) }),
        }
    }

    fn show(
        &self,
        id: BlockedId,
        reader: Option<AgentId>,
    ) -> BoxFuture<'_, Result<ShownAccess, ResolveError>> {
        Box::pin(async move {
            self.ask(format!("show {id} {reader:?}"));
            samples::show(id)
        })
    }

    fn show_conflict(
        &self,
        id: ConflictId,
    ) -> BoxFuture<'_, Result<ShownConflict, conflicts::ResolveError>> {
        Box::pin(async { samples::show_conflict(id) })
    }

    fn resolve_conflict(
        &self,
        id: ConflictId,
        decision: HeldDecision,
        by: DecidedBy,
        version: Option<String>,
    ) -> BoxFuture<'_, Result<Conflict, conflicts::ResolveError>> {
        Box::pin(async move {
            self.ask(format!("{id} {decision:?} {by:?}"));
            samples::resolved_conflict(id, &decision, by, version.as_deref())
        })
    }

    fn graph(&self, _: bool) -> BoxFuture<'_, GraphState> {
        Box::pin(async {
            match self.graph.lock().unwrap().clone() {
                Some(graph) => GraphState::There {
                    as_of: self.bus.position(),
                    graph: Arc::new(Rendered::new(graph)),
                },
                None => GraphState::Off,
            }
        })
    }

    fn registry(&self, request: RegistryRequest) -> BoxFuture<'_, Result<Answer, RegistryError>> {
        Box::pin(async move { self.registry.lock().unwrap().answer(request, samples::NOW) })
    }
}
