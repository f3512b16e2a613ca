//! The line of a call that comes after what the call does.

use super::*;

/// By the agent itself.
fn own(path: &str) -> Attempt {
    Attempt { pid: OWN, ..read(path) }
}

async fn after(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

#[tokio::test(start_paused = true)]
async fn what_the_agent_itself_opens_before_its_line_comes_is_held_all_the_same() {
    let mut bench = bench(true);
    bench.begins("s");
    let first = bench.ring(own("core/x.ts"));
    after(75).await;
    bench.says("s", "1", &["Grep for x"]);
    after(75).await;
    bench.says("s", "1", &["Read core/x.ts"]);
    assert_eq!(bench.blocked().await, "b1 s pending read core/x.ts");
    bench.resolve("b1", ALLOW).await;
    assert!(first.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn what_was_started_for_a_call_waits_less() {
    let mut bench = bench(false);
    bench.begins("s");
    let first = bench.ring(read("core/x.ts"));
    after(20).await;
    bench.says("s", "1", &["Read core/x.ts"]);
    assert!(!first.await.unwrap());
    assert_eq!(bench.blocked().await, "b1 s denied read core/x.ts");
    let began = Instant::now();
    bench.rings(read("core/y.ts")).await;
    assert_eq!(began.elapsed(), Duration::from_millis(25));
}

#[tokio::test(start_paused = true)]
async fn what_was_granted_meanwhile_is_not_listed_as_denied() {
    let mut bench = bench(true);
    bench.begins("s");
    assert!(!bench.rings(Attempt { pid: 9, ..read("core/x.ts") }).await);
    let held = bench.ring(named("core/x.ts"));
    assert_eq!(bench.blocked().await, "b1 s denied read core/x.ts ×1");
    assert_eq!(bench.blocked().await, "b2 s pending read core/x.ts");
    bench
        .resolve("b2", Decision::Allow { scope: GrantSpan::Session, ttl: None, pattern: None })
        .await;
    assert!(held.await.unwrap());
    bench.says("s", "1", &["cat core/x.ts"]);
    after(10).await;
    assert_eq!(bench.list().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn sweeps_do_not_use_up_what_the_agent_itself_may_wait() {
    let bench = bench(false);
    bench.begins("s");
    for round in 0..20 {
        for number in 0..50 {
            bench.rings(Attempt { pid: 100 + number, ..read(&format!("core/{number}")) }).await;
        }
        // The agent's own files, too, that no call names.
        bench.rings(own("agent.lock")).await;
        let path = format!("core/{round}.ts");
        let meant = bench.ring(own(&path));
        after(136).await;
        bench.says("s", &path, &[&path]);
        assert!(!meant.await.unwrap());
        let told = format!("s denied read {path}");
        assert!(bench.list().await.iter().any(|line| line.ends_with(&told)), "{path}");
        after(1000).await;
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_run_side_by_side_are_all_waited_for() {
    let bench = bench(false);
    bench.begins("s");
    let answers: Vec<_> =
        (0..20).map(|number| bench.ring(own(&format!("core/{number}.ts")))).collect();
    for number in 0..20 {
        after(9).await;
        bench.says("s", &number.to_string(), &[&format!("core/{number}.ts")]);
    }
    for answer in answers {
        assert!(!answer.await.unwrap());
    }
    assert_eq!(bench.list().await.len(), 20);
    assert!(bench.list().await.iter().all(|line| !line.contains('×')));
}

#[tokio::test(start_paused = true)]
async fn a_sweep_waits_a_moment_at_most() {
    let bench = bench(true);
    for (pid, most) in [(7, 75), (OWN, 600)] {
        bench.begins("s");
        let began = Instant::now();
        for number in 0..1000 {
            bench.rings(Attempt { pid, ..read(&format!("core/{number}")) }).await;
        }
        assert_eq!(began.elapsed(), Duration::from_millis(most), "{pid}");
        bench.ends("s");
    }
    // No call can come where no turn runs.
    after(10_000).await;
    let began = Instant::now();
    bench.rings(own("core/x.ts")).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_build_of_thousands_of_processes_waits_no_longer_than_one_sweep() {
    let bench = bench(false);
    bench.begins("s");
    let began = Instant::now();
    for pid in 100..3100 {
        bench.rings(Attempt { pid, ..read("core/x.h") }).await;
    }
    assert_eq!(began.elapsed(), Duration::from_millis(75));
}

#[tokio::test(start_paused = true)]
async fn what_is_named_too_late_to_be_held_can_be_granted_for_the_next_try() {
    let mut bench = bench(true);
    bench.begins("s");
    assert!(!bench.rings(own("core/x.ts")).await);
    assert_eq!(bench.blocked().await, "b1 s denied read core/x.ts ×1");
    after(1500).await;
    // The try has failed by now, so that the call ends as soon as it is told of.
    bench.says("s", "1", &["Read core/x.ts"]);
    bench.tell("s", ActivityKind::Ran { call: "1".into(), failed: false });
    assert_eq!(bench.blocked().await, "b2 s denied read core/x.ts");
    bench.says("s", "2", &["Read core/x.ts again"]);
    bench.tell("s", ActivityKind::Ran { call: "2".into(), failed: false });
    bench.resolve("b2", ALLOW).await;
    assert_eq!(bench.blocked().await, "b2 s allowed read core/x.ts");
    assert!(bench.rings(own("core/x.ts")).await);
}

#[tokio::test(start_paused = true)]
async fn what_is_named_is_held_whatever_was_swept_before() {
    for gap in [0, 500, 1999] {
        let mut bench = team(true, Orchestrator::Agent(AgentId::new("lead")));
        bench.begins("s");
        assert!(!bench.rings(own("core/x.ts")).await);
        assert_eq!(bench.blocked().await, "b1 s denied read core/x.ts ×1");
        after(gap).await;
        bench.says("s", "1", &["Read core/x.ts"]);
        assert_eq!(bench.blocked().await, "b2 s denied read core/x.ts");
        let held = bench.ring(own("core/x.ts"));
        assert_eq!(bench.blocked().await, "b3 s pending read core/x.ts");
        let text = bench.routing.briefing().await.unwrap();
        assert!(text.contains("- b3: ") && !text.contains("- b2: "), "{gap}: {text}");
        bench.resolve("b3", ALLOW).await;
        assert!(held.await.unwrap(), "{gap}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_try_that_is_held_again_and_again_is_put_before_the_orchestrator_each_time() {
    let mut bench = team(true, Orchestrator::Agent(AgentId::new("lead")));
    bench.begins("s");
    for number in 1..4 {
        let held = bench.ring(named("core/x.ts"));
        assert_eq!(bench.blocked().await, format!("b{number} s pending read core/x.ts"));
        assert!(bench.routing.briefing().await.unwrap().contains(&format!("- b{number}: ")));
        bench.routing.briefed().await;
        assert!(!held.await.unwrap());
        assert_eq!(bench.blocked().await, format!("b{number} s denied read core/x.ts"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_swept_long_ago_is_not_dug_out() {
    let bench = bench(false);
    bench.begins("s");
    for number in 0..100 {
        bench.rings(read(&format!("core/{number}.ts"))).await;
    }
    bench.says("s", "1", &["cat core/3.ts core/99.ts"]);
    // Only the last are kept, and only for a while.
    after(10).await;
    assert_eq!(bench.list().await[1..], ["b2 s denied read core/99.ts"]);
    after(2000).await;
    bench.says("s", "2", &["cat core/98.ts"]);
    after(10).await;
    assert_eq!(bench.list().await.len(), 2);
}
