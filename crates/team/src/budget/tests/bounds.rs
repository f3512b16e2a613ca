//! An estimate ends a turn by its lower bound, and refuses the next prompt by its upper one.

use super::*;
use crate::model::{Charge, Cost, Figure, TokenKind, Tokens};

fn between(least: u64, most: u64) -> Spending {
    let mut tokens = Tokens::default();
    tokens.set(TokenKind::Total, Figure::Estimated { least, most });
    Spending { tokens: Some(tokens), ..Spending::default() }
}

#[tokio::test(start_paused = true)]
async fn a_turn_goes_on_while_it_may_be_within_the_limit() {
    let budgets = budgets(limits(of_tokens(100)), Settings::default());
    let account = budgets.account(&agent("a"), None);
    let session = SessionId::new("s");
    let _share = account.reserve(false).await.unwrap();
    account.turn_began(&session);
    let stands = || account.standing().borrow().clone();
    account.foresee(&session, (60, 150), None);
    assert!(stands().refusal.is_some() && stands().cut.is_none(), "{:?}", stands());
    account.foresee(&session, (100, 250), None);
    assert!(stands().cut.is_some(), "{:?}", stands());
    // What the ended turn may have used ends no other turn, and begins none.
    account.spend(&session, &mut between(60, 150));
    account.turn_ended(&session);
    assert!(stands().refusal.is_some() && stands().cut.is_none(), "{:?}", stands());
    assert_eq!(report(&budgets, None).tokens.known, Some(150));
    account.spend(&session, &mut between(40, 40));
    assert!(stands().cut.is_some(), "{:?}", stands());
}

#[tokio::test(start_paused = true)]
async fn a_price_is_as_sure_as_its_tokens() {
    let cost = BudgetLimits { cost: Some(1.0), ..BudgetLimits::default() };
    let budgets = budgets(limits(cost), Settings::default());
    let account = budgets.account(&agent("a"), None);
    let session = SessionId::new("s");
    let spend = |least, amount| {
        let cost = Some(Charge::Estimated(Cost { amount, currency: "USD".into() }));
        account.spend(&session, &mut Spending { cost, ..between(least, 100) });
        let stands = account.standing().borrow().clone();
        (stands.refusal.is_some(), stands.cut.is_some())
    };
    assert_eq!(spend(25, 2.0), (true, false));
    assert_eq!(spend(100, 0.5), (true, true));
}
