//! A run of the real program, and lines that it never says.

use std::path::Path;

use codex_exec_json::CodexExecJson;
use eisen_plugin::testing::{assert_file, play, torment};

fn check(name: &str) {
    assert_file::<CodexExecJson>("{}", &Path::new(env!("CARGO_MANIFEST_DIR")).join(name));
}

#[test]
fn turns_of_one_thread() {
    check("tests/turns.transcript");
}

#[test]
fn odd_lines() {
    check("tests/odd.transcript");
}

#[test]
fn a_mistake_in_the_configuration_is_an_error() {
    let output = play::<CodexExecJson>(r#"{"model":"x"}"#, "");
    assert!(output.starts_with("error ") && output.contains("`model`"), "{output}");
}

#[test]
fn no_line_brings_it_down() {
    for transcript in [include_str!("odd.transcript"), include_str!("turns.transcript")] {
        torment::<CodexExecJson>("{}", transcript, 500);
    }
}
