use expect_test::expect;
use proptest::prelude::*;

use toml::de::DeTable;

use super::{Bench, listed};
use crate::config::{Config, syntax};

#[test]
fn an_error_is_rendered_with_its_place_and_an_excerpt() {
    let text = "[team]\n# Grüße\nname = \"my \u{85}shop\"   # ä\n";
    let bench = Bench::new();
    let errors = bench.compile(text).unwrap_err();
    let plain = errors.to_string().replace(&*bench.path().to_string_lossy(), "FOLDER");
    expect![[r#"
        error: `name` can't be "my \u{85}shop"
         --> FOLDER/eisen.toml:3:8
          |
        3 | name = "my ·shop"   # ä
          |        ^^^^^^^^^^
          |
          = help: write "my--shop": up to 64 letters, digits, `.`, `_`, `-`, with a letter or digit first"#]].assert_eq(&plain);
    assert!(errors.render(true).contains("\u{1b}["));
    assert!(!errors.render(false).contains('\u{1b}'));
}

#[test]
fn a_hostile_file_is_one_clear_error() {
    let bench = Bench::new();
    let file = bench.path().join("eisen.toml");
    let mut reported = String::new();
    for (what, bytes) in [
        ("binary", &b"\x7fELF\0\0"[..]),
        ("latin1", b"[team]\nname = \"\xe4\"\n"),
        ("huge", &vec![b'#'; 1024 * 1024 + 1]),
        ("nested", "a=".chars().chain("[".repeat(100_000).chars()).collect::<String>().as_bytes()),
        ("dotted", format!("{}a = 1", "a.".repeat(100_000)).as_bytes()),
    ] {
        std::fs::write(&file, bytes).unwrap();
        let errors = Config::load(&file, &bench.path()).unwrap_err();
        reported += &format!("{what}: {}", listed(&errors));
    }
    for (what, path) in
        [("folder", "src"), ("missing", "none.toml"), ("below a file", "prompt.md/x")]
    {
        let errors = Config::load(&bench.path().join(path), &bench.path()).unwrap_err();
        reported += &format!("{what}: {}", listed(&errors));
    }
    let errors = Config::load("/dev/zero".as_ref(), &bench.path()).unwrap_err();
    reported += &format!("device: {}", listed(&errors));
    expect![[r#"
        binary: 0:0 this is a binary file, not a configuration | name an `eisen.toml`, or copy `config/full.toml` to start from
        latin1: 2:9 this byte is not UTF-8 | save the file as UTF-8
        huge: 0:0 this file is larger than 1024 KiB | make it smaller
        nested: 1:83 tables and arrays are nested too deep here | no key takes more than a few levels of them
        dotted: 1:162 tables and arrays are nested too deep here | no key takes more than a few levels of them
        folder: 0:0 this file is a folder, not a file | name the file in it
        missing: 0:0 this file cannot be read: no such file or directory | `eisen-core init` writes one, with the agents that it finds; `-c FILE` names another
        below a file: 0:0 this file cannot be read: not a directory | check the path and its permissions
        device: 0:0 this file is not a regular file | name a regular file
    "#]].assert_eq(&reported);
}

#[test]
fn a_flood_of_errors_is_bounded() {
    for text in [
        "a = 1\n".repeat(1_000),
        (0..1_000).map(|number| format!("a{number} = 1\n")).collect(),
        "a b\n".repeat(1_000),
        "a = b\n".repeat(1_000),
        "a = [\n".repeat(1_000),
        format!("a = {}", "\u{fffd}x".repeat(1_000)),
        "[[agents]]\n".repeat(1_000),
        (0..1_000)
            .map(|number| format!("[profiles.p{number}]\nbase = \"p{}\"\n", number + 1))
            .collect(),
    ] {
        let errors = Bench::new().compile(&text).unwrap_err();
        assert!(errors.list().len() <= 100);
        assert!(errors.render(false).len() < 100_000, "{}", errors.render(false).len());
        assert!(errors.count() >= errors.list().len());
    }
}

#[test]
fn long_chains_of_agents_are_followed() {
    let agent = |number: usize| {
        format!(
            "[[agents]]\nid = \"a{number}\"\ncommand = [\"c\"]\ndepends_on = [\"a{}\"]\n",
            number + 1
        )
    };
    let chain: String = (0..1_000).map(agent).collect();
    let last = "[[agents]]\nid = \"a1000\"\ncommand = [\"c\"]\n";
    assert!(Bench::new().compile(&format!("{chain}{last}")).is_ok());
}

/// Pieces of which hostile files are made: valid keys in odd places, broken syntax.
fn piece() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "[team]",
        "[[agents]]",
        "[agents.zone]",
        "[agents]",
        "[[team]]",
        "[profiles.a]",
        "[plugins]",
        "id",
        "command",
        "name",
        "allowed",
        "zone.allowed",
        "a.b.c",
        "env",
        "base",
        "\"\"",
        "''",
        " = ",
        "=",
        "[",
        "]",
        "{",
        "}",
        ",",
        "\n",
        "\n",
        "\n",
        "\r\n",
        "\"\"\"",
        "'''",
        "\"",
        "'",
        "\\",
        "${",
        "}",
        "${HOME}",
        "$",
        "[\"a\"]",
        "\"a\"",
        "true",
        "1",
        "1.5",
        "nan",
        "0x1",
        "1979-05-27",
        "#",
        "ä",
        "\u{feff}",
        "\u{1b}",
        "\t",
        ".",
        "-",
        "depends_on = [\"a\"]",
        "id = \"a\"",
        "{}",
        "[]",
    ];
    prop_oneof![9 => proptest::sample::select(PIECES).prop_map(str::to_owned), 1 => ".{0,4}"]
}

proptest! {
    /// Any text, once repaired, has no errors but keys and tables that are defined twice.
    #[test]
    fn a_repaired_text_parses(pieces in proptest::collection::vec(piece(), 0..60)) {
        let repaired = syntax::repair(&pieces.concat());
        let (_, errors) = DeTable::parse_recoverable(&repaired.text);
        let is_conflict =
            |message: &str| message == "duplicate key" || message.starts_with("cannot extend value");
        for error in &errors {
            prop_assert!(is_conflict(error.message()), "{error}");
        }
        prop_assert!(errors.len() <= repaired.faults.len());
    }

    /// Whatever the text: an answer, and errors that lie within it and can be shown.
    #[test]
    fn no_text_panics(pieces in proptest::collection::vec(piece(), 0..60)) {
        let text = pieces.concat();
        if let Err(errors) = Bench::new().compile(&text) {
            prop_assert!(errors.count() > 0);
            prop_assert!(!errors.render(true).is_empty());
            let lines = text.split('\n').count();
            for error in errors.list() {
                prop_assert!(error.line <= lines, "{error:?}");
                prop_assert!(!error.message.contains('\u{1b}'), "{error:?}");
            }
        }
    }
}
