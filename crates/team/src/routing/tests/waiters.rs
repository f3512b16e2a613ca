//! Requests that wait for one decision.

use super::*;

fn write(via: Via) -> Request {
    Request { action: Action::Write, via, ..read("a", "s", "p") }
}

fn stopped(pid: u32) -> Request {
    Request { caller: Some(pid), ..write(Via::Kernel) }
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_comes_in_two_ways_is_one_question() {
    let mut bench = bench(true, external());
    let by_client = bench.ask(write(Via::Fs));
    assert_eq!(bench.blocked().await, "b1 pending");
    let by_program = bench.ask(stopped(7));
    let again = bench.ask(stopped(7));
    // A further request by the same way is a further tool call, and so is another content.
    let other = bench.ask(write(Via::Fs));
    assert_eq!(bench.blocked().await, "b2 pending");
    // One way is given up; the other still waits.
    by_client.abort();
    assert!(by_client.await.is_err());
    bench.routing.settled(&AgentId::new("a")).await;
    assert_eq!(bench.statuses().await, ["b1 pending", "b2 pending"]);
    bench.routing.resolve(id("b1"), ALLOW, Decider::Person).await.unwrap();
    for asked in [by_program, again, other] {
        assert_eq!(asked.await.unwrap(), Some(Settlement::Allowed));
    }
    assert_eq!(bench.statuses().await, ["b1 allowed", "b2 allowed"]);
}

#[tokio::test(start_paused = true)]
async fn all_ways_of_an_operation_time_out_together() {
    let bench = bench(true, external());
    let (first, second) = (bench.ask(write(Via::Fs)), bench.ask(stopped(7)));
    for asked in [first, second] {
        let settled = asked.await.unwrap();
        assert!(matches!(settled, Some(Settlement::Denied { id, .. }) if id.as_str() == "b1"));
    }
    let listed = bench.routing.list(None).await;
    let [access] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!(access.status, BlockedStatus::Denied);
    assert_eq!(access.ended.as_deref(), Some("nobody decided in time"));
}

#[tokio::test(start_paused = true)]
async fn a_question_ends_with_its_tool_call_if_that_fails() {
    let mut bench = bench(true, external());
    let of_call = |call: &str, via| Request { call: Some(call.into()), ..write(via) };
    let failed = bench.ask(of_call("1", Via::Fs));
    assert_eq!(bench.blocked().await, "b1 pending");
    let other = bench.ask(Request { path: "q".into(), ..of_call("2", Via::Fs) });
    assert_eq!(bench.blocked().await, "b2 pending");
    bench.routing.call_failed(read("a", "s", "").key, "1".into());
    let ended = bench.access().await;
    assert_eq!((ended.id, ended.status), (id("b1"), BlockedStatus::Expired));
    assert_eq!(ended.ended.as_deref(), Some("its tool call failed"));
    assert!(matches!(failed.await.unwrap(), Some(Settlement::Denied { .. })));
    assert!(!other.is_finished());
    bench.routing.turn_over(read("a", "s", "").key);
    other.abort();
    let ended = bench.access().await;
    assert_eq!(ended.ended.as_deref(), Some("its turn ended"));
}

#[tokio::test(start_paused = true)]
async fn what_is_too_late_is_allowed_for_the_next_try_and_the_agent_is_told() {
    let mut bench = bench(true, external());
    let asked = bench.ask(write(Via::Fs));
    assert_eq!(bench.blocked().await, "b1 pending");
    asked.abort();
    assert_eq!(bench.blocked().await, "b1 expired");
    let late = bench.routing.resolve(id("b1"), ALLOW, Decider::Person).await.unwrap_err();
    let text =
        "b1 is too late: the agent no longer waits for it; `eisen-core inbox allow b1 --tell`";
    assert!(late.to_string().starts_with(text), "{late}");
    let tell = Decision::Tell { scope: GrantSpan::Once, ttl: None, pattern: None };
    bench.routing.resolve(id("b1"), tell, Decider::Person).await.unwrap();
    let notes = bench.routing.notes(AgentId::new("a")).await;
    assert_eq!(notes, ["- write `p`: a person allowed it: try it again"]);
    assert_eq!(bench.routing.request(stopped(7)).await, Some(Settlement::Allowed));
}

#[tokio::test(start_paused = true)]
async fn where_no_person_can_be_asked_only_agents_are() {
    let unattended = || Rules { unattended: true, ..Rules::default() };
    let alone = ruled(true, Orchestrator::Nobody, unattended(), Vec::new());
    assert_eq!(alone.routing.request(read("a", "s", "p")).await, denied("b1"));
    let mut led = ruled(true, lead(), unattended(), Vec::new());
    let asked = led.ask(read("a", "s", "p"));
    assert_eq!(led.blocked().await, "b1 pending");
    asked.abort();
}

#[tokio::test(start_paused = true)]
async fn who_may_not_decide_reopens_nothing() {
    let mut bench = bench(true, lead());
    let asked = bench.ask(write(Via::Fs));
    assert_eq!(bench.blocked().await, "b1 pending");
    asked.abort();
    assert_eq!(bench.blocked().await, "b1 expired");
    let tell = Decision::Tell { scope: GrantSpan::Once, ttl: None, pattern: None };
    let own = bench.routing.resolve(id("b1"), tell, Decider::Agent(AgentId::new("a"))).await;
    assert!(matches!(own, Err(ResolveError::Own { .. })), "{own:?}");
    let late = bench.routing.resolve(id("b1"), ALLOW, Decider::Person).await;
    assert!(matches!(late, Err(ResolveError::TooLate { .. })), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn another_tool_call_still_waits_when_one_fails() {
    let mut bench = bench(true, external());
    let failed = bench.ask(Request { call: Some("1".into()), ..write(Via::Fs) });
    assert_eq!(bench.blocked().await, "b1 pending");
    let other = bench.ask(Request { call: Some("2".into()), ..stopped(7) });
    bench.routing.settled(&AgentId::new("a")).await;
    bench.routing.call_failed(read("a", "s", "").key, "1".into());
    assert!(matches!(failed.await.unwrap(), Some(Settlement::Denied { .. })));
    assert_eq!(bench.statuses().await, ["b1 pending"]);
    bench.routing.resolve(id("b1"), ALLOW, Decider::Person).await.unwrap();
    assert_eq!(other.await.unwrap(), Some(Settlement::Allowed));
}

#[tokio::test(start_paused = true)]
async fn what_a_later_try_was_allowed_is_not_told_as_refused() {
    let mut bench = bench(true, external());
    let first = bench.ask(write(Via::Fs));
    assert_eq!(bench.blocked().await, "b1 pending");
    first.abort();
    assert_eq!(bench.blocked().await, "b1 expired");
    let second = bench.ask(write(Via::Fs));
    assert_eq!(bench.blocked().await, "b2 pending");
    bench.routing.resolve(id("b2"), ALLOW, Decider::Person).await.unwrap();
    assert_eq!(second.await.unwrap(), Some(Settlement::Allowed));
    bench.routing.turn_over(read("a", "s", "").key);
    assert_eq!(bench.routing.take_story(read("a", "s", "").key).await, []);
}
