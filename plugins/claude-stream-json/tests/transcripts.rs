//! Runs of the real program, and lines that it never says.

use std::path::Path;

use claude_stream_json::ClaudeStreamJson;
use eisen_plugin::testing::{assert_file, torment};

fn check(config: &str, name: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    assert_file::<ClaudeStreamJson>(config, &file);
}

#[test]
fn asked_before_each_tool() {
    check("{}", "hook.transcript");
}

#[test]
fn asked_when_claude_asks() {
    check(r#"{"ask":"own"}"#, "own.transcript");
}

#[test]
fn a_cancelled_turn() {
    check("{}", "cancelled.transcript");
}

#[test]
fn text_that_comes_in_pieces_is_told_once() {
    check("{}", "partial.transcript");
}

#[test]
fn odd_lines() {
    check("{}", "odd.transcript");
}

/// Settings become quoted words of a shell.
#[test]
fn a_script_is_told_what_to_go_on_with() {
    let initialize =
        r#"{"type":"control_request","request_id":"eisen-1","request":{"subtype":"initialize"}}"#;
    for (settings, output) in [
        ("{}", "line begin\n"),
        (r#"{"resume":"ab-1"}"#, "session ab-1\nline resume ab-1\n"),
        (r#"{"resume":"--version"}"#, "line begin\n"),
        (r#"{"resume":"a b"}"#, "line begin\n"),
    ] {
        let config = r#"{"ask":"own","resumes":true}"#;
        let transcript = format!("start {settings}\n{output}line {initialize}\n");
        eisen_plugin::assert_transcript!(ClaudeStreamJson, config, &transcript);
        let transcript = format!("start {settings}\nline {initialize}\n");
        eisen_plugin::assert_transcript!(ClaudeStreamJson, r#"{"ask":"own"}"#, &transcript);
    }
}

#[test]
fn a_mistake_in_the_configuration_is_an_error() {
    let output = eisen_plugin::testing::play::<ClaudeStreamJson>(r#"{"ask":"never"}"#, "");
    assert!(output.starts_with("error ") && output.contains("never"), "{output}");
}

#[test]
fn no_line_brings_it_down() {
    for transcript in [include_str!("odd.transcript"), include_str!("hook.transcript")] {
        torment::<ClaudeStreamJson>("{}", transcript, 300);
    }
}
