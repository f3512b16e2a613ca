//! How a call that was meant is settled.

use super::*;

fn lead() -> Orchestrator {
    Orchestrator::Agent(AgentId::new("lead"))
}

#[tokio::test(start_paused = true)]
async fn a_held_call_waits_for_its_decision() {
    let mut bench = bench(true);
    bench.begins("s");
    let first = bench.ring(named("core/x.ts"));
    assert_eq!(bench.blocked().await, "b1 s pending read core/x.ts");
    tokio::time::sleep(Duration::from_secs(2)).await;
    bench.resolve("b1", ALLOW).await;
    assert!(first.await.unwrap());
    assert_eq!(bench.blocked().await, "b1 s allowed read core/x.ts");
    // Once is for one call, which may open it again.
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert!(bench.rings(named("core/x.ts")).await);
    assert!(bench.rings(read("core/x.ts")).await);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let second = bench.ring(named("core/x.ts"));
    assert_eq!(bench.blocked().await, "b2 s pending read core/x.ts");
    bench.resolve("b2", Decision::Deny { message: None }).await;
    assert!(!second.await.unwrap());
    assert_eq!(bench.blocked().await, "b2 s denied read core/x.ts");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_decides_is_denied_in_time() {
    let mut bench = bench(true);
    let began = Instant::now();
    assert!(!bench.rings(named("core/x.ts")).await);
    assert_eq!(began.elapsed(), Duration::from_mins(2));
    assert_eq!(bench.blocked().await, "b1 - pending read core/x.ts");
    assert_eq!(bench.blocked().await, "b1 - denied read core/x.ts");
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_an_agents_shell_is_the_time_left() {
    let mut bench = bench(true);
    // Of a minute the process has used twenty seconds, and its tool call thirty; the team decides within two minutes.
    for (pid, has_call, left) in [(OWN, false, 120), (SHELL, false, 40), (SHELL, true, 30)] {
        bench.begins("s");
        if has_call {
            bench.says("s", "c1", &["core/x.ts"]);
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
        let held = bench.ring(Attempt { pid, ..named("core/x.ts") });
        let access = bench.access().await;
        let told = access.until_ms.unwrap() - access.timestamp_ms;
        assert!(told.abs_diff(left * 1000) < 1000, "{pid} {has_call}: {told}");
        tokio::time::sleep(Duration::from_secs(left.min(40) - 1)).await;
        drop(held);
        let why = match pid {
            OWN => "the agent no longer waits for it",
            _ => "the agent gave up, by its own limit",
        };
        assert_eq!(bench.access().await.ended.as_deref(), Some(why), "{pid} {has_call}");
        bench.ends("s");
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_not_wait_is_denied_at_once() {
    let mut bench = bench(true);
    assert!(!bench.rings(Attempt { may_wait: false, ..named("core/x.ts") }).await);
    assert_eq!(bench.blocked().await, "b1 - denied read core/x.ts");
    assert!(!bench.rings(Attempt { grantable: false, ..named("/home/u/.eisen/x") }).await);
    assert_eq!(bench.blocked().await, "b2 - denied read /home/u/.eisen/x");
}

#[tokio::test(start_paused = true)]
async fn a_held_call_is_let_go_when_its_turn_is_cancelled_or_ends_or_the_agent_stops() {
    let mut bench = bench(true);
    for ending in ["cancel", "end", "stop"] {
        bench.begins("s");
        let held = bench.ring(named("core/x.ts"));
        assert!(bench.blocked().await.ends_with("s pending read core/x.ts"), "{ending}");
        match ending {
            "cancel" => bench.tell("s", ActivityKind::CancelRequested),
            "end" => bench.ends("s"),
            _ => bench.running.stop(),
        }
        assert!(!held.await.unwrap_or(false), "{ending}");
        assert!(bench.blocked().await.ends_with("s expired read core/x.ts"), "{ending}");
        if ending == "cancel" {
            // What it still tries in that turn is not held either.
            assert!(!bench.rings(named("core/y.ts")).await);
            assert!(bench.blocked().await.ends_with("s pending read core/y.ts"));
            assert!(bench.blocked().await.ends_with("s expired read core/y.ts"));
            bench.ends("s");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_of_nobody_is_held_until_every_turn_that_ran_is_over() {
    let mut bench = bench(true);
    bench.begins("s");
    bench.begins("t");
    let mut held = bench.ring(named("core/x.ts"));
    assert_eq!(bench.blocked().await, "b1 - pending read core/x.ts");
    bench.ends("s");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(held.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Empty));
    bench.tell("t", ActivityKind::CancelRequested);
    assert!(!held.await.unwrap_or(false));
    assert_eq!(bench.blocked().await, "b1 - expired read core/x.ts");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_process_died_expires() {
    let mut bench = bench(true);
    let held = bench.ring(named("core/x.ts"));
    assert_eq!(bench.blocked().await, "b1 - pending read core/x.ts");
    drop(held);
    assert_eq!(bench.blocked().await, "b1 - expired read core/x.ts");
}

#[tokio::test(start_paused = true)]
async fn a_denied_try_that_is_allowed_lets_the_next_through_swept_or_meant() {
    let bench = bench(false);
    bench.begins("s");
    assert!(!bench.rings(named("core/x.ts")).await);
    bench.resolve("b1", ALLOW).await;
    assert!(bench.rings(read("core/x.ts")).await);
    assert!(bench.rings(named("core/x.ts")).await);
    // It lasts no longer than the turn.
    bench.ends("s");
    bench.begins("s");
    assert!(!bench.rings(named("core/x.ts")).await);
    bench
        .resolve("b2", Decision::Allow { scope: GrantSpan::Session, ttl: None, pattern: None })
        .await;
    for _ in 0..3 {
        assert!(bench.rings(named("core/x.ts")).await);
        assert!(bench.rings(read("core/x.ts")).await);
    }
    assert!(!bench.rings(Attempt { action: Action::Write, ..named("core/x.ts") }).await);
}

#[tokio::test(start_paused = true)]
async fn what_was_just_refused_to_a_process_is_not_asked_again() {
    let mut bench = bench(true);
    bench.begins("s");
    let held = bench.ring(named("core/x.ts"));
    assert_eq!(bench.blocked().await, "b1 s pending read core/x.ts");
    bench.resolve("b1", Decision::Deny { message: None }).await;
    assert!(!held.await.unwrap());
    assert!(!bench.rings(named("core/x.ts")).await);
    assert_eq!(bench.list().await, ["b1 s denied read core/x.ts"]);
    // Another process is asked about, and the same one a little later.
    let other = bench.ring(Attempt { pid: 8, ..named("core/x.ts") });
    assert_eq!(bench.blocked().await, "b1 s denied read core/x.ts");
    assert_eq!(bench.blocked().await, "b2 s pending read core/x.ts");
    bench.resolve("b2", ALLOW).await;
    assert!(other.await.unwrap());
    tokio::time::sleep(Duration::from_secs(11)).await;
    let later = bench.ring(named("core/x.ts"));
    assert_eq!(bench.blocked().await, "b2 s allowed read core/x.ts");
    assert_eq!(bench.blocked().await, "b3 s pending read core/x.ts");
    bench.resolve("b3", ALLOW).await;
    assert!(later.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn content_is_no_answer_to_a_call() {
    let bench = bench(false);
    bench.rings(named("core/x.ts")).await;
    let answer = Decision::Answer { content: "text".to_owned() };
    let refused =
        bench.routing.resolve(BlockedId::new("b1"), answer, crate::routing::Decider::Person).await;
    assert_eq!(refused.unwrap_err(), routing::ResolveError::NotAnswerable);
}

#[tokio::test(start_paused = true)]
async fn what_one_process_tries_again_and_again_is_told_once() {
    let bench = bench(false);
    bench.begins("s");
    for _ in 0..50 {
        assert!(!bench.rings(named("core/x.ts")).await);
        tokio::time::advance(Duration::from_secs(5)).await;
    }
    assert_eq!(bench.list().await, ["b1 s denied read core/x.ts"]);
    // Another process, another action, another turn are other tries.
    bench.rings(Attempt { pid: 8, ..named("core/x.ts") }).await;
    bench.rings(Attempt { action: Action::Write, ..named("core/x.ts") }).await;
    bench.ends("s");
    bench.begins("s");
    bench.rings(named("core/x.ts")).await;
    assert_eq!(bench.list().await.len(), 4);
    // And what was decided meanwhile is asked again.
    bench.resolve("b4", Decision::Deny { message: None }).await;
    bench.rings(named("core/x.ts")).await;
    assert_eq!(bench.list().await.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn whoever_the_orchestrator_waits_for_is_never_held() {
    let mut own = team(true, Orchestrator::Agent(AgentId::new("a")));
    assert!(!own.rings(named("core/x.ts")).await);
    assert_eq!(own.blocked().await, "b1 - denied read core/x.ts");
    assert_eq!(own.routing.briefing().await, None);

    let mut works = team(true, lead());
    let orchestrated = works.routing.orchestrate(AgentId::new("a")).await;
    assert!(!works.rings(named("core/x.ts")).await);
    assert!(!works.rings(read("core/y.ts")).await);
    assert_eq!(works.blocked().await, "b1 - denied read core/x.ts");
    assert_eq!(orchestrated.end().await, [BlockedId::new("b1")]);
}

#[tokio::test(start_paused = true)]
async fn what_was_meant_is_put_before_the_orchestrator() {
    let bench = team(false, lead());
    bench.rings(named("core/x.ts")).await;
    let text = bench.routing.briefing().await.unwrap();
    assert!(text.contains("- b1: agent `a` wants to read `core/x.ts`"), "{text}");
    assert!(text.contains("kernel"), "{text}");
    assert!(!text.contains("answer TEXT"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_left_leaves_nothing() {
    let mut bench = bench(true);
    bench.begins("s");
    let held = bench.ring(named("core/x.ts"));
    assert_eq!(bench.blocked().await, "b1 s pending read core/x.ts");
    bench.routing.forget(AgentId::new("a")).await;
    assert_eq!(bench.blocked().await, "b1 s expired read core/x.ts");
    assert!(!held.await.unwrap_or(false));
}
