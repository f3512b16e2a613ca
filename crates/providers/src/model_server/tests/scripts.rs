//! Mistakes in scripts, and the document, which has what the code reads.

use std::path::Path;

use expect_test::expect;

use super::super::parse::{ON, SCRIPT, SERVER, STEPS, USAGE};
use super::super::script::{ChatUsage, StopReason};
use super::super::troubles::ModelTrouble;
use super::*;

#[test]
fn a_mistake_has_its_place_and_says_what_helps() {
    let steps = |steps: &str| format!("[[on]]\nsteps = [{steps}]\n");
    let scripts = [
        "model = 1\n".to_owned(),
        "[server]\nchat_usage = \"often\"\n".to_owned(),
        "[server]\nusage = { inputs = 1 }\n".to_owned(),
        "[[on]]\nprompt = \"x\"\n".to_owned(),
        "[[on]]\nsteps = []\nanswers = [[]]\n".to_owned(),
        "[[on]]\nanswers = []\n".to_owned(),
        "[[on]]\nanswers = [1]\n".to_owned(),
        "[[on]]\nregex = \"[\"\nsteps = []\n".to_owned(),
        "[[on]]\nprompt = \"a\"\nregex = \"b\"\nsteps = []\n".to_owned(),
        "[[on]]\napi = \"openai\"\nsteps = []\n".to_owned(),
        "[[on]]\ncall = 0\nsteps = []\n".to_owned(),
        "[[on]]\ntools = false\nsteps = [{ call = \"x\" }]\n".to_owned(),
        steps("{ sya = \"x\" }"),
        steps("{}"),
        steps("{ say = \"x\", think = \"y\" }"),
        steps("{ say = \"x\", args = {} }"),
        steps("{ say = 1 }"),
        steps("{ call = [] }"),
        steps("{ call = \"x\", args = \"[1]\" }"),
        steps("{ call = \"x\", args = \"{\" }"),
        steps("{ one_of = [] }"),
        steps("{ one_of = [{ say = \"x\" }] }"),
        steps("{ error = \"busy\" }"),
        steps("{ error = \"server\", status = 200 }"),
        steps("{ stop = \"tired\" }"),
        steps("{ cut = false }"),
        steps("{ wait_ms = -1 }"),
        "[[on]\n".to_owned(),
    ];
    let errors: Vec<_> = scripts
        .iter()
        .map(|script| ModelScript::parse(script).map(|_| ()).unwrap_err().to_string())
        .collect();
    expect![[r#"
        1:1: a script has no key `model`; it takes `server`, `on`
        2:1: `chat_usage` is one of `asked`, `always`, `never`
        2:11: `usage` has no key `inputs`; did you mean `input`?
        1:1: `[[on]]` needs `steps`
        3:1: `steps` and `answers` exclude each other
        2:1: `answers` has at least one list of steps
        2:1: `answers` is a list of lists of steps
        2:1: `regex` is not a regular expression: unclosed character class
        3:1: `prompt` and `regex` exclude each other
        2:1: `api` is one of `anthropic`, `openai-chat`, `openai-responses`, `gemini`
        2:1: `call` counts from 1
        2:1: the steps call tools, and `tools = false` is for requests without any
        2:12: a step has no key `sya`; did you mean `say`?
        2:10: an empty step
        2:23: `say` and `think` are two steps
        2:23: a `say` step has no key `args`; it takes `say`, `repeat`, `delay_ms`
        2:18: `say` is a list, not a number
        2:12: `call` names at least one tool
        2:24: `args` is a table, or the text of a JSON object
        2:24: `args` is not JSON: EOF while parsing an object at line 1 column 1
        2:12: `one_of` has at least one `call` step
        2:24: a `call` step of `one_of` has no key `say`; it takes `call`, `args`, `input`, `half`, `optional`
        2:12: `error` is one of `rate_limit`, `overloaded`, `server`, `credit`, `auth`, `forbidden`, `not_found`, `too_long`, `invalid`
        2:30: `status` is a number from 400 to 599
        2:12: `stop` is one of `end`, `max_tokens`, `refusal`
        2:12: `cut` can only be true
        2:12: `wait_ms` is a number from 0 to 86400000
        1:6: unclosed array table, expected `]`"#]].assert_eq(&errors.join("\n"));
}

#[test]
fn an_error_names_its_file() {
    assert!(matches!(
        ModelScript::load(Path::new("/no/such.toml")),
        Err(ModelScriptError::Read { .. })
    ));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.toml");
    std::fs::write(&file, "é = 1\n").unwrap();
    let error = ModelScript::load(&file).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}:1:1: ", file.display())), "{error}");
}

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/model-server.md");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn each_key_is_documented_and_each_documented_key_is_read() {
    let document = document();
    let rows: Vec<&str> = document.lines().filter(|line| line.starts_with("| `")).collect();
    let row = |section: &str, key: &str| {
        let part = document.split(&format!("\n### {section}\n")).nth(1).unwrap_or_default();
        let part = part.split("\n#").next().unwrap_or_default();
        let row = part.lines().find(|row| row.starts_with(&format!("| `{key}`")));
        row.unwrap_or_else(|| panic!("no row for `{key}` in {section}")).to_owned()
    };
    for (kind, keys) in STEPS {
        let row = row("Steps", kind);
        for key in *keys {
            assert!(row.contains(&format!("`{key}`")), "`{key}` is missing in: {row}");
        }
    }
    for (section, keys) in [("`[server]`", SERVER), ("`[[on]]`", ON), ("Usage", USAGE)] {
        for key in keys {
            row(section, key);
        }
    }
    for table in SCRIPT {
        assert!(document.contains(&format!("{table}]")), "{table}");
    }
    for trouble in ModelTrouble::ALL {
        row("Errors", trouble.as_str());
    }
    let names = ModelApi::ALL.iter().map(|api| api.as_str());
    let names = names.chain(ChatUsage::ALL.iter().map(|it| it.as_str()));
    let names = names.chain(StopReason::ALL.iter().map(|it| it.as_str()));
    for name in names.chain(PlayedEnd::ALL.iter().map(|it| it.as_str())) {
        assert!(document.contains(&format!("`\"{name}\"`")), "{name}");
    }
    let known: Vec<&str> =
        STEPS.iter().map(|(kind, _)| *kind).chain(SERVER.iter().copied()).collect();
    let known = [&known[..], ON, USAGE, &ModelTrouble::ALL.map(ModelTrouble::as_str)].concat();
    for row in rows {
        let key = row.trim_start_matches("| `").split('`').next().unwrap();
        let is_other = key.starts_with(['{', '/', '-']) || key.contains(' ');
        assert!(is_other || known.contains(&key), "documented, but not read: {key}");
    }
}

#[test]
fn the_examples_of_the_document_are_scripts() {
    let document = document();
    let examples: Vec<_> =
        document.split("```toml\n").skip(1).map(|it| it.split("```").next().unwrap()).collect();
    assert!(!examples.is_empty());
    for example in examples {
        ModelScript::parse(example).unwrap_or_else(|error| panic!("{error} in:\n{example}"));
    }
}
