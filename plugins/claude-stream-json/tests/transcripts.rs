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

#[test]
fn a_mistake_in_the_configuration_is_told() {
    let told = eisen_plugin::testing::play::<ClaudeStreamJson>(r#"{"ask":"never"}"#, "");
    assert!(told.starts_with("error ") && told.contains("never"), "{told}");
}

#[test]
fn no_line_brings_it_down() {
    for transcript in [include_str!("odd.transcript"), include_str!("hook.transcript")] {
        torment::<ClaudeStreamJson>("{}", transcript, 300);
    }
}
