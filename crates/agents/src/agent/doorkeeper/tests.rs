#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use eisen_base::task;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::bus::{Backlog, Bus, Subscriber};
use crate::model::{
    Activity, ActivityKind, BlockedAccess, BlockedId, Event, GrantSpan, OnLoop, OnViolation,
    SessionId,
};
use crate::routing::{self, Decision, Orchestrator};
use crate::tracker::{self, OrchestratorView};
use crate::zone::{Confine, Reach, Zone, ZoneSpec};

mod folders;
mod intent;
mod late;
mod passed;
mod settling;
mod sweeping;

/// The process that is older than any turn.
const OWN: u32 = 1;

/// A process that was started twenty seconds ago.
const SHELL: u32 = 2;

/// The door of the agent `a`, with whatever stands behind it.
struct Bench {
    keeper: Arc<AgentDoorkeeper>,
    running: Arc<LiveCalls>,
    routing: RoutingHandle,
    tracker: TrackerHandle,
    events: Subscriber,
    tally: Arc<Tally>,
    /// Real.
    workspace: PathBuf,
    _folder: tempfile::TempDir,
}

/// An external orchestrator, which holds what it is asked or not.
fn bench(hold: bool) -> Bench {
    team(hold, Orchestrator::External(key("orchestrator", "team-t")))
}

fn team(hold: bool, orchestrator: Orchestrator) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().canonicalize().unwrap();
    let (bus, cancel) = (Bus::new(Backlog::of(1000)), CancellationToken::new());
    let hour = Duration::from_hours(1);
    let settings = tracker::Settings {
        context_turns: 3,
        compaction_threshold: 0.5,
        decay_rate: 0.95,
        tick: hour,
        idle_tick: hour,
    };
    let view = OrchestratorView::None(key("a", ""));
    let (tracker, task) = TrackerHandle::spawn(settings, view, bus.clone(), cancel.clone());
    task::spawn(task);
    let events = bus.subscribe();
    let hold_timeout = Some(Duration::from_mins(2));
    let rules = routing::Rules { hold, hold_timeout, ..routing::Rules::default() };
    let settings = routing::Settings::new(orchestrator, rules);
    let (routing, task) = RoutingHandle::spawn(settings, bus, tracker.clone(), cancel);
    task::spawn(task);
    let bounds = bounds(workspace.clone());
    let rules = rules_of(bounds.zone(), None);
    let (running, tally) = (Arc::new(LiveCalls::default()), Tally::started());
    let keeper = AgentDoorkeeper::new(DoorkeeperConfig {
        agent: AgentId::new("a"),
        bounds,
        rules: watch::channel(rules).1,
        routing: routing.clone(),
        tracker: tracker.clone(),
        running: running.clone(),
        vitals: Vitals::new(),
        workspace: Arc::new(crate::extract::DiskWorkspace::new(workspace.clone())),
        observe_files: true,
        patience: Some(Duration::from_mins(1)),
        files: None,
        conflicts: None,
        tally: tally.clone(),
        age: |pid| match pid {
            OWN => Some(Duration::from_hours(1)),
            SHELL => Some(Duration::from_secs(20)),
            _ => None,
        },
        handle: Handle::current(),
    });
    Bench { keeper, running, routing, tracker, events, tally, workspace, _folder: folder }
}

fn bounds(workspace: PathBuf) -> Arc<Bounds> {
    let spec = ZoneSpec {
        asked: vec!["**/.env".to_owned()],
        ..ZoneSpec::new(workspace, vec!["ui/**".to_owned()], "/nonexistent/eisen")
    };
    let reach = Reach {
        harmless: vec!["core/.state".to_owned()],
        ..Reach::new(Confine::Workspace, "/nonexistent/tmp")
    };
    Arc::new(Bounds::new(Arc::new(Zone::compile(&spec).unwrap()), reach).unwrap())
}

fn key(agent: &str, session: &str) -> SessionKey {
    SessionKey::new(AgentId::new(agent), SessionId::new(session))
}

/// A read that may wait, by a process that was not told to.
fn read(path: &str) -> Attempt {
    Attempt {
        path: path.into(),
        action: Action::Read,
        grantable: true,
        pid: 7,
        named: false,
        meaning: PathMeaning::Itself,
        may_wait: true,
        to_server: false,
    }
}

/// A read by a process whose arguments name the path.
fn named(path: &str) -> Attempt {
    Attempt { named: true, ..read(path) }
}

const ALLOW: Decision = Decision::Allow { scope: GrantSpan::Once, ttl: None, pattern: None };

impl Bench {
    /// Rings; what becomes of the call comes through the receiver.
    fn ring(&self, attempt: Attempt) -> oneshot::Receiver<bool> {
        let (reply, answer) = oneshot::channel();
        self.keeper.blocked(attempt, reply);
        answer
    }

    /// Rings, and waits for what becomes of it.
    async fn rings(&self, attempt: Attempt) -> bool {
        self.ring(attempt).await.unwrap_or(false)
    }

    fn tell(&self, session: &str, kind: ActivityKind) {
        self.running.update(&Activity { session: SessionId::new(session), kind });
    }

    fn begins(&self, session: &str) {
        self.tell(session, ActivityKind::TurnBegan);
    }

    /// As the relay does it.
    fn ends(&self, session: &str) {
        self.tell(
            session,
            ActivityKind::TurnEnded { stop_reason: "end_turn".into(), reason: None },
        );
        self.routing.turn_over(key("a", session));
    }

    fn says(&self, session: &str, call: &str, said: &[&str]) {
        let said = said.iter().map(|text| Arc::from(*text)).collect();
        let cwd = self.workspace.as_path().into();
        self.tell(session, ActivityKind::Runs { call: call.into(), cwd, said });
    }

    async fn access(&mut self) -> BlockedAccess {
        loop {
            if let Event::Blocked(access) = &**self.events.event().await {
                return access.clone();
            }
        }
    }

    /// The next `blocked` event as a line.
    async fn blocked(&mut self) -> String {
        shown(&self.access().await)
    }

    async fn list(&self) -> Vec<String> {
        self.routing.list(None).await.iter().map(shown).collect()
    }

    async fn resolve(&self, id: &str, decision: Decision) {
        self.routing
            .resolve(BlockedId::new(id), decision, crate::routing::Decider::Person)
            .await
            .unwrap();
    }
}

/// `ID SESSION STATUS ACTION PATH [×COUNT]`.
fn shown(access: &BlockedAccess) -> String {
    assert_eq!(access.via, Via::Kernel);
    assert_eq!(access.sweep.is_some(), access.orchestrator.is_none(), "a sweep is nobody's");
    let session = access.key.session.as_str();
    let session = if session.is_empty() { "-" } else { session };
    let count = access.sweep.map_or_else(String::new, |count| format!(" ×{count}"));
    let status = if access.harmless { "harmless" } else { access.status.as_str() };
    let action = access.action;
    format!("{} {session} {status} {action} {}{count}", access.id, access.path)
}

#[tokio::test]
async fn stopped_calls_are_counted_for_whoever_reads_that() {
    let bench = bench(false);
    assert!(bench.keeper.times_calls());
    bench.keeper.took(Duration::from_micros(30));
    assert_eq!(bench.tally.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_rules_bind_as_they_are_now() {
    let bench = bench(false);
    let (first, second) = (bench.keeper.bounds(), bounds(bench.workspace.clone()));
    let rules = |bounds| rules_of(first.zone(), bounds);
    let (change, seen) = watch::channel(rules(None));
    let desk = HandlerState {
        agent: AgentId::new("a"),
        bounds: first.clone(),
        rules: seen,
        routing: bench.routing.clone(),
        running: bench.running.clone(),
        tracker: bench.tracker.clone(),
        workspace: Arc::new(crate::extract::DiskWorkspace::new(bench.workspace.clone())),
        grace: GracePeriods::new(|_| None),
        patience: None,
        late: Late::default(),
        vitals: Vitals::new(),
        contention: None,
        files: None,
    };
    assert!(Arc::ptr_eq(&desk.bounds(), &first));
    change.send_replace(rules(Some(second.clone())));
    assert!(Arc::ptr_eq(&desk.bounds(), &second));
}

fn rules_of(zone: &Arc<Zone>, bounds: Option<Arc<Bounds>>) -> Rules {
    let on_violation = OnViolation::Report;
    Rules {
        zone: zone.clone(),
        bounds,
        orchestrator_permits: false,
        has_tools: false,
        on_violation,
        on_loop: OnLoop::Report,
    }
}
