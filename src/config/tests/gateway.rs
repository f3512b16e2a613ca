//! `[gateway]`: the agent at which sessions begin.

use expect_test::expect;

use super::{Bench, errors};

#[test]
fn the_default_agent_is_one_of_the_file() {
    let agents = "[[agents]]\nid = \"ui\"\ncommand = [\"a\"]\n";
    let of = |keys: &str| Bench::new().compile(&format!("{keys}\n{agents}")).unwrap().gateway;
    assert_eq!(of("").default, None);
    assert_eq!(of("[gateway]\ndefault = \"ui\"").default.unwrap().as_str(), "ui");
    expect![[r#"
        2:11 there is no agent "uy" | did you mean "ui"?
    "#]]
    .assert_eq(&errors(&format!("[gateway]\ndefault = \"uy\"\n{agents}")));
}
