use std::fmt::Write;

use expect_test::{Expect, expect};

use super::*;

fn exited(code: i32) -> LifecycleEvent {
    LifecycleEvent::Exited { exit: Exit::Code(code), why: format!("exited with status {code}") }
}

fn check(policy: Policy, events: Vec<LifecycleEvent>, expected: &Expect) {
    let mut lifecycle = Lifecycle::new(Restarts {
        policy,
        max: 2,
        within: Duration::from_secs(60),
        backoff: [Duration::from_millis(200), Duration::from_millis(300)],
        with_health: false,
    });
    let now = Instant::now();
    let mut table = String::new();
    for event in events {
        let name = format!("{event:?}");
        let effects = lifecycle.on(event, now, 0.0);
        let _ = writeln!(table, "{name} → {} {effects:?}", lifecycle.state().as_str());
    }
    expected.assert_eq(&table);
}

#[tokio::test]
async fn a_failing_agent_is_restarted_until_it_is_in_error() {
    use LifecycleEvent::{BackoffOver, Cleared, Opened, Spawned, Start};
    check(
        Policy::OnFailure,
        vec![
            Start,
            Cleared,
            Spawned,
            Opened,
            exited(3),
            BackoffOver,
            Cleared,
            Spawned,
            exited(0),
            BackoffOver,
            Cleared,
            Spawned,
            Opened,
            exited(1),
            Start,
        ],
        &expect![[r#"
            Start → initializing [AwaitClearance]
            Cleared → connecting [Spawn]
            Spawned → connecting [Publish(None)]
            Opened → ready [Publish(None)]
            Exited { exit: Code(3), why: "exited with status 3" } → restarting [Publish(Some("exited with status 3")), Backoff(200ms)]
            BackoffOver → initializing [AwaitClearance]
            Cleared → connecting [Spawn]
            Spawned → connecting [Publish(None)]
            Exited { exit: Code(0), why: "exited with status 0" } → restarting [Publish(Some("exited with status 0")), Backoff(300ms)]
            BackoffOver → initializing [AwaitClearance]
            Cleared → connecting [Spawn]
            Spawned → connecting [Publish(None)]
            Opened → ready [Publish(None)]
            Exited { exit: Code(1), why: "exited with status 1" } → error [Publish(Some("exited with status 1; restarted 2 times within 60 s already"))]
            Start → initializing [AwaitClearance]
        "#]],
    );
}

#[tokio::test]
async fn a_clean_exit_stops_it_unless_it_is_always_wanted() {
    use LifecycleEvent::{Cleared, Opened, Start};
    check(
        Policy::OnFailure,
        vec![Start, Cleared, Opened, exited(0)],
        &expect![[r#"
            Start → initializing [AwaitClearance]
            Cleared → connecting [Spawn]
            Opened → ready [Publish(None)]
            Exited { exit: Code(0), why: "exited with status 0" } → stopped [Publish(Some("exited with status 0"))]
        "#]],
    );
    check(
        Policy::Always,
        vec![Start, Cleared, Opened, exited(0)],
        &expect![[r#"
            Start → initializing [AwaitClearance]
            Cleared → connecting [Spawn]
            Opened → ready [Publish(None)]
            Exited { exit: Code(0), why: "exited with status 0" } → restarting [Publish(Some("exited with status 0")), Backoff(200ms)]
        "#]],
    );
    check(
        Policy::Always,
        vec![
            Start,
            Cleared,
            Opened,
            LifecycleEvent::BrokeOff("it read what it may not".to_owned()),
        ],
        &expect![[r#"
            Start → initializing [AwaitClearance]
            Cleared → connecting [Spawn]
            Opened → ready [Publish(None)]
            BrokeOff("it read what it may not") → error [Publish(Some("it read what it may not"))]
        "#]],
    );
    check(
        Policy::Never,
        vec![Start, Cleared, Opened, exited(1)],
        &expect![[r#"
            Start → initializing [AwaitClearance]
            Cleared → connecting [Spawn]
            Opened → ready [Publish(None)]
            Exited { exit: Code(1), why: "exited with status 1" } → error [Publish(Some("exited with status 1"))]
        "#]],
    );
}

#[tokio::test]
async fn orders_are_followed_at_any_time() {
    use LifecycleEvent::{Cleared, Opened, Restart, Start, Stop};
    check(
        Policy::OnFailure,
        vec![
            Start,
            Stop,
            Start,
            Cleared,
            Stop,
            exited(0),
            Start,
            Cleared,
            Opened,
            Restart,
            exited(1),
            Cleared,
            LifecycleEvent::Failed("no answer".to_owned()),
            exited(1),
            Restart,
            Cleared,
            LifecycleEvent::NotSpawned("not found".to_owned()),
            Stop,
        ],
        &expect![[r#"
            Start → initializing [AwaitClearance]
            Stop → stopped [Publish(None)]
            Start → initializing [AwaitClearance]
            Cleared → connecting [Spawn]
            Stop → connecting [StopProcess]
            Exited { exit: Code(0), why: "exited with status 0" } → stopped [Publish(None)]
            Start → initializing [AwaitClearance]
            Cleared → connecting [Spawn]
            Opened → ready [Publish(None)]
            Restart → restarting [Publish(None), StopProcess]
            Exited { exit: Code(1), why: "exited with status 1" } → initializing [AwaitClearance]
            Cleared → connecting [Spawn]
            Failed("no answer") → connecting [Publish(Some("no answer")), StopProcess]
            Exited { exit: Code(1), why: "exited with status 1" } → error [Publish(Some("no answer"))]
            Restart → initializing [AwaitClearance]
            Cleared → connecting [Spawn]
            NotSpawned("not found") → error [Publish(Some("not found"))]
            Stop → error []
        "#]],
    );
}

#[tokio::test]
async fn restarts_long_ago_do_not_count() {
    let mut lifecycle = Lifecycle::new(Restarts {
        policy: Policy::Always,
        max: 1,
        within: Duration::from_secs(60),
        backoff: [Duration::from_millis(200), Duration::from_secs(10)],
        with_health: false,
    });
    let mut now = Instant::now();
    for _ in 0..5 {
        lifecycle.on(LifecycleEvent::Start, now, 0.0);
        lifecycle.on(LifecycleEvent::Cleared, now, 0.0);
        lifecycle.on(exited(1), now, 0.0);
        assert_eq!(lifecycle.state(), AgentState::Restarting);
        now += Duration::from_secs(61);
    }
    assert_eq!(lifecycle.restarts(), 5);
}

#[tokio::test]
async fn the_reason_names_the_health_of_one_that_is_tried_for_ever() {
    let mut lifecycle = Lifecycle::new(Restarts {
        policy: Policy::Always,
        max: u32::MAX,
        within: Duration::from_secs(600),
        backoff: [Duration::from_millis(200), Duration::from_secs(60)],
        with_health: true,
    });
    let now = Instant::now();
    let mut reasons = Vec::new();
    let mut fail = |lifecycle: &mut Lifecycle, opens: bool| {
        lifecycle.on(LifecycleEvent::Start, now, 0.0);
        lifecycle.on(LifecycleEvent::Cleared, now, 0.0);
        if opens {
            lifecycle.on(LifecycleEvent::Opened, now, 0.0);
        }
        let effects = lifecycle.on(exited(1), now, 0.0);
        let [Effect::Publish(Some(why)), Effect::Backoff(_)] = &effects[..] else {
            panic!("{effects:?}")
        };
        reasons.push(why.trim_end_matches(": exited with status 1").to_owned());
    };
    for _ in 0..10 {
        fail(&mut lifecycle, false);
    }
    // It was ready once more.
    fail(&mut lifecycle, true);
    let plain = "exited with status 1";
    assert_eq!(reasons[..4], [plain; 4]);
    assert_eq!(reasons[4], "degraded, 5 failures in a row");
    assert_eq!(reasons[8], "degraded, 9 failures in a row");
    assert_eq!(reasons[9], "unavailable, 10 failures in a row");
    assert_eq!(reasons[10], plain);
}

#[tokio::test]
async fn who_leaves_is_stopped_first_and_never_comes_back() {
    use LifecycleEvent::{BackoffOver, Cleared, Leave, Opened, Restart, Start, Stop};
    check(
        Policy::Always,
        vec![Start, Cleared, Opened, Leave, Start, Restart, Stop, exited(0), Start, Restart],
        &expect![[r#"
            Start → initializing [AwaitClearance]
            Cleared → connecting [Spawn]
            Opened → ready [Publish(None)]
            Leave → ready [StopProcess]
            Start → ready []
            Restart → ready []
            Stop → ready []
            Exited { exit: Code(0), why: "exited with status 0" } → stopped [Forget, Publish(Some("it was removed from the team"))]
            Start → stopped []
            Restart → stopped []
        "#]],
    );
    check(
        Policy::Always,
        vec![Start, Leave, Cleared],
        &expect![[r#"
        Start → initializing [AwaitClearance]
        Leave → stopped [Forget, Publish(Some("it was removed from the team"))]
        Cleared → stopped []
    "#]],
    );
    check(
        Policy::Always,
        vec![Start, Cleared, exited(1), Leave, BackoffOver],
        &expect![[r#"
        Start → initializing [AwaitClearance]
        Cleared → connecting [Spawn]
        Exited { exit: Code(1), why: "exited with status 1" } → restarting [Publish(Some("exited with status 1")), Backoff(200ms)]
        Leave → stopped [Forget, Publish(Some("it was removed from the team"))]
        BackoffOver → stopped []
    "#]],
    );
    check(
        Policy::Never,
        vec![Start, Cleared, Restart, Leave, exited(1)],
        &expect![[r#"
        Start → initializing [AwaitClearance]
        Cleared → connecting [Spawn]
        Restart → restarting [Publish(None), StopProcess]
        Leave → restarting []
        Exited { exit: Code(1), why: "exited with status 1" } → stopped [Forget, Publish(Some("it was removed from the team"))]
    "#]],
    );
    check(
        Policy::Never,
        vec![Leave, Leave],
        &expect![[r#"
        Leave → stopped [Forget, Publish(Some("it was removed from the team"))]
        Leave → stopped []
    "#]],
    );
}
