//! Budgets that go on after a kill, and over windows.

use super::*;
use crate::model::Used;

const MINUTE_MS: u64 = 60_000;

fn earlier(budgets: &Budgets, id: &str, minutes_ago: u64, is_of_run: bool, used: Used) {
    budgets.count_earlier(&EarlierUse {
        agent: Some(agent(id)).filter(|_| !id.is_empty()),
        timestamp_ms: now_ms() - minutes_ago * MINUTE_MS,
        is_of_run,
        used,
    });
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_and_a_window_counts_over_runs() {
    let hour = Some(Duration::from_secs(3_600));
    let team = limits(of_tokens(100));
    let budgets = budgets(team, Settings { window: hour, ..limits(of_tokens(100)) });
    for (minutes_ago, is_of_run) in [(90, true), (50, false), (10, true)] {
        earlier(&budgets, "a", minutes_ago, is_of_run, Used::Spent(tokens(30)));
        earlier(&budgets, "a", minutes_ago, is_of_run, Used::Turn);
        let time = Used::Time(Duration::from_secs(120));
        earlier(&budgets, "a", minutes_ago, is_of_run, time);
    }
    // Of an agent that is in the team no more.
    earlier(&budgets, "gone", 10, true, Used::Spent(tokens(30)));
    budgets.resumed();
    let (team, own) = (report(&budgets, None), report(&budgets, Some("a")));
    let whole = |minutes: f64| format!("{minutes:.0}");
    assert_eq!((team.tokens.known, team.turns, whole(team.minutes)), (Some(90), 2, "4".to_owned()));
    assert_eq!((own.tokens.known, own.turns, whole(own.minutes)), (Some(60), 2, "4".to_owned()));
    assert_eq!((team.state, own.state), (BudgetState::Warned, BudgetState::Open));
    assert_eq!((team.largest_tokens, budgets.reports().len()), (30, 2));

    let account = budgets.account(&agent("a"), None);
    turn(&account, tokens(10)).await.unwrap();
    let refusal = turn(&account, tokens(1)).await.unwrap_err();
    assert!(refusal.contains("the team's budget is used up: 100 of 100"), "{refusal}");
    // The window moves on over what was before.
    advance(Duration::from_secs(15 * 60)).await;
    assert_eq!(report(&budgets, Some("a")).tokens.known, Some(40));
}

#[tokio::test(start_paused = true)]
async fn raised_totals_of_the_run_stay_unless_the_file_says_otherwise() {
    let totals = |tokens, configured| Used::Totals { limits: of_tokens(tokens), configured };
    for (is_of_run, configured, stays) in [(true, 100, 500), (true, 200, 100), (false, 100, 100)] {
        let budgets = budgets(limits(of_tokens(100)), limits(of_tokens(100)));
        for whose in ["", "a"] {
            earlier(&budgets, whose, 5, is_of_run, totals(500, of_tokens(configured)));
        }
        earlier(&budgets, "a", 5, is_of_run, Used::Spent(tokens(100)));
        budgets.resumed();
        for of in [None, Some("a")] {
            assert_eq!(report(&budgets, of).limits.tokens, Some(stays));
        }
        let is_refused = budgets.account(&agent("a"), None).refusal().is_some();
        assert_eq!(is_refused, is_of_run && stays == 100);
    }
    // The last totals count, and those of a budget that the file does not have.
    let budgets = budgets(Settings::default(), Settings::default());
    for tokens in [5, 9] {
        earlier(&budgets, "a", 1, true, totals(tokens, BudgetLimits::default()));
    }
    budgets.resumed();
    assert_eq!(report(&budgets, Some("a")).limits.tokens, Some(9));
}

#[tokio::test(start_paused = true)]
async fn what_helpers_used_stays_their_parent_s() {
    let team = limits(of_tokens(1_000));
    let budgets = budgets(team, limits(of_tokens(100)));
    for (by, helper) in [("a", "a-h1"), ("a-h1", "a-h1-h1"), ("a-h1-h1", "a"), ("b", "a-h1")] {
        earlier(&budgets, by, 10, true, Used::Helper(agent(helper)));
    }
    for helper in ["a-h1", "a-h1-h1"] {
        earlier(&budgets, helper, 5, true, Used::Spent(tokens(30)));
    }
    budgets.resumed();
    let known = |of| report(&budgets, of).tokens.known;
    assert_eq!((known(None), known(Some("a"))), (Some(60), Some(60)));
    assert_eq!(budgets.reports().len(), 2);
}
