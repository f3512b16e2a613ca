#![allow(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use expect_test::{Expect, expect};

use super::*;
use crate::tracker::testing::{node_text, touch};

/// One node of a map: holder, action, heat, whether it is in context, time; its turn is the
/// holder's number, so that the result says whose action it is.
type Held = (Holder, &'static str, f64, bool, TimestampMs);

fn apply(merge: &mut Merge, &(holder, verb, heat, in_context, timestamp_ms): &Held) {
    let node = FileNode {
        path: "a".into(),
        heat,
        in_context,
        last_action: touch(verb).unwrap_or(Touch::Read),
        turn_accessed: holder,
        timestamp_ms,
        symbols: None,
        origin: None,
    };
    merge.apply(holder, &Changes { updates: vec![node], removed: Vec::new() });
}

fn check(held: &[Held], expected: &Expect) {
    let (mut forth, mut back) = (Merge::default(), Merge::default());
    for node in held {
        apply(&mut forth, node);
    }
    for node in held.iter().rev() {
        apply(&mut back, node);
    }
    let changes = forth.flush();
    assert_eq!(back.flush(), changes, "the order of arrival does not matter");
    assert_eq!(changes.updates, forth.nodes());
    expected.assert_eq(&node_text(&changes.updates[0]));
}

#[test]
fn the_hottest_any_context_and_the_latest_action() {
    check(&[(1, "read", 0.25, false, 5)], &expect!["a 0.25 out read turn 1 @5"]);
    check(
        &[(1, "read", 0.25, true, 5), (2, "search", 0.5, false, 6)],
        &expect!["a 0.5 in search turn 2 @6"],
    );
    check(
        &[(1, "blocked", 0.5, false, 9), (2, "write", 0.25, false, 6)],
        &expect!["a 0.5 out blocked turn 1 @9"],
    );
}

#[test]
fn of_actions_at_the_same_time_a_write_counts_then_a_search_then_the_first_holder() {
    check(
        &[(1, "read", 1.0, true, 5), (2, "search", 1.0, true, 5)],
        &expect!["a 1 in search turn 2 @5"],
    );
    check(
        &[(1, "search", 1.0, true, 5), (2, "write", 1.0, true, 5), (3, "search", 1.0, true, 5)],
        &expect!["a 1 in write turn 2 @5"],
    );
    check(
        &[(2, "user_provided", 1.0, true, 5), (3, "blocked", 1.0, true, 5)],
        &expect!["a 1 in user_provided turn 2 @5"],
    );
}

#[test]
fn only_what_shows_is_a_change() {
    let mut merge = Merge::default();
    apply(&mut merge, &(1, "write", 1.0, true, 5));
    assert_eq!(merge.flush().updates.len(), 1);

    apply(&mut merge, &(2, "read", 0.5, false, 4));
    assert_eq!(merge.flush(), Changes::default(), "the other is hotter and later");

    let gone = Changes { updates: Vec::new(), removed: vec!["a".into()] };
    merge.apply(1, &gone);
    assert_eq!(node_text(&merge.flush().updates[0]), "a 0.5 out read turn 2 @4");
    merge.apply(2, &gone);
    assert_eq!(merge.flush(), gone);
    merge.apply(2, &gone);
    assert_eq!(merge.flush(), Changes::default(), "gone already");

    apply(&mut merge, &(1, "read", 1.0, true, 5));
    merge.apply(1, &gone);
    assert_eq!(merge.flush(), Changes::default(), "came and went unseen");
}

#[test]
fn what_is_withdrawn_is_shown_again() {
    let mut merge = Merge::default();
    apply(&mut merge, &(1, "write", 1.0, true, 5));
    let shown = merge.flush();
    let withdrawn = Changes { updates: Vec::new(), removed: vec!["a".into()] };
    assert_eq!(merge.withdraw(), withdrawn);
    assert_eq!(merge.nodes(), []);
    assert_eq!(merge.flush(), shown);
}
