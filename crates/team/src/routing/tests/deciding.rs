//! Tests of the right to decide.

use super::*;
use crate::model::DecidedBy;
use crate::routing::task::questions::AskingMsg;
use crate::tasks::WaitKind;

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
async fn what_the_decider_waits_for_is_not_held_for_it() {
    let bench = bench(true, lead());
    let (a, decider) = (AgentId::new("a"), [AgentId::new("lead")]);
    let asks = bench.waits.begin(&decider[0], std::slice::from_ref(&a), WaitKind::Answer).unwrap();
    let Some(Settlement::Denied { message, .. }) = bench.routing.request(read("a", "s", "p")).await
    else {
        unreachable!()
    };
    assert!(message.as_ref().unwrap().contains("`a` → `lead` → `a`"), "{message:?}");
    // It is woken by what its task needs. Meanwhile it can't wait for the agent otherwise.
    drop(asks);
    let task = bench.waits.begin(&decider[0], std::slice::from_ref(&a), WaitKind::Task).unwrap();
    let asked = bench.ask(read("a", "s", "q"));
    eventually("it is held", async || bench.statuses().await == ["b1 denied", "b2 pending"]).await;
    let asks = || bench.waits.begin(&decider[0], std::slice::from_ref(&a), WaitKind::Answer);
    assert!(asks().is_err());
    bench.routing.resolve(id("b2"), ALLOW, Decider::Agent(decider[0].clone())).await.unwrap();
    assert_eq!(asked.await.unwrap(), Some(Settlement::Allowed));
    eventually("the wait is over", async || asks().is_ok()).await;
    drop(task);
}

#[tokio::test(start_paused = true)]
async fn what_a_denied_pattern_matches_only_a_person_opens_who_says_so() {
    let answer = Decision::Answer { content: "text".into() };
    let session = Decision::Allow { scope: GrantSpan::Session, ttl: None, pattern: None };
    let env = || Request { denied_by: Some("**/.env".into()), ..read("a", "s", "ui/.env") };
    let agent = || Decider::Agent(AgentId::new("lead"));
    for hold in [false, true] {
        for decision in [ALLOW, session.clone(), answer.clone()] {
            let bench = bench(hold, lead());
            let asked = bench.ask(env());
            eventually("the access is listed", async || !bench.routing.list(None).await.is_empty())
                .await;
            let resolve = |by| bench.routing.resolve(id("b1"), decision.clone(), by);
            for by in [agent(), Decider::Person] {
                let refused = resolve(by).await.unwrap_err();
                let (path, pattern) = ("ui/.env".into(), "**/.env".into());
                let error = ResolveError::DeniedBy { id: id("b1"), path, by: pattern };
                assert_eq!(refused, error);
                assert!(refused.to_string().contains("--even-denied"), "{refused}");
            }
            resolve(Decider::Insistent).await.unwrap();
            let settled = asked.await.unwrap().unwrap();
            let settled = if hold { Some(settled) } else { bench.routing.request(env()).await };
            let expected = match &decision {
                Decision::Answer { content } => Settlement::Answered(content.clone()),
                _ => Settlement::Allowed,
            };
            assert_eq!(settled, Some(expected));
        }
    }
    let bench = bench(false, lead());
    bench.routing.request(env()).await;
    let deny = Decision::Deny { message: None };
    bench.routing.resolve(id("b1"), deny, agent()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_granted_before_does_not_open_what_is_denied_by_then() {
    let bench = bench(false, lead());
    let env = |denied_by: Option<&str>| Request {
        denied_by: denied_by.map(Into::into),
        ..read("a", "s", "ui/.env")
    };
    bench.routing.request(env(None)).await;
    let session = Decision::Allow { scope: GrantSpan::Session, ttl: None, pattern: None };
    let agent = Decider::Agent(AgentId::new("lead"));
    bench.routing.resolve(id("b1"), session.clone(), agent.clone()).await.unwrap();
    assert_eq!(bench.routing.request(env(None)).await, Some(Settlement::Allowed));
    assert_eq!(bench.routing.request(env(Some(".env"))).await, denied("b2"));
    // Nor is it decided along with what was not denied.
    bench.routing.request(read("a", "s", "x")).await;
    bench.routing.request(Request { denied_by: Some("x".into()), ..read("a", "s", "x") }).await;
    bench.routing.resolve(id("b3"), ALLOW, agent).await.unwrap();
    let statuses = bench.statuses().await;
    assert_eq!(statuses[2..], ["b3 allowed", "b4 denied"]);
    bench.routing.resolve(id("b2"), session, Decider::Insistent).await.unwrap();
    assert_eq!(bench.routing.request(env(Some(".env"))).await, Some(Settlement::Allowed));
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

#[tokio::test(start_paused = true)]
async fn what_is_said_with_a_denial_is_kept_if_the_agent_did_not_hear_it() {
    let mut bench = bench(true, external());
    let deny = |text: &str| Decision::Deny { message: Some(text.into()) };
    let agent = AgentId::new("a");
    for (number, via, path, said) in
        [(1, Via::Fs, "p", None), (2, Via::Kernel, "p`q", Some("- read `p\\u{60}q`: denied: no"))]
    {
        let asked = bench.ask(Request { via, ..read("a", "s", path) });
        bench.blocked().await;
        let id = BlockedId::new(format!("b{number}"));
        bench.routing.resolve(id, deny("no"), Decider::Person).await.unwrap();
        asked.await.unwrap();
        bench.blocked().await;
        let notes = bench.routing.notes(agent.clone()).await;
        assert_eq!(notes, said.into_iter().collect::<Vec<_>>());
    }
    // Once is enough; and of many the last are kept.
    assert_eq!(bench.routing.notes(agent.clone()).await, Vec::<String>::new());
    for number in 0..30 {
        let request = Request { may_wait: false, ..read("a", "s", &number.to_string()) };
        let Some(Settlement::Denied { id, .. }) = bench.routing.request(request).await else {
            panic!()
        };
        bench.routing.resolve(id, deny(&"x".repeat(9000)), Decider::Person).await.unwrap();
    }
    let notes = bench.routing.notes(agent).await;
    assert_eq!((notes.len(), notes[0].starts_with("- read `10`")), (20, true));
    assert!(notes.iter().all(|note| note.len() < 4200));
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_in_one_of_several_turns_is_allowed_for_all_their_sessions() {
    let bench = bench(false, external());
    let request = Request { via: Via::Request, hold: true, ..read("a", "", "p") };
    let sessions = ["s1", "s2"].map(SessionId::new).to_vec();
    let message = |reply| RoutingMsg::Asking(AskingMsg::Access { request, sessions, reply });
    let asked = bench.routing.ask_from(None, message).await.unwrap();
    let AccessAnswer::Waits(blocked, settled) = asked else { panic!("{asked:?}") };
    let allow = Decision::Allow { scope: GrantSpan::Session, ttl: None, pattern: None };
    bench.routing.resolve(blocked, allow, Decider::Person).await.unwrap();
    assert_eq!(settled.await.unwrap(), Settlement::Allowed);
    for session in ["s1", "s2", "s1"] {
        assert_eq!(bench.routing.request(read("a", session, "p")).await, Some(Settlement::Allowed));
    }
    assert_eq!(bench.routing.request(read("a", "s3", "p")).await, denied("b2"));
}

#[tokio::test(start_paused = true)]
async fn the_first_decision_wins_and_the_others_see_whose_it_was() {
    let mut bench = bench(true, lead());
    let _held = bench.ask(read("a", "s", "p"));
    assert_eq!(bench.access().await.decided_by, None);
    let by_lead = || Decider::Agent(AgentId::new("lead"));
    let resolved = bench.routing.resolve(id("b1"), ALLOW, by_lead()).await.unwrap();
    let lead = Some(DecidedBy::Agent(AgentId::new("lead")));
    assert_eq!((&resolved.decided_by, &bench.access().await.decided_by), (&lead, &lead));
    let deny = || Decision::Deny { message: None };
    let late = bench.routing.resolve(id("b1"), deny(), Decider::Person).await.unwrap_err();
    assert_eq!(late.to_string(), "b1 is decided already: allowed by `lead`");
    // What was denied at once is denied again, by a person: others must see that, too.
    let at_once = Request { may_wait: false, ..read("a", "s", "q") };
    bench.routing.request(at_once).await;
    assert_eq!(bench.access().await.decided_by, None);
    bench.routing.resolve(id("b2"), deny(), Decider::Person).await.unwrap();
    let denied = bench.access().await;
    let is = (denied.status, denied.decided_by);
    assert_eq!(is, (BlockedStatus::Denied, Some(DecidedBy::Person)));
    let late = bench
        .routing
        .resolve(id("b2"), ALLOW, Decider::Holder { by: DecidedBy::Web, insists: false })
        .await
        .unwrap_err();
    assert_eq!(late.to_string(), "b2 is decided already: denied by a person");
}
