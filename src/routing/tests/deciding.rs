//! Who may decide what.

use super::*;

#[tokio::test(start_paused = true)]
async fn no_agent_decides_its_own_accesses() {
    let bench = bench(false, lead());
    bench.routing.request(read("lead", "s", "p")).await;
    let by = |agent: &str| Decider::Agent(AgentId::new(agent));
    let own = bench.routing.resolve(id("b1"), ALLOW, by("lead")).await.unwrap_err();
    assert_eq!(own, ResolveError::Own { id: id("b1"), agent: AgentId::new("lead") });
    // It stays to be decided by others.
    bench.routing.resolve(id("b1"), ALLOW, Decider::Person).await.unwrap();
    bench.routing.request(read("ui", "s", "p")).await;
    bench.routing.resolve(id("b2"), ALLOW, by("lead")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn wrong_decisions_are_named() {
    let bench = bench(false, external());
    let write = Request { action: Action::Write, ..read("a", "s", "p") };
    bench.routing.request(write).await;
    let answer = Decision::Answer { content: String::new() };
    let resolve = |id: &str, decision: Decision| {
        bench.routing.resolve(BlockedId::new(id), decision, Decider::Person)
    };
    assert_eq!(resolve("b1", answer).await.unwrap_err(), ResolveError::NotAnswerable);
    assert_eq!(resolve("b9", ALLOW).await.unwrap_err(), ResolveError::Unknown(id("b9")));
    resolve("b1", Decision::Deny { message: None }).await.unwrap();
    assert!(matches!(resolve("b1", ALLOW).await, Err(ResolveError::Settled { .. })));
}
