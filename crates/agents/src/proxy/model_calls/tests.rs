#![allow(clippy::unwrap_used)]
use super::*;
use crate::model::Tokens;

fn spent(total: u64) -> Spending {
    let mut tokens = Tokens::default();
    tokens.set(TokenKind::Total, Figure::Measured(total));
    Spending { model: None, tokens: Some(tokens), cost: None }
}

fn session(id: &str) -> SessionId {
    SessionId::new(id)
}

fn refused(is_lasting: bool) -> CallOutcome {
    CallOutcome::Refused { why: "429".into(), is_lasting }
}

fn session_of(calls: &ModelCalls) -> Option<SessionId> {
    calls.begin(None).map(|place| place.session)
}

fn call(calls: &ModelCalls, total: u64, outcome: CallOutcome) -> Option<(SessionId, Spending)> {
    let of = calls.begin(Some(5));
    let counted = calls.end(of, None, Some(spent(total)), outcome);
    calls.counted(Some(5));
    counted
}

#[test]
fn a_call_is_of_the_turn_that_began_last_and_stays_so() {
    let calls = ModelCalls::new("main".into());
    assert_eq!(call(&calls, 3, CallOutcome::Served), None);
    calls.opened(&session("a"));
    assert_eq!(call(&calls, 4, CallOutcome::Served).unwrap().0, session("a"));
    // What came before any session is of the first turn.
    assert_eq!(calls.turn_began(&session("b")), [spent(3)]);
    assert!(calls.turn_began(&session("c")).is_empty());
    let of_c = calls.begin(None);
    calls.turn_ended(&session("c"));
    assert_eq!(session_of(&calls), Some(session("b")));
    let late = calls.end(of_c, None, Some(spent(1)), CallOutcome::Served);
    assert_eq!(late.unwrap().0, session("c"));
    calls.turn_ended(&session("b"));
    assert_eq!(session_of(&calls), Some(session("c")));
}

#[test]
fn the_last_call_of_a_turn_says_why_it_ended() {
    let calls = ModelCalls::new("main".into());
    let a = session("a");
    for (outcomes, why) in [
        (vec![CallOutcome::Served, refused(false)], true),
        (vec![refused(false), CallOutcome::Served], false),
        (vec![refused(false), CallOutcome::Unclear], true),
    ] {
        calls.turn_began(&a);
        for outcome in outcomes {
            call(&calls, 0, outcome);
        }
        assert_eq!(calls.turn_ended(&a).refused.is_some(), why);
    }
    calls.turn_began(&a);
    call(&calls, 0, CallOutcome::Served);
    calls.refused(Some("m".into()), "no budget".into());
    let end = calls.turn_ended(&a);
    assert_eq!((end.refused, end.by_all), (Some("no budget".into()), false));
    assert_eq!(calls.open(), OpenCalls::default());
    calls.begin(Some(120));
    calls.begin(None);
    assert_eq!(calls.open(), OpenCalls { calls: 2, most: 120, unbounded: 1 });
}

#[test]
fn a_difference_to_what_the_agent_reports_is_told_once() {
    let calls = ModelCalls::new("main".into());
    let a = session("a");
    let turn = |counted, reported| {
        calls.turn_began(&a);
        call(&calls, counted, CallOutcome::Served);
        if let Some(reported) = reported {
            calls.reported(&a, &spent(reported));
        }
        calls.turn_ended(&a).differs
    };
    assert_eq!(turn(10, None), None);
    assert_eq!(turn(10, Some(10)), None);
    assert_eq!(turn(10, Some(4)), Some((4, 10)));
    assert_eq!(turn(10, Some(4)), None);
}

#[test]
fn only_a_turn_whose_calls_are_all_counted_is_compared() {
    let a = session("a");
    let told = |meet: &dyn Fn(&ModelCalls)| {
        let calls = ModelCalls::new("main".into());
        calls.turn_began(&a);
        call(&calls, 10, CallOutcome::Served);
        meet(&calls);
        calls.reported(&a, &spent(4));
        calls.turn_ended(&a).differs
    };
    assert_eq!(told(&|_| {}), Some((4, 10)));
    // The agent may have counted what it asked for.
    assert_eq!(told(&|calls| calls.refused(None, "no budget".into())), None);
    assert_eq!(told(&|calls| drop(calls.begin(None))), None);
    assert_eq!(told(&|calls| drop(calls.turn_began(&session("b")))), None);
    let fails = |calls: &ModelCalls| {
        let place = calls.begin(None);
        let _ = calls.end(place, None, None, CallOutcome::Unclear);
    };
    assert_eq!(told(&fails), None);
}

#[test]
fn a_late_call_is_of_its_own_turn_and_a_turn_without_any_took_nothing() {
    let calls = ModelCalls::new("main".into());
    let a = session("a");
    calls.turn_began(&a);
    let late = calls.begin(None);
    // Its figures are to come.
    assert!(!calls.turn_ended(&a).took_nothing);
    calls.turn_began(&a);
    assert_eq!(calls.end(late, None, Some(spent(9)), refused(true)), Some((a.clone(), spent(9))));
    calls.counted(None);
    let end = calls.turn_ended(&a);
    assert_eq!((end.refused, end.differs, end.took_nothing), (None, None, true));
    // What its agent took elsewhere is not nothing.
    calls.turn_began(&a);
    calls.reported(&a, &spent(4));
    assert!(!calls.turn_ended(&a).took_nothing);
}

fn is_set_back(vitals: &Vitals) -> bool {
    vitals.watch().borrow().set_back.is_some()
}

/// The calls of an agent in a turn.
fn in_turn() -> (ModelCalls, Arc<Vitals>) {
    let (calls, vitals) = (ModelCalls::new("main".into()), Vitals::new());
    calls.follow(Arc::clone(&vitals));
    calls.turn_began(&session("a"));
    (calls, vitals)
}

fn ends(calls: &ModelCalls, place: Option<CallPlace>, model: &str, outcome: CallOutcome) {
    let _ = calls.end(place, Some(model.into()), None, outcome);
    calls.counted(None);
}

#[test]
fn a_provider_that_refuses_again_sets_the_agent_back_at_once() {
    let refusals = |outcomes: &[CallOutcome]| {
        let (calls, vitals) = in_turn();
        for outcome in outcomes {
            call(&calls, 0, outcome.clone());
        }
        is_set_back(&vitals)
    };
    assert!(!refusals(&[refused(false)]));
    assert!(refusals(&[refused(false), refused(false)]));
    assert!(refusals(&[refused(false), CallOutcome::Unclear, refused(false)]));
    assert!(!refusals(&[refused(false), CallOutcome::Served, refused(false)]));
    assert!(refusals(&[refused(true)]));
    assert!(!refusals(&[refused(true), CallOutcome::Served]));
    let unsent = CallOutcome::Unsent("no budget".into());
    assert!(!refusals(&[unsent.clone(), unsent]));
    // A helper's model may be the only one that is refused.
    let (calls, vitals) = in_turn();
    let own = calls.begin(None);
    call(&calls, 0, refused(true));
    assert!(!is_set_back(&vitals));
    let _ = calls.end(own, Some("m".into()), None, refused(true));
    assert!(is_set_back(&vitals));
}

#[test]
fn a_helpers_refusal_sets_no_turn_back_whose_own_model_was_served() {
    let (calls, vitals) = in_turn();
    ends(&calls, calls.begin(None), "own", CallOutcome::Served);
    for is_lasting in [false, false, true] {
        ends(&calls, calls.begin(None), "helper", refused(is_lasting));
        assert!(!is_set_back(&vitals));
    }
    // Of the turn's models none is left.
    ends(&calls, calls.begin(None), "own", refused(true));
    assert!(is_set_back(&vitals));
}

#[test]
fn calls_side_by_side_are_refused_once() {
    let (calls, vitals) = in_turn();
    let (first, second, third) = (calls.begin(None), calls.begin(None), calls.begin(None));
    for place in [first, second, third] {
        ends(&calls, place, "own", refused(false));
    }
    assert!(!is_set_back(&vitals));
    ends(&calls, calls.begin(None), "own", refused(false));
    assert!(is_set_back(&vitals));
}

#[test]
fn an_agent_with_another_turn_or_call_is_not_set_back() {
    let (calls, vitals) = in_turn();
    let of_a = calls.begin(None);
    calls.turn_began(&session("b"));
    ends(&calls, calls.begin(None), "own", refused(true));
    assert!(!is_set_back(&vitals));
    calls.turn_ended(&session("a"));
    // The call outlasts its turn.
    ends(&calls, calls.begin(None), "own", refused(true));
    assert!(!is_set_back(&vitals));
    ends(&calls, of_a, "own", CallOutcome::Unclear);
    ends(&calls, calls.begin(None), "own", refused(true));
    assert!(is_set_back(&vitals));
}

#[test]
fn a_call_from_before_the_first_session_is_not_taken_for_one_of_the_turn() {
    let calls = ModelCalls::new("main".into());
    let early = calls.begin(None);
    assert_eq!(early, None);
    calls.turn_began(&session("a"));
    let own = calls.begin(None);
    ends(&calls, early, "own", CallOutcome::Unclear);
    assert!(own.is_some() && !calls.turn_ended(&session("a")).took_nothing);
}

#[test]
fn a_turn_whose_calls_were_all_refused_took_nothing() {
    let (calls, _) = in_turn();
    ends(&calls, calls.begin(None), "own", refused(false));
    calls.refused(None, "no budget".into());
    assert!(calls.turn_ended(&session("a")).took_nothing);
}
