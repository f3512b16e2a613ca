//! Tests of the recorder with a real tracker and registry.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use tempfile::TempDir;

use crate::bus::{Backlog, Bus};
use crate::model::{Activity, ActivityKind, AgentId, SessionId};
use crate::session::Answer;
use crate::team_state::recorder::*;
use crate::tests::eventually;
use crate::tracker::{OrchestratorView, Settings};
use eisen_base::task;

const SETTINGS: Settings = Settings {
    context_turns: 3,
    compaction_threshold: 0.5,
    decay_rate: 0.95,
    tick: Duration::from_millis(100),
    idle_tick: Duration::from_millis(500),
};

/// A tracker whose sessions are recorded, with `lead` as the orchestrator.
struct Team {
    tracker: TrackerHandle,
    registry: RegistryHandle,
    recorder: serve::Recorder,
    end_of_tracker: CancellationToken,
    dir: TempDir,
}

impl Team {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let end_of_tracker = CancellationToken::new();
        let view = OrchestratorView::Agent(AgentId::new("lead"));
        let bus = Bus::new(Backlog::of(100));
        let (tracker, tracking) = TrackerHandle::spawn(SETTINGS, view, bus, end_of_tracker.clone());
        let (registry, keeping) = RegistryHandle::spawn(dir.path(), CancellationToken::new());
        let (owners, cancel) = (AgentOwners::default(), CancellationToken::new());
        let (recorder, recording) =
            start("shop".to_owned(), tracker.clone(), registry.clone(), owners, cancel);
        task::spawn(tracking);
        task::spawn(keeping);
        task::spawn(recording);
        Self { tracker, registry, recorder, end_of_tracker, dir }
    }

    fn send(&self, agent: &str, session: &str, kind: ActivityKind) {
        let activity = Activity { session: SessionId::new(session), kind };
        self.tracker.record(&AgentId::new(agent), activity);
    }

    fn runs(&self, agent: &str, session: &str, model: &str) {
        let model = Model { id: model.into(), name: model.to_uppercase().into() };
        self.send(agent, session, ActivityKind::Model(model));
    }

    async fn caught_up(&self) {
        let (reply, caught_up) = oneshot::channel();
        self.recorder.send(reply).await.unwrap();
        caught_up.await.unwrap();
    }

    async fn ask(&self, request: RegistryRequest) -> Answer {
        self.registry.ask(request).await.unwrap()
    }

    /// The registry, once the recorder has caught up.
    async fn check(&self, expected: Expect) {
        self.caught_up().await;
        let Answer::List(mut list) = self.ask(RegistryRequest::List { agent: None }).await else {
            panic!("no list");
        };
        list.sort_by(|a, b| a.key.cmp(&b.key));
        let mut activities = Vec::new();
        for listed in list {
            let Answer::Session(session) = self.ask(RegistryRequest::Get(listed.key)).await else {
                panic!("no session");
            };
            let mut state = serde_json::to_value(&session).unwrap();
            let fields = state.as_object_mut().unwrap();
            let varies = ["created_at_ms", "updated_at_ms", "history", "context"];
            fields.retain(|name, _| !varies.contains(&name.as_str()));
            activities.push(format!("{state}\n"));
        }
        expected.assert_eq(&activities.concat());
    }
}

fn key(agent: &str, session: &str) -> SessionKey {
    SessionKey::new(AgentId::new(agent), SessionId::new(session))
}

#[tokio::test]
async fn sessions_come_with_mode_model_and_providers_and_go_when_they_are_closed() {
    let team = Team::new();
    team.send("ui", "s", ActivityKind::Opened { is_new: true });
    team.runs("ui", "s", "m");
    // Nobody opened it: an agent may speak of any session.
    team.send("ui", "ghost", ActivityKind::Update(Arc::from("{}")));
    team.check(expect![[r#"
        {"agent_id":"ui","session_id":"s","mode":"single_agent","model":{"model_id":"m","name":"M"},"summary":null,"providers":[],"team":"shop"}
    "#]])
    .await;
    team.send("lead", "l", ActivityKind::Opened { is_new: true });
    team.runs("ui", "s", "n");
    team.send("ui", "t", ActivityKind::Opened { is_new: true });
    team.check(expect![[r#"
        {"agent_id":"lead","session_id":"l","mode":"orchestrator","model":null,"summary":null,"providers":[{"agent_id":"ui","session_id":"s"},{"agent_id":"ui","session_id":"t"}],"team":"shop"}
        {"agent_id":"ui","session_id":"s","mode":"single_agent","model":{"model_id":"n","name":"N"},"summary":null,"providers":[],"team":"shop"}
        {"agent_id":"ui","session_id":"t","mode":"single_agent","model":null,"summary":null,"providers":[],"team":"shop"}
    "#]])
    .await;
    // The orchestrator works elsewhere from now on.
    team.send("ui", "t", ActivityKind::Closed);
    team.send("lead", "k", ActivityKind::Opened { is_new: true });
    team.tracker.set_orchestrator_session(key("lead", "k"));
    team.check(expect![[r#"
        {"agent_id":"lead","session_id":"k","mode":"orchestrator","model":null,"summary":null,"providers":[{"agent_id":"ui","session_id":"s"}],"team":"shop"}
        {"agent_id":"lead","session_id":"l","mode":"single_agent","model":null,"summary":null,"providers":[],"team":"shop"}
        {"agent_id":"ui","session_id":"s","mode":"single_agent","model":{"model_id":"n","name":"N"},"summary":null,"providers":[],"team":"shop"}
    "#]])
    .await;
}

#[tokio::test]
async fn fields_of_clients_are_kept() {
    let team = Team::new();
    team.send("ui", "s", ActivityKind::Opened { is_new: true });
    team.caught_up().await;
    let summary = Some("mine".to_owned());
    let kept = Upsert { summary, ..Upsert::new(key("ui", "s"), SessionMode::SingleAgent) };
    team.ask(RegistryRequest::Upsert(kept)).await;
    let another = Upsert::new(key("editor", "e"), SessionMode::SingleAgent);
    team.ask(RegistryRequest::Upsert(another)).await;
    team.runs("ui", "s", "m");
    team.check(expect![[r#"
        {"agent_id":"editor","session_id":"e","mode":"single_agent","model":null,"summary":null,"providers":[]}
        {"agent_id":"ui","session_id":"s","mode":"single_agent","model":{"model_id":"m","name":"M"},"summary":"mine","providers":[],"team":"shop"}
    "#]])
    .await;
}

#[tokio::test(start_paused = true)]
async fn failed_writes_are_retried() {
    let team = Team::new();
    // No file can be made there.
    let in_the_way = team.dir.path().join("core_sessions.lock");
    std::fs::create_dir(&in_the_way).unwrap();
    team.send("ui", "s", ActivityKind::Opened { is_new: true });
    team.check(expect![""]).await;
    std::fs::remove_dir(&in_the_way).unwrap();
    // No further event, and no request.
    eventually("one session is recorded", async || {
        tokio::time::advance(RETRY).await;
        let answer = team.ask(RegistryRequest::List { agent: None }).await;
        matches!(answer, Answer::List(list) if list.len() == 1)
    })
    .await;
}

#[tokio::test]
async fn the_end_of_the_tracker_removes_nothing() {
    let team = Team::new();
    team.send("ui", "s", ActivityKind::Opened { is_new: true });
    team.caught_up().await;
    team.end_of_tracker.cancel();
    let mut roster = team.tracker.roster();
    while roster.changed().await.is_ok() {}
    // The recorder ends with it, and answers until then.
    let (reply, caught_up) = oneshot::channel();
    let _ = team.recorder.send(reply).await;
    let _ = caught_up.await;
    let Answer::List(list) = team.ask(RegistryRequest::List { agent: None }).await else {
        panic!("no list");
    };
    assert_eq!(list.len(), 1);
}
