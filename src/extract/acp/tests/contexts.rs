//! The size of a context is no spending, but where nothing else is said.

use expect_test::expect;

use super::spending::{PROMPT, answer, call, check, update};
use crate::model::UsageScope;

#[test]
fn contexts_are_an_estimate_where_nothing_else_is_said() {
    let context =
        |used: u64| update(&format!(r#""sessionUpdate":"usage_update","used":{used},"size":9"#));
    let lines = [
        context(50),
        PROMPT.to_owned(),
        context(100),
        // The same once more is no call.
        context(100),
        context(130),
        answer(""),
    ];
    // Two rounds of tool calls, and the answer.
    let with_calls =
        [&lines[..3], &[call("a", "completed"), call("b", "completed")], &lines[3..]].concat();
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
