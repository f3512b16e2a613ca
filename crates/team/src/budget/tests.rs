//! Budgets under load, over time, and at their ends.

#![allow(clippy::unwrap_used)]

mod helpers;

mod at_once;
mod bounds;
mod earlier;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use eisen_base::task;
use tokio::task::yield_now;
use tokio::time::advance;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::bus::{Backlog, Received};
use crate::model::{
    BudgetState, Charge, Cost, Figure, OnExceed, Price, SessionId, Spending, TokenKind, Tokens,
};

fn agent(id: &str) -> AgentId {
    AgentId::new(id)
}

fn alone(id: &str, settings: Settings) -> AgentSettings {
    AgentSettings { agent: agent(id), parent: None, settings }
}

fn tokens(total: u64) -> Spending {
    let mut tokens = Tokens::default();
    tokens.set(TokenKind::Total, Figure::Measured(total));
    Spending { tokens: Some(tokens), cost: Some(Charge::Unknown), model: None }
}

fn money(amount: f64, currency: &str) -> Spending {
    let cost = Cost { amount, currency: currency.into() };
    Spending { cost: Some(Charge::Measured(cost)), ..Spending::default() }
}

fn limits(limits: BudgetLimits) -> Settings {
    Settings { limits, ..Settings::default() }
}

fn of_tokens(tokens: u64) -> BudgetLimits {
    BudgetLimits { tokens: Some(tokens), ..BudgetLimits::default() }
}

/// Budgets of a team, and of its agent `a`.
fn budgets(team: Settings, own: Settings) -> Budgets {
    let budgets = Budgets::default();
    let others = ["b", "lead"].map(|id| alone(id, Settings::default()));
    budgets.configure(Some(agent("lead")), team, others.into_iter().chain([alone("a", own)]));
    budgets
}

/// A turn that uses this much.
async fn turn(account: &Account, spending: Spending) -> Result<(), Arc<str>> {
    let session = SessionId::new("s");
    let share = account.reserve(false).await?;
    account.turn_began(&session);
    account.spend(&session, &mut spending.clone());
    account.turn_ended(&session);
    drop(share);
    Ok(())
}

fn report(budgets: &Budgets, of: Option<&str>) -> BudgetReport {
    let of = of.map(agent);
    budgets.reports().into_iter().find(|report| report.agent == of).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_thousand_prompts_at_once_stay_within_the_limit_and_one_turn() {
    const LIMIT: u64 = 100_000;
    const TURN: u64 = 700;
    let budgets = Budgets::default();
    let agents: Vec<_> = (0..20).map(|n| agent(&format!("a{n}"))).collect();
    let own = agents.iter().map(|agent| alone(agent.as_str(), Settings::default()));
    budgets.configure(None, limits(of_tokens(LIMIT)), own);
    let (running, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut prompts = tokio::task::JoinSet::new();
    for n in 0..1_000 {
        let account = budgets.account(&agents[n % agents.len()], None);
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        prompts.spawn(async move {
            let session = SessionId::new(format!("s{n}"));
            let share = account.reserve(false).await?;
            account.turn_began(&session);
            most.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            for _ in 0..7 {
                yield_now().await;
                account.spend(&session, &mut tokens(TURN / 7));
            }
            running.fetch_sub(1, Ordering::Relaxed);
            account.turn_ended(&session);
            drop(share);
            Ok::<_, Arc<str>>(())
        });
    }
    let done = prompts.join_all().await;
    let sent = done.iter().filter(|done| done.is_ok()).count() as u64;
    let reason = done.iter().find_map(|done| done.as_ref().err()).unwrap();
    assert!(reason.contains("of 100000 tokens are used; prompts are refused until"), "{reason}");
    let used = sent * TURN;
    assert_eq!(report(&budgets, None).tokens.known, Some(used));
    // All of it is used, and no more than the last turn passes it.
    assert!((LIMIT..LIMIT + TURN).contains(&used), "{used}");
    // They ran at once, though not all while nothing was known of them.
    let most = most.load(Ordering::Relaxed);
    assert!(most >= 10, "{most}");
}

#[tokio::test(start_paused = true)]
async fn turns_that_take_more_than_expected_pass_the_limit_by_a_report_each() {
    const LIMIT: u64 = 100_000;
    const REPORT: u64 = 900;
    let budgets = budgets(limits(of_tokens(LIMIT)), Settings::default());
    let running = Arc::new(AtomicU64::new(0));
    let mut prompts = tokio::task::JoinSet::new();
    for n in 0..1_000 {
        let (account, running) = (budgets.account(&agent("a"), None), Arc::clone(&running));
        prompts.spawn(async move {
            let session = SessionId::new(format!("s{n}"));
            let Ok(share) = account.reserve(false).await else { return 0 };
            account.turn_began(&session);
            running.fetch_add(1, Ordering::Relaxed);
            // A runaway: it goes on until it is cut.
            let mut at_once = 0;
            while account.standing().borrow().cut.is_none() {
                yield_now().await;
                at_once = running.load(Ordering::Relaxed);
                account.spend(&session, &mut tokens(REPORT));
            }
            running.fetch_sub(1, Ordering::Relaxed);
            account.turn_ended(&session);
            drop(share);
            at_once
        });
    }
    let at_once = prompts.join_all().await.into_iter().max().unwrap();
    let stands = report(&budgets, None);
    let over = stands.tokens.known.unwrap() - LIMIT;
    assert_eq!(stands.largest_tokens, REPORT);
    assert!(at_once <= 10, "a tenth is reserved for each: {at_once}");
    assert!(over < at_once * REPORT, "{over} over, {at_once} at once");
}

#[tokio::test(start_paused = true)]
async fn each_total_is_a_limit_of_its_own() {
    for (totals, spending, turns, why) in [
        (of_tokens(10), tokens(5), 2, "10 of 10 tokens are used"),
        (
            BudgetLimits { cost: Some(1.0), ..BudgetLimits::default() },
            money(0.5, "USD"),
            2,
            "1.00 of 1.00 USD are spent",
        ),
        (
            BudgetLimits { turns: Some(3), ..BudgetLimits::default() },
            tokens(1),
            3,
            "3 of 3 turns are used",
        ),
    ] {
        for (team, own) in
            [(limits(totals), Settings::default()), (Settings::default(), limits(totals))]
        {
            let budgets = budgets(team, own);
            let account = budgets.account(&agent("a"), None);
            for _ in 0..turns {
                turn(&account, spending.clone()).await.unwrap();
            }
            let refusal = turn(&account, spending.clone()).await.unwrap_err();
            assert!(refusal.contains(why), "{refusal}");
            assert_eq!(account.refusal().as_ref(), Some(&refusal));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_said_is_not_counted_and_said_to_be_missing() {
    let totals = BudgetLimits { tokens: Some(10), cost: Some(1.0), ..BudgetLimits::default() };
    let budgets = budgets(limits(totals), Settings::default());
    let account = budgets.account(&agent("a"), None);
    let unknown = Spending { tokens: Some(Tokens::default()), ..Spending::default() };
    turn(&account, unknown).await.unwrap();
    turn(&account, money(50.0, "EUR")).await.unwrap();
    let stands = report(&budgets, None);
    assert_eq!((stands.tokens.known, stands.tokens.unknown), (None, 1));
    assert_eq!((stands.cost, stands.cost_unknown), (None, 1));
    assert_eq!(stands.state, BudgetState::Open);
}

#[tokio::test(start_paused = true)]
async fn tokens_are_priced_by_their_model_or_the_agent_s() {
    let price = Price {
        input: 1e6,
        output: 1e6,
        cached_read: None,
        cached_write: None,
        currency: "USD".into(),
    };
    let budgets = Budgets::with_bus(PriceList::new([("m".to_owned(), price)]), None);
    budgets.configure(None, limits(of_tokens(1_000)), [alone("a", Settings::default())]);
    let cost = |model: Option<&str>, named: Option<&str>| {
        let account = budgets.account(&agent("a"), model.map(Into::into));
        let mut spending = Spending { model: named.map(Into::into), ..tokens(2) };
        account.spend(&SessionId::new("s"), &mut spending);
        spending.cost.unwrap().known().map(|cost| cost.amount)
    };
    assert_eq!(cost(None, None), None);
    assert_eq!(cost(None, Some("x/M")), Some(2.0));
    assert_eq!(cost(Some("m"), None), Some(2.0));
    assert_eq!(cost(Some("m"), Some("other")), None);
}

#[tokio::test(start_paused = true)]
async fn prompts_wait_while_turns_that_run_may_use_the_rest() {
    let budgets = budgets(limits(of_tokens(100)), Settings::default());
    let (a, b) = (budgets.account(&agent("a"), None), budgets.account(&agent("b"), None));
    turn(&a, tokens(40)).await.unwrap();
    turn(&b, tokens(1)).await.unwrap();
    let session = SessionId::new("s");
    let share = a.reserve(false).await.unwrap();
    a.turn_began(&session);
    // Its first turn took 40, and so may this one: then a third does not fit.
    let second = task::spawn({
        let a = a.clone();
        async move { turn(&a, tokens(10)).await }
    });
    advance(Duration::from_secs(60)).await;
    assert!(!second.is_finished());
    // A smaller one does.
    turn(&b, tokens(1)).await.unwrap();
    a.spend(&session, &mut tokens(5));
    a.turn_ended(&session);
    drop(share);
    second.await.unwrap().unwrap();
    // A share that was not used is given back.
    for _ in 0..100 {
        drop(a.reserve(false).await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_of_the_lead_does_not_wait_for_the_lead() {
    let budgets = budgets(limits(of_tokens(100)), Settings::default());
    let (lead, a) = (budgets.account(&agent("lead"), None), budgets.account(&agent("a"), None));
    turn(&lead, tokens(50)).await.unwrap();
    turn(&a, tokens(30)).await.unwrap();
    let _share = lead.reserve(false).await.unwrap();
    lead.turn_began(&SessionId::new("l"));
    let asked = tokio::time::timeout(Duration::from_secs(9), a.reserve(false)).await;
    assert!(asked.is_err(), "it may need the rest itself");
    let asked = tokio::time::timeout(Duration::from_secs(9), a.reserve(true)).await;
    drop(asked.unwrap().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_budget_warns_is_exceeded_and_is_raised() {
    let bus = Bus::new(Backlog::of(64));
    let mut events = bus.subscribe();
    let budgets = Budgets::new(PriceList::default(), bus);
    let own = Settings { on_exceed: OnExceed::Cancel, ..limits(of_tokens(100)) };
    budgets.configure(None, Settings::default(), [alone("a", own.clone())]);
    let account = budgets.account(&agent("a"), None);
    let mut states = Vec::new();
    for used in [79, 1, 20] {
        turn(&account, tokens(used)).await.unwrap();
        while let Some(Received::Event(_, event)) = events.try_recv() {
            let Event::Budget(report) = &**event else { panic!("{event:?}") };
            states.push((report.state.as_str(), report.tokens.known.unwrap()));
        }
    }
    assert_eq!(states, [("warned", 80), ("exceeded", 100)]);
    assert_eq!(account.standing().borrow().cut, Some(OnExceed::Cancel));

    assert!(budgets.raise(Some(&agent("nobody")), of_tokens(1)).is_none());
    let raised = budgets.raise(Some(&agent("a")), of_tokens(150)).unwrap();
    assert_eq!((raised.state, raised.limits.tokens), (BudgetState::Open, Some(150)));
    assert_eq!(*account.standing().borrow(), BudgetStanding::default());
    turn(&account, tokens(50)).await.unwrap();
    assert!(turn(&account, tokens(1)).await.is_err());
    // The same configuration leaves it; another one is the person's newer word.
    budgets.configure(None, Settings::default(), [alone("a", own.clone())]);
    assert_eq!(report(&budgets, Some("a")).limits.tokens, Some(150));
    let own = Settings { limits: of_tokens(120), ..own };
    budgets.configure(None, Settings::default(), [alone("a", own)]);
    assert_eq!(report(&budgets, Some("a")).limits.tokens, Some(120));
    // One without a budget gets one.
    budgets.raise(None, of_tokens(100)).unwrap();
    assert_eq!(report(&budgets, None).state, BudgetState::Exceeded);
}

#[tokio::test(start_paused = true)]
async fn the_last_of_a_number_of_turns_goes_on() {
    let turns = BudgetLimits { turns: Some(1), ..BudgetLimits::default() };
    let budgets = budgets(limits(turns), Settings::default());
    let account = budgets.account(&agent("a"), None);
    let _share = account.reserve(false).await.unwrap();
    account.turn_began(&SessionId::new("s"));
    let stands = account.standing().borrow().clone();
    assert!(stands.refusal.is_some() && stands.cut.is_none(), "{stands:?}");
}

#[tokio::test(start_paused = true)]
async fn estimates_count_until_there_is_a_report() {
    let budgets = budgets(limits(of_tokens(100)), Settings::default());
    let account = budgets.account(&agent("a"), None);
    let session = SessionId::new("s");
    let _share = account.reserve(false).await.unwrap();
    account.turn_began(&session);
    account.foresee(&session, (60, 60), None);
    assert_eq!(account.refusal(), None);
    account.foresee(&session, (120, 120), None);
    assert!(account.refusal().is_some());
    // It was less.
    account.spend(&session, &mut tokens(70));
    account.turn_ended(&session);
    assert_eq!(account.refusal(), None);
    assert_eq!(report(&budgets, None).tokens.known, Some(70));
}

#[tokio::test(start_paused = true)]
async fn minutes_pass_in_turns_and_windows_move_on() {
    let minutes = BudgetLimits { minutes: Some(2), ..BudgetLimits::default() };
    let hour = Some(Duration::from_secs(3_600));
    let budgets = budgets(limits(minutes), Settings { window: hour, ..limits(of_tokens(100)) });
    let cancel = CancellationToken::new();
    let running = task::spawn(budgets.clone().run(cancel.clone()));
    let (a, b) = (budgets.account(&agent("a"), None), budgets.account(&agent("b"), None));
    let mut standing = a.standing();

    // The window.
    turn(&a, tokens(100)).await.unwrap();
    standing.wait_for(|now| now.refusal.is_some()).await.unwrap();
    let begun = Instant::now();
    standing.wait_for(|now| now.refusal.is_none()).await.unwrap();
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_secs(3_540) && waited <= Duration::from_secs(3_601));

    // Two turns at once: a minute of each.
    let begun = Instant::now();
    for account in [&a, &b] {
        std::mem::forget(account.reserve(false).await.unwrap());
        account.turn_began(&SessionId::new("s"));
    }
    standing.wait_for(|now| now.cut.is_some()).await.unwrap();
    let ran = begun.elapsed();
    assert!(ran >= Duration::from_secs(60) && ran < Duration::from_secs(62), "{ran:?}");
    assert!(b.standing().borrow().cut.is_some(), "it is the team's");
    for account in [&a, &b] {
        account.turn_ended(&SessionId::new("s"));
    }
    // Nothing runs: no time passes.
    let used = report(&budgets, None).minutes;
    advance(Duration::from_secs(600)).await;
    assert_eq!(report(&budgets, None).minutes.to_bits(), used.to_bits());
    cancel.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_only_fills_is_published_once_a_second() {
    let bus = Bus::new(Backlog::of(10_000));
    let mut events = bus.subscribe();
    let budgets = Budgets::new(PriceList::default(), bus);
    budgets.configure(None, limits(of_tokens(1_000_000)), [alone("a", Settings::default())]);
    let cancel = CancellationToken::new();
    let running = task::spawn(budgets.clone().run(cancel.clone()));
    let account = budgets.account(&agent("a"), None);
    for _ in 0..1_000 {
        turn(&account, tokens(1)).await.unwrap();
        advance(Duration::from_millis(10)).await;
    }
    let mut lines = 0;
    while let Some(Received::Event(..)) = events.try_recv() {
        lines += 1;
    }
    assert!((5..=12).contains(&lines), "{lines} in ten seconds");
    cancel.cancel();
    running.await.unwrap();
}
