//! A session's reports of its past count nothing again.

use super::spending::{PROMPT, answer, reports, update};
use super::{acp, observe};
use crate::model::{Activity, ActivityKind, Record, UsageScope};

const LOAD: &str = r#">{"id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/w"}}"#;
const LOADED: &str = r#"{"id":1,"result":{}}"#;

fn cost(used: u64, amount: f64) -> String {
    update(&format!(
        r#""sessionUpdate":"usage_update","used":{used},"size":9,"cost":{{"amount":{amount:?},"currency":"USD"}}"#
    ))
}

fn play(lines: &[&str]) -> Vec<Activity> {
    observe(&mut acp(), lines)
}

#[test]
fn a_history_with_many_reports_is_paid_for() {
    let (one, two, three) = (cost(5, 1.5), cost(9, 3.5), cost(10, 4.0));
    let end = answer("");
    let turn = [PROMPT, three.as_str(), end.as_str()];
    let told = "0.5000 USD ?\ni? r? w? o? t? =? ?\n-\n";
    // Before the answer, after it, or some of it then.
    for history in
        [[LOAD, &one, &two, LOADED], [LOAD, LOADED, &one, &two], [LOAD, &one, LOADED, &two]]
    {
        assert_eq!(reports(&play(&[&history[..], &turn].concat())), told, "{history:?}");
    }
    let resume = LOAD.replace("load", "resume");
    assert_eq!(reports(&play(&[&[&resume, LOADED, &one, &two], &turn[..]].concat())), told);
    let fork = r#">{"id":1,"method":"session/fork","params":{"sessionId":"o","cwd":"/w"}}"#;
    let forked = r#"{"id":1,"result":{"sessionId":"s"}}"#;
    for history in [[fork, &one, &two, forked], [fork, forked, &one, &two]] {
        assert_eq!(reports(&play(&[&history[..], &turn].concat())), told, "{history:?}");
    }
}

#[test]
fn counts_of_a_session_from_before_are_not_counted_again() {
    let usage = |total: u64| {
        format!(r#","usage":{{"inputTokens":{total},"outputTokens":0,"totalTokens":{total}}}"#)
    };
    let mut acp = acp().counting(UsageScope::Session, None);
    let (first, second) = (answer(&usage(1_000)), answer(&usage(1_200)));
    let lines = [LOAD, LOADED, PROMPT, &first, PROMPT, &second];
    let told = "i? r? w? o? t? =? cost ? ?\n-\ni200 r? w? o0 t? =200 cost ? ?\n-\n";
    assert_eq!(reports(&observe(&mut acp, &lines)), told);
}

#[test]
fn a_repeated_history_is_said_to_be_one_until_the_next_prompt() {
    let (full, empty) = (cost(9, 1.0), cost(1, 1.0));
    let is_history = |activities: &[Activity]| -> Vec<String> {
        let told = activities.iter().filter_map(|activity| match &activity.kind {
            ActivityKind::Record(Record::Replays(replays)) => Some(format!("replays {replays}")),
            ActivityKind::Usage { usage, is_past } => Some(format!("{} {is_past}", usage.used)),
            ActivityKind::TurnBegan => Some("turn".to_owned()),
            _ => None,
        });
        told.collect()
    };
    let told = is_history(&play(&[LOAD, &full, &empty, LOADED, &full, &empty, PROMPT, &full]));
    let expected =
        ["replays true", "1 true", "9 true", "1 true", "replays false", "turn", "9 false"];
    assert_eq!(told, expected);
    // Beside a turn that runs, what comes after the answer is its own.
    let told = is_history(&play(&[PROMPT, LOAD, &full, LOADED, &empty]));
    assert_eq!(told, ["turn", "replays true", "replays false", "9 true", "1 false"]);
}

#[test]
fn calls_that_no_figure_covers_make_the_cost_incomplete() {
    let opened = |mode: &str| {
        format!(
            r#"{{"id":1,"result":{{"sessionId":"s","modes":{{"currentModeId":"{mode}","availableModes":[]}}}}}}"#
        )
    };
    let new = r#">{"id":1,"method":"session/new","params":{"cwd":"/w"}}"#;
    let set =
        r#">{"id":3,"method":"session/set_mode","params":{"sessionId":"s","modeId":"default"}}"#;
    let left = update(r#""sessionUpdate":"current_mode_update","currentModeId":"auto""#);
    let (auto, asks) = (opened("auto"), opened("default"));
    let end = answer("");
    let told = |lines: &[&str]| {
        let mut acp = acp().counting(UsageScope::Turn, Some("auto".to_owned()));
        reports(&observe(&mut acp, lines)).lines().filter(|line| *line == "cost ? ?").count()
    };
    assert_eq!(told(&[new, &auto, PROMPT, &end]), 1);
    assert_eq!(told(&[new, &asks, PROMPT, &end]), 0);
    assert_eq!(told(&[new, &auto, set, r#"{"id":3,"result":{}}"#, PROMPT, &end]), 0);
    assert_eq!(told(&[new, &asks, &left, PROMPT, &end]), 1);
}
