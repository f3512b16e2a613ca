#![allow(clippy::unwrap_used)]

use super::*;
use crate::tracker::testing::{input, key};

/// Sends `KEY ACTIVITY` at each line's number and returns what waits then: activities alone, with
/// their times.
fn waiting(lines: &[&str]) -> Vec<String> {
    let inbox = Inbox::default();
    for (at, line) in (1..).zip(lines) {
        let (name, activity) = line.split_once(' ').unwrap();
        inbox.push_input(key(name), input(activity), at);
    }
    let text = |message| match message {
        TrackerMsg::Input(_, SessionInput::Touched { path, touch, weight, .. }, at) => {
            let weight = match weight {
                Weight::Accessed => "accessed, ",
                Weight::Marked => "",
                Weight::Glimpsed => "glimpsed, ",
            };
            format!("{path} {weight}last {} @{at}", touch.as_str())
        }
        TrackerMsg::Input(_, SessionInput::Usage { first_used, usage }, at) => {
            format!("usage {first_used}…{} @{at}", usage.used)
        }
        TrackerMsg::Input(_, other, at) => format!("{other:?} @{at}"),
        TrackerMsg::DiskWrote(path, at) => format!("{path} on disk @{at}"),
        TrackerMsg::Dropped(..)
        | TrackerMsg::Orchestrate(_)
        | TrackerMsg::Forget(_)
        | TrackerMsg::Join(_)
        | TrackerMsg::GoOnBehind(_)
        | TrackerMsg::Query(_) => {
            unreachable!("nobody did")
        }
    };
    let kept = inbox.take().into_iter().filter(|it| !matches!(it, TrackerMsg::Dropped(..)));
    kept.map(text).collect()
}

fn push_paths(inbox: &Inbox, name: &str, count: u32) {
    for number in 0..count {
        inbox.push_input(key(name), input(&format!("read src/{number}.rs")), 0);
    }
}

#[test]
fn touches_of_a_path_are_one_until_order_matters() {
    assert_eq!(
        waiting(&["a/s read x", "a/s write y", "a/s blocked x", "a/s blocked z", "b/s read x"]),
        [
            "x accessed, last blocked @3",
            "y accessed, last write @2",
            "z last blocked @4",
            "x accessed, last read @5"
        ],
    );
    assert_eq!(
        waiting(&["a/s read x", "a/s compacted", "b/t compacted", "a/s read x", "a/s write x"]),
        ["x accessed, last read @1", "Compacted @2", "Compacted @3", "x accessed, last write @5"],
    );
    for event in ["opened", "closed", "began", "ended", "usage 1/2"] {
        let count = waiting(&["a/s read x", &format!("a/s {event}"), "a/s read x"]).len();
        assert_eq!(count, 3, "{event}");
    }
}

#[test]
fn an_access_is_not_repeated_by_the_kernels_report() {
    assert_eq!(
        waiting(&["a/s write x", "a/s seen read x", "a/s seen write x", "a/s seen read x"]),
        ["x accessed, last write @3"],
    );
    assert_eq!(waiting(&["a/s seen read x", "a/s search x"]), ["x accessed, last search @2"]);
    assert_eq!(
        waiting(&["a/s seen read x", "a/s seen read x", "a/s seen write x", "a/s seen read x"]),
        ["x last write @3", "x glimpsed, last read @4"],
    );
}

#[test]
fn a_usage_replaces_the_one_before_unless_it_may_mean_a_compaction() {
    assert_eq!(
        waiting(&[
            "a/s usage 5/9",
            "a/s usage 5/9",
            "a/s read x",
            "a/s usage 8/9",
            "a/s usage 7/9"
        ]),
        ["usage 5…8 @4", "x accessed, last read @3", "usage 7…7 @5"],
    );
}

#[test]
fn a_million_records_cost_what_their_paths_cost() {
    let inbox = Inbox::default();
    for _ in 0..1_000 {
        push_paths(&inbox, "a/s", 1_000);
    }
    assert_eq!(inbox.take().len(), 1_000);
    assert_eq!(inbox.take().len(), 0);
}

#[test]
fn an_agent_that_floods_loses_only_its_own_inputs() {
    let inbox = Inbox::default();
    push_paths(&inbox, "a/s", 200_000);
    let long = format!("update {}", "x".repeat(AGENT_BYTES / 2));
    for _ in 0..4 {
        inbox.push_input(key("a/s"), input(&long), 0);
    }
    inbox.push_input(key("a/s"), input("compacted"), 0);
    inbox.push_input(key("a/s"), input("ended"), 0);
    push_paths(&inbox, "b/s", 100);

    let messages = inbox.take();
    let count = |agent: &str, is_of: fn(&SessionInput) -> bool| {
        let of_agent = messages.iter().filter(|message| match message {
            TrackerMsg::Input(key, input, _) => key.agent.as_str() == agent && is_of(input),
            _ => false,
        });
        of_agent.count()
    };
    let touched = count("a", |input| matches!(input, SessionInput::Touched { .. }));
    assert!((AGENT_BYTES / 2 / MESSAGE_BYTES..=AGENT_BYTES / MESSAGE_BYTES).contains(&touched));
    assert_eq!(count("a", |input| matches!(input, SessionInput::Update(_))), 2);
    assert_eq!(count("a", |input| *input == SessionInput::Compacted), 0);
    assert_eq!(count("a", |input| matches!(input, SessionInput::TurnEnded { .. })), 1);
    assert_eq!(count("b", |input| matches!(input, SessionInput::Touched { .. })), 100);

    push_paths(&inbox, "a/s", 10);
    assert_eq!(inbox.take().len(), 10, "what is taken out makes room");
}

#[test]
fn no_text_is_endless() {
    let long = "x".repeat(TEXT_BYTES + 1);
    assert_eq!(waiting(&[&format!("a/s read {long}"), &format!("a/{long} opened")]).len(), 0);
    assert_eq!(waiting(&[&format!("a/s read {}", &long[1..])]).len(), 1);
}

#[test]
fn a_closed_inbox_takes_nothing_and_leaves_nobody_waiting() {
    let inbox = Inbox::default();
    let (reply, mut before) = oneshot::channel();
    inbox.query(Query::Settled(reply));
    inbox.close();
    let (reply, mut after) = oneshot::channel();
    inbox.query(Query::Settled(reply));
    inbox.push_input(key("a/s"), input("opened"), 0);
    assert!(inbox.take().is_empty());
    before.try_recv().unwrap_err();
    after.try_recv().unwrap_err();
}
