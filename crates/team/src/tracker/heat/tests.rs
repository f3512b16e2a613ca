#![allow(clippy::unwrap_used)]
#![allow(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::*;
use crate::tracker::Symbols;
use crate::tracker::session_input::SessionInput;
use crate::tracker::symbols::covered;
use crate::tracker::testing::{Functions, input, node_text};

/// Plays a script, one command a line, on a map that decays by half a tick with a context of one
/// turn, and prints the changes that each `tick` and `flush` brought. The n-th line happens at n.
fn check(script: &str, expected: &Expect) {
    let mut map = HeatMap::default();
    let (mut turn, mut text) = (0, String::new());
    for (at, line) in (1..).zip(script.split(',').map(str::trim)) {
        let changes = match line.split_once(' ') {
            Some((verb, path)) => {
                match input(&format!("{verb} {path}")) {
                    SessionInput::Touched { path, touch, weight, lines, edited, written } => {
                        let functions: Arc<dyn Symbols> = Arc::new(Functions::default());
                        let covered = |lines| covered(Some(&functions), &path, lines);
                        let (symbols, edited) = (covered(&lines), edited.as_ref().map(covered));
                        let effect =
                            Effect { symbols, edited, written, ..Effect::new(touch, weight) };
                        map.touch(&path, &effect, turn, at);
                    }
                    SessionInput::Wrote { path, written } => map.wrote(&path, written, at),
                    input => panic!("{input:?}"),
                }
                continue;
            }
            None if line == "tick" => map.tick(0.5),
            None if line == "flush" => map.flush(),
            None if line == "clear" => map.clear(),
            None if line == "end" => {
                map.end_turn(turn, 1);
                turn += 1;
                continue;
            }
            None => {
                assert_eq!(line, "compact");
                map.compact();
                continue;
            }
        };
        writeln!(text, "{at} {line}").unwrap();
        changes.updates.iter().for_each(|node| writeln!(text, "  {}", node_text(node)).unwrap());
        changes.removed.iter().for_each(|path| writeln!(text, "  {path} removed").unwrap());
    }
    expected.assert_eq(&text);
}

#[test]
fn a_tick_shows_each_change_once() {
    check(
        "read a, write a, search b, tick, tick, user_provided b, tick",
        &expect![[r#"
            4 tick
              a 1 in write turn 0 @2 claimed
              b 1 in search turn 0 @3
            5 tick
            7 tick
              b 1 in user_provided turn 0 @6
        "#]],
    );
}

#[test]
fn what_leaves_the_context_is_shown_hot_and_cools_until_it_is_gone() {
    check(
        "read a, compact, flush, tick, tick, tick, tick, tick, tick, tick, tick",
        &expect![[r#"
        3 flush
          a 1 out read turn 0 @1
        4 tick
          a 0.5 out read turn 0 @1
        5 tick
          a 0.25 out read turn 0 @1
        6 tick
          a 0.125 out read turn 0 @1
        7 tick
          a 0.0625 out read turn 0 @1
        8 tick
          a 0.03125 out read turn 0 @1
        9 tick
          a 0.015625 out read turn 0 @1
        10 tick
          a removed
        11 tick
    "#]],
    );
    check(
        "read a, tick, compact, tick, read a, tick, tick",
        &expect![[r#"
        2 tick
          a 1 in read turn 0 @1
        4 tick
          a 1 out read turn 0 @1
        6 tick
          a 1 in read turn 0 @5
        7 tick
    "#]],
    );
}

#[test]
fn nodes_leave_the_context_after_more_turns_than_it_holds() {
    check(
        "read a, end, read b, end, flush, end, flush, end, flush",
        &expect![[r#"
        5 flush
          a 1 in read turn 0 @1
          b 1 in read turn 1 @3
        7 flush
          a 1 out read turn 0 @1
        9 flush
          b 1 out read turn 1 @3
    "#]],
    );
    check(
        "read a, end, end, read a, end, end, flush, end, flush",
        &expect![[r#"
        7 flush
          a 1 in read turn 2 @4
        9 flush
          a 1 out read turn 2 @4
    "#]],
    );
}

#[test]
fn a_blocked_try_heats_and_leaves_the_context_as_it_is() {
    check(
        "blocked a, tick, tick, end, blocked a, tick, read a, tick, tick",
        &expect![[r#"
        2 tick
          a 1 out blocked turn 0 @1
        3 tick
          a 0.5 out blocked turn 0 @1
        6 tick
          a 1 out blocked turn 1 @5
        8 tick
          a 1 in read turn 1 @7
        9 tick
    "#]],
    );
    check(
        "read a, end, blocked a, flush, end, flush",
        &expect![[r#"
        4 flush
          a 1 in blocked turn 0 @3
        6 flush
    "#]],
    );
}

#[test]
fn clearing_names_everything_once() {
    check(
        "read a, blocked b, read c, flush, compact, read c, clear, flush",
        &expect![[r#"
        4 flush
          a 1 in read turn 0 @1
          b 1 out blocked turn 0 @2
          c 1 in read turn 0 @3
        7 clear
          c removed
          b removed
          a removed
        8 flush
    "#]],
    );
}

#[test]
fn a_rate_of_one_never_cools_and_is_no_change() {
    let mut map = HeatMap::default();
    map.touch(&"a".into(), &Effect::new(Touch::Blocked, Weight::Marked), 0, 0);
    assert_eq!(map.tick(1.0).updates.len(), 1);
    assert_eq!(map.tick(1.0), Changes::default());
}

#[test]
fn the_same_again_within_one_instant_is_no_change() {
    for (touch, weight) in [(Touch::Read, Weight::Accessed), (Touch::Blocked, Weight::Marked)] {
        let mut map = HeatMap::default();
        map.touch(&"a".into(), &Effect::new(touch, weight), 0, 5);
        assert_eq!(map.flush().updates.len(), 1);
        map.touch(&"a".into(), &Effect::new(touch, weight), 0, 5);
        assert_eq!(map.flush(), Changes::default());
        map.touch(&"a".into(), &Effect::new(touch, weight), 0, 6);
        assert_eq!(map.flush().updates.len(), 1);
    }
}

#[test]
fn what_lies_outside_the_workspace_is_never_in_context() {
    check(
        "read /a, write /b, user_provided /c, flush",
        &expect![[r#"
            4 flush
              /a 1 out read turn 0 @1
              /b 1 out write turn 0 @2 claimed
              /c 1 out user_provided turn 0 @3
        "#]],
    );
}

#[test]
fn what_only_the_kernel_saw_is_hot_and_never_in_context() {
    check(
        "seen read a, seen write b, tick, tick",
        &expect![[r#"
            3 tick
              a 1 out read turn 0 @1
              b 1 out write turn 0 @2 observed
            4 tick
              a 0.5 out read turn 0 @1
              b 0.5 out write turn 0 @2 observed
        "#]],
    );
}

#[test]
fn a_read_seen_by_the_kernel_does_not_change_a_file_in_context() {
    check(
        "write a, read b, tick, end, seen read a, tick, seen write b, tick, end, end, tick",
        &expect![[r#"
            3 tick
              a 1 in write turn 0 @1 claimed
              b 1 in read turn 0 @2
            6 tick
            8 tick
              b 1 in write turn 0 @7 observed
            11 tick
              a 1 out write turn 0 @1 claimed
              b 1 out write turn 0 @7 observed
        "#]],
    );
}
