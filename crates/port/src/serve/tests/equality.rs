//! Property tests that a client that applies deltas to its snapshots has the server's state,
//! whatever happens and however slowly it reads. Tracker, bus and viewer are real.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eisen_base::task;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, DuplexStream};
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::time::{advance, timeout};
use tokio_util::sync::CancellationToken;

use super::fake::Fake;
use super::{Limits, Tokens};
use crate::bus::{Backlog, Bus, Rendered};
use crate::model::{
    Activity, ActivityKind, AgentId, BlockedAccess, BlockedId, BlockedStatus, Lines, SessionId,
    SessionKey, SessionMode, Snapshot, Source, Topic, Touch, UsageReport,
};
use crate::routing::{Decider, Decision, ResolveError};
use crate::serve::command::ViewerCommand;
use crate::serve::shared::Shared;
use crate::serve::viewer::Viewer;
use crate::serve::{BoxFuture, Caller, Sources};
use crate::session::{Answer, Registry, RegistryError, RegistryRequest};
use crate::tracker::{OrchestratorView, Settings, Snapshots, TrackerHandle};
use crate::watch::GraphState;
use crate::wire::request::Filter;

/// Longer than a case takes: ticks pass when a step says so.
const TICK: Duration = Duration::from_secs(3_600);

#[derive(Clone, Debug)]
enum Step {
    Report(&'static str, ActivityKind),
    Orchestrate(&'static str),
    Tick,
    /// Others get to run.
    Pause,
    /// The client reads some lines.
    Read(usize),
    Ask(Option<&'static str>),
    Filter(Filter),
}

const SESSIONS: [&str; 5] = ["a/s", "a/t", "b/s", "lead/l", "lead/m"];

fn key(name: &str) -> SessionKey {
    let (agent, session) = name.split_once('/').unwrap();
    SessionKey::new(AgentId::new(agent), SessionId::new(session))
}

fn touched(path: &str) -> ActivityKind {
    ActivityKind::Touched {
        path: path.into(),
        touch: Touch::Read,
        source: Source::Tool,
        lines: Lines::default(),
    }
}

fn activity() -> impl Strategy<Value = ActivityKind> {
    let ended = ActivityKind::TurnEnded { stop_reason: "end_turn".into(), reason: None };
    prop_oneof![
        8 => select(vec!["w", "x", "y", "z"]).prop_map(touched),
        2 => select(vec![ActivityKind::Opened { is_new: true }, ActivityKind::Closed, ActivityKind::Compacted]),
        3 => select(vec![ActivityKind::TurnBegan, ended, ActivityKind::Update("{}".into())]),
    ]
}

fn filter() -> impl Strategy<Value = Filter> {
    prop_oneof![
        2 => Just(Filter::All),
        2 => select(vec!["s", "l", "nobody's"]).prop_map(|id| Filter::Session(SessionId::new(id))),
        1 => select(vec![SessionMode::SingleAgent, SessionMode::Orchestrator])
            .prop_map(Filter::Mode),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        16 => (select(SESSIONS.to_vec()), activity()).prop_map(|(name, kind)| Step::Report(name, kind)),
        1 => select(vec!["lead/l", "lead/m"]).prop_map(Step::Orchestrate),
        4 => Just(Step::Tick),
        4 => Just(Step::Pause),
        4 => (1..12usize).prop_map(Step::Read),
        1 => proptest::option::of(select(vec!["s", "l"])).prop_map(Step::Ask),
        1 => filter().prop_map(Step::Filter),
    ]
}

fn view() -> impl Strategy<Value = OrchestratorView> {
    select(vec![
        OrchestratorView::None(key("a/")),
        OrchestratorView::External(key("orchestrator/team-t")),
        OrchestratorView::Agent(AgentId::new("lead")),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_client_equals_the_server(
        view in view(),
        backlog in 3..12usize,
        pipe in select(vec![64, 1_000, 100_000]),
        wants_updates in any::<bool>(),
        before in 0..20usize,
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let mut stage = Stage::new(view, backlog);
            let mut steps = steps.into_iter();
            for step in steps.by_ref().take(before) {
                stage.take(step).await;
            }
            stage.join(pipe, wants_updates).await;
            for step in steps {
                stage.take(step).await;
            }
            stage.compare().await;
        });
    }
}

#[test]
fn the_last_session_ends_before_a_client_that_saw_it() {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let mut stage = Stage::new(OrchestratorView::None(key("a/")), 3);
        stage.join(64, false).await;
        for step in [
            Step::Report("a/s", touched("w")),
            Step::Tick,
            Step::Report("a/s", ActivityKind::Closed),
        ] {
            stage.take(step).await;
        }
        stage.compare().await;
    });
}

/// A session that a filter hides while the session is in another mode is not shown by halves afterwards.
#[test]
fn a_hidden_session_that_showed_the_view_in_between() {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let mut stage = Stage::new(OrchestratorView::Agent(AgentId::new("lead")), 6);
        stage.join(64, false).await;
        for step in [
            Step::Report("lead/m", touched("w")),
            Step::Tick,
            Step::Filter(Filter::Session(SessionId::new("s"))),
            Step::Report("lead/m", ActivityKind::Closed),
            Step::Report("a/s", touched("w")),
            Step::Orchestrate("lead/m"),
            Step::Read(4),
            Step::Filter(Filter::Mode(SessionMode::Orchestrator)),
            Step::Orchestrate("lead/l"),
            Step::Tick,
        ] {
            stage.take(step).await;
        }
        stage.compare().await;
    });
}

/// A tracker that is watched by one client.
struct Stage {
    bus: Bus,
    tracker: TrackerHandle,
    watching: Option<(mpsc::Sender<ViewerCommand>, Client)>,
    filter: Filter,
}

impl Stage {
    fn new(view: OrchestratorView, backlog: usize) -> Self {
        let bus = Bus::encoding(Backlog::of(backlog), crate::serve::encode);
        let settings = Settings {
            context_turns: 1,
            compaction_threshold: 0.5,
            decay_rate: 0.1,
            tick: TICK,
            idle_tick: TICK,
        };
        let cancel = CancellationToken::new();
        let (tracker, task) = TrackerHandle::spawn(settings, view, bus.clone(), cancel);
        task::spawn(task);
        Self { bus, tracker, watching: None, filter: Filter::All }
    }

    async fn join(&mut self, pipe: usize, wants_updates: bool) {
        let (near, far) = tokio::io::duplex(pipe);
        let limits = Limits { write_deadline: TICK * 100_000, ..Limits::default() };
        let tokens = Tokens::generate(None).unwrap();
        let sources = Arc::new(Tracked(self.tracker.clone()));
        let shared = Shared::new(self.bus.clone(), sources, Fake::new(1), tokens, limits, false);
        let (commands, waiting) = mpsc::channel(1_000);
        task::spawn(Viewer::new(Arc::new(shared), false, near, waiting).run());
        if wants_updates {
            commands.send(ViewerCommand::Known(Caller::Person)).await.unwrap();
            commands.send(ViewerCommand::Want(Topic::SessionUpdate)).await.unwrap();
        }
        let client = Client { read: BufReader::new(far), sessions: BTreeMap::new() };
        self.watching = Some((commands, client));
    }

    async fn take(&mut self, step: Step) {
        match (step, &mut self.watching) {
            (Step::Report(name, kind), _) => {
                let key = key(name);
                self.tracker.record(&key.agent, Activity { session: key.session, kind });
            }
            (Step::Orchestrate(name), _) => self.tracker.set_orchestrator_session(key(name)),
            (Step::Tick, _) => {
                advance(TICK).await;
                self.tracker.settled().await;
            }
            (Step::Pause, _) => self.tracker.settled().await,
            (Step::Read(lines), Some((_, client))) => client.read_some(lines).await,
            (Step::Ask(session), Some((commands, _))) => {
                let command = ViewerCommand::Snapshots(session.map(SessionId::new));
                commands.send(command).await.unwrap();
            }
            (Step::Filter(filter), Some((commands, _))) => {
                commands.send(ViewerCommand::Filter(filter.clone())).await.unwrap();
                self.filter = filter;
            }
            (Step::Read(_) | Step::Ask(_) | Step::Filter(_), None) => {}
        }
    }

    async fn compare(self) {
        let (commands, mut client) = self.watching.unwrap();
        let server = self.tracker.snapshots().await.sessions;
        let marker = Bytes::from_static(b"{\"type\":\"rpc_result\",\"id\":1,\"result\":null}\n");
        commands.send(ViewerCommand::Answer(marker)).await.unwrap();
        client.read_to_answer().await;

        let passes = |key: &SessionKey, mode| self.filter.covers(key, mode);
        let is_shown = |snapshot: &&Arc<Rendered<Snapshot>>| passes(&snapshot.key, snapshot.mode);
        for snapshot in server.iter().filter(is_shown) {
            let seen = client.sessions.remove(&snapshot.key);
            // Who comes while there is no session gets an empty snapshot, and nobody else: it shows
            // nothing that a client could miss.
            let is_placeholder = snapshot.key.session.as_str().is_empty();
            let Some(seen) = seen else {
                assert!(is_placeholder && snapshot.nodes.is_empty(), "{:?}", snapshot.key);
                continue;
            };
            let nodes: BTreeMap<_, _> =
                snapshot.nodes.iter().map(|node| (node.path.to_string(), node.heat)).collect();
            assert_eq!((seen.seq, seen.mode), (snapshot.seq, snapshot.mode));
            assert_eq!(seen.nodes, nodes, "{:?}", snapshot.key);
        }
        for (key, seen) in client.sessions {
            let is_gone = !passes(&key, seen.mode) || seen.nodes.is_empty();
            assert!(is_gone, "{key:?} is still shown: {:?}", seen.nodes);
        }
    }
}

struct Client {
    read: BufReader<DuplexStream>,
    sessions: BTreeMap<SessionKey, Seen>,
}

struct Seen {
    seq: u64,
    mode: SessionMode,
    nodes: BTreeMap<String, f64>,
}

impl Client {
    /// Reads lines as far as there are any.
    async fn read_some(&mut self, lines: usize) {
        for _ in 0..lines {
            // Far less than a tick. Nothing is lost if it passes: what was read is put back.
            let filled = timeout(Duration::from_millis(1), self.read.fill_buf()).await;
            if filled.is_err() {
                return;
            }
            let line = self.line().await;
            self.follow(&line);
        }
    }

    async fn read_to_answer(&mut self) {
        loop {
            let line = self.line().await;
            if line["type"] == "rpc_result" {
                return;
            }
            self.follow(&line);
        }
    }

    async fn line(&mut self) -> Value {
        let mut line = String::new();
        let read = timeout(TICK / 2, self.read.read_line(&mut line)).await;
        assert_ne!(read.expect("a line in time").unwrap(), 0, "the viewer ended");
        serde_json::from_str(&line).unwrap()
    }

    fn follow(&mut self, line: &Value) {
        let text = |name: &str| line[name].as_str().unwrap();
        let key =
            || SessionKey::new(AgentId::new(text("agent_id")), SessionId::new(text("session_id")));
        let mode = || match text("session_mode") {
            "orchestrator" => SessionMode::Orchestrator,
            _ => SessionMode::SingleAgent,
        };
        let node = |node: &Value| {
            (node["path"].as_str().unwrap().to_owned(), node["heat"].as_f64().unwrap())
        };
        match text("type") {
            "snapshot" => {
                let nodes = line["nodes"].as_object().unwrap().values().map(node).collect();
                let seq = line["seq"].as_u64().unwrap();
                self.sessions.insert(key(), Seen { seq, mode: mode(), nodes });
            }
            "delta" => {
                let seen = self.sessions.get_mut(&key()).expect("a snapshot before");
                seen.seq += 1;
                assert_eq!((line["seq"].as_u64().unwrap(), mode()), (seen.seq, seen.mode));
                seen.nodes.extend(line["updates"].as_array().unwrap().iter().map(node));
                for path in line["removed"].as_array().unwrap() {
                    seen.nodes.remove(path.as_str().unwrap()).expect("it was shown");
                }
            }
            _ => {}
        }
    }
}

struct Tracked(TrackerHandle);

impl Sources for Tracked {
    fn journal(&self) -> Option<crate::journal::Journal> {
        None
    }

    fn snapshots(&self) -> BoxFuture<'_, Snapshots> {
        Box::pin(self.0.snapshots())
    }

    fn usages(&self) -> BoxFuture<'_, Vec<UsageReport>> {
        Box::pin(self.0.usages())
    }

    fn blocked(&self, _: Option<BlockedStatus>) -> BoxFuture<'_, Vec<BlockedAccess>> {
        Box::pin(async { Vec::new() })
    }

    fn resolve(
        &self,
        id: BlockedId,
        _: Decision,
        _: Decider,
    ) -> BoxFuture<'_, Result<BlockedAccess, ResolveError>> {
        Box::pin(async { Err(ResolveError::Unknown(id)) })
    }

    fn graph(&self, _: bool) -> BoxFuture<'_, GraphState> {
        Box::pin(async { GraphState::Off })
    }

    fn registry(&self, request: RegistryRequest) -> BoxFuture<'_, Result<Answer, RegistryError>> {
        Box::pin(async move { Registry::default().answer(request, 0) })
    }
}
