//! Odd but plausible shapes of tool calls, of makers that nobody has recorded.

use super::makers::{call, update};
use super::{acp, observe};
use crate::model::{Activity, ActivityKind};

/// Fields of a call, what it tells when it is begun, and what a permission for it asks for.
const SHAPES: &[(&str, &str, &str)] = &[
    (
        r#""kind":"read","locations":{"path":"core/auth.rs"}"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"read","locations":["core/auth.rs"]"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"read","locations":[{"uri":"file:///w/core/auth.rs"}]"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"read","locations":[{"file":"core/auth.rs"}]"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"write","rawInput":{"file":"core/auth.rs"}"#,
        "write core/auth.rs",
        "1: write /w/core/auth.rs",
    ),
    (
        r#""kind":"read","locations":[{"path":"file:///w/core/auth.rs","line":null}]"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
];

#[test]
fn odd_shapes_name_their_files() {
    let mut wrong = Vec::new();
    for (fields, told, asked) in SHAPES {
        let found = call(fields);
        if (found.0.as_str(), found.1.as_str()) != (*told, *asked) {
            wrong.push(format!("{fields}\n   told: {}\n  asked: {}", found.0, found.1));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn words_of_a_status_tell_how_a_call_fared() {
    for (status, performed) in [
        ("\"completed\"", true),
        ("\"Success\"", true),
        ("\"done\"", true),
        ("\"error\"", false),
        ("\"rejected\"", false),
        ("\"canceled\"", false),
        ("\"quantum\"", false),
        ("\"pending\"", false),
        // It says nothing, so that the good end of its turn does.
        ("null", true),
        ("7", true),
    ] {
        let call = update(&format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","kind":"edit","status":{status},"locations":[{{"path":"a"}}]}}"#
        ));
        let lines = [
            r#">{"id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#,
            &call,
            r#"{"id":1,"result":{"stopReason":"end_turn"}}"#,
        ];
        let all = observe(&mut acp(), &lines);
        let is_performed = |it: &Activity| matches!(it.kind, ActivityKind::Performed { .. });
        assert_eq!(all.iter().any(is_performed), performed, "{status}");
    }
}
