//! Helpers' use comes out of their parents' budgets.

use super::*;

/// `parent` with a limit, its helper, and the helper of that.
fn family(limit: u64) -> (Budgets, [Account; 3]) {
    let budgets = Budgets::default();
    let helper = |id: &str, parent: &str| AgentSettings {
        parent: Some(agent(parent)),
        ..alone(id, Settings::default())
    };
    let agents = [alone("a", limits(of_tokens(limit))), helper("a-1", "a"), helper("a-1-1", "a-1")];
    budgets.configure(None, Settings::default(), agents);
    let accounts = ["a", "a-1", "a-1-1"].map(|id| budgets.account(&agent(id), None));
    (budgets, accounts)
}

#[tokio::test(start_paused = true)]
async fn a_helper_uses_up_its_parent_s_budget() {
    let (budgets, [parent, helper, deep]) = family(1_000);
    turn(&deep, tokens(400)).await.unwrap();
    turn(&helper, tokens(500)).await.unwrap();
    assert_eq!(report(&budgets, Some("a")).tokens.known, Some(900));
    turn(&parent, tokens(100)).await.unwrap();
    for account in [&parent, &helper, &deep] {
        let refusal = account.refusal().unwrap();
        assert!(refusal.contains("budget of `a`"), "{refusal}");
    }
    // The team and the helpers have none of their own.
    assert_eq!(budgets.reports().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_parent_in_a_turn_can_wait_for_its_helper() {
    let (_, [parent, helper, deep]) = family(1_000);
    turn(&parent, tokens(900)).await.unwrap();
    let share = parent.reserve(false).await.unwrap();
    // No room is left beside the parent's turn, which waits for this one.
    let below = helper.reserve(false).await.unwrap();
    turn(&deep, tokens(50)).await.unwrap();
    drop((share, below));
}

#[tokio::test(start_paused = true)]
async fn helpers_share_what_is_left() {
    let (_, [_, helper, deep]) = family(1_000);
    turn(&helper, tokens(600)).await.unwrap();
    let share = helper.reserve(false).await.unwrap();
    // `a-1-1` waits in the budget of `a`: not for its parent's turn, which waits for it.
    let _below = deep.reserve(false).await.unwrap();
    let mut another = Box::pin(helper.reserve(false));
    yield_now().await;
    assert!(futures_util::poll!(&mut another).is_pending());
    drop(share);
}
