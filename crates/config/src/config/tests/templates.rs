//! `[templates.NAME]`, and tables that take them.

use expect_test::{Expect, expect};
use serde_json::json;

use super::{Bench, errors, surroundings};
use crate::config::{Config, Layered, OnBlock, Overlay, RestartPolicy, Source, Template};

fn config(text: &str) -> Config {
    Bench::new().compile(text).unwrap_or_else(|errors| panic!("{errors}"))
}

fn check(text: &str, expected: &Expect) {
    expected.assert_eq(&errors(text));
}

const TWO: &str = r#"
[templates.base]
template = "worker"
profile = "codex"
model = "small"
depends_on = ["lead"]
env = { A = "1", B = "1" }
mcp_servers = [{ name = "one", command = "one", args = [], env = [] }]
[templates.base.zone]
denied = ["secrets/**"]
[templates.mine]
template = "base"
model = "big"
env.B = "2"
[[agents]]
id = "lead"
template = "orchestrator"
command = ["lead"]
[[agents]]
id = "ui"
template = "mine"
env.C = "3"
mcp_servers = []
[agents.zone]
allowed = ["src/ui/**"]
[[agents]]
id = "api"
template = "mine"
command = ["api"]
depends_on = []
"#;

#[test]
fn an_agents_own_keys_win_over_its_template_and_tables_are_merged() {
    let config = config(TWO);
    let [lead, ui, api] = &config.agents[..] else { panic!("{:?}", config.agents) };
    assert_eq!(lead.restart.policy, RestartPolicy::Always);
    assert_eq!((lead.tools, lead.on_block), (Some(true), Some(OnBlock::Deny)));
    assert!(lead.zone.own && lead.zone.spec.allowed.is_empty());
    // Of the template's template, of its template, and its own.
    let env: Vec<_> = ui.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(env, ["A=1", "B=2", "C=3"]);
    assert_eq!((ui.profile.base.as_str(), ui.model.as_deref()), ("codex", Some("big")));
    assert_eq!(ui.on_block, Some(OnBlock::Hold));
    assert_eq!(ui.depends_on[0].as_str(), "lead");
    assert_eq!(ui.zone.spec.allowed, ["src/ui/**"]);
    assert_eq!(
        (&ui.zone.denied[..], &ui.zone.readable[..]),
        (&["secrets/**".to_owned()][..], &["**".to_owned()][..])
    );
    // An array takes the place of the template's.
    assert_eq!((ui.mcp_servers.len(), api.mcp_servers.len()), (0, 1));
    assert!(api.depends_on.is_empty());
    // A command takes the place of a profile.
    assert_eq!(api.command, ["api"]);
}

#[test]
fn a_template_can_take_the_built_in_one_of_its_name() {
    let text = r#"
        [templates.reviewer]
        template = "reviewer"
        profile = "gemini"
        [[agents]]
        id = "ui"
        template = "reviewer"
    "#;
    let config = config(text);
    assert_eq!(config.agents[0].zone.readable, ["**"]);
    assert_eq!(config.agents[0].profile.base, "gemini");
}

#[test]
fn an_agent_with_a_template_is_as_one_that_has_its_keys() {
    let written = |text: &str| {
        let mut agent = config(text).agents.remove(0);
        agent.zone.spec.sealed.clear();
        agent.zone.spec.journals.clear();
        format!("{agent:#?}").lines().filter(|line| !line.contains("/My shop.")).collect::<String>()
    };
    let template = "[templates.t]\nprofile = \"codex\"\nrestart.policy = \"never\"\nzone.denied = [\"x\"]\n[[agents]]\nid = \"ui\"\ntemplate = \"t\"\nzone.allowed = [\"src/**\"]";
    let own = "[[agents]]\nid = \"ui\"\nprofile = \"codex\"\nrestart.policy = \"never\"\nzone = { denied = [\"x\"], allowed = [\"src/**\"] }";
    assert_eq!(written(template), written(own));
}

#[test]
fn a_mistake_is_where_it_is_written() {
    check(
        r#"
[templates.one]
template = "two"
[templates.two]
template = "three"
[templates.three]
template = "one"
[templates.typo]
profil = "codex"
on_block = "hld"
command = ["${NOT_SET}"]
id = "x"
[templates.odd]
template = 3
[templates."a b"]
[templates]
four = 4
[[agents]]
id = "a"
template = "one"
[[agents]]
id = "b"
template = "typo"
[[agents]]
id = "c"
template = "typo"
[[agents]]
id = "d"
template = "reviwer"
[[agents]]
id = "e"
template = "zzzzzz"
[[agents]]
id = "f"
template = 5
[[agents]]
id = "g"
template = "worker"
permissions = "dney"
"#,
        &expect![[r#"
            7:12 templates take each other: one → two → three → one | leave out one of these `template`s
            9:1 unknown key `profil` in `[[agents]]` | did you mean `profile`?
            10:12 `on_block` can't be "hld" | did you mean "hold"? It can be "deny", "hold"
            11:13 the environment has no variable `NOT_SET` | set it, or give a default: `${NOT_SET:-…}`
            12:1 a template can't have an `id` | each table that takes it has its own
            14:12 `template` must be a string, not an integer | write it in quotes
            15:12 a template's name can't be "a b" | write "a-b": up to 64 letters, digits, `.`, `_`, `-`, with a letter or digit first
            17:8 `four` must be a table, not an integer | write `[templates.NAME]`, and its keys below
            29:12 there is no template "reviwer" | did you mean "reviewer"?
            32:12 there is no template "zzzzzz" | there are a b, odd, one, orchestrator, reviewer, three, two, typo, worker
            33:1 this agent has neither `command` nor `profile` | write `command = ["PROGRAM", "ARG"]`, or `profile = "NAME"`; one that runs elsewhere has a `url`
            35:12 `template` must be a string, not an integer | write it in quotes
            36:1 this agent has neither `command` nor `profile` | write `command = ["PROGRAM", "ARG"]`, or `profile = "NAME"`; one that runs elsewhere has a `url`
            39:15 `permissions` can't be "dney" | did you mean "deny"? It can be "allow", "deny", "orchestrator"
        "#]],
    );
}

#[test]
fn a_circle_is_named() {
    check(
        "templates.a.template = \"b\"\ntemplates.b.template = \"c\"\ntemplates.c.template = \"b\"\n[[agents]]\nid = \"ui\"\ntemplate = \"a\"",
        &expect![[r#"
            3:24 templates take each other: b → c → b | leave out one of these `template`s
        "#]],
    );
}

#[test]
fn what_a_built_in_template_says_is_blamed_on_its_name() {
    check(
        "[[agents]]\nid = \"ui\"\ncommand = [\"a\"]\ntemplate = \"worker\"\nzone = 3",
        &expect![[r#"
            5:8 `zone` must be a table, not an integer | write `[agents.zone]`, and its keys below
        "#]],
    );
}

#[test]
fn tables_can_t_take_more_of_templates_than_there_is_memory_for() {
    let mut text =
        format!("[templates.long]\ncommand = [\"a\"]\nprompt = \"{}\"\n", "x".repeat(500_000));
    for number in 0..30 {
        text += &format!("[[agents]]\nid = \"a{number}\"\ntemplate = \"long\"\n");
    }
    let reported = errors(&text);
    assert!(reported.contains("the templates add too much in all"), "{}", &reported[..400]);
    let chain = |length: usize| -> String {
        let link = |at: usize| format!("[templates.t{at}]\ntemplate = \"t{}\"\n", at + 1);
        let chain: String = (0..length).map(link).collect();
        format!(
            "{chain}[templates.t{length}]\nprofile = \"codex\"\n[[agents]]\nid = \"a\"\ntemplate = \"t0\""
        )
    };
    assert_eq!(errors(&chain(30)), "no error\n");
    assert!(errors(&chain(40)).contains("templates are nested deeper than 32"));
}

#[test]
fn agents_that_are_added_over_the_port_take_templates_too() {
    let bench = Bench::new();
    let text = "[templates.mine]\ntemplate = \"worker\"\nprofile = \"codex\"".to_owned();
    let source = Source { file: bench.path().join("eisen.toml"), text };
    let added = |template: &str| -> Overlay {
        let agent = json!({ "id": "new", "template": template, "zone": { "allowed": ["src/**"] } });
        serde_json::from_value(json!({ "added": [agent] })).unwrap()
    };
    let layered = Layered::compile_in(source.clone(), added("mine"), &surroundings()).unwrap();
    let agent = &layered.config.agents[0];
    assert_eq!((agent.profile.base.as_str(), agent.on_block), ("codex", Some(OnBlock::Hold)));
    let error = Layered::compile_in(source, added("mein"), &surroundings()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "agent `new`: there is no template \"mein\" (there are mine, orchestrator, reviewer, worker)"
    );
}

#[test]
fn the_templates_of_a_file_are_shown_with_what_they_take() {
    let bench = Bench::new();
    let file = bench.path().join("eisen.toml");
    std::fs::write(&file, TWO).unwrap();
    let all = Template::all(Some(&file), &bench.path()).unwrap();
    let names: Vec<_> = all.iter().map(|it| (it.name.as_str(), it.is_built_in)).collect();
    let built_in = [("orchestrator", true), ("reviewer", true), ("worker", true)];
    assert_eq!(names, [&[("base", false), ("mine", false)][..], &built_in].concat());
    let mine = toml::to_string(&all[1].table).unwrap();
    assert!(mine.contains("model = \"big\"") && mine.contains("on_block = \"hold\""), "{mine}");
    assert!(!mine.contains("template"));
    assert!(all.iter().filter(|it| it.is_built_in).all(|it| it.about.ends_with('.')));
}

/// Each built-in template is complete but for what an agent must say of itself.
#[test]
fn built_in_templates_are_valid() {
    for template in Template::all(None, "/nowhere".as_ref()).unwrap() {
        let name = &template.name;
        config(&format!("[[agents]]\nid = \"ui\"\nprofile = \"codex\"\ntemplate = \"{name}\""));
    }
}
