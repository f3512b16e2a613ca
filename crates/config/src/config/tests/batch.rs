//! The file of a batch: what it says, and its mistakes.

use expect_test::{Expect, expect};

use super::{Bench, listed, surroundings};
use crate::config::ConfigErrors;
use crate::config::batch::BatchFile;

fn compile(text: &str) -> Result<BatchFile, ConfigErrors> {
    compile_in(&Bench::new(), text)
}

fn compile_in(bench: &Bench, text: &str) -> Result<BatchFile, ConfigErrors> {
    BatchFile::compile(&bench.path().join("tasks.toml"), text.to_owned(), &surroundings())
}

fn check(text: &str, expect: &Expect) {
    let bench = Bench::new();
    let found = match compile_in(&bench, text) {
        Ok(_) => "no error\n".to_owned(),
        Err(errors) => listed(&errors).replace(&*bench.path().to_string_lossy(), "DIR"),
    };
    expect.assert_eq(&found);
}

#[test]
fn a_task_has_the_defaults_and_stands_behind_those_that_it_waits_for() {
    let batch = compile(
        r#"
max_running = 2
[defaults]
tier = "smart"
zone = ["src/**"]
deny = ["**/.env"]
timeout_s = 600
budget = { tokens = 1000 }
[[tasks]]
id = "sum"
prompt = "Costs $5"
after = ["b", "a"]
[[tasks]]
id = "a"
prompt_file = "prompt.md"
profile = "codex"
model = "small"
deny = ["docs/**"]
[[tasks]]
id = "b"
prompt = "Do b"
zone = ["types/**"]
budget = { cost = 1.5 }
"#,
    )
    .unwrap();
    let [a, b, sum] = &batch.tasks[..] else { panic!("{batch:?}") };
    assert_eq!((batch.max_running, sum.after.clone(), sum.line), (2, vec![0, 1], 9));
    assert_eq!((&*sum.prompt, &*a.prompt), ("Costs $5", "Do ${IT}."));
    let agent = |at: usize| {
        let agent = &batch.tasks[at].agent;
        (agent.profile.as_deref(), agent.tier.as_deref(), agent.model.as_deref())
    };
    assert_eq!(agent(0), (Some("codex"), None, Some("small")));
    assert_eq!(agent(1), (None, Some("smart"), None));
    assert_eq!(a.agent.deny, ["**/.env", "docs/**"]);
    assert_eq!(
        (&a.agent.zone[..], &b.agent.zone[..]),
        (&["src/**".into()][..], &["types/**".into()][..])
    );
    assert_eq!((a.agent.budget.tokens, b.agent.budget.tokens), (Some(1000), None));
    assert_eq!((b.agent.budget.cost, b.agent.timeout_s), (Some(1.5), Some(600)));
}

#[test]
fn mistakes_are_told_with_their_place() {
    check(
        "",
        &expect![[r#"
        1:1 there are no tasks | write `[[tasks]]`, with an `id` and a `prompt`
    "#]],
    );
    check(
        "tasks = 3\n[[tasks",
        &expect![[r#"
        1:9 `tasks` must be an array of tables, not an integer | write `[[tasks]]`, and its keys below, once for each
        2:8 unclosed array table, expected `]]`
    "#]],
    );
    check(
        r#"
max_runing = 2
max_running = 0
[defaults]
tier = "smart"
profile = "codex"
[[tasks]]
prompt = "no id"
[[tasks]]
id = "a"
promt = "x"
[[tasks]]
id = "a"
prompt = "x"
prompt_file = "prompt.md"
[[tasks]]
id = "b c"
prompt = " "
[[tasks]]
id = "d"
prompt_file = "none.md"
after = ["bb"]
[[tasks]]
id = "bbb"
prompt_file = "latin1.md"
model = "m"
budget = { sheep = 1 }
"#,
        &expect![[r#"
            2:1 unknown key `max_runing` at the top level | did you mean `max_running`?
            3:15 `max_running` must be a whole number from 1 to 100 | leave it out for 4
            5:8 `tier` and `profile` can't both be given | keep one: the candidates of a tier say it
            7:1 this task has no `id` | give it one, such as `id = "tests"`
            9:1 this task has no prompt | give it one: `prompt = "…"`, or `prompt_file = "FILE"`
            11:1 unknown key `promt` in `[[tasks]]` | did you mean `prompt`?
            13:6 there is another task with the id "a" | give each its own
            15:15 `prompt` and `prompt_file` can't both be given | keep one
            17:6 `id` can't be "b c" | write "b-c": up to 64 letters, digits, `.`, `_`, `-`, with a letter or digit first
            18:10 the prompt is empty | say what is to be done
            21:15 `DIR/none.md` cannot be read: no such file or directory | check the path and its permissions
            22:10 there is no task "bb" | did you mean "bbb"?
            25:15 `DIR/latin1.md` is not UTF-8 | save it as UTF-8
            26:9 `model` can't be given beside the tier "smart" | name a `profile` with it: the candidates of a tier say their models
            27:12 unknown key `sheep` in `[tasks.budget]` | the keys here are `cost`, `tokens`, `turns`, `minutes`
        "#]],
    );
}

#[test]
fn a_circle_of_tasks_is_named() {
    check(
        r#"
[[tasks]]
id = "a"
prompt = "x"
after = ["b"]
[[tasks]]
id = "b"
prompt = "x"
after = ["c"]
[[tasks]]
id = "c"
prompt = "x"
after = ["d", "b"]
[[tasks]]
id = "d"
prompt = "x"
[[tasks]]
id = "self"
prompt = "x"
after = ["self"]
"#,
        &expect![[r#"
            9:10 these tasks wait for each other: `b` → `c` → `b` | take one of them out of an `after`
        "#]],
    );
}

#[test]
fn a_file_of_too_many_tasks_is_refused() {
    let task = |at: usize| format!("[[tasks]]\nid = \"t{at}\"\nprompt = \"x\"\n");
    let most: String = (0..1000).map(task).collect();
    assert_eq!(compile(&most).unwrap().tasks.len(), 1000);
    let more: String = (0..1500).map(task).collect();
    let errors = listed(&compile(&more).unwrap_err());
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains("more than 1000 tasks"), "{errors}");
    // A chain of all of them is put in order, however it is written.
    let chain: String = (0..1000)
        .map(|at| format!("{}after = [\"t{}\"]\n", task(at), at + 1))
        .chain([task(1000)])
        .skip(1)
        .collect();
    let chain = compile(&chain).unwrap();
    assert_eq!((&*chain.tasks[0].id, &*chain.tasks[999].id), ("t1000", "t1"));
}
