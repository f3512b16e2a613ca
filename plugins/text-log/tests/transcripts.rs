//! A tool that only prints text, and configurations that are none.

use std::path::Path;

use eisen_plugin::testing::{assert_file, play, torment};
use text_log::TextLog;

const TOOL: &str = include_str!("tool.json");

#[test]
fn a_tool_by_its_patterns() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tool.transcript");
    assert_file::<TextLog>(TOOL, &file);
}

#[test]
fn without_a_configuration_all_is_text_and_a_prompt_one_line() {
    let output = play::<TextLog>("{}", "prompt hello\n< Reading a...\n");
    assert_eq!(output, "prompt hello\nline hello\n< Reading a...\ntext Reading a...\\n\n");
}

#[test]
fn lines_without_end_are_read_to_a_point() {
    let long = format!("< Wrote {}\n", "a".repeat(1024 * 1024));
    let output = play::<TextLog>(TOOL, &long);
    assert!(output.len() < long.len() + 70_000, "{}", output.len());
}

#[test]
fn questions_that_nobody_answers_are_bounded() {
    let asked: Vec<_> = (0..300).map(|id| format!("? May I read a? [{id}]")).collect();
    let asked = asked.join("\n") + "\nallow 43\nallow 44";
    let output = play::<TextLog>(TOOL, &asked);
    assert_eq!(output.matches("\nask ").count(), 300);
    assert!(output.contains("error nothing is asked under 43"), "the oldest are forgotten");
    assert_eq!(output.matches("under 44").count(), 0);
}

#[test]
fn a_configuration_that_is_none_is_told_with_its_pattern() {
    for (config, words) in [
        (r#"{"reads": ["(?<path>a"]}"#, ["`reads`", "`(?<path>a`", "unclosed group"]),
        (r#"{"reads": ["a"]}"#, ["`reads`", "`a`", "`path`"]),
        (r#"{"usage": ["(?<tokens>1)"]}"#, ["`usage`", "`(?<tokens>1)`", "`used`, `size`, `cost`"]),
        (
            r#"{"asks": [{"pattern": "x", "allow": "y", "deny": "n"}]}"#,
            ["`asks`", "`x`", "`path` or `command`"],
        ),
        (r#"{"ends": ["(\\w{1000}){1000}"]}"#, ["`ends`", r"`(\w{1000}){1000}`", "size limit"]),
        (r#"{"raeds": []}"#, ["unknown field", "`raeds`", "`reads`"]),
        (r#"{"prompt": "go"}"#, ["`prompt`", "{prompt}", ""]),
        ("[", ["error", "", ""]),
    ] {
        let output = play::<TextLog>(config, "");
        assert!(output.starts_with("error "), "{config}: {output}");
        assert!(
            words.iter().all(|&word| output.contains(&word.escape_debug().to_string())),
            "{output}"
        );
    }
    let many = format!(r#"{{"ends": [{}"a"]}}"#, r#""a","#.repeat(256));
    assert!(play::<TextLog>(&many, "").contains("more than 256 patterns"));
}

#[test]
fn no_line_and_no_configuration_brings_it_down() {
    torment::<TextLog>(TOOL, include_str!("tool.transcript"), 500);
    for end in (0..TOOL.len()).filter(|&end| TOOL.is_char_boundary(end)) {
        play::<TextLog>(&TOOL[..end], "");
    }
}
