#![allow(clippy::unwrap_used)]

use std::time::Duration;

use eisen_base::task;
use tokio::time::{advance, timeout};

use super::*;
use crate::bus::{Backlog, Received, Subscriber};
use crate::model::{Activity, AgentId, Event, SessionId, Topic};
use crate::tracker::testing::{Client, SETTINGS, activity, event_text, input, key};
use crate::tracker::{OrchestratorView, TrackerHandle};

/// A running tracker with a subscriber. Time is paused: it passes while all tasks wait.
struct Stage {
    handle: TrackerHandle,
    events: Subscriber,
    cancel: CancellationToken,
    task: tokio::task::JoinHandle<()>,
    begun: Instant,
}

impl Stage {
    fn new(view: OrchestratorView) -> Self {
        let (bus, cancel) = (Bus::new(Backlog::of(1_000)), CancellationToken::new());
        let events = bus.subscribe();
        let clock = Arc::new(|| 7);
        let (handle, task) =
            TrackerHandle::spawn_with_clock(SETTINGS, view, bus, cancel.clone(), clock);
        let task = task::spawn(task);
        Self { handle, events, cancel, task, begun: Instant::now() }
    }

    fn record(&self, name: &str, line: &str) {
        let key = key(name);
        self.handle.record(&key.agent, Activity { session: key.session, kind: activity(line) });
    }

    /// The next event and when it came, in milliseconds.
    async fn next(&mut self) -> (u128, String) {
        let event = self.events.event().await;
        (self.begun.elapsed().as_millis(), event_text(&event))
    }
}

fn nobody() -> OrchestratorView {
    OrchestratorView::None(key("a/"))
}

/// Fails rather than hangs: paused time passes while everybody waits.
async fn soon(future: impl Future<Output = ()>) {
    timeout(Duration::from_secs(1), future).await.unwrap();
}

fn at(millis: u128, text: &str) -> (u128, String) {
    (millis, text.to_owned())
}

#[tokio::test(start_paused = true)]
async fn deltas_come_with_the_tick_and_all_else_at_once() {
    let mut stage = Stage::new(nobody());
    stage.events.want(Topic::SessionUpdate);
    advance(Duration::from_millis(30)).await;
    stage.record("a/s", "read x");
    stage.record("a/s", "usage 1/2");
    stage.record("a/s", "update {}");
    assert_eq!(stage.next().await, at(30, "a/s snapshot 0"));
    assert_eq!(stage.next().await, at(30, "a/s usage 1/2"));
    assert_eq!(stage.next().await, at(30, "a/s update {}"));
    assert_eq!(stage.next().await, at(100, "a/s delta 1\n    x 1 in read turn 0 @7"));

    stage.record("a/s", "began");
    stage.record("a/s", "read y");
    stage.record("a/s", "ended");
    assert_eq!(stage.next().await, at(100, "a/s delta 2\n    y 1 in read turn 0 @7"));
    assert_eq!(stage.next().await, at(100, "a/s turn 0 end_turn"));

    stage.record("a/s", "compacted");
    let cooled = |seq: u32, heat: &str| {
        let node = |path| format!("\n    {path} {heat} out read turn 0 @7");
        format!("a/s delta {seq}{}{}", node("x"), node("y"))
    };
    assert_eq!(stage.next().await, at(200, &cooled(3, "1")));
    assert_eq!(stage.next().await, at(300, &cooled(4, "0.5")));
    assert_eq!(stage.next().await, at(400, &cooled(5, "0.25")));
}

#[tokio::test(start_paused = true)]
async fn inputs_wake_an_idle_tracker_within_a_tick() {
    let mut stage = Stage::new(nobody());
    // Twenty ticks pass; the next would come at 2,500.
    advance(Duration::from_millis(1)).await;
    for _ in 0..20 {
        advance(SETTINGS.tick).await;
    }
    stage.record("a/s", "read x");
    assert_eq!(stage.next().await, at(2_001, "a/s snapshot 0"));
    assert_eq!(stage.next().await, at(2_101, "a/s delta 1\n    x 1 in read turn 0 @7"));
}

#[tokio::test(start_paused = true)]
async fn a_tracker_without_changes_ticks_slowly_after_twenty_ticks() {
    let inbox = Arc::<Inbox>::default();
    let sessions = Sessions::new(SETTINGS, nobody());
    let bus = Bus::new(Backlog::of(10));
    let mut task = Task::new(SETTINGS, sessions, Arc::clone(&inbox), bus, roster());
    let mut periods = Vec::new();
    let mut pass = |task: &mut Task, count: usize| {
        for _ in 0..count {
            let due = task.next_tick;
            task.tick();
            periods.push((task.next_tick - due).as_millis());
        }
        std::mem::take(&mut periods)
    };
    assert_eq!(pass(&mut task, 19), [100; 19]);
    assert_eq!(pass(&mut task, 2), [500; 2]);
    inbox.push_input(key("a/s"), input("blocked x"), 0);
    task.drain_inbox();
    assert_eq!(task.next_tick - Instant::now(), SETTINGS.tick);
    // Shown once, cooled to the seventh half, gone: then twenty ticks of silence.
    assert_eq!(pass(&mut task, 8 + 19), [100; 27]);
    assert_eq!(pass(&mut task, 1), [500]);
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_comes_late_is_not_made_up_for() {
    let sessions = Sessions::new(SETTINGS, nobody());
    let bus = Bus::new(Backlog::of(10));
    let mut task = Task::new(SETTINGS, sessions, Arc::default(), bus, roster());
    advance(Duration::from_millis(1_030)).await;
    task.tick();
    assert_eq!(task.next_tick - Instant::now(), SETTINGS.tick);
}

#[tokio::test(start_paused = true)]
async fn settled_returns_after_everything_is_published() {
    let mut stage = Stage::new(nobody());
    stage.record("a/s", "began");
    stage.record("a/s", "read x");
    stage.record("a/s", "ended");
    stage.record("a/s", "read y");
    stage.handle.settled().await;
    let mut texts = Vec::new();
    while let Some(Received::Event(_, event)) = stage.events.try_recv() {
        texts.push(event_text(&event));
    }
    assert_eq!(texts[2], "a/s turn 0 end_turn");
    assert_eq!(texts[3], "a/s delta 2\n    y 1 in read turn 1 @7");
    assert_eq!(stage.begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn what_an_answer_contains_was_published_before() {
    let view = OrchestratorView::External(key("orchestrator/team-t"));
    let mut stage = Stage::new(view);
    stage.record("a/s", "read x");
    stage.record("a/s", "usage 1/2");
    let snapshots = stage.handle.snapshots().await;
    let mut client = Client::default();
    let mut reported = Vec::new();
    while let Some(Received::Event(number, event)) = stage.events.try_recv() {
        assert!(number < snapshots.as_of);
        client.follow(&event);
        if let Event::Usage(report) = &**event {
            reported.push(report.key.clone());
        }
    }
    client.compare(&snapshots.sessions);
    assert_eq!(reported.len(), 2);
    assert_eq!(stage.handle.usages().await.len(), 2);

    stage.record("a/s", "read y");
    let snapshots = stage.handle.snapshots().await;
    client.follow(&**stage.events.event().await);
    client.follow(&**stage.events.event().await);
    assert_eq!(snapshots.as_of, 8);
    client.compare(&snapshots.sessions);
}

#[tokio::test(start_paused = true)]
async fn concurrent_queries_share_the_same_snapshots() {
    let stage = Stage::new(OrchestratorView::External(key("orchestrator/team-t")));
    stage.record("a/s", "read x");
    let (one, other) = tokio::join!(stage.handle.snapshots(), stage.handle.snapshots());
    assert_eq!(one.sessions.len(), 2);
    let same = |(a, b): (&Arc<_>, &Arc<_>)| Arc::ptr_eq(a, b);
    assert!(one.sessions.iter().zip(&other.sessions).all(same));

    stage.record("a/s", "read y");
    let later = stage.handle.snapshots().await;
    assert!(!one.sessions.iter().zip(&later.sessions).any(same));
    let nodes = |snapshots: &super::super::Snapshots| snapshots.sessions[1].nodes.len();
    assert_eq!((nodes(&one), nodes(&later)), (1, 2));
}

/// The records of a session so far, each with its turn.
async fn records(stage: &mut Stage) -> Vec<String> {
    stage.handle.settled().await;
    let mut all = Vec::new();
    while let Some(Received::Event(_, event)) = stage.events.try_recv() {
        if let Event::Record { record, turn, .. } = &**event {
            all.push(format!("{record:?} {turn:?}"));
        }
    }
    all
}

#[tokio::test(start_paused = true)]
async fn records_have_the_turn_that_the_wire_has() {
    let mut stage = Stage::new(nobody());
    stage.events.want(Topic::Record);
    stage.handle.go_on_behind([(key("a/s"), 7)].into());
    let opened = |is_new| Activity {
        session: key("a/s").session,
        kind: crate::model::ActivityKind::Opened { is_new },
    };
    let agent = key("a/s").agent;
    stage.handle.record(&agent, opened(false));
    for line in ["began", "ended", "began", "ended"] {
        stage.record("a/s", line);
    }
    let (loaded, new) = ("Opened { is_new: false }", "Opened { is_new: true }");
    assert_eq!(
        records(&mut stage).await,
        [
            format!("{loaded} Some(7)"),
            "TurnBegan Some(7)".to_owned(),
            "TurnBegan Some(8)".to_owned()
        ]
    );
    // Its agent restarts and loads it; then it uses the id for another one.
    stage.handle.record(&agent, opened(false));
    stage.record("a/s", "began");
    stage.record("a/s", "ended");
    stage.handle.record(&agent, opened(true));
    stage.record("a/s", "began");
    assert_eq!(
        records(&mut stage).await,
        [
            format!("{loaded} Some(9)"),
            "TurnBegan Some(9)".to_owned(),
            format!("{new} Some(0)"),
            "TurnBegan Some(0)".to_owned()
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_drop_of_the_context_is_recorded_as_compaction_once() {
    let mut stage = Stage::new(nobody());
    stage.events.want(Topic::Record);
    let compactions = |records: Vec<String>| {
        records.iter().filter(|record| record.starts_with("Compacted")).count()
    };
    for line in ["usage 100/200", "usage 10/200"] {
        stage.record("a/s", line);
    }
    assert_eq!(compactions(records(&mut stage).await), 1);
    // The agent said so itself.
    for line in ["usage 100/200", "compacted", "usage 10/200", "usage 9/200"] {
        stage.record("a/s", line);
    }
    assert_eq!(compactions(records(&mut stage).await), 1);
}

#[tokio::test(start_paused = true)]
async fn updates_are_published_only_to_subscribers_and_change_nothing() {
    let mut stage = Stage::new(nobody());
    stage.record("a/s", "update 1");
    stage.events.want(Topic::SessionUpdate);
    stage.record("a/s", "update 2");
    assert_eq!(stage.next().await.1, "a/s update 2");
    assert_eq!(stage.handle.snapshots().await.sessions[0].key, key("a/"), "no session began");

    // They keep their place before the end of their turn.
    for line in ["began", "update 3", "read x", "update 4", "ended", "update 5"] {
        stage.record("a/s", line);
    }
    stage.handle.settled().await;
    let mut heard = Vec::new();
    for _ in 0..6 {
        heard.push(stage.next().await.1.split('\n').next().unwrap().to_owned());
    }
    let expected = ["snapshot 0", "update 3", "update 4", "delta 1", "turn 0 end_turn", "update 5"];
    assert_eq!(heard, expected.map(|event| format!("a/s {event}")));
}

#[tokio::test(start_paused = true)]
async fn the_end_comes_after_a_last_round_of_deltas_and_leaves_nobody_waiting() {
    let mut stage = Stage::new(nobody());
    stage.record("a/s", "read x");
    stage.handle.blocked(&key("a/s"), "y".into());
    stage.cancel.cancel();
    stage.task.await.unwrap();
    stage.events.event().await;
    let last = stage.events.event().await;
    let nodes = "\n    x 1 in read turn 0 @7\n    y 1 out blocked turn 0 @7";
    assert_eq!(event_text(&last), format!("a/s delta 1{nodes}"));

    stage.handle.record(
        &AgentId::new("a"),
        Activity { session: SessionId::new("s"), kind: activity("opened") },
    );
    soon(stage.handle.settled()).await;
    assert!(stage.handle.snapshots().await.sessions.is_empty());
    assert_eq!(stage.handle.usages().await, []);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_never_ran_leaves_nobody_waiting() {
    let (handle, task) = TrackerHandle::spawn(
        SETTINGS,
        nobody(),
        Bus::new(Backlog::of(10)),
        CancellationToken::new(),
    );
    drop(task);
    soon(handle.settled()).await;
}

fn roster() -> tokio::sync::watch::Sender<()> {
    tokio::sync::watch::Sender::new(())
}
