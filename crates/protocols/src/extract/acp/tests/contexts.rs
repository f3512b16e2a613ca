//! Figures that are reported beside answers: the size of a context, which is no spending but where nothing
//! else is said, and counts of the session.

use expect_test::expect;

use super::spending::{PROMPT, answer, call, check, update};
use crate::model::UsageScope;

#[test]
fn contexts_are_an_estimate_where_nothing_else_is_said() {
    let context =
        |used: u64| update(&format!(r#""sessionUpdate":"usage_update","used":{used},"size":9"#));
    let says = |text: &str| {
        update(&format!(
            r#""sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}"#
        ))
    };
    let lines = [
        context(50),
        PROMPT.to_owned(),
        // An estimate before the call; a banner is no word of a model.
        says("pi v1.6.0\\n---\\n"),
        context(1316),
        says("Done."),
        context(100),
        // The same once more is no call.
        context(100),
        context(130),
        answer(""),
    ];
    // Two rounds of tool calls, and the answer.
    let with_calls =
        [&lines[..6], &[call("a", "completed"), call("b", "completed")], &lines[6..]].concat();
    check(
        UsageScope::Context,
        &with_calls,
        &expect![[r#"
            i? r? w? o? t? =230~390 cost ? m
            -
        "#]],
    );
    check(
        UsageScope::Context,
        &lines,
        &expect![[r#"
            i? r? w? o? t? =230~230 cost ? m
            -
        "#]],
    );
    // Of all others it is no spending.
    check(
        UsageScope::Turn,
        &lines,
        &expect![[r#"
            i? r? w? o? t? =? cost ? m
            -
        "#]],
    );
}

/// As `OpenHands` 1.16.0 was recorded: beside each update, up to now.
#[test]
fn counts_beside_updates_are_those_of_the_session() {
    let thought = |input: u64, output: u64, read: u64, cost: f64| {
        format!(
            r#"{{"method":"session/update","params":{{"_meta":{{"field_meta":{{"openhands.dev/metrics":{{"input_tokens":{input},"output_tokens":{output},"cache_read_tokens":{read},"reasoning_tokens":0,"cost":{cost},"status_line":"x"}}}}}},"sessionId":"s","update":{{"content":{{"text":"Step.","type":"text"}},"sessionUpdate":"agent_thought_chunk"}}}}}}"#
        )
    };
    let lines = [
        thought(0, 0, 0, 0.0),
        PROMPT.to_owned(),
        thought(0, 0, 0, 0.0),
        thought(1000, 20, 0, 0.0),
        thought(1000, 20, 0, 0.0),
        // What is read from a cache is within the input.
        thought(3000, 60, 500, 0.25),
        answer(""),
        PROMPT.to_owned(),
        answer(""),
    ];
    check(
        UsageScope::Turn,
        &lines,
        &expect![[r#"
            i1000 r0 w? o20 t0 =1020 cost ? m
            0.2500 USD m
            i1500 r500 w? o40 t0 =2040 m
            -
            i? r? w? o? t? =? m
            -
        "#]],
    );
}
