#![allow(clippy::unwrap_used)]

use std::time::Duration;

use eisen_base::task;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::bus::{Backlog, Bus, Subscriber};
use crate::model::{Action, Event, GrantSpan, Via};
use crate::preview::Wanted;
use crate::tests::eventually;
use crate::tracker::{OrchestratorView, TrackerHandle};

mod briefings;
mod deciding;
mod floods;
mod owners;
mod rules;
mod showing;
mod waiters;
mod widening;

struct Bench {
    routing: RoutingHandle,
    events: Subscriber,
    waits: Waits,
    cancel: CancellationToken,
}

fn bench(hold: bool, orchestrator: Orchestrator) -> Bench {
    ruled(hold, orchestrator, Rules::default(), Vec::new())
}

fn ruled(hold: bool, orchestrator: Orchestrator, rules: Rules, queued: Vec<Queued>) -> Bench {
    let rules = Rules { hold, hold_timeout: Some(Duration::from_mins(2)), ..rules };
    started(Settings { queued, ..Settings::new(orchestrator, rules) })
}

fn started(settings: Settings) -> Bench {
    let (bus, cancel) = (Bus::new(Backlog::of(1000)), CancellationToken::new());
    let hour = Duration::from_hours(1);
    let of_tracker = crate::tracker::Settings {
        context_turns: 3,
        compaction_threshold: 0.5,
        decay_rate: 0.95,
        tick: hour,
        idle_tick: hour,
    };
    let view = OrchestratorView::None(SessionKey::new(AgentId::new("a"), SessionId::new("")));
    let (tracker, tracking) = TrackerHandle::spawn(of_tracker, view, bus.clone(), cancel.clone());
    let (events, waits) = (bus.subscribe(), settings.waits.clone());
    let settings = Settings { program: "/opt/my tools/eisen-core".into(), ..settings };
    let (routing, deciding) = RoutingHandle::spawn(settings, bus, tracker, cancel.clone());
    task::spawn(async { tokio::join!(tracking, deciding) });
    Bench { routing, events, waits, cancel }
}

fn external() -> Orchestrator {
    Orchestrator::External(SessionKey::new(AgentId::new("orchestrator"), SessionId::new("team-t")))
}

fn lead() -> Orchestrator {
    Orchestrator::Agent(AgentId::new("lead"))
}

fn read(agent: &str, session: &str, path: &str) -> Request {
    let key = SessionKey::new(AgentId::new(agent), SessionId::new(session));
    Request::again(key, path.into(), Action::Read, Via::Fs)
}

fn id(id: &str) -> BlockedId {
    BlockedId::new(id)
}

const ALLOW: Decision = Decision::Allow { scope: GrantSpan::Once, ttl: None, pattern: None };

impl Bench {
    /// Starts a request; what it gets comes through the handle.
    fn ask(&self, request: Request) -> tokio::task::JoinHandle<Option<Settlement>> {
        let routing = self.routing.clone();
        task::spawn(async move { routing.request(request).await })
    }

    /// Returns the next `blocked` event.
    async fn access(&mut self) -> BlockedAccess {
        loop {
            if let Event::Blocked(access) = &**self.events.event().await {
                return access.clone();
            }
        }
    }

    /// Returns the next `blocked` event as `id status`.
    async fn blocked(&mut self) -> String {
        let access = self.access().await;
        format!("{} {}", access.id, access.status.as_str())
    }

    async fn statuses(&self) -> Vec<String> {
        let listed = self.routing.list(None).await;
        listed.iter().map(|a| format!("{} {}", a.id, a.status.as_str())).collect()
    }
}

#[allow(clippy::unnecessary_wraps, reason = "as `request` answers")]
fn denied(id: &str) -> Option<Settlement> {
    Some(Settlement::Denied { id: BlockedId::new(id), owners: Vec::new(), message: None })
}

#[tokio::test(start_paused = true)]
async fn a_denied_try_that_is_allowed_is_a_grant_for_the_next_one_only() {
    let bench = bench(false, external());
    assert_eq!(bench.routing.request(read("a", "s", "p")).await, denied("b1"));
    assert_eq!(bench.routing.request(read("a", "s", "p")).await, denied("b2"));
    let access = bench.routing.resolve(id("b1"), ALLOW, Decider::Person).await.unwrap();
    assert_eq!(access.status, BlockedStatus::Allowed);
    // Deciding one settles all undecided ones alike.
    assert_eq!(bench.statuses().await, ["b1 allowed", "b2 allowed"]);
    let other = read("a", "s", "p2");
    assert_eq!(bench.routing.request(other).await, denied("b3"));
    assert_eq!(bench.routing.request(read("a", "s", "p")).await, Some(Settlement::Allowed));
    assert_eq!(bench.routing.request(read("a", "s", "p")).await, denied("b4"));
    bench.cancel.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_held_access_waits_for_its_decision() {
    let mut bench = bench(true, external());
    let first = bench.ask(read("a", "s", "p"));
    assert_eq!(bench.blocked().await, "b1 pending");
    let second = bench.ask(read("a", "s", "p"));
    assert_eq!(bench.blocked().await, "b2 pending");
    let other = bench.ask(read("b", "s", "p"));
    assert_eq!(bench.blocked().await, "b3 pending");
    let content = Decision::Answer { content: "text".to_owned() };
    bench.routing.resolve(id("b2"), content, Decider::Person).await.unwrap();
    let answered = Some(Settlement::Answered("text".to_owned()));
    assert_eq!(first.await.unwrap(), answered);
    assert_eq!(second.await.unwrap(), answered);
    assert_eq!(bench.statuses().await, ["b1 answered", "b2 answered", "b3 pending"]);
    // It was used: nothing is left for the next.
    let next = bench.ask(read("a", "s", "p"));
    assert_eq!(bench.blocked().await, "b1 answered");
    assert_eq!(bench.blocked().await, "b2 answered");
    assert_eq!(bench.blocked().await, "b4 pending");
    let deny = Decision::Deny { message: Some("no".to_owned()) };
    bench.routing.resolve(id("b3"), deny, Decider::Person).await.unwrap();
    assert!(
        matches!(other.await.unwrap(), Some(Settlement::Denied { message: Some(m), .. }) if m == "no")
    );
    // The access keeps the beginning of it.
    let told = async |at: usize| bench.routing.list(None).await[at].message.clone();
    assert_eq!((told(1).await, told(2).await.as_deref()), (None, Some("no")));
    let long = Decision::Deny { message: Some("é".repeat(1000)) };
    bench.routing.resolve(id("b4"), long, Decider::Person).await.unwrap();
    assert_eq!(told(3).await.unwrap(), ("é".repeat(200) + "…").into());
    next.abort();
}

#[tokio::test(start_paused = true)]
async fn a_session_grant_is_for_one_session_and_its_time() {
    let bench = bench(false, external());
    bench.routing.request(read("a", "s", "p")).await;
    let ttl = Some(Duration::from_secs(10));
    let allow = Decision::Allow { scope: GrantSpan::Session, ttl, pattern: None };
    bench.routing.resolve(id("b1"), allow, Decider::Person).await.unwrap();
    for _ in 0..3 {
        assert_eq!(bench.routing.request(read("a", "s", "p")).await, Some(Settlement::Allowed));
    }
    assert_eq!(bench.routing.request(read("a", "s2", "p")).await, denied("b2"));
    let write = Request { action: Action::Write, ..read("a", "s", "p") };
    assert_eq!(bench.routing.request(write).await, denied("b3"));
    tokio::time::advance(Duration::from_secs(11)).await;
    assert_eq!(bench.routing.request(read("a", "s", "p")).await, denied("b4"));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_decides_is_denied_and_may_still_be_allowed_for_the_next_try() {
    let bench = bench(true, external());
    // Paused time runs on while everyone waits: this is the timeout.
    let settlement = bench.routing.request(read("a", "s", "p")).await.unwrap();
    assert!(matches!(settlement, Settlement::Denied { message: Some(_), .. }));
    assert_eq!(bench.statuses().await, ["b1 denied"]);
    bench.routing.resolve(id("b1"), ALLOW, Decider::Person).await.unwrap();
    assert_eq!(bench.routing.request(read("a", "s", "p")).await, Some(Settlement::Allowed));
}

#[tokio::test(start_paused = true)]
async fn an_access_that_nobody_awaits_any_more_expires() {
    let mut bench = bench(true, external());
    let asked = bench.ask(read("a", "s", "p"));
    assert_eq!(bench.blocked().await, "b1 pending");
    asked.abort();
    assert_eq!(bench.blocked().await, "b1 expired");
    let late = bench.routing.resolve(id("b1"), ALLOW, Decider::Person).await;
    let ended = "the agent no longer waits for it".into();
    assert_eq!(late.unwrap_err(), ResolveError::TooLate { id: id("b1"), ended });
}

#[tokio::test(start_paused = true)]
async fn the_orchestrator_agent_gets_each_access_once_while_it_is_undecided() {
    let bench = bench(false, lead());
    for path in ["p", "p", "q", "r"] {
        bench.routing.request(read("a", "s", path)).await;
    }
    bench.routing.resolve(id("b4"), ALLOW, Decider::Person).await.unwrap();
    let text = bench.routing.briefing().await.unwrap();
    assert!(text.contains("- b1: agent `a` wants to read `p`"), "{text}");
    assert!(text.contains("- b3: agent `a` wants to read `q`"), "{text}");
    assert!(!text.contains("b2") && !text.contains("b4"), "{text}");
    bench.routing.request(read("a", "s", "p")).await;
    assert_eq!(bench.routing.briefing().await, None);
    bench
        .routing
        .resolve(id("b1"), Decision::Deny { message: None }, Decider::Person)
        .await
        .unwrap();
    bench.routing.request(read("a", "s", "p")).await;
    assert!(bench.routing.briefing().await.unwrap().contains("- b6: "));
}

#[tokio::test(start_paused = true)]
async fn whoever_the_orchestrator_waits_for_is_never_held() {
    let bench = bench(true, lead());
    assert_eq!(bench.routing.request(read("lead", "s", "p")).await, denied("b1"));
    assert_eq!(bench.routing.briefing().await, None, "its own accesses are not put before it");
    let orchestrated = bench.routing.orchestrate(AgentId::new("a")).await;
    assert_eq!(bench.routing.request(read("a", "s", "p")).await, denied("b2"));
    assert_eq!(orchestrated.end().await, [id("b2")]);
    let dropped = bench.routing.orchestrate(AgentId::new("a")).await;
    drop(dropped);
    // The task that takes the mark away holds the mailbox until it has sent.
    eventually("the mark is gone", async || bench.routing.mailbox.strong_count() == 1).await;
    // The mark is gone: it is held again, until its time is up.
    let settlement = bench.routing.request(read("a", "s", "p")).await.unwrap();
    assert!(matches!(settlement, Settlement::Denied { message: Some(_), .. }));
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_after_the_fact_is_reported_unless_it_was_allowed() {
    let mut bench = bench(false, external());
    let seen = Request { via: Via::Tool, ..read("a", "s", "p") };
    drop(bench.routing.observed(seen.clone()));
    assert_eq!(bench.blocked().await, "b1 observed");
    bench.routing.resolve(id("b1"), ALLOW, Decider::Person).await.unwrap();
    drop(bench.routing.observed(seen));
    drop(bench.routing.observed(Request { path: "q".into(), ..read("a", "s", "q") }));
    assert_eq!(bench.blocked().await, "b1 allowed");
    assert_eq!(bench.blocked().await, "b2 observed");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_can_allow_is_denied_at_once_and_put_before_nobody() {
    let bench = bench(true, lead());
    let sealed = Request { grantable: false, ..read("a", "s", "p") };
    assert_eq!(bench.routing.request(sealed).await, denied("b1"));
    assert_eq!(bench.routing.briefing().await, None);
    let allowed = bench.routing.resolve(id("b1"), ALLOW, Decider::Person).await;
    assert_eq!(allowed.unwrap_err(), ResolveError::NotGrantable("p".into()));
}

#[tokio::test(start_paused = true)]
async fn a_briefing_that_broke_off_is_sent_to_the_next_session() {
    let bench = bench(false, lead());
    bench.routing.request(read("a", "s", "p")).await;
    assert!(bench.routing.briefing().await.is_some());
    bench.routing.set_orchestrator_session(SessionId::new("second")).await;
    assert!(bench.routing.briefing().await.is_some());
    bench.routing.briefed().await;
    bench.routing.set_orchestrator_session(SessionId::new("third")).await;
    assert_eq!(bench.routing.briefing().await, None);
}

#[tokio::test(start_paused = true)]
async fn content_answers_reads_and_leaves_what_else_waits_for_the_path() {
    let mut bench = bench(true, external());
    let read_it = bench.ask(read("a", "s", "p"));
    assert_eq!(bench.blocked().await, "b1 pending");
    let may_read = bench.ask(Request { via: Via::Permission, ..read("a", "s", "p") });
    assert_eq!(bench.blocked().await, "b2 pending");
    let answer = Decision::Answer { content: "text".to_owned() };
    bench.routing.resolve(id("b1"), answer, Decider::Person).await.unwrap();
    assert_eq!(read_it.await.unwrap(), Some(Settlement::Answered("text".to_owned())));
    assert_eq!(bench.statuses().await, ["b1 answered", "b2 pending"]);
    bench.routing.resolve(id("b2"), ALLOW, Decider::Person).await.unwrap();
    assert_eq!(may_read.await.unwrap(), Some(Settlement::Allowed));
}

#[tokio::test(start_paused = true)]
async fn allowed_once_is_for_one_tool_call_however_it_asks() {
    let via = |via, path| Request {
        via,
        caller: (via == Via::Kernel).then_some(1),
        reason: None,
        ..read("a", "s", path)
    };
    for first in [Via::Permission, Via::Terminal, Via::Fs, Via::Kernel] {
        for held in [true, false] {
            let mut bench = bench(held, external());
            let ask = bench.ask(via(first, "p"));
            bench.blocked().await;
            if held {
                bench.routing.resolve(id("b1"), ALLOW, Decider::Person).await.unwrap();
                assert_eq!(ask.await.unwrap(), Some(Settlement::Allowed));
            } else {
                assert_eq!(ask.await.unwrap(), denied("b1"));
                bench.routing.resolve(id("b1"), ALLOW, Decider::Person).await.unwrap();
                assert_eq!(bench.routing.request(via(first, "p")).await, Some(Settlement::Allowed));
            }
            let asked_anew = async |request: Request| {
                let before = bench.routing.list(None).await.len();
                let ask = bench.ask(Request { may_wait: false, ..request });
                let allowed = ask.await.unwrap() == Some(Settlement::Allowed);
                assert_eq!(allowed, bench.routing.list(None).await.len() == before);
                !allowed
            };
            // Every other way once, and what one process opens as often as it likes.
            for next in [Via::Permission, Via::Terminal, Via::Fs] {
                assert_eq!(asked_anew(via(next, "p")).await, next == first, "{first:?} {next:?}");
                assert!(asked_anew(via(next, "p")).await, "{first:?} {next:?}");
            }
            assert!(!asked_anew(via(Via::Kernel, "p")).await, "{first:?}");
            assert!(!asked_anew(via(Via::Kernel, "p")).await, "{first:?}");
            // Nothing else.
            assert!(asked_anew(via(Via::Kernel, "q")).await);
            assert!(asked_anew(Request { action: Action::Write, ..via(Via::Kernel, "p") }).await);
            assert!(
                asked_anew(Request { key: read("a", "t", "p").key, ..via(Via::Kernel, "p") }).await
            );
            bench.routing.turn_over(read("a", "s", "p").key);
            assert!(asked_anew(via(Via::Kernel, "p")).await);
            bench.cancel.cancel();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_process_was_allowed_once_no_other_opens() {
    let bench = bench(false, external());
    let of = |caller| Request { via: Via::Kernel, caller: Some(caller), ..read("a", "s", "p") };
    assert_eq!(bench.routing.request(of(1)).await, denied("b1"));
    bench.routing.resolve(id("b1"), ALLOW, Decider::Person).await.unwrap();
    assert_eq!(bench.routing.request(of(1)).await, Some(Settlement::Allowed));
    assert_eq!(bench.routing.request(of(1)).await, Some(Settlement::Allowed));
    assert_eq!(bench.routing.request(of(2)).await, denied("b2"));
    bench.cancel.cancel();
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_one_tool_call_ends_by_itself() {
    let bench = bench(false, external());
    let kernel = || Request { via: Via::Kernel, ..read("a", "s", "p") };
    for (ttl, lasts) in [(None, 10), (Some(Duration::from_secs(3)), 3)] {
        let denied = bench.routing.request(kernel()).await;
        let Some(Settlement::Denied { id, .. }) = denied else { panic!("{denied:?}") };
        bench
            .routing
            .resolve(
                id,
                Decision::Allow { scope: GrantSpan::Once, ttl, pattern: None },
                Decider::Person,
            )
            .await
            .unwrap();
        assert_eq!(bench.routing.request(kernel()).await, Some(Settlement::Allowed));
        tokio::time::sleep(Duration::from_millis(lasts * 1000 - 1)).await;
        assert_eq!(bench.routing.request(kernel()).await, Some(Settlement::Allowed));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_ne!(bench.routing.request(kernel()).await, Some(Settlement::Allowed));
    bench.cancel.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_denied_access_that_completes_all_the_same_is_named_once() {
    let mut bench = bench(false, external());
    let done = |path: &str| Request { via: Via::Tool, ..read("a", "s", path) };
    assert_eq!(bench.routing.observed(done("p")).await, Some(id("b1")));
    assert_eq!(bench.routing.request(read("a", "s", "p")).await, denied("b2"));
    assert_eq!(bench.routing.observed(done("p")).await, Some(id("b3")));
    assert_eq!(bench.routing.observed(done("p")).await, Some(id("b4")));
    for (status, completed) in [
        ("b1 observed", false),
        ("b2 denied", false),
        ("b2 denied", true),
        ("b3 observed", false),
        ("b4 observed", false),
    ] {
        let access = bench.access().await;
        let seen = format!("{} {}", access.id, access.status.as_str());
        assert_eq!((seen.as_str(), access.completed), (status, completed));
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_kernel_stopped_was_not_done_whatever_its_call_reports() {
    let mut bench = bench(false, external());
    let stopped = Request { via: Via::Kernel, caller: Some(7), ..read("a", "s", "p") };
    assert_eq!(bench.routing.request(stopped).await, denied("b1"));
    let done = Request { via: Via::Tool, ..read("a", "s", "p") };
    assert_eq!(bench.routing.observed(done).await, None);
    assert!(!bench.access().await.completed);
    let named = bench.access().await;
    assert_eq!((named.id, named.completed), (id("b1"), true));
    assert_eq!(bench.statuses().await, ["b1 denied"]);
}
