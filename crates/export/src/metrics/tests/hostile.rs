use expect_test::expect;

use super::pages::promtool;
use super::*;

/// Names that agents could send to break a page, or to have something in it that is not to be there.
const NAMES: [&str; 12] = [
    "",
    "/home/me/secret.txt",
    "../../etc/passwd",
    "a/../b",
    "quo\"te",
    "line\nbreak",
    "back\\slash",
    "space d",
    "sch\u{f6}n",
    "\u{202e}desrever",
    "{le=\"1\"} 5",
    "nul\0",
];

#[test]
fn names_that_no_model_and_no_currency_has_are_other() {
    let mut bench = Bench::default();
    let long = "m".repeat(65);
    for name in NAMES.into_iter().chain([long.as_str()]) {
        bench.record("s", Record::Spent(spending(name, name, 1.0)));
    }
    expect![[r#"
        eisen_cost_total{model="other",currency="other"} 13.0
    "#]]
    .assert_eq(&bench.samples(&[Metric::Cost]));
}

#[test]
fn real_names_of_models_are_kept() {
    for name in [
        "claude-sonnet-4-5-20250929",
        "claude-sonnet-4-5[1m]",
        "anthropic/claude-opus-4.1",
        "openai/gpt-5.1:high",
        "qwen3-coder@latest",
        "opencode/big_pickle",
    ] {
        let mut bench = Bench::default();
        bench.record("s", Record::Spent(spending(name, "EUR", 1.0)));
        let expected = format!("eisen_cost_total{{model=\"{name}\",currency=\"EUR\"}} 1.0\n");
        assert_eq!(bench.samples(&[Metric::Cost]), expected);
    }
}

#[test]
fn more_names_than_are_kept_are_other_and_the_first_stay() {
    let mut bench = Bench::default();
    let letter = |number: usize| char::from(b'A' + u8::try_from(number % 26).unwrap());
    for number in 0..5000 {
        let currency = format!("{}{}X", letter(number), letter(number / 26));
        bench.record("s", Record::Spent(spending(&format!("m{number}"), &currency, 1.0)));
    }
    bench.record("s", Record::Spent(spending("m31", "AAX", 1.0)));
    let samples = bench.samples(&[Metric::Cost]);
    // 8 models with a currency each, 24 with none of the kept ones, all other models with each of
    // these currencies and none, and the last.
    assert_eq!(samples.lines().count(), 8 + 24 + 9 + 1, "{samples}");
    assert!(samples.contains("eisen_cost_total{model=\"m31\",currency=\"AAX\"} 1.0\n"));
    assert!(!samples.contains("m32"), "{samples}");
}

#[test]
fn amounts_that_are_no_amounts_do_not_count() {
    let mut bench = Bench::default();
    for amount in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, f64::MAX, f64::MAX, 0.5] {
        bench.record("s", Record::Spent(spending("m", "USD", amount)));
    }
    let mut most = spending("m", "USD", 0.0);
    most.tokens = Some(Tokens::of(|_| Figure::Measured(u64::MAX)));
    bench.record("s", Record::Spent(most.clone())).record("s", Record::Spent(most));
    let samples = bench.samples(&[Metric::Cost, Metric::Tokens]);
    let value = |line: &str| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
    assert!(samples.lines().all(|line| value(line) >= 0.0), "{samples}");
    assert!(samples.contains(&format!("type=\"input\",model=\"m\"}} {}\n", u64::MAX)));
    promtool(&text(bench.fold.series().clone()));
}

#[test]
fn updates_that_are_no_updates_change_nothing() {
    let mut bench = Bench::default();
    bench.record("s", Record::TurnBegan);
    for update in [
        "",
        "null",
        "[]",
        "{",
        r#"{"sessionUpdate":7}"#,
        r#"{"sessionUpdate":"plan"}"#,
        r#"{"sessionUpdate":"tool_call","toolCallId":{}}"#,
        r#"{"sessionUpdate":"tool_call","toolCallId":"1","toolCallId":"2"}"#,
        r#"{"sessionUpdate":"usage_update","used":1}"#,
    ] {
        bench.update("s", update);
    }
    assert_eq!(*bench.fold.series(), *MetricsFold::default().series());
}

#[test]
fn unknown_kinds_and_reasons_are_other() {
    let mut bench = Bench::default();
    for name in NAMES {
        let name = serde_json::to_string(name).unwrap();
        bench.record("s", Record::TurnBegan);
        bench.tool("s", "1", &format!(r#""kind":{name},"status":"failed""#));
        bench.ends("s", &name);
    }
    let samples = bench.samples(&[Metric::ToolErrors, Metric::TurnDuration]);
    expect![[r#"
        eisen_turn_duration_seconds_sum{stop_reason="other"} 0.0
        eisen_turn_duration_seconds_count{stop_reason="other"} 12
        eisen_tool_errors_total{kind="other"} 12
    "#]]
    .assert_eq(&samples);
}

#[test]
fn a_flood_of_sessions_and_calls_is_bounded_and_ends() {
    let mut bench = Bench::default();
    for number in 0..10_000 {
        bench.record(&format!("s{number}"), Record::TurnBegan);
    }
    assert_eq!(bench.fold.sessions(), 4096);
    for number in 0..10_000 {
        bench.ends(&format!("s{number}"), "end_turn");
    }
    assert_eq!(bench.fold.sessions(), 0);
    bench.record("s", Record::TurnBegan);
    for number in 0..10_000 {
        bench.tool("s", &format!("open{number}"), r#""kind":"read""#);
    }
    bench.ends("s", "end_turn").record("s", Record::TurnBegan);
    // Calls that end make room for others.
    for number in 0..10_000 {
        bench.tool("s", &format!("{number}"), r#""kind":"read","status":"completed""#);
    }
    let samples = bench.samples(&[Metric::ToolDuration]);
    assert!(samples.ends_with("count{kind=\"read\"} 10000\n"), "{samples}");
}

#[test]
fn a_flood_of_accesses_is_bounded_and_counted() {
    let mut bench = Bench::default();
    for number in 0..50_000 {
        bench.blocked(&access(&format!("b{number}"), BlockedStatus::Denied, 0));
    }
    assert_eq!(bench.fold.accesses(), 20_000);
    let samples = bench.samples(&[Metric::AccessesBlocked]);
    assert_eq!(samples, "eisen_accesses_blocked_total{via=\"fs\",status=\"denied\"} 50000\n");
}
