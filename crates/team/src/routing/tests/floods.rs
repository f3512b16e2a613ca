//! Tests of an agent with too many denied accesses.

use super::*;

#[tokio::test(start_paused = true)]
async fn what_comes_too_fast_is_denied_and_counted_in_one_line() {
    for hold in [false, true] {
        let bench = bench(hold, external());
        let long = "x".repeat(3000);
        let mut asked = Vec::new();
        for number in 0..2000 {
            let path = format!("core/{long}/{number}");
            asked.push(bench.ask(Request { via: Via::Kernel, ..read("flood", "s", &path) }));
        }
        eventually("all are counted", async || {
            bench.routing.list(None).await.last().and_then(|it| it.sweep) == Some(1872)
        })
        .await;
        let list = bench.routing.list(None).await;
        assert_eq!(list.len(), 129);
        let counted = list.last().unwrap();
        assert_eq!((counted.sweep, counted.status), (Some(1872), BlockedStatus::Denied));
        assert_eq!(&*counted.path, format!("core/{long}"));
        let refused =
            bench.routing.resolve(counted.id.clone(), ALLOW, Decider::Person).await.unwrap_err();
        assert_eq!(refused, ResolveError::Sweep(counted.id.clone()));
        // Others have lines as ever, and so has the agent a little later.
        let other = Request { may_wait: false, ..read("other", "s", "p") };
        assert_eq!(bench.routing.request(other).await, denied("b130"));
        tokio::time::sleep(Duration::from_millis(200)).await;
        let later = Request { may_wait: false, ..read("flood", "s", "p") };
        assert_eq!(bench.routing.request(later).await, denied("b131"));
        asked.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

#[tokio::test(start_paused = true)]
async fn a_board_that_is_full_forgets_the_oldest_that_is_settled() {
    let bench = bench(false, external());
    for number in 0..10_100 {
        bench.routing.request(read("a", "s", &format!("{}", number % 7000))).await;
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    let listed = bench.routing.list(None).await;
    assert!(listed.len() <= 10_001, "{}", listed.len());
    let last = listed.last().unwrap();
    // What is forgotten is not decided with the others.
    bench.routing.resolve(last.id.clone(), ALLOW, Decider::Person).await.unwrap();
    let gone = bench.routing.resolve(id("b2"), ALLOW, Decider::Person).await.unwrap_err();
    assert_eq!(gone, ResolveError::Unknown(id("b2")));
    assert_eq!(
        bench.routing.resolve(id("b02"), ALLOW, Decider::Person).await.unwrap_err(),
        ResolveError::Unknown(id("b02"))
    );
}

/// The accesses that stopped the work of the turn of `a` in `s`, which ends.
async fn stopped(bench: &Bench) -> Vec<String> {
    let key = read("a", "s", "").key;
    bench.routing.turn_over(key.clone());
    let story = bench.routing.take_story(key).await;
    let stopped = story.iter().filter(|access| access.stops_work());
    stopped.map(|access| format!("{} {}", access.id, access.path)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_refused_after_a_flood_stops_the_work_of_its_turn() {
    for hold in [false, true] {
        let bench = bench(hold, external());
        let key = read("a", "s", "").key;
        let write = Request { action: Action::Write, may_wait: false, ..read("a", "s", "w") };
        for number in 0..200 {
            let read = read("a", "s", &format!("core/{number}"));
            bench.routing.request(Request { may_wait: false, ..read }).await;
        }
        bench.routing.request(write.clone()).await;
        // Another turn has no part in it.
        bench.routing.turn_over(SessionKey { session: SessionId::new("t"), ..key.clone() });
        assert_eq!(stopped(&bench).await, ["b129 w"]);
        assert_eq!(stopped(&bench).await, [""; 0]);
        // Reads alone stop nothing.
        bench.routing.request(Request { action: Action::Read, ..write }).await;
        assert_eq!(stopped(&bench).await, [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_is_not_lost_among_the_accesses_of_a_long_turn() {
    for others in [1_500, 10_100] {
        let bench = bench(false, external());
        let write = |path| Request { action: Action::Write, ..read("a", "s", path) };
        bench.routing.request(write("first")).await;
        for number in 0..others {
            bench.routing.request(read("a", "s", &format!("{number}"))).await;
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        bench.routing.request(write("last")).await;
        let last = format!("b{} last", others + 2);
        assert_eq!(stopped(&bench).await, ["b1 first", &last]);
    }
}
