#![allow(clippy::unwrap_used)]
#![allow(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::*;
use crate::model::{Lines, Touch};
use crate::tracker::session_input::{Weight, WriteSource};
use crate::tracker::testing::{Client, SETTINGS, event_text, input, key};

pub(super) fn external() -> OrchestratorView {
    OrchestratorView::External(key("orchestrator/team-t"))
}

pub(super) fn designated() -> OrchestratorView {
    OrchestratorView::Agent(AgentId::new("lead"))
}

pub(super) fn nobody() -> OrchestratorView {
    OrchestratorView::None(key("a/"))
}

/// Plays a script, one command a line: `tick`, `flush`, `later` (by ten seconds), `disk PATH`,
/// `orchestrate KEY`, or `KEY ACTIVITY`, the n-th line at n. Prints the events of each; a client follows.
pub(super) fn play(sessions: &mut Sessions, script: &str) -> String {
    let (mut client, mut text) = (Client::default(), String::new());
    let mut write_events = |sessions: &mut Sessions, text: &mut String| {
        for event in sessions.take_events() {
            client.follow(&event);
            writeln!(text, "  {}", event_text(&event)).unwrap();
        }
    };
    write_events(sessions, &mut text);
    let mut waited = 0;
    for (at, line) in (1..).zip(script.lines().map(str::trim).filter(|line| !line.is_empty())) {
        let at = at + waited;
        match line.split_once(' ') {
            None if line == "tick" => {
                sessions.tick();
            }
            None if line == "later" => waited += 10_000,
            None => sessions.flush(),
            Some(("disk", path)) => sessions.disk_wrote(&path.into(), at),
            Some(("orchestrate", name)) => sessions.orchestrate(key(name)),
            Some((name, activity)) => sessions.input(&key(name), input(activity), at),
        }
        writeln!(text, "{line}").unwrap();
        write_events(sessions, &mut text);
    }
    sessions.flush();
    sessions.take_events().iter().for_each(|event| client.follow(event));
    client.compare(&sessions.snapshots());
    text
}

pub(super) fn check(view: OrchestratorView, script: &str, expected: &Expect) {
    expected.assert_eq(&play(&mut Sessions::new(SETTINGS, view), script));
}

#[test]
fn a_session_announces_itself_and_sends_one_delta_a_tick() {
    check(
        nobody(),
        "a/s opened
        tick
        a/s read x
        a/s write x
        a/s read y
        tick
        tick
        a/s opened
        a/s update {}
        b/t search z
        tick",
        &expect![[r#"
            a/s opened
              a/s snapshot 0
            tick
            a/s read x
            a/s write x
            a/s read y
            tick
              a/s delta 1
                x 1 in write turn 0 @4 claimed
                y 1 in read turn 0 @5
            tick
            a/s opened
            a/s update {}
              a/s update {}
            b/t search z
              b/t snapshot 0
            tick
              b/t delta 1
                z 1 in search turn 0 @10
        "#]],
    );
}

#[test]
fn a_turn_ends_with_the_delta_before_its_line() {
    check(
        nobody(),
        "a/s user_referenced x
        a/s began
        a/s read y
        a/s ended
        a/s read z
        a/s began
        a/s ended
        a/s ended
        tick",
        &expect![[r#"
            a/s user_referenced x
              a/s snapshot 0
            a/s began
            a/s read y
            a/s ended
              a/s delta 1
                x 1 in user_referenced turn 0 @1
                y 1 in read turn 0 @3
              a/s turn 0 end_turn
            a/s read z
            a/s began
            a/s ended
              a/s delta 2
                z 1 in read turn 1 @5
              a/s turn 1 end_turn
            a/s ended
            tick
        "#]],
    );
}

#[test]
fn the_context_holds_the_last_turns() {
    let turns = |count: usize| "a/s began\na/s ended\n".repeat(count);
    check(
        nobody(),
        &format!("a/s read x\n{}tick\na/s read y", turns(4)),
        &expect![[r#"
        a/s read x
          a/s snapshot 0
        a/s began
        a/s ended
          a/s delta 1
            x 1 in read turn 0 @1
          a/s turn 0 end_turn
        a/s began
        a/s ended
          a/s turn 1 end_turn
        a/s began
        a/s ended
          a/s turn 2 end_turn
        a/s began
        a/s ended
          a/s turn 3 end_turn
        tick
        a/s read y
    "#]],
    );
    check(
        nobody(),
        &format!("a/s began\na/s began\na/s read x\n{}a/s ended", "a/s ended\n".repeat(2)),
        &expect![[r#"
            a/s began
              a/s snapshot 0
            a/s began
            a/s read x
            a/s ended
              a/s delta 1
                x 1 in read turn 0 @3
              a/s turn 0 end_turn
            a/s ended
              a/s turn 1 end_turn
            a/s ended
        "#]],
    );
}

#[test]
fn a_drop_of_the_tokens_empties_the_context() {
    check(
        nobody(),
        "a/s usage 100/200
        a/s read x
        a/s usage 51/200
        tick
        a/s usage 20/200 0.5 USD
        a/s usage 20/200 0.5 USD
        a/s read y
        tick
        a/s compacted
        tick",
        &expect![[r#"
            a/s usage 100/200
              a/s snapshot 0
              a/s usage 100/200
            a/s read x
            a/s usage 51/200
              a/s usage 51/200
            tick
              a/s delta 1
                x 1 in read turn 0 @2
            a/s usage 20/200 0.5 USD
              a/s usage 20/200 0.5 USD
            a/s usage 20/200 0.5 USD
            a/s read y
            tick
              a/s delta 2
                x 1 out read turn 0 @2
                y 1 in read turn 0 @7
            a/s compacted
            tick
              a/s delta 3
                x 0.5 out read turn 0 @2
                y 1 out read turn 0 @7
        "#]],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn an_external_orchestrator_sees_the_whole_team() {
    check(
        external(),
        "a/s read x
        a/s usage 10/100 0.5 USD
        b/t write x
        b/t usage 5/50
        tick
        b/t usage 5/50 0.25 USD
        a/s compacted
        tick
        b/t compacted
        tick
        tick
        b/t read x
        a/s closed
        b/t usage 6/50 1 EUR
        tick
        b/t closed
        tick",
        &expect![[r#"
              orchestrator/team-t (orchestrator) snapshot 0
            a/s read x
              a/s snapshot 0
            a/s usage 10/100 0.5 USD
              a/s usage 10/100 0.5 USD
              orchestrator/team-t (orchestrator) usage 10/100 0.5 USD
            b/t write x
              b/t snapshot 0
            b/t usage 5/50
              b/t usage 5/50
              orchestrator/team-t (orchestrator) usage 15/150 0.5 USD
            tick
              a/s delta 1
                x 1 in read turn 0 @1
              b/t delta 1
                x 1 in write turn 0 @3 claimed
              overlap context b/t a/s x @3
              orchestrator/team-t (orchestrator) delta 1
                x 1 in write turn 0 @3 claimed
            b/t usage 5/50 0.25 USD
              b/t usage 5/50 0.25 USD
              orchestrator/team-t (orchestrator) usage 15/150 0.75 USD
            a/s compacted
            tick
              a/s delta 2
                x 1 out read turn 0 @1
            b/t compacted
            tick
              a/s delta 3
                x 0.5 out read turn 0 @1
              b/t delta 2
                x 1 out write turn 0 @3 claimed
              orchestrator/team-t (orchestrator) delta 2
                x 1 out write turn 0 @3 claimed
            tick
              a/s delta 4
                x 0.25 out read turn 0 @1
              b/t delta 3
                x 0.5 out write turn 0 @3 claimed
              orchestrator/team-t (orchestrator) delta 3
                x 0.5 out write turn 0 @3 claimed
            b/t read x
            a/s closed
              a/s delta 5
                x removed
              orchestrator/team-t (orchestrator) usage 5/50 0.25 USD
            b/t usage 6/50 1 EUR
              b/t usage 6/50 1 EUR
              orchestrator/team-t (orchestrator) usage 6/50 1 EUR
            tick
              b/t delta 4
                x 1 in read turn 0 @12 claimed
              orchestrator/team-t (orchestrator) delta 4
                x 1 in read turn 0 @12 claimed
            b/t closed
              b/t delta 5
                x removed
              orchestrator/team-t (orchestrator) usage 0/0
            tick
              orchestrator/team-t (orchestrator) delta 5
                x removed
        "#]],
    );
}

#[test]
fn the_default_target_comes_first() {
    let order = |view, script| {
        let mut sessions = Sessions::new(SETTINGS, view);
        play(&mut sessions, script);
        let names = sessions.snapshots().into_iter();
        let names: Vec<_> =
            names.map(|it| format!("{}/{}", it.key.agent, it.key.session)).collect();
        names.join(" ")
    };
    assert_eq!(order(nobody(), ""), "a/");
    assert_eq!(order(nobody(), "b/t opened\na/s opened"), "b/t a/s");
    assert_eq!(order(external(), "b/t opened\na/s opened"), "orchestrator/team-t b/t a/s");
    assert_eq!(order(designated(), "b/t opened"), "lead/ b/t");
    assert_eq!(order(designated(), "b/t opened\nlead/l opened\na/s opened"), "lead/l b/t a/s");
}

#[test]
fn what_finds_no_room_is_counted_and_sights_leave_room_for_accesses() {
    let mut sessions = Sessions::new(SETTINGS, external());
    sessions.limits.nodes = 4;
    let key = key("a/s");
    for (weight, paths) in [(Weight::Glimpsed, 0..5), (Weight::Accessed, 5..9)] {
        for path in paths {
            let input = SessionInput::Touched {
                path: path.to_string().into(),
                touch: Touch::Read,
                weight,
                lines: Lines::default(),
                edited: None,
                written: WriteSource::default(),
            };
            sessions.input(&key, input, 1);
        }
    }
    sessions.flush();
    for snapshot in sessions.snapshots() {
        assert_eq!((snapshot.nodes.len(), snapshot.omitted), (4, 5), "{:?}", snapshot.key);
    }
}

#[test]
fn long_paths_take_no_more_than_their_room() {
    let mut sessions = Sessions::new(SETTINGS, nobody());
    sessions.limits.path_bytes = 3;
    play(&mut sessions, "a/s read ab\na/t read c\na/t read d\na/s closed\na/s read ab\na/s read e");
    let snapshots = sessions.snapshots();
    assert!(snapshots.iter().map(|it| (it.nodes.len(), it.omitted)).eq([(1, 1), (1, 1)]));
}

#[test]
fn an_agents_map_takes_no_more_than_its_room() {
    let mut sessions = Sessions::new(SETTINGS, nobody());
    sessions.limits.nodes = 2;
    let text = play(
        &mut sessions,
        "a/s read x
        a/t read x
        a/s read y
        b/s read y
        tick
        a/t closed
        a/s read y
        tick",
    );
    expect![[r#"
        a/s read x
          a/s snapshot 0
        a/t read x
          a/t snapshot 0
        a/s read y
        b/s read y
          b/s snapshot 0
        tick
          a/s delta 1
            x 1 in read turn 0 @1
          a/t delta 1
            x 1 in read turn 0 @2
          b/s delta 1
            y 1 in read turn 0 @4
        a/t closed
          a/t delta 2
            x removed
        a/s read y
        tick
          a/s delta 2
            y 1 in read turn 0 @7
    "#]]
    .assert_eq(&text);
}
