use expect_test::expect;

use super::*;

const DECISIONS: [Metric; 3] = [Metric::AccessesBlocked, Metric::Decisions, Metric::DecisionWait];

const TOOLS: [Metric; 2] = [Metric::ToolDuration, Metric::ToolErrors];

#[test]
fn a_turn_is_timed_until_its_first_output_and_its_end() {
    let mut bench = Bench::default();
    bench.record("s", Record::TurnBegan).pass(1500);
    bench.update("s", r#"{"sessionUpdate":"plan","entries":[]}"#).pass(500);
    bench.update("s", r#"{"sessionUpdate":"agent_thought_chunk","content":{}}"#).pass(1000);
    bench.update("s", r#"{"sessionUpdate":"agent_message_chunk","content":{}}"#).pass(7000);
    bench.ends("s", "end_turn");
    // Output between turns is nobody's first, and an end without a begin has no duration.
    bench.update("s", r#"{"sessionUpdate":"agent_message_chunk","content":{}}"#);
    bench.ends("s", "end_turn");
    bench.record("s", Record::TurnBegan).pass(250).ends("s", "something new");
    expect![[r#"
        eisen_turn_duration_seconds_sum{stop_reason="end_turn"} 10.0
        eisen_turn_duration_seconds_count{stop_reason="end_turn"} 1
        eisen_turn_duration_seconds_sum{stop_reason="other"} 0.25
        eisen_turn_duration_seconds_count{stop_reason="other"} 1
        eisen_time_to_first_chunk_seconds_sum 2.0
        eisen_time_to_first_chunk_seconds_count 1
    "#]]
    .assert_eq(&bench.samples(&[Metric::TurnDuration, Metric::TimeToFirstChunk]));
}

#[test]
fn a_clock_that_is_set_back_makes_no_negative_time() {
    let mut bench = Bench { now: 10_000, ..Bench::default() };
    bench.record("s", Record::TurnBegan);
    bench.now = 0;
    bench.ends("s", "cancelled");
    expect![[r#"
        eisen_turn_duration_seconds_sum{stop_reason="cancelled"} 0.0
        eisen_turn_duration_seconds_count{stop_reason="cancelled"} 1
    "#]]
    .assert_eq(&bench.samples(&[Metric::TurnDuration]));
}

#[test]
fn a_tool_call_is_timed_once_by_its_last_kind() {
    let mut bench = Bench::default();
    bench.record("s", Record::TurnBegan);
    bench.update("s", r#"{"sessionUpdate":"tool_call","toolCallId":"1","status":"pending"}"#);
    bench.pass(40).tool("s", "1", r#""kind":"execute","status":"in_progress""#);
    bench.pass(60).tool("s", "1", r#""status":"completed""#);
    // Some agents say it again, and in the next call's time.
    bench.pass(60).tool("s", "1", r#""status":"completed""#);
    bench.tool("s", "2", r#""kind":"read""#).pass(500).tool("s", "2", r#""status":"failed""#);
    // Without an end until that of its turn.
    bench.tool("s", "3", r#""kind":"edit""#).pass(500).ends("s", "end_turn");
    bench.pass(500).tool("s", "3", r#""kind":"edit""#);
    expect![[r#"
        eisen_tool_duration_seconds_sum{kind="execute"} 0.1
        eisen_tool_duration_seconds_count{kind="execute"} 1
        eisen_tool_duration_seconds_sum{kind="read"} 0.5
        eisen_tool_duration_seconds_count{kind="read"} 1
        eisen_tool_errors_total{kind="read"} 1
    "#]]
    .assert_eq(&bench.samples(&TOOLS));
}

#[test]
fn what_a_loaded_session_repeats_does_not_count() {
    let mut bench = Bench::default();
    bench.record("s", Record::Replays(true));
    bench.tool("s", "1", r#""kind":"read","status":"completed""#);
    bench.record("s", Record::Replays(false));
    assert_eq!(bench.samples(&TOOLS), "");
    bench.tool("s", "2", r#""kind":"read","status":"completed""#);
    assert!(bench.samples(&TOOLS).contains("count{kind=\"read\"} 1\n"));
}

#[test]
fn an_access_counts_in_each_status_and_its_wait_once() {
    let mut bench = Bench { now: 1000, ..Bench::default() };
    bench.blocked(&access("b1", BlockedStatus::Pending, 1000)).pass(4000);
    let allowed = access("b1", BlockedStatus::Allowed, 1000);
    bench.decided(&allowed).blocked(&allowed);
    expect![[r#"
        eisen_decision_wait_seconds_sum 4.0
        eisen_decision_wait_seconds_count 1
        eisen_decisions_total{outcome="allowed"} 1
        eisen_accesses_blocked_total{via="fs",status="allowed"} 1
        eisen_accesses_blocked_total{via="fs",status="pending"} 1
    "#]]
    .assert_eq(&bench.samples(&DECISIONS));
}

#[test]
fn waits_that_nobody_decided_have_outcomes_of_their_own() {
    let mut bench = Bench { now: 1000, ..Bench::default() };
    for (id, status) in [("b1", BlockedStatus::Denied), ("b2", BlockedStatus::Expired)] {
        bench.blocked(&access(id, BlockedStatus::Pending, 1000));
        bench.pass(60_000).blocked(&access(id, status, 1000));
    }
    expect![[r#"
        eisen_decision_wait_seconds_sum 180.0
        eisen_decision_wait_seconds_count 2
        eisen_decisions_total{outcome="expired"} 1
        eisen_decisions_total{outcome="timed_out"} 1
        eisen_accesses_blocked_total{via="fs",status="denied"} 1
        eisen_accesses_blocked_total{via="fs",status="expired"} 1
        eisen_accesses_blocked_total{via="fs",status="pending"} 2
    "#]]
    .assert_eq(&bench.samples(&DECISIONS));
}

#[test]
fn a_denial_that_is_lifted_later_did_not_wait() {
    let mut bench = Bench::default();
    let mut denied = access("b1", BlockedStatus::Denied, 0);
    bench.blocked(&denied);
    // The line comes once more, since the tool call reports that it completed.
    denied.completed = true;
    bench.blocked(&denied);
    let allowed = access("b1", BlockedStatus::Allowed, 0);
    bench.decided(&allowed).blocked(&allowed);
    expect![[r#"
        eisen_decisions_total{outcome="allowed"} 1
        eisen_accesses_blocked_total{via="fs",status="allowed"} 1
        eisen_accesses_blocked_total{via="fs",status="denied"} 1
    "#]]
    .assert_eq(&bench.samples(&DECISIONS));
}

#[test]
fn a_sweep_counts_each_access_that_it_stands_for() {
    let mut bench = Bench::default();
    for count in [1, 12, 12, 30] {
        let access = access("b1", BlockedStatus::Denied, 0);
        bench.blocked(&BlockedAccess { via: Via::Kernel, sweep: Some(count), ..access });
    }
    expect![[r#"
        eisen_accesses_blocked_total{via="kernel",status="denied"} 30
    "#]]
    .assert_eq(&bench.samples(&DECISIONS));
}

#[test]
fn tokens_of_all_types_but_reasoning_add_up_to_the_total() {
    let mut bench = Bench::default();
    bench.record("s", Record::Spent(spending("sonnet", "USD", 0.5)));
    bench.record("s", Record::Spent(spending("sonnet", "USD", 0.25)));
    let only_total = Tokens::of(|kind| match kind {
        TokenKind::Total => Figure::Estimated { least: 7, most: 7 },
        _ => Figure::Unknown,
    });
    bench.record("s", Record::Spent(Spending { tokens: Some(only_total), ..Spending::default() }));
    expect![[r#"
        eisen_tokens_total{type="input",model="sonnet"} 200
        eisen_tokens_total{type="other",model="other"} 7
        eisen_tokens_total{type="other",model="sonnet"} 60
        eisen_tokens_total{type="output",model="sonnet"} 40
        eisen_tokens_total{type="reasoning",model="sonnet"} 10
        eisen_cost_total{model="sonnet",currency="USD"} 0.75
    "#]]
    .assert_eq(&bench.samples(&[Metric::Tokens, Metric::Cost]));
}

#[test]
fn after_missed_events_nothing_is_timed_from_before_them() {
    let mut bench = Bench::default();
    bench.record("s", Record::TurnBegan).tool("s", "1", r#""kind":"read""#).pass(1000);
    bench.fold.missed(3);
    bench.tool("s", "1", r#""kind":"read","status":"completed""#).ends("s", "end_turn");
    bench.record("s", Record::TurnBegan).pass(2000).ends("s", "end_turn");
    expect![[r#"
        eisen_turn_duration_seconds_sum{stop_reason="end_turn"} 2.0
        eisen_turn_duration_seconds_count{stop_reason="end_turn"} 1
        eisen_metrics_missed_events_total 3
    "#]]
    .assert_eq(&bench.samples(&[Metric::TurnDuration, Metric::MetricsMissed]));
}

#[test]
fn dropped_inputs_are_counted() {
    let mut bench = Bench::default();
    bench.record("", Record::Dropped(12)).record("", Record::Dropped(3));
    expect!["eisen_agent_inputs_dropped_total 15\n"]
        .assert_eq(&bench.samples(&[Metric::InputsDropped]));
}
