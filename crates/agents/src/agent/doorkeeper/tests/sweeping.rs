//! Accesses that nobody asked for by name.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_sweep_is_one_line_that_grows_and_waits_for_nobody() {
    let mut bench = team(true, Orchestrator::Agent(AgentId::new("lead")));
    bench.begins("s");
    for number in 0..1000 {
        assert!(!bench.rings(read(&format!("core/a/{number}.ts"))).await);
    }
    assert!(!bench.rings(read("core/b.ts")).await);
    assert_eq!(bench.list().await, ["b1 s denied read core ×1001"]);
    bench.ends("s");
    assert_eq!(bench.blocked().await, "b1 s denied read core/a/0.ts ×1");
    assert_eq!(bench.blocked().await, "b1 s denied read core ×1001");
    assert_eq!(bench.routing.briefing().await, None, "nobody is asked");
    let decided =
        bench.routing.resolve(BlockedId::new("b1"), ALLOW, crate::routing::Decider::Person).await;
    let sweep = routing::ResolveError::Sweep(BlockedId::new("b1"));
    assert_eq!(decided.unwrap_err(), sweep);
    // Another turn, another line; and a write is the worse of two.
    bench.begins("s");
    bench.rings(read("core/x.ts")).await;
    bench.rings(Attempt { action: Action::Write, ..read("core/x.ts") }).await;
    assert_eq!(bench.list().await[1], "b2 s denied write core/x.ts ×2");
}

#[tokio::test(start_paused = true)]
async fn its_count_is_told_at_most_once_a_second() {
    let mut bench = bench(false);
    // In no turn: nothing waits for a call's line.
    let began = Instant::now();
    for number in 1..=50 {
        bench.rings(read(&format!("core/{number}"))).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut told = Vec::new();
    while told.last() != Some(&50) {
        told.push(bench.access().await.sweep.unwrap());
    }
    assert_eq!(told, [1, 20, 40, 50]);
    assert_eq!(began.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn outside_of_turns_a_sweep_ends_when_it_is_quiet() {
    let bench = bench(false);
    bench.rings(read("core/1")).await;
    tokio::time::sleep(Duration::from_secs(59)).await;
    bench.rings(read("core/2")).await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    bench.rings(read("core/3")).await;
    assert_eq!(bench.list().await, ["b1 - denied read core ×2", "b2 - denied read core/3 ×1"]);
}

#[tokio::test(start_paused = true)]
async fn a_sweep_heats_nothing_and_what_was_meant_does() {
    let bench = bench(false);
    bench.begins("s");
    bench.rings(read("core/swept.ts")).await;
    bench.rings(named("core/meant.ts")).await;
    let snapshots = bench.tracker.snapshots().await.sessions;
    let nodes = snapshots.iter().flat_map(|it| it.nodes.iter());
    let paths: Vec<_> = nodes.map(|node| node.path.to_string()).collect();
    assert_eq!(paths, ["core/meant.ts"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_does_not_report_what_the_kernel_stopped() {
    let bench = bench(false);
    let observe = async |session: &str, path: &str| {
        let before = bench.routing.list(None).await.len();
        let request = Request::again(key("a", session), path.into(), Action::Read, Via::Tool);
        drop(bench.routing.observed(request));
        bench.routing.list(None).await.len() > before
    };
    bench.begins("s");
    bench.rings(named("core/x.ts")).await;
    bench.rings(read("core/swept.ts")).await;
    assert!(!observe("s", "core/x.ts").await);
    assert!(!observe("s", "core/swept.ts").await);
    assert!(observe("s", "core/other.ts").await, "it was not the kernel's");
    // While several turns run, whose it was is not known.
    bench.begins("t");
    bench.rings(named("core/y.ts")).await;
    assert!(!observe("t", "core/y.ts").await);
    bench.ends("s");
    assert!(observe("s", "core/x.ts").await, "another turn");
}

#[tokio::test(start_paused = true)]
async fn what_its_profile_does_not_miss_is_counted_apart() {
    let bench = bench(true);
    for path in ["core/.state", "core/a.ts", "core/.state"] {
        assert!(!bench.rings(read(path)).await);
    }
    bench.begins("s");
    assert!(!bench.rings(read("core/.state")).await);
    let mut counted = vec![
        "b1 - harmless read core/.state ×2",
        "b2 - denied read core/a.ts ×1",
        "b3 s harmless read core/.state ×1",
    ];
    assert_eq!(bench.list().await, counted);
    // A tool call may need it.
    bench.says("s", "1", &["git gc"]);
    assert!(!bench.rings(read("core/.state")).await);
    counted.push("b4 s denied read core/.state ×1");
    assert_eq!(bench.list().await, counted);
    // And who names it means it.
    let _held = bench.ring(named("core/.state"));
    eventually(async || bench.list().await.len() == 5).await;
    assert_eq!(bench.list().await[4], "b5 s pending read core/.state");
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_for_a_secret_that_an_agent_looks_for_by_itself() {
    let bench = bench(true);
    let own = |path| Attempt { pid: OWN, ..read(path) };
    assert!(!bench.rings(own(".env")).await);
    // No program was started in a turn so far.
    assert!(!bench.rings(read("ui/.env")).await);
    assert_eq!(bench.list().await, ["b1 - harmless read . ×2"]);
    let pending = async |attempt: Attempt| {
        let before = bench.list().await.len();
        let _held = bench.ring(attempt);
        eventually(async || bench.list().await.len() > before).await;
        bench.list().await[before].clone()
    };
    let write = Attempt { action: Action::Write, ..own("a/.env") };
    assert_eq!(pending(write).await, "b2 - pending write a/.env");
    bench.begins("s");
    assert_eq!(pending(own("b/.env")).await, "b3 s pending read b/.env");
    bench.ends("s");
    // It opens another session; what it started in the turn still runs.
    assert!(!bench.rings(own("c/.env")).await);
    assert_eq!(pending(read("d/.env")).await, "b4 - pending read d/.env");
}

async fn eventually(mut is_so: impl AsyncFnMut() -> bool) {
    while !is_so().await {
        tokio::task::yield_now().await;
    }
}
