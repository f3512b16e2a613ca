//! Agents with a parent.

use expect_test::expect;

use super::{Bench, errors};
use crate::config::{Config, Enforce, MayAdd};

const PARENT: &str = r#"
    [[agents]]
    id = "ui"
    command = ["./tools/agent", "--fast"]
    env = { A = "1", B = "2" }
    model = "small"
    permissions = "orchestrator"
    limits = { memory_mb = 100 }
    zone = { allowed = ["src/**", "docs/*"], denied = ["src/key/**"], readable = ["lib/**"], enforce = "protocol" }
"#;

fn config(text: &str) -> Config {
    Bench::new().compile(&format!("{PARENT}{text}")).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn a_helper_has_what_its_table_leaves_out_from_its_parent() {
    // Its parent may come later.
    let text = r#"
        [[agents]]
        id = "deep"
        parent = "tests"

        [[agents]]
        id = "tests"
        parent = "ui"
        env = { B = "3" }
        model = "large"
        zone = { allowed = ["src/tests/**"], denied = ["src/tests/old/**"], readable = ["lib/a"] }
    "#;
    let config = config(text);
    let [ui, deep, tests] = &config.agents[..] else { panic!("{:?}", config.agents) };
    assert_eq!((ui.depth, tests.depth, deep.depth), (0, 1, 2));
    assert_eq!(deep.parent.as_ref(), Some(&tests.id));
    assert_eq!((&tests.command, &deep.command), (&ui.command, &ui.command));
    let value = |name: &str| deep.env.get(name).map(String::as_str);
    assert_eq!((value("A"), value("B")), (Some("1"), Some("3")));
    assert_eq!((tests.model.as_deref(), deep.model.as_deref()), (Some("large"), Some("large")));
    assert_eq!((deep.permissions, deep.memory_mb), (ui.permissions, Some(100)));
    assert_eq!(deep.zone.spec.allowed, ["src/tests/**"]);
    for denied in ["src/key/**", "src/tests/old/**"] {
        assert!(deep.zone.spec.denied.iter().any(|it| it == denied), "{denied}");
    }
    assert!(deep.zone.spec.readable.iter().any(|it| it == "lib/a"));
    assert!(!deep.zone.spec.readable.iter().any(|it| it == "lib/**"));
    assert_eq!(deep.zone.enforce, Enforce::Protocol);
    // Whoever asks for the owner gets the parent.
    assert!(ui.zone.own && !tests.zone.own && !deep.zone.own);
}

#[test]
fn a_helper_gets_nothing_that_its_parent_does_not_have() {
    let text = r#"
        team.max_depth = 1
        [[agents]]
        id = "ui"
        command = ["a"]
        zone = { allowed = ["src/**"] }
        [[agents]]
        id = "wide"
        parent = "ui"
        zone = { allowed = ["src/a", "**"] }
        [[agents]]
        id = "reader"
        parent = "ui"
        zone = { allowed = ["src/a"], readable = ["/etc/**"] }
        [[agents]]
        id = "loose"
        parent = "ui"
        zone = { allowed = ["src/a"], enforce = "protocol" }
        [[agents]]
        id = "low"
        parent = "loose"
        [[agents]]
        id = "lost"
        parent = "uj"
        [[agents]]
        id = "x"
        parent = "y"
        [[agents]]
        id = "y"
        parent = "x"
    "#;
    expect![[r#"
        10:16 "**" reaches out of the zone of `ui`, the parent of `wide` | a helper can have "src/**" and what is in it
        14:16 "/etc/**" reaches out of the zone of `ui`, the parent of `reader` | a helper can have "src/**" and what is in it
        18:49 a helper's zone is enforced as its parent's is | leave it out; write it at the parent
        21:18 agent `low` would be a helper 2 levels deep, and `[team] max_depth` is 1 | give it a parent further up, or raise `max_depth`
        24:18 there is no agent "uj" | did you mean "ui"?
        30:18 agents are parents of each other: x → y → x | leave out one of these parents
    "#]].assert_eq(&errors(text));
}

#[test]
fn the_orchestrator_may_add_what_the_file_says() {
    let config = config(
        r#"
        [orchestrator.may_add]
        profiles = ["codex", "own"]
        zone = ["src/**"]
        max = 3
        [profiles.own]
        command = ["x"]
        "#,
    );
    let profiles = ["codex", "own"].map(str::to_owned).into();
    let may_add = MayAdd { profiles, zone: vec!["src/**".to_owned()], max: 3 };
    assert_eq!(config.orchestrator.may_add, Some(may_add));
    let wrong = "orchestrator.may_add = { profiles = [\"cdex\"], max = -1 }";
    expect![[r#"
        1:24 `may_add` has no `zone` | write the patterns that added agents may have, such as `zone = ["src/**"]`
        1:38 there is no profile "cdex" | did you mean "codex"?
        1:53 `max` must be a whole number from 0 to 1000 | leave it out for 1
    "#]].assert_eq(&errors(wrong));
}

#[test]
fn an_owner_is_a_name_and_a_helper_has_its_parents() {
    let text = r#"
        [templates.theirs]
        command = ["a"]
        owner = "team.web"
        [[agents]]
        id = "lead"
        template = "theirs"
        [[agents]]
        id = "own"
        parent = "lead"
        owner = "bob"
        [[agents]]
        id = "low"
        parent = "own"
    "#;
    let config = config(text);
    let owners: Vec<_> = config.agents.iter().map(|agent| agent.owner.as_deref()).collect();
    assert_eq!(owners, [None, Some("team.web"), Some("bob"), Some("bob")]);
    let of = |owner: &str| format!("[[agents]]\nid = \"a\"\ncommand = [\"a\"]\nowner = {owner}");
    expect![[r#"
        4:9 `owner` can't be "Ada L." | write "Ada-L.": up to 64 letters, digits, `.`, `_`, `-`, with a letter or digit first
        4:9 `owner` is empty | give it a value, or leave the key out
        4:9 `owner` must be a string, not an integer | write it in quotes
    "#]]
    .assert_eq(&[errors(&of("\"Ada L.\"")), errors(&of("\"\"")), errors(&of("3"))].concat());
}
