//! Rules of `[[routing]]`: which one matches, and what becomes of an access by it.

use std::time::SystemTime;

use super::owners::answer_of;
use super::*;
use crate::model::{Decide, DecidedBy, RuleSpec};
use crate::routing::task::questions::AskingMsg;
use crate::zone::{GitAccess, ZoneSpec};

pub(super) fn rule(decide: Decide) -> RuleSpec {
    RuleSpec { paths: Vec::new(), agents: Vec::new(), via: Vec::new(), action: None, decide }
}

pub(super) fn on(path: &str, decide: Decide) -> RuleSpec {
    RuleSpec { paths: vec![path.to_owned()], ..rule(decide) }
}

pub(super) fn rules(specs: Vec<RuleSpec>) -> Rules {
    Rules { routing: RoutingRules::compile(specs).unwrap(), ..Rules::default() }
}

fn zone(allowed: &str) -> Arc<Zone> {
    let spec = ZoneSpec {
        workspace: "/".into(),
        allowed: vec![allowed.to_owned()],
        asked: Vec::new(),
        readable: Vec::new(),
        shared: Vec::new(),
        denied: Vec::new(),
        terminals: true,
        git: GitAccess::None,
        branch: None,
        beside: Vec::new(),
        eisen_dir: "/nowhere".into(),
        sealed: Vec::new(),
        journals: Vec::new(),
    };
    Arc::new(Zone::compile(&spec).unwrap())
}

/// With agents `a` and `o`, of which `o` owns `own/**`.
pub(super) fn owned(specs: Vec<RuleSpec>) -> Rules {
    let (a, o) = (zone("a/**"), zone("own/**"));
    let (a_id, o_id) = (AgentId::new("a"), AgentId::new("o"));
    Rules {
        owners: vec![(a_id.clone(), a.clone()), (o_id.clone(), o.clone())],
        zones: [(a_id, a), (o_id, o)].into(),
        ..rules(specs)
    }
}

const BY_LEAD: fn() -> Decider = || Decider::Agent(AgentId::new("lead"));

#[test]
fn the_first_rule_that_matches_counts() {
    let specs = vec![
        RuleSpec { agents: vec![AgentId::new("b")], ..on("x/**", Decide::Deny) },
        RuleSpec { via: vec![Via::Kernel, Via::Terminal], ..on("x/**", Decide::Person) },
        RuleSpec { action: Some(Action::Write), ..on("x/*.rs", Decide::Orchestrator) },
        on("x/**", Decide::Owner),
        on("{x,y}/**", Decide::Allow),
        on("/etc/**", Decide::Deny),
        rule(Decide::Deny),
    ];
    let rules = RoutingRules::compile(specs).unwrap();
    let a = AgentId::new("a");
    let access = RuledAccess {
        agent: &a,
        path: "x/a.rs",
        via: Via::Fs,
        action: Action::Read,
        grantable: true,
        is_denied: false,
        is_search: false,
    };
    let number = |access: RuledAccess<'_>, is_owned| {
        rules.first(&access, || is_owned).map_or(0, |rule| rule.number.get())
    };
    let b = AgentId::new("b");
    assert_eq!(number(RuledAccess { agent: &b, ..access }, true), 1);
    assert_eq!(number(RuledAccess { via: Via::Kernel, ..access }, true), 2);
    assert_eq!(number(RuledAccess { action: Action::Write, ..access }, true), 3);
    assert_eq!(number(access, true), 4);
    // Without an owner, and for a write, the owner's rule does not match.
    assert_eq!(number(access, false), 5);
    assert_eq!(number(RuledAccess { action: Action::Write, path: "x/y/z", ..access }, true), 5);
    // A relative pattern matches in the workspace only, an absolute one outside.
    let all = RoutingRules::compile(vec![on("**", Decide::Allow)]).unwrap();
    assert!(all.first(&access, || false).is_some());
    assert_eq!(all.first(&RuledAccess { path: "/home/me/x.rs", ..access }, || false), None);
    // What keeps a folder from agents keeps a search that finds what is in it.
    let kept =
        RoutingRules::compile(vec![on("a/secrets", Decide::Person), on("**", Decide::Allow)]);
    let decides = |path, is_search| {
        let access = RuledAccess { path, is_search, ..access };
        kept.as_ref().unwrap().first(&access, || false).unwrap().decide
    };
    for (path, is_search, decide) in [
        ("a/secrets", false, Decide::Person),
        ("a/secrets/x/y", false, Decide::Person),
        ("a", true, Decide::Person),
        ("a/secrets/x", true, Decide::Person),
        ("", true, Decide::Person),
        ("a", false, Decide::Allow),
        ("a/b", true, Decide::Allow),
        ("a/secrets2", true, Decide::Allow),
    ] {
        assert_eq!(decides(path, is_search), decide, "{path} {is_search}");
    }
    // What is denied no rule opens, and no owner answers.
    assert_eq!(number(RuledAccess { is_denied: true, ..access }, true), 7);
    assert_eq!(number(RuledAccess { grantable: false, path: "y/a", ..access }, true), 7);
    assert_eq!(number(RuledAccess { path: "/etc/x", ..access }, true), 6);
    assert_eq!(RoutingRules::default().first(&access, || true), None);
}

#[tokio::test(start_paused = true)]
async fn a_rule_allows_without_a_line_and_denies_at_once() {
    let specs = vec![on("in/**", Decide::Allow), on("out/**", Decide::Deny)];
    let bench = ruled(true, lead(), rules(specs), Vec::new());
    let ask = |path: &str| bench.routing.request(read("a", "s", path));
    assert_eq!(ask("in/x").await, Some(Settlement::Allowed));
    assert_eq!(bench.statuses().await, [""; 0]);
    let Some(Settlement::Denied { message, .. }) = ask("out/x").await else { unreachable!() };
    assert_eq!(message.as_deref(), Some("Rule 2 of `[[routing]]` denies it."));
    let listed = bench.routing.list(None).await.remove(0);
    let by = listed.rule.map(|rule| (rule.number.get(), rule.decide));
    assert_eq!((by, listed.orchestrator), (Some((2, Decide::Deny)), None));
    assert_eq!(listed.decided_by, Some(DecidedBy::Rule));
    // The lead is not asked, and can't open it; a person can, for the next try.
    assert_eq!(bench.routing.briefing().await, None);
    let refused = bench.routing.resolve(id("b1"), ALLOW, BY_LEAD()).await.unwrap_err();
    assert!(matches!(refused, ResolveError::ForPerson { .. }), "{refused}");
    bench.routing.resolve(id("b1"), ALLOW, Decider::Person).await.unwrap();
    assert_eq!(ask("out/x").await, Some(Settlement::Allowed));
    // After the fact, too.
    let seen =
        |path: &str| bench.routing.observed(Request { via: Via::Tool, ..read("a", "s", path) });
    assert_eq!(seen("in/y").await, None);
    assert!(seen("out/y").await.is_some());
    let incidental = |path: &str| bench.routing.record_incidental(read("a", "s", path), 1, false);
    assert!(incidental("in/z").await && !incidental("out/z").await);
}

#[tokio::test(start_paused = true)]
async fn what_the_zone_allows_is_under_no_rule() {
    for decide in [Decide::Allow, Decide::Deny] {
        let bench = ruled(false, lead(), rules(vec![rule(decide)]), Vec::new());
        let inside = Request { hold: true, scope: AccessScope::Inside, ..read("a", "s", "x") };
        let asked = bench.ask(Request { via: Via::Permission, ..inside });
        eventually("it is held", async || bench.statuses().await == ["b1 pending"]).await;
        assert!(bench.routing.briefing().await.is_some());
        bench.routing.resolve(id("b1"), ALLOW, BY_LEAD()).await.unwrap();
        assert_eq!(asked.await.unwrap(), Some(Settlement::Allowed));
    }
}

#[tokio::test(start_paused = true)]
async fn a_reload_reaches_what_is_pending() {
    let bench = bench(true, lead());
    let _asked = bench.ask(read("a", "s", "x"));
    eventually("it is held", async || bench.statuses().await == ["b1 pending"]).await;
    bench.routing.change(rules(vec![on("x", Decide::Deny)])).await;
    let refused = bench.routing.resolve(id("b1"), ALLOW, BY_LEAD()).await.unwrap_err();
    assert!(matches!(refused, ResolveError::ForPerson { .. }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_rule_holds_for_the_orchestrator_where_accesses_are_denied_at_once() {
    let bench = ruled(false, lead(), rules(vec![on("x", Decide::Orchestrator)]), Vec::new());
    let asked = bench.ask(read("a", "s", "x"));
    eventually("it is held", async || bench.statuses().await == ["b1 pending"]).await;
    assert!(bench.routing.briefing().await.is_some());
    bench.routing.resolve(id("b1"), ALLOW, BY_LEAD()).await.unwrap();
    assert_eq!(asked.await.unwrap(), Some(Settlement::Allowed));
    // Its own access is held for nobody.
    let own = bench.routing.request(read("lead", "s", "x")).await;
    assert!(matches!(own, Some(Settlement::Denied { .. })), "{own:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_for_a_person_waits_and_no_agent_decides_it() {
    let bench = ruled(false, lead(), rules(vec![on("x", Decide::Person)]), Vec::new());
    let asked = bench.ask(read("a", "s", "x"));
    eventually("it is held", async || bench.statuses().await == ["b1 pending"]).await;
    tokio::time::advance(Duration::from_hours(48)).await;
    assert_eq!(bench.routing.briefing().await, None);
    let refused = bench.routing.resolve(id("b1"), ALLOW, BY_LEAD()).await.unwrap_err();
    assert!(refused.to_string().contains("rule 1 of `[[routing]]`"), "{refused}");
    bench
        .routing
        .resolve(id("b1"), ALLOW, Decider::Holder { by: DecidedBy::Web, insists: false })
        .await
        .unwrap();
    assert_eq!(asked.await.unwrap(), Some(Settlement::Allowed));
    // What the lead allowed by another way opens nothing that is for a person.
    let bench = ruled(
        true,
        lead(),
        rules(vec![RuleSpec { via: vec![Via::Kernel], ..on("x", Decide::Person) }]),
        Vec::new(),
    );
    let asked = bench.ask(read("a", "s", "x"));
    eventually("it is held", async || bench.statuses().await == ["b1 pending"]).await;
    let whole = Decision::Allow { scope: GrantSpan::Session, ttl: None, pattern: None };
    bench.routing.resolve(id("b1"), whole, BY_LEAD()).await.unwrap();
    assert_eq!(asked.await.unwrap(), Some(Settlement::Allowed));
    let _call = bench.ask(Request { via: Via::Kernel, ..read("a", "s", "x") });
    eventually("it is held", async || bench.statuses().await == ["b1 allowed", "b2 pending"]).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_for_a_person_stays_though_its_agent_gives_up() {
    let persons = || rules(vec![on("x", Decide::Person)]);
    let mut bench = ruled(false, lead(), persons(), Vec::new());
    let queued = |bench: &Bench| bench.routing.queue().borrow().len();
    let asked = bench.ask(read("a", "s", "x"));
    assert_eq!(bench.blocked().await, "b1 pending");
    asked.abort();
    let _ = asked.await;
    bench.routing.settled(&AgentId::new("a")).await;
    assert_eq!((bench.statuses().await, queued(&bench)), (vec!["b1 pending".into()], 1));
    // The next attempt waits for the same decision.
    let again = bench.ask(read("a", "s", "x"));
    bench.routing.settled(&AgentId::new("a")).await;
    assert_eq!(bench.statuses().await, ["b1 pending"]);
    again.abort();
    let _ = again.await;
    bench.routing.resolve(id("b1"), ALLOW, Decider::Person).await.unwrap();
    assert!(bench.routing.queue().borrow()[0].permit.is_some());
    let notes = bench.routing.notes(AgentId::new("a")).await;
    assert_eq!(notes, ["- read `x`: a person allowed it: try it again"]);
    assert_eq!(bench.routing.request(read("a", "s", "x")).await, Some(Settlement::Allowed));
    assert_eq!(queued(&bench), 0);
    // Allowed for the session, it is for the next try of any.
    let asked = bench.ask(read("a", "gone", "x"));
    eventually("it is held", async || bench.statuses().await == ["b1 allowed", "b2 pending"]).await;
    asked.abort();
    let _ = asked.await;
    let whole = Decision::Allow { scope: GrantSpan::Session, ttl: None, pattern: None };
    eventually("nobody waits", async || {
        bench.routing.resolve(id("b2"), whole.clone(), Decider::Person).await.is_ok()
    })
    .await;
    assert_eq!(bench.routing.request(read("a", "new", "x")).await, Some(Settlement::Allowed));
    // An earlier run left it: it waits again, unless the rules are others by now.
    let waits = |path| Queued { access: read("a", "old", path), permit: None };
    let bench = ruled(false, lead(), persons(), vec![waits("x"), waits("x"), waits("y")]);
    eventually("it waits", async || bench.statuses().await == ["b1 pending"]).await;
    assert_eq!(queued(&bench), 1);
    bench.routing.forget(AgentId::new("a")).await;
    assert_eq!((bench.statuses().await, queued(&bench)), (vec!["b1 expired".into()], 0));
}

#[tokio::test(start_paused = true)]
async fn what_a_person_allowed_is_left_until_it_is_used() {
    let persons = || rules(vec![on("x", Decide::Person)]);
    let left = async |decision: Decision, by: Decider, denied_by: Option<Arc<str>>| {
        let mut bench = ruled(false, lead(), persons(), Vec::new());
        let asked = bench.ask(Request { denied_by, ..read("a", "s", "x") });
        assert_eq!(bench.blocked().await, "b1 pending");
        asked.abort();
        let _ = asked.await;
        bench.routing.settled(&AgentId::new("a")).await;
        bench.routing.resolve(id("b1"), decision, by).await.unwrap();
        bench.routing.queue().borrow().to_vec()
    };
    let session = Decision::Allow { scope: GrantSpan::Session, ttl: None, pattern: None };
    for decision in [ALLOW, session] {
        let queue = left(decision, Decider::Person, None).await;
        assert_eq!(queue.len(), 1, "{queue:?}");
        assert_eq!(queue[0].permit, Some(Allowance { even_denied: false, expires: None }));
        let bench = ruled(false, lead(), persons(), queue);
        let notes = bench.routing.notes(AgentId::new("a")).await;
        assert_eq!(notes, ["- read `x`: a person allowed it: try it again"]);
        assert_eq!(bench.routing.queue().borrow().len(), 1);
        assert_eq!(bench.routing.request(read("a", "s2", "x")).await, Some(Settlement::Allowed));
        assert_eq!(bench.routing.queue().borrow().len(), 0);
    }
    // A try in the same session uses it, too.
    let mut bench = ruled(false, lead(), persons(), Vec::new());
    let asked = bench.ask(read("a", "s", "x"));
    assert_eq!(bench.blocked().await, "b1 pending");
    asked.abort();
    let _ = asked.await;
    bench.routing.settled(&AgentId::new("a")).await;
    let session = Decision::Allow { scope: GrantSpan::Session, ttl: None, pattern: None };
    bench.routing.resolve(id("b1"), session, Decider::Person).await.unwrap();
    assert_eq!(bench.routing.request(read("a", "s", "x")).await, Some(Settlement::Allowed));
    assert_eq!(bench.routing.queue().borrow().len(), 0);
    // No further than it was meant: not what `denied` matches, and not later.
    let denied = || Request { denied_by: Some("x".into()), ..read("a", "s", "x") };
    let bench = ruled(false, lead(), persons(), left(ALLOW, Decider::Person, None).await);
    let _asked = bench.ask(denied());
    eventually("it is held", async || bench.statuses().await == ["b1 pending"]).await;
    let insisted = left(ALLOW, Decider::Insistent, Some("x".into())).await;
    let bench = ruled(false, lead(), persons(), insisted);
    assert_eq!(bench.routing.request(denied()).await, Some(Settlement::Allowed));
    let short = Decision::Allow {
        scope: GrantSpan::Once,
        ttl: Some(Duration::from_secs(60)),
        pattern: None,
    };
    let mut queue = left(short, Decider::Person, None).await;
    let permit = queue[0].permit.as_mut().unwrap();
    assert!(permit.expires.unwrap() <= SystemTime::now() + Duration::from_secs(60));
    permit.expires = Some(SystemTime::now() - Duration::from_secs(1));
    let bench = ruled(false, lead(), persons(), queue);
    let _asked = bench.ask(read("a", "s", "x"));
    eventually("it is held", async || bench.statuses().await == ["b1 pending"]).await;
    assert_eq!(left(Decision::Deny { message: None }, Decider::Person, None).await, []);
}

#[tokio::test(start_paused = true)]
async fn what_stays_for_a_person_is_bounded() {
    let bench = ruled(false, lead(), rules(vec![rule(Decide::Person)]), Vec::new());
    for n in 0..1200 {
        // As fast as one agent may ask.
        tokio::time::advance(Duration::from_millis(100)).await;
        let path = format!("p{n}");
        let asked = bench.ask(read("a", "s", &path));
        let is_listed = async || bench.routing.list(None).await.len() > n;
        eventually("it is held", is_listed).await;
        asked.abort();
        let _ = asked.await;
    }
    eventually("the last one expired", async || {
        bench.routing.list(Some(BlockedStatus::Expired)).await.len() == 200
    })
    .await;
    assert_eq!(bench.routing.queue().borrow().len(), 1000);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_asks_before_it_tries_is_under_the_same_rules() {
    let specs = vec![
        on("in", Decide::Allow),
        on("out", Decide::Deny),
        on("own/**", Decide::Owner),
        rule(Decide::Person),
    ];
    let bench = ruled(false, lead(), owned(specs), Vec::new());
    let mut questions = bench.routing.take_questions().unwrap();
    let ask = async |path: &str| {
        let request = Request { via: Via::Request, ..read("a", "s", path) };
        let asking =
            |reply| RoutingMsg::Asking(AskingMsg::Access { request, sessions: Vec::new(), reply });
        bench.routing.ask(asking).await.unwrap()
    };
    assert!(matches!(ask("in").await, AccessAnswer::Open));
    assert!(matches!(ask("out").await, AccessAnswer::Closed(why) if why.starts_with("Rule 2")));
    let AccessAnswer::Waits(_, answer) = ask("own/x").await else { unreachable!() };
    let question = questions.recv().await.unwrap();
    bench.routing.owner_answered(question.id, answer_of("o", "so")).await;
    assert_eq!(answer.await.unwrap(), Settlement::Answered("so".to_owned()));
    let AccessAnswer::Waits(waiting, _answer) = ask("else").await else { unreachable!() };
    tokio::time::advance(Duration::from_hours(1)).await;
    let refused = bench.routing.resolve(waiting, ALLOW, BY_LEAD()).await.unwrap_err();
    assert!(matches!(refused, ResolveError::ForPerson { .. }), "{refused}");
    // What it is told it may do, it may do by another way, too.
    let asked = RuleSpec { via: vec![Via::Request], ..rule(Decide::Allow) };
    let bench = ruled(false, lead(), rules(vec![asked]), Vec::new());
    let request = Request { via: Via::Request, ..read("a", "s", "in") };
    let asking =
        |reply| RoutingMsg::Asking(AskingMsg::Access { request, sessions: Vec::new(), reply });
    assert!(matches!(bench.routing.ask(asking).await, Some(AccessAnswer::Open)));
    assert_eq!(bench.routing.request(read("a", "s", "in")).await, Some(Settlement::Allowed));
    assert!(matches!(
        bench.routing.request(read("a", "s", "in2")).await,
        Some(Settlement::Denied { .. })
    ));
}
