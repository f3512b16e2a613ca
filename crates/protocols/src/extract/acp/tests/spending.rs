//! Usage as it is read: in every maker's shape, and in recorded traffic.

use std::fmt::Write as _;
use std::sync::Arc;

use expect_test::{Expect, expect};

use super::{acp, observe};
use crate::extract::Extractor;
use crate::extract::acp::Acp;
use crate::extract::testing::Sample;
use crate::line::Direction;
use crate::model::{Activity, ActivityKind, Charge, Figure, Spending, TokenKind, UsageScope};

const NEW: [&str; 2] = [
    r#">{"id":1,"method":"session/new","params":{"cwd":"/w"}}"#,
    r#"{"id":1,"result":{"sessionId":"s","models":{"currentModelId":"m"}}}"#,
];
pub(super) const PROMPT: &str =
    r#">{"id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#;

pub(super) fn update(update: &str) -> String {
    format!(r#"{{"method":"session/update","params":{{"sessionId":"s","update":{{{update}}}}}}}"#)
}

pub(super) fn answer(more: &str) -> String {
    format!(r#"{{"id":2,"result":{{"stopReason":"end_turn"{more}}}}}"#)
}

pub(super) fn call(id: &str, status: &str) -> String {
    update(&format!(r#""sessionUpdate":"tool_call","toolCallId":"{id}","status":"{status}""#))
}

/// One line for a report: `i` input, `r` and `w` cached, `o` output, `t` thoughts, `=` all; `1~2` is
/// estimated, `?` unknown.
fn shown(report: &Spending) -> String {
    let mut line = String::new();
    if let Some(tokens) = &report.tokens {
        for (kind, letter) in TokenKind::ALL.into_iter().zip(["i", "r", "w", "o", "t", "="]) {
            let figure = match tokens.get(kind) {
                Figure::Unknown => "?".to_owned(),
                Figure::Estimated { least, most } => format!("{least}~{most}"),
                Figure::Measured(number) => number.to_string(),
            };
            let _ = write!(line, "{letter}{figure} ");
        }
    }
    match &report.cost {
        None => {}
        Some(Charge::Unknown) => line.push_str("cost ? "),
        Some(Charge::Estimated(_)) => line.push_str("priced "),
        Some(Charge::Measured(cost)) => {
            let _ = write!(line, "{:.4} {} ", cost.amount, cost.currency);
        }
    }
    let model = report.model.as_deref().unwrap_or("?");
    format!("{line}{model}")
}

pub(super) fn reports(activities: &[Activity]) -> String {
    let mut lines = String::new();
    for activity in activities {
        match &activity.kind {
            ActivityKind::Spent(report) => lines += &(shown(report) + "\n"),
            ActivityKind::TurnEnded { .. } => lines += "-\n",
            _ => {}
        }
    }
    lines
}

/// Opens a session, and plays lines there.
pub(super) fn check(scope: UsageScope, lines: &[String], expected: &Expect) {
    let mut acp = acp().counting(scope, None);
    let lines: Vec<&str> = NEW.into_iter().chain(lines.iter().map(String::as_str)).collect();
    expected.assert_eq(&reports(&observe(&mut acp, &lines)));
}

#[test]
fn a_turn_s_usage_has_cached_tokens_and_thoughts_within_or_beside() {
    let turn = |usage: &str| {
        let lines = [PROMPT.to_owned(), answer(&format!(r#","usage":{{{usage}}}"#))];
        let mut acp = acp();
        let lines: Vec<&str> = NEW.into_iter().chain(lines.iter().map(String::as_str)).collect();
        reports(&observe(&mut acp, &lines)).lines().next().unwrap().to_owned()
    };
    // Claude, Codex: beside the input, thoughts within the output.
    let beside = r#""inputTokens":10,"outputTokens":5,"totalTokens":115,"cachedReadTokens":70,"cachedWriteTokens":30,"thoughtTokens":2"#;
    assert_eq!(turn(beside), "i10 r70 w30 o5 t2 =115 cost ? m");
    // Copilot, Vibe: both within.
    let within = r#""inputTokens":110,"outputTokens":5,"totalTokens":115,"cachedReadTokens":70,"cachedWriteTokens":30,"thoughtTokens":2"#;
    assert_eq!(turn(within), "i10 r70 w30 o5 t2 =115 cost ? m");
    // OpenCode: both beside.
    let all = r#""inputTokens":10,"outputTokens":5,"totalTokens":117,"cachedReadTokens":70,"cachedWriteTokens":30,"thoughtTokens":2"#;
    assert_eq!(turn(all), "i10 r70 w30 o7 t2 =117 cost ? m");
    // Thoughts beside, cached tokens within.
    let thoughts = r#""inputTokens":110,"outputTokens":5,"totalTokens":117,"cachedReadTokens":70,"thoughtTokens":2"#;
    assert_eq!(turn(thoughts), "i40 r70 w? o7 t2 =117 cost ? m");
    // What is absent, or no count, is unknown.
    assert_eq!(turn(r#""inputTokens":1,"outputTokens":-2"#), "i1 r? w? o? t? =? cost ? m");
    assert_eq!(turn(r#""totalTokens":1e99"#), "i? r? w? o? t? =? cost ? m");
    assert_eq!(turn(r#""inputTokens":[],"outputTokens":"4""#), "i? r? w? o? t? =? cost ? m");
}

#[test]
fn a_turn_without_a_report_is_unknown_and_not_zero() {
    check(
        UsageScope::Turn,
        &[PROMPT.to_owned(), answer("")],
        &expect![[r#"
            i? r? w? o? t? =? cost ? m
            -
        "#]],
    );
    // Nor is one that fails, or breaks off.
    let failed = r#"{"id":2,"error":{"code":1,"message":"no"}}"#.to_owned();
    check(
        UsageScope::Session,
        &[PROMPT.to_owned(), failed],
        &expect![[r#"
            i? r? w? o? t? =? cost ? m
            -
        "#]],
    );
    let mut acp = acp();
    observe(&mut acp, &[NEW[0], NEW[1], PROMPT]);
    let mut activities = Vec::new();
    acp.end("it died", &mut activities);
    assert_eq!(reports(&activities), "i? r? w? o? t? =? cost ? m\n-\n");
}

#[test]
fn counts_of_a_session_are_told_from_those_before() {
    let usage = |input: u64, output: u64| {
        let total = input + output;
        answer(&format!(
            r#","usage":{{"inputTokens":{input},"outputTokens":{output},"totalTokens":{total}}}"#
        ))
    };
    let lines = [
        PROMPT.to_owned(),
        usage(100, 10),
        PROMPT.to_owned(),
        usage(150, 15),
        // Cancelled before anything was asked.
        PROMPT.to_owned(),
        usage(150, 15),
        // The agent counts anew.
        PROMPT.to_owned(),
        usage(20, 1),
    ];
    check(
        UsageScope::Session,
        &lines,
        &expect![[r#"
            i100 r? w? o10 t? =110 cost ? m
            -
            i50 r? w? o5 t? =55 cost ? m
            -
            i0 r? w? o0 t? =0 cost ? m
            -
            i20 r? w? o1 t? =21 cost ? m
            -
        "#]],
    );
}

#[test]
fn a_last_call_stands_for_the_rounds_of_its_turn() {
    let usage = r#","usage":{"inputTokens":10,"outputTokens":5,"totalTokens":15}"#;
    let lines = [
        PROMPT.to_owned(),
        answer(usage),
        PROMPT.to_owned(),
        // Two calls at once, then one.
        call("a", "in_progress"),
        call("b", "in_progress"),
        call("a", "completed"),
        call("b", "completed"),
        call("c", "completed"),
        call("c", "completed"),
        answer(usage),
        // A call that was cut off.
        PROMPT.to_owned(),
        answer(r#","usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0}"#),
    ];
    check(
        UsageScope::Call,
        &lines,
        &expect![[r#"
            i10 r? w? o5 t? =15 cost ? m
            -
            i10~30 r? w? o5~15 t? =15~45 cost ? m
            -
            i? r? w? o? t? =? cost ? m
            -
        "#]],
    );
}

#[test]
fn models_are_told_apart_where_the_agent_does() {
    let row = |model: &str, input: u64| {
        format!(
            r#"{{"model":"{model}","token_count":{{"totalTokens":{input},"inputTokens":{input},"cachedInputTokens":0,"outputTokens":0,"reasoningOutputTokens":0}}}}"#
        )
    };
    let quota = |rows: &str| {
        answer(&format!(
            r#","usage":{{"inputTokens":10,"outputTokens":0,"totalTokens":10}},"_meta":{{"quota":{{"token_count":{{"inputTokens":10,"outputTokens":0,"totalTokens":10}},"model_usage":[{rows}]}}}}"#
        ))
    };
    let gemini = r#","_meta":{"quota":{"token_count":{"input_tokens":161178,"output_tokens":330},"model_usage":[{"model":"gemini-2.5-pro","token_count":{"input_tokens":161178,"output_tokens":330}}]}}"#;
    let lines = [
        // With the calls of a helper, which the sum leaves out.
        PROMPT.to_owned(),
        quota(&[row("large", 10), row("small", 90)].join(",")),
        // Rows that have less than the sum are wrong.
        PROMPT.to_owned(),
        quota(&row("large", 1)),
        PROMPT.to_owned(),
        quota(&vec![row("x", 10); 100].join(",")),
        PROMPT.to_owned(),
        answer(gemini),
    ];
    check(
        UsageScope::Turn,
        &lines,
        &expect![[r#"
            i10 r0 w? o0 t? =10 cost ? large
            i90 r0 w? o0 t? =90 cost ? small
            -
            i10 r? w? o0 t? =10 cost ? m
            -
            i10 r? w? o0 t? =10 cost ? m
            -
            i161178 r? w? o330 t? =161508 cost ? gemini-2.5-pro
            -
        "#]],
    );
}

#[test]
fn calls_are_reported_one_by_one() {
    // Qwen Code, in the `_meta` of a chunk; twice the same is two calls.
    let chunk = update(
        r#""sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"_meta":{"usage":{"inputTokens":100,"outputTokens":5,"totalTokens":105,"cachedReadTokens":40}}"#,
    );
    let lines = [PROMPT.to_owned(), chunk.clone(), chunk, answer("")];
    check(
        UsageScope::Turn,
        &lines,
        &expect![[r#"
            i60 r40 w? o5 t? =105 cost ? m
            i60 r40 w? o5 t? =105 cost ? m
            -
        "#]],
    );
    // Vibe, in the `_meta` of its usage update, up to now.
    let count = |prompt: u64, cost: f64| {
        update(&format!(
            r#""sessionUpdate":"usage_update","used":{prompt},"size":200000,"cost":{{"amount":{cost},"currency":"USD"}},"_meta":{{"promptTokens":{prompt},"completionTokens":1,"cachedTokens":0,"totalTokens":{}}}"#,
            prompt + 1
        ))
    };
    let usage =
        r#","usage":{"totalTokens":301,"inputTokens":300,"outputTokens":1,"cachedReadTokens":0}"#;
    let lines = [PROMPT.to_owned(), count(100, 0.1), count(300, 0.3), answer(usage)];
    check(
        UsageScope::Session,
        &lines,
        &expect![[r#"
            0.1000 USD m
            i100 r0 w? o1 t? =101 m
            0.2000 USD m
            i200 r0 w? o0 t? =200 m
            -
        "#]],
    );
}

#[test]
fn money_is_told_from_what_was_before() {
    let cost = |amount: &str, currency: &str| {
        update(&format!(
            r#""sessionUpdate":"usage_update","used":1,"size":9,"cost":{{"amount":{amount},"currency":"{currency}"}}"#
        ))
    };
    let lines = [
        PROMPT.to_owned(),
        cost("0.5", "USD"),
        cost("0.75", "USD"),
        cost("0.75", "USD"),
        // Anew.
        cost("0.25", "USD"),
        cost("-1", "USD"),
        cost("1e300", "USD"),
        cost("9", "dollars"),
        answer(""),
    ];
    check(
        UsageScope::Turn,
        &lines,
        &expect![[r#"
            0.5000 USD m
            0.2500 USD m
            0.2500 USD m
            i? r? w? o? t? =? m
            -
        "#]],
    );
    // A session that is loaded again was paid for.
    let load = r#">{"id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/w"}}"#;
    let (before, after) = (cost("3", "USD"), cost("3.5", "USD"));
    let lines = [load, &before, r#"{"id":1,"result":{}}"#, PROMPT, &after, &answer("")];
    assert_eq!(reports(&observe(&mut acp(), &lines)), "0.5000 USD ?\ni? r? w? o? t? =? ?\n-\n");
}

/// The sums of a recording, as its agent's profile counts.
fn recorded(name: &str, scope: UsageScope) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/recordings");
    let recording = std::fs::read_to_string(format!("{folder}/{name}.ndjson")).unwrap();
    let sample = Arc::new(Sample::at("/workspace", &[]));
    let mut acp = Acp::new(sample, "/workspace".into()).counting(scope, None);
    let (mut activities, mut spent) = (Vec::new(), crate::model::Spent::default());
    for line in recording.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let is_up = line["dir"] == "up";
        let direction = if is_up { Direction::ToAgent } else { Direction::ToClient };
        acp.observe(direction, line["line"].as_str().unwrap().as_bytes(), &mut activities);
    }
    for activity in &activities {
        if let ActivityKind::Spent(report) = &activity.kind {
            spent.add(report);
        }
    }
    let total = spent.total();
    let mark = if total.is_estimated { "~" } else { "" };
    let cost: Vec<_> =
        spent.cost.iter().map(|(currency, sum)| format!("{sum:.4} {currency}")).collect();
    let known = total.known.map_or("?".to_owned(), |known| known.to_string());
    format!("{mark}{known} ({} unknown) {}", total.unknown, cost.join(" ")).trim_end().to_owned()
}

#[test]
fn recorded_traffic_adds_up() {
    let mut lines = String::new();
    for (name, scope) in [
        ("opencode", UsageScope::Call),
        ("acpx-opencode", UsageScope::Call),
        ("gemini", UsageScope::Turn),
        ("claude-code-acp", UsageScope::Turn),
        ("codex-acp", UsageScope::Context),
        ("kimi130", UsageScope::Turn),
        ("copilot", UsageScope::Session),
        ("vibe", UsageScope::Session),
    ] {
        let _ = writeln!(lines, "{name}: {}", recorded(name, scope));
    }
    expect![[r#"
        opencode: ~237411 (2 unknown) 0.1248 USD
        acpx-opencode: ~159369 (1 unknown) 0.0754 USD
        gemini: 450502 (1 unknown)
        claude-code-acp: ? (5 unknown)
        codex-acp: ~278120 (1 unknown)
        kimi130: ? (5 unknown)
        copilot: 221162 (0 unknown)
        vibe: 238195 (0 unknown) 0.2504 USD
    "#]]
    .assert_eq(&lines);
}
