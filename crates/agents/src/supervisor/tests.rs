//! Tests of the set of agents, without starting agents.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::agent::{Admission, Capacity, Policy, Restarts};
use crate::budget::Account;
use crate::bus::{Backlog, Bus};
use crate::client_host::{HostSettings, PermissionPolicy};
use crate::extract::DiskWorkspace;
use crate::model::{
    AgentState, OnLoop, OnViolation, SessionId, SessionKey, TeamMemory, UsageScope,
};
use crate::process::{Command, Launcher};
use crate::routing::{self, Orchestrator, RoutingHandle};
use crate::tracker::{self, OrchestratorView, TrackerHandle};
use crate::zone::{Zone, ZoneSpec};
use eisen_base::task;

/// A supervisor whose agents are never started: what they would do is tried on real processes.
fn supervisor() -> Supervisor {
    let (bus, cancel) = (Bus::new(Backlog::of(100)), CancellationToken::new());
    let tick = Duration::from_secs(3600);
    let settings = tracker::Settings {
        context_turns: 3,
        compaction_threshold: 0.5,
        decay_rate: 0.95,
        tick,
        idle_tick: tick,
    };
    let view = OrchestratorView::None(SessionKey::new(AgentId::new("a"), SessionId::new("")));
    let (tracker, tracking) = TrackerHandle::spawn(settings, view, bus.clone(), cancel.clone());
    task::spawn(tracking);
    let settings = routing::Settings::new(Orchestrator::Nobody, routing::Rules::default());
    let (routing, deciding) =
        RoutingHandle::spawn(settings, bus.clone(), tracker.clone(), cancel.clone());
    task::spawn(deciding);
    let team = Surroundings {
        launcher: Launcher::this_program().unwrap(),
        ungranted: "/nonexistent/eisen/run".into(),
        bus,
        tracker,
        routing,
        admission: Admission::new(Capacity { max_running: 1, max_memory_mb: 0 }),
        memory: TeamMemory::default(),
        capture: None,
        conflicts: None,
        tally: Arc::default(),
        workspace: Arc::new(DiskWorkspace::new(PathBuf::from("/"))),
    };
    Supervisor::new(team, cancel)
}

fn member(id: &str, depends_on: &[&str], autostart: bool) -> Member {
    let zone = ZoneSpec::new("/", Vec::new(), "/nonexistent/eisen");
    let (cwd, env) = (PathBuf::from("/"), std::collections::BTreeMap::new());
    Member {
        settings: AgentSettings {
            plugin: None,
            slot: None,
            candidate: None,
            id: AgentId::new(id),
            edition: 0,
            command: Command {
                program: "/nonexistent/agent".into(),
                args: Vec::new(),
                cwd: cwd.clone(),
                env: env.clone(),
            },
            log: "/dev/null".into(),
            zone: Arc::new(Zone::compile(&zone).unwrap()),
            bounds: None,
            kernel_lacks: Arc::default(),
            observe_files: true,
            patience: None,
            host: HostSettings {
                cwd,
                permissions: PermissionPolicy::Allow,
                terminals: true,
                files: true,
                mcp_servers: Vec::new(),
                tools: None,
                auth_method: None,
                model: None,
                thinking: None,
                mode: None,
                asking_mode: None,
                model_there: None,
                compress: None,
                env,
                initialize_timeout: Duration::from_secs(60),
                answers: None,
            },
            usage: UsageScope::Turn,
            uncounted_mode: None,
            account: Account::unlimited(AgentId::new(id)),
            model_calls: None,
            session: true,
            prompt: None,
            orchestrator_permits: false,
            on_violation: OnViolation::Report,
            on_loop: OnLoop::Report,
            is_orchestrator: false,
            restarts: Restarts {
                policy: Policy::Never,
                max: 0,
                within: Duration::from_secs(60),
                backoff: [Duration::from_millis(1); 2],
                with_health: false,
            },
            stall_after: Duration::ZERO,
            limits: crate::process::Limits::default(),
            ends_on_eof: true,
            stop_grace: Duration::from_secs(1),
        },
        depends_on: depends_on.iter().map(|id| AgentId::new(*id)).collect(),
        autostart,
    }
}

fn shown(supervisor: &Supervisor) -> Vec<String> {
    let statuses = supervisor.roster().statuses();
    let shown = |status: &AgentStatus| {
        let reason = status.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        format!("{} {}{reason}", status.agent, status.state.as_str())
    };
    statuses.iter().map(shown).collect()
}

#[tokio::test]
async fn each_waits_for_those_who_are_there_and_those_who_come_with_it() {
    let mut supervisor = supervisor();
    supervisor.assemble(vec![member("base", &[], false)]).await;
    let early = supervisor.roster();
    let new = || member("new", &[], false);
    let base = || member("base", &[], false);
    supervisor.assemble(vec![member("top", &["new", "base"], true), base(), new()]).await;
    let expected =
        ["top initializing: waits for `new`, `base` to be ready", "base stopped", "new stopped"];
    assert_eq!(shown(&supervisor), expected);
    assert_eq!(early.statuses().len(), 3);

    supervisor.assemble(vec![member("top", &["base"], true), base(), new()]).await;
    assert_eq!(shown(&supervisor)[0], "top initializing: waits for `base` to be ready");
    // One that waits goes on to wait for one that comes only now.
    let late = member("late", &[], false);
    supervisor.assemble(vec![member("top", &["late"], true), base(), late]).await;
    let expected =
        ["top initializing: waits for `late` to be ready", "base stopped", "late stopped"];
    assert_eq!(shown(&supervisor), expected);
}

#[tokio::test]
async fn a_removed_agent_is_gone_and_its_id_is_free() {
    let mut supervisor = supervisor();
    let a = || member("a", &[], false);
    supervisor.assemble(vec![a(), member("b", &["a"], true)]).await;
    let handle = supervisor.roster().get(&AgentId::new("b")).unwrap();
    let left = supervisor.assemble(vec![a()]).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].state, AgentState::Stopped);
    assert_eq!(left[0].reason.as_deref(), Some("it was removed from the team"));
    assert!(handle.order(Order::Start).await.is_err());
    assert_eq!(handle.leave().await, left[0]);
    assert_eq!(shown(&supervisor), ["a stopped"]);
    supervisor.assemble(vec![a(), member("b", &[], false)]).await;
    assert_eq!(shown(&supervisor), ["a stopped", "b stopped"]);
    supervisor.stop(Duration::from_secs(10)).await;
}
