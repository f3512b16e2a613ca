#![allow(clippy::unwrap_used)]
#![allow(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use expect_test::{Expect, expect};

use crate::tracker::OrchestratorView;
use crate::tracker::sessions::Sessions;
use crate::tracker::sessions::tests::{external, nobody, play};
use crate::tracker::testing::{Functions, SETTINGS, node_text};

fn check(view: OrchestratorView, script: &str, expected: &Expect) -> Arc<Functions> {
    let functions = Arc::<Functions>::default();
    let mut sessions = Sessions::new(SETTINGS, view);
    sessions.join(functions.clone());
    expected.assert_eq(&play(&mut sessions, script));
    functions
}

#[test]
fn symbols_are_those_of_the_lines_as_long_as_the_file_is_in_context() {
    check(
        external(),
        "a/s read x:2-3
        b/t write x:3-4
        tick
        a/s read x
        a/s read x:9-20
        tick
        a/s compacted
        tick",
        &expect![[r#"
              orchestrator/team-t (orchestrator) snapshot 0
            a/s read x:2-3
              a/s snapshot 0
            b/t write x:3-4
              b/t snapshot 0
            tick
              a/s delta 1
                x 1 in read turn 0 @1 x::f2 x::f3
              b/t delta 1
                x 1 in write turn 0 @2 claimed x::f3 x::f4
              overlap context b/t a/s x::f3 @2
                x::f2 of a/s
              orchestrator/team-t (orchestrator) delta 1
                x 1 in write turn 0 @2 claimed x::f2 x::f3 x::f4
            a/s read x
            a/s read x:9-20
            tick
              a/s delta 2
                x 1 in read turn 0 @5 x::f2 x::f3 x::f9
              orchestrator/team-t (orchestrator) delta 2
                x 1 in read turn 0 @5 claimed x::f2 x::f3 x::f4 x::f9
            a/s compacted
            tick
              a/s delta 3
                x 1 out read turn 0 @5
              orchestrator/team-t (orchestrator) delta 3
                x 1 in read turn 0 @5 claimed x::f3 x::f4
        "#]],
    );
}

#[test]
fn a_write_is_claimed_until_something_shows_it() {
    check(
        nobody(),
        "a/s write x
        a/s write y
        a/s write z
        a/s seen write v
        a/s blocked w
        tick
        a/s seen write x
        a/s written y
        disk z
        tick
        later
        a/s performed v
        a/s write y
        disk x
        tick",
        &expect![[r#"
            a/s write x
              a/s snapshot 0
            a/s write y
            a/s write z
            a/s seen write v
            a/s blocked w
            tick
              a/s delta 1
                x 1 in write turn 0 @1 claimed
                y 1 in write turn 0 @2 claimed
                z 1 in write turn 0 @3 claimed
                v 1 out write turn 0 @4 observed
                w 1 out blocked turn 0 @5
            a/s seen write x
            a/s written y
            disk z
            tick
              a/s delta 2
                v 0.5 out write turn 0 @4 observed
                w 0.5 out blocked turn 0 @5
                x 1 in write turn 0 @7 confirmed
                y 1 in write turn 0 @2 confirmed
                z 1 in write turn 0 @3 confirmed
            later
            a/s performed v
            a/s write y
            disk x
            tick
              a/s delta 3
                w 0.25 out blocked turn 0 @5
                v 0.5 out write turn 0 @4 claimed
                y 1 in write turn 0 @10013 claimed
        "#]],
    );
}

#[test]
fn a_write_that_no_agent_claims_is_only_in_the_merged_view() {
    check(
        external(),
        "a/s read x
        disk x
        disk y
        tick
        b/t write y
        tick
        later
        b/t write x
        tick",
        &expect![[r#"
              orchestrator/team-t (orchestrator) snapshot 0
            a/s read x
              a/s snapshot 0
            disk x
            disk y
            tick
              a/s delta 1
                x 1 in read turn 0 @1
              orchestrator/team-t (orchestrator) delta 1
                x 1 in write turn 0 @2 observed
                y 1 out write turn 0 @3 observed
            b/t write y
              b/t snapshot 0
            tick
              b/t delta 1
                y 1 in write turn 0 @5 confirmed
              orchestrator/team-t (orchestrator) delta 2
                y 1 in write turn 0 @5 confirmed
            later
            b/t write x
            tick
              b/t delta 2
                x 1 in write turn 0 @10008 claimed
              overlap context b/t a/s x @10008
              orchestrator/team-t (orchestrator) delta 3
                x 1 in write turn 0 @10008 claimed
        "#]],
    );
    // A claim that comes later than its sight, where there is no merged view.
    check(
        nobody(),
        "disk x
        a/s write x
        tick",
        &expect![[r#"
            disk x
            a/s write x
              a/s snapshot 0
            tick
              a/s delta 1
                x 1 in write turn 0 @2 confirmed
        "#]],
    );
}

#[test]
fn the_graph_hears_of_writes() {
    let functions = check(
        nobody(),
        "a/s write x:2-3
        a/s read x:4-5
        a/s seen write y
        a/s blocked z
        a/s performed x",
        &expect![[r#"
            a/s write x:2-3
              a/s snapshot 0
            a/s read x:4-5
            a/s seen write y
            a/s blocked z
            a/s performed x
        "#]],
    );
    expect![[r#"
        [
            "x [(2, 3)] a/s @1",
            "y [] a/s @3",
        ]
    "#]]
    .assert_debug_eq(&functions.wrote.lock().unwrap());
}

#[test]
fn a_symbol_that_a_write_made_is_known_once_the_disk_shows_it() {
    let functions = Arc::<Functions>::default();
    let mut sessions = Sessions::new(SETTINGS, nobody());
    sessions.join(functions.clone());
    let script = "a/s write x:9-11
        tick";
    expect![[r#"
        a/s write x:9-11
          a/s snapshot 0
        tick
          a/s delta 1
            x 1 in write turn 0 @1 claimed x::f9
    "#]]
    .assert_eq(&play(&mut sessions, script));
    functions.more.store(2, Ordering::Relaxed);
    sessions.disk_wrote(&"x".into(), 5);
    sessions.flush();
    expect!["x 1 in write turn 0 @1 confirmed x::f10 x::f11 x::f9"]
        .assert_eq(&node_text(&sessions.snapshots()[0].nodes[0]));
}
