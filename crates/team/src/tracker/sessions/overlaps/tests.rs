#![allow(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use std::sync::Arc;

use expect_test::{Expect, expect};

use crate::tracker::sessions::Sessions;
use crate::tracker::sessions::tests::{nobody, play};
use crate::tracker::testing::{Functions, SETTINGS};

/// Plays a script and prints the overlaps that came of it.
fn check(knows_symbols: bool, script: &str, expected: &Expect) {
    let mut sessions = Sessions::new(SETTINGS, nobody());
    if knows_symbols {
        sessions.join(Arc::new(Functions::default()));
    }
    let events = play(&mut sessions, script);
    let (mut shown, mut within) = (String::new(), false);
    for line in events.lines() {
        within = line.starts_with("  overlap") || within && line.starts_with("    ");
        if within {
            shown += line.strip_prefix("  ").unwrap_or(line);
            shown.push('\n');
        }
    }
    expected.assert_eq(&shown);
}

#[test]
fn an_overlap_is_published_once() {
    check(
        true,
        "a/s read x:2-4
        b/t write x:3-3
        tick
        b/t write x:3-3
        tick
        a/s write x:3-3
        tick
        a/s compacted
        a/s read x:3-3
        tick",
        &expect![[r#"
              overlap context b/t a/s x::f3 @2
                x::f2 of a/s
              overlap edit a/s b/t x::f3 @6
                x::f2 of a/s
              overlap context b/t a/s x::f3 @9
        "#]],
    );
}

#[test]
fn other_symbols_and_an_agents_own_sessions_do_not_overlap() {
    check(
        true,
        "a/s read x:2-2
        a/t write x:2-2
        b/t write x:3-3
        b/t write x:20-30
        c/u blocked x
        d/v seen write x
        tick",
        &expect![[""]],
    );
}

#[test]
fn callers_in_a_sessions_context_are_listed() {
    check(
        true,
        "c/u read x:1-2
        a/s read x:3-3
        b/t write x:3-3
        tick",
        &expect![[r#"
              overlap context b/t a/s x::f3 @3
                x::f2 of c/u
        "#]],
    );
}

#[test]
fn without_symbols_it_is_the_file() {
    check(
        false,
        "a/s read x:2-4
        b/t write x:8-8
        tick
        a/s write x
        tick",
        &expect![[r#"
              overlap context b/t a/s x @2
              overlap edit a/s b/t x @4
        "#]],
    );
}

#[test]
fn an_overlap_names_the_symbol_once_it_is_known() {
    check(
        true,
        "a/s read x
        b/t write x
        tick
        b/t write x:5-5
        tick",
        &expect![[r#"
              overlap context b/t a/s x @2
              overlap context b/t a/s x::f5 @4
        "#]],
    );
}
