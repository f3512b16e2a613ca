#![allow(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use expect_test::expect;

use crate::tracker::sessions::tests::{check, designated, nobody, play};
use crate::tracker::sessions::{AgentQuota, LIMITS, Sessions};
use crate::tracker::testing::SETTINGS;

#[test]
fn a_session_that_ends_takes_back_what_it_showed_and_is_forgotten() {
    check(
        nobody(),
        "a/s read x
        tick
        a/s read y
        a/s closed
        a/s closed
        a/s ended
        a/s compacted
        tick
        a/s opened
        a/s read x
        tick",
        &expect![[r#"
            a/s read x
              a/s snapshot 0
            tick
              a/s delta 1
                x 1 in read turn 0 @1
            a/s read y
            a/s closed
              a/s delta 2
                y 1 in read turn 0 @3
              a/s delta 3
                x removed
                y removed
            a/s closed
            a/s ended
            a/s compacted
            tick
            a/s opened
              a/s snapshot 0
            a/s read x
            tick
              a/s delta 1
                x 1 in read turn 0 @10
        "#]],
    );
}

#[test]
fn a_prompt_that_outlives_its_session_still_ends() {
    check(
        nobody(),
        "a/s began
        a/s ended
        a/s began
        a/s began
        a/s closed
        a/s read x
        a/s usage 1/2
        a/s update {}
        a/s ended
        a/s opened
        a/s began
        a/s ended
        a/s ended
        a/s ended",
        &expect![[r#"
            a/s began
              a/s snapshot 0
            a/s ended
              a/s turn 0 end_turn
            a/s began
            a/s began
            a/s closed
            a/s read x
            a/s usage 1/2
            a/s update {}
              a/s update {}
            a/s ended
              a/s turn 1 end_turn
            a/s opened
              a/s snapshot 0
            a/s began
            a/s ended
              a/s turn 2 end_turn
            a/s ended
              a/s turn 0 end_turn
            a/s ended
        "#]],
    );
}

#[test]
fn prompts_of_a_session_that_was_closed_twice_all_end() {
    check(
        nobody(),
        "a/s began
        a/s closed
        a/s opened
        a/s began
        a/s closed
        a/s ended
        a/s ended
        a/s ended",
        &expect![[r#"
            a/s began
              a/s snapshot 0
            a/s closed
            a/s opened
              a/s snapshot 0
            a/s began
            a/s closed
            a/s ended
              a/s turn 0 end_turn
            a/s ended
              a/s turn 1 end_turn
            a/s ended
        "#]],
    );
}

#[test]
fn a_designated_session_shows_the_team_once_it_is_open() {
    check(
        designated(),
        "a/s read x
        tick
        lead/l opened
        orchestrate lead/l
        lead/l read y
        lead/l usage 10/100
        lead/l began
        lead/l ended
        a/s usage 5/50
        tick",
        &expect![[r#"
              lead/ (orchestrator) snapshot 0
            a/s read x
              a/s snapshot 0
            tick
              a/s delta 1
                x 1 in read turn 0 @1
              lead/ (orchestrator) delta 1
                x 1 in read turn 0 @1
            lead/l opened
              lead/ (orchestrator) delta 2
                x removed
              lead/l (orchestrator) snapshot 0
              lead/l (orchestrator) delta 1
                x 1 in read turn 0 @1
            orchestrate lead/l
            lead/l read y
            lead/l usage 10/100
              lead/l (orchestrator) usage 10/100
            lead/l began
            lead/l ended
              lead/l (orchestrator) delta 2
                y 1 in read turn 0 @5
              lead/l (orchestrator) turn 0 end_turn
            a/s usage 5/50
              a/s usage 5/50
              lead/l (orchestrator) usage 15/150
            tick
        "#]],
    );
}

#[test]
fn a_restarted_orchestrator_leaves_its_old_session_to_be_an_ordinary_one() {
    check(
        designated(),
        "lead/l opened
        a/s read x
        lead/l read y
        lead/l usage 10/100
        tick
        lead/m opened
        lead/m read z
        tick
        orchestrate lead/m
        tick
        lead/l write y
        tick
        orchestrate a/s
        lead/m closed
        tick",
        &expect![[r#"
              lead/ (orchestrator) snapshot 0
            lead/l opened
              lead/l (orchestrator) snapshot 0
            a/s read x
              a/s snapshot 0
            lead/l read y
            lead/l usage 10/100
              lead/l (orchestrator) usage 10/100
            tick
              a/s delta 1
                x 1 in read turn 0 @2
              lead/l (orchestrator) delta 1
                y 1 in read turn 0 @3
                x 1 in read turn 0 @2
            lead/m opened
              lead/m snapshot 0
            lead/m read z
            tick
              lead/m delta 1
                z 1 in read turn 0 @7
              lead/l (orchestrator) delta 2
                z 1 in read turn 0 @7
            orchestrate lead/m
              lead/l (orchestrator) delta 3
                x removed
                y removed
                z removed
              lead/m delta 2
                z removed
              lead/m (orchestrator) snapshot 2
              lead/m (orchestrator) delta 3
                x 1 in read turn 0 @2
                y 1 in read turn 0 @3
                z 1 in read turn 0 @7
              lead/m (orchestrator) usage 10/100
              lead/l snapshot 3
              lead/l delta 4
                y 1 in read turn 0 @3
              lead/l usage 10/100
            tick
            lead/l write y
            tick
              lead/l delta 5
                y 1 in write turn 0 @11 claimed
              lead/m (orchestrator) delta 4
                y 1 in write turn 0 @11 claimed
            orchestrate a/s
            lead/m closed
              lead/m (orchestrator) delta 5
                z removed
              lead/m (orchestrator) delta 6
                x removed
                y removed
              lead/ (orchestrator) snapshot 0
              lead/ (orchestrator) delta 1
                x 1 in read turn 0 @2
                y 1 in write turn 0 @11 claimed
              lead/ (orchestrator) usage 10/100
            tick
        "#]],
    );
}

#[test]
fn a_session_may_be_named_before_it_opens() {
    check(
        designated(),
        "lead/ read w
        tick
        orchestrate lead/l
        lead/l opened
        lead/l read x
        tick",
        &expect![[r#"
              lead/ (orchestrator) snapshot 0
            lead/ read w
            tick
              lead/ (orchestrator) delta 1
                w 1 in read turn 0 @1
            orchestrate lead/l
              lead/ (orchestrator) delta 2
                w removed
              lead/l (orchestrator) snapshot 0
              lead/l (orchestrator) delta 1
                w 1 in read turn 0 @1
              lead/ snapshot 2
              lead/ delta 3
                w 1 in read turn 0 @1
            lead/l opened
            lead/l read x
            tick
              lead/l (orchestrator) delta 2
                x 1 in read turn 0 @5
        "#]],
    );
}

#[test]
fn of_too_many_sessions_the_stalest_is_closed() {
    let mut sessions = Sessions::new(SETTINGS, nobody());
    sessions.limits = AgentQuota { sessions: 2, closing: 1, ..LIMITS };
    let text = play(
        &mut sessions,
        "a/s began
        a/t read x
        a/u opened
        b/s opened
        a/u began
        a/v opened
        a/w began
        a/x began
        a/y began
        a/s ended
        a/u ended
        a/w ended",
    );
    expect![[r#"
        a/s began
          a/s snapshot 0
        a/t read x
          a/t snapshot 0
        a/u opened
          a/t delta 1
            x 1 in read turn 0 @2
          a/t delta 2
            x removed
          a/u snapshot 0
        b/s opened
          b/s snapshot 0
        a/u began
        a/v opened
          a/v snapshot 0
        a/w began
          a/w snapshot 0
        a/x began
          a/x snapshot 0
        a/y began
          a/y snapshot 0
        a/s ended
        a/u ended
        a/w ended
          a/w turn 0 end_turn
    "#]]
    .assert_eq(&text);
}
