//! Tests of invalid scripts, and of the documents against the code.

use std::path::Path;

use crate::scripted::parse::{AGENT, KINDS, Needs, ON, OPTION_KINDS, REACTIONS};
use crate::scripted::{Script, ScriptError};

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
fn a_wrong_script_says_where_and_what() {
    let rule = |steps: &str| format!("[[on]]\nsteps = [\n  {{ say = \"a\" }},\n  {steps},\n]\n");
    let table = [
        String::from("[agent"),
        "[agnet]".into(),
        "[agent]\nnmae = \"x\"".into(),
        "agent = 1".into(),
        "[agent]\nname = 1".into(),
        "[agent]\nmodes = [\"a\", 2]".into(),
        "[agent]\nstart = [{ say = \"a\" }]".into(),
        "[agent]\nstart = [{ repeat = 2, steps = [{ read = \"a\" }] }]".into(),
        "[on]\nsteps = []".into(),
        "[[on]]\nprompt = \"a\"".into(),
        "[[on]]\nprompt = \"a\"\nregex = \"b\"\nsteps = []".into(),
        "[[on]]\nregex = \"(\"\nsteps = []".into(),
        "[[on]]\ntimes = -1\nsteps = []".into(),
        rule("1"),
        rule("{}"),
        rule("{ raed = \"a\" }"),
        rule("{ zzz = \"a\" }"),
        rule("{ say = \"a\", stop = \"b\" }"),
        rule("{ say = \"a\", on_error = [] }"),
        rule("{ say = 1 }"),
        rule("{ read = \"a\", lines = 1 }"),
        rule("{ read = \"a\", on_error = [{ sya = \"b\" }] }"),
        rule("{ read = \"a\", line = 4294967296 }"),
        rule("{ write = \"a\" }"),
        rule("{ write = \"a\", content = \"b\", replace = [\"a\", \"b\"] }"),
        rule("{ write = \"a\", replace = [\"a\"] }"),
        rule("{ run = [] }"),
        rule("{ run = 1 }"),
        rule("{ ask = \"edit\", options = [\"yes\"] }"),
        rule("{ usage = { used = 1 } }"),
        rule("{ usage = { used = 1, size = 2, cost = nan } }"),
        rule("{ usage = { used = 1, size = 2, currency = \"USD\" } }"),
        rule("{ update = \"{\" }"),
        rule("{ wait = \"forever\" }"),
        rule("{ wait_ms = 1.5 }"),
        rule("{ for_each = \"[\", steps = [] }"),
        rule("{ for_each = \"a\" }"),
        rule("{ exit = 256 }"),
        rule("{ hang = false }"),
    ];
    let errors = table.iter().map(|text| match Script::parse(text) {
        Ok(_) => panic!("nothing is wrong with:\n{text}"),
        Err(error) => format!("{error}\n"),
    });
    let errors: String = errors.collect();
    expect_test::expect![[r#"
        1:7: unclosed table, expected `]`
        1:2: a script has no key `agnet`; did you mean `agent`?
        2:1: `[agent]` has no key `nmae`; did you mean `name`?
        1:9: `[agent]` is a table, not a number
        2:8: `name` is a string, not a number
        2:15: `modes` is a list of strings, not a number
        2:12: `say` needs a session, and `start` has none
        2:35: `read` needs a session, and `start` has none
        1:1: `on` is a list, not a table
        1:1: `[[on]]` needs `steps`
        3:1: `prompt` and `regex` exclude each other
        2:1: `regex` is not a regular expression: unclosed group
        2:1: `times` is a number from 0 to 18446744073709551615
        4:3: a step is a table, not a number
        4:3: an empty step
        4:5: a step has no key `raed`; did you mean `read`?
        4:5: a step has no key `zzz`; it takes `say`, `think`, `plan`, `usage`, `update`, `answer`, `read`, `write`, `search`, `run`, `ask`, `request`, `disk_read`, `disk_write`, `spawn_child`, `wait_ms`, `wait`, `for_each`, `repeat`, `stop`, `fail`, `raw`, `stderr`, `exit`, `crash`, `hang`, `ignore_eof`, `ignore_term`
        4:16: `say` and `stop` are two steps
        4:16: a `say` step has no key `on_error`; it takes `say`
        4:11: `say` is a string, not a number
        4:17: a `read` step has no key `lines`; did you mean `line`?
        4:31: a step has no key `sya`; did you mean `say`?
        4:17: `line` is a number from 0 to 4294967295
        4:5: `write` needs either `content` or `replace`
        4:5: `write` needs either `content` or `replace`
        4:18: `replace` is ["old", "new"]
        4:5: `run` is a command line, or a list: program and arguments
        4:11: `run` is a list, not a number
        4:19: `yes` is not a permission option; the options are `allow_once`, `allow_always`, `reject_once`, `reject_always`
        4:13: `usage` needs `size`
        4:35: `cost` is a finite decimal number
        4:13: `usage` needs `cost`
        4:5: `update` is not JSON: EOF while parsing an object at line 1 column 1
        4:5: `wait` knows only "cancel"
        4:15: `wait_ms` is a whole number, not a fraction
        4:5: `for_each` is not a regular expression: unclosed character class
        4:3: a `for_each` step needs `steps`
        4:5: `exit` is a number from 0 to 255
        4:5: `hang` can only be true
    "#]].assert_eq(&errors);
}

#[test]
fn an_error_names_its_file() {
    let missing = Script::load(Path::new("/no/such.toml")).unwrap_err();
    assert!(matches!(missing, ScriptError::Read { .. }));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.toml");
    std::fs::write(&file, "é = 1\n").unwrap();
    let error = Script::load(&file).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    let error = error.to_string();
    assert!(error.starts_with(&format!("{}:1:1: ", file.display())), "{error}");
}

fn repository(path: &str) -> std::path::PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

#[test]
fn every_kind_of_step_is_documented_with_its_keys() {
    let doc = std::fs::read_to_string(repository("docs/scripted-agent.md")).unwrap();
    let rows: Vec<&str> = doc.lines().filter(|line| line.starts_with("| ")).collect();
    let row = |key: &str| {
        let row = rows.iter().find(|row| row.starts_with(&format!("| `{key}`")));
        *row.unwrap_or_else(|| panic!("no row for `{key}`"))
    };
    for kind in KINDS {
        let row = row(kind.name);
        for key in kind.keys {
            assert!(row.contains(&format!("`{key}")), "`{key}` is missing in: {row}");
        }
        let can_fail = row.trim_end().ends_with("| yes |");
        assert_eq!(can_fail, kind.needs == Needs::Client, "{row}");
    }
    for key in AGENT.iter().chain(ON).chain(REACTIONS) {
        row(key);
    }
    for option in OPTION_KINDS {
        assert!(doc.contains(option));
    }
    let known = KINDS.iter().map(|kind| kind.name).chain(AGENT.iter().copied());
    let known: Vec<_> = known.chain(ON.iter().copied()).chain(REACTIONS.iter().copied()).collect();
    for row in rows {
        if let Some(key) = row.strip_prefix("| `").and_then(|row| row.split('`').next()) {
            let key = key.trim_matches(['{', '}']);
            let variable = row.starts_with("| `{");
            assert!(variable || known.contains(&key), "documented, but unknown: {key}");
        }
    }
}

#[test]
fn the_examples_of_the_documentation_and_the_demo_are_scripts() {
    let doc = std::fs::read_to_string(repository("docs/scripted-agent.md")).unwrap();
    let examples = doc.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut count = 0;
    for example in examples {
        Script::parse(example).unwrap_or_else(|error| panic!("{error} in:\n{example}"));
        count += 1;
    }
    assert!(count > 0);
    for entry in std::fs::read_dir(repository("examples/demo")).unwrap() {
        Script::load(&entry.unwrap().path()).unwrap();
    }
}
