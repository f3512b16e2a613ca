//! Prompts of many agents at once, in threads, against one budget.

use super::*;

const AGENTS: usize = 20;
const PROMPTS: usize = 1_000;
const LIMIT: u64 = 2_000_000;

/// The largest report.
const REPORT: u64 = 5_000;

/// Plays a turn of random size, which is cut as a relay cuts one. Returns what it used.
async fn play(account: Account, seed: u64) -> u64 {
    let mut random = fastrand::Rng::with_seed(seed);
    let session = SessionId::new(format!("s{seed}"));
    let Ok(share) = account.reserve(false).await else { return 0 };
    account.turn_began(&session);
    let mut used = 0;
    for _ in 0..random.u64(1..20) {
        if account.standing().borrow().cut.is_some() {
            break;
        }
        yield_now().await;
        let report = random.u64(0..=REPORT);
        used += report;
        account.spend(&session, &mut tokens(report));
    }
    account.turn_ended(&session);
    drop(share);
    used
}

/// The overshoot is less than one largest report for each turn that runs by the first line past the limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_random_prompts_pass_a_budget_by_no_more_than_it_says() {
    for round in 0..4 {
        let bus = Bus::new(Backlog::of(4_096));
        let mut events = bus.subscribe();
        let budgets = Budgets::new(PriceList::default(), bus);
        let agents: Vec<_> = (0..AGENTS).map(|n| agent(&format!("a{n}"))).collect();
        let own = agents.iter().map(|agent| alone(agent.as_str(), Settings::default()));
        budgets.configure(None, limits(of_tokens(LIMIT)), own);
        let mut prompts = tokio::task::JoinSet::new();
        for n in 0..PROMPTS {
            let account = budgets.account(&agents[n % AGENTS], None);
            prompts.spawn(play(account, (round * PROMPTS + n) as u64));
        }
        let used: u64 = prompts.join_all().await.into_iter().sum();
        let stands = report(&budgets, None);
        assert_eq!(stands.tokens.known, Some(used), "round {round}");
        let (mut exceeded, mut warned) = (None, 0);
        while let Some(Received::Event(_, event)) = events.try_recv() {
            let Event::Budget(report) = &**event else { continue };
            match (report.agent.is_none(), report.state) {
                (true, BudgetState::Exceeded) => exceeded = exceeded.or(Some(report.running)),
                (true, BudgetState::Warned) => warned = report.running,
                _ => {}
            }
        }
        assert!(warned > 1, "round {round}: they ran one by one");
        let running = exceeded.unwrap();
        let most = running * stands.largest_tokens;
        let over = used.checked_sub(LIMIT).unwrap();
        assert!(over < most, "round {round}: {over} over, {running} ran, at most {most}");
        assert_eq!((stands.running, stands.reserved_tokens), (0, 0), "all is settled");
    }
}
