use expect_test::expect;

use super::*;

#[test]
fn what_is_known_of_an_agent_is_told() {
    let toml = r#"
        [profiles.mine]
        base = "codex"
        title = "My Codex"
        login_env = ["EISEN_NO_SUCH_KEY", "EISEN_NOR_THIS"]
        install = "make mine"
        [[agents]]
        id = "mine"
        profile = "mine"
        auth_method = "guess"
        unattended = true
        env = { PATH = "" }
        [agents.zone]
        [[agents]]
        id = "keyed"
        profile = "mine"
        env = { PATH = "", EISEN_NOR_THIS = "x" }
        [agents.zone]
        enforce = "kernel"
    "#;
    let kernel = Kernel { holds: true, missing: Vec::new() };
    let (text, _) = checked_on(&Kernel::default(), &[], toml);
    let (held, report) = checked_on(&kernel, &[], toml);
    let shown = |text: &str| -> String {
        let parts = ["profile  ", "login  ", "compress  ", "mine: ", "mine runs", "keyed: "];
        let told = text.lines().filter(|line| parts.iter().any(|part| line.contains(part)));
        told.map(|line| format!("{}\n", line.trim())).collect()
    };
    expect![[r#"
        profile       My Codex, unattended
        login         by `codex login`, once; or by EISEN_NO_SUCH_KEY or EISEN_NOR_THIS, none of which is set
        compress      by the prompt `/compact`
        profile       My Codex
        login         by EISEN_NOR_THIS, which is set
        compress      by the prompt `/compact`
        mine: there is no program `codex-acp` on PATH; install it with `make mine`
        mine: My Codex is not known to offer the `auth_method` guess; it offers chatgpt, codex-api-key, openai-api-key
        mine: My Codex opens files by itself, so that the protocol can't hold its zone
        mine runs unattended, and the kernel does not hold its zone: it leaves it unasked
        keyed: there is no program `codex-acp` on PATH; install it with `make mine`
    "#]].assert_eq(&shown(&text));
    let warnings = report.warnings().join("\n");
    assert!(!warnings.contains("opens files") && !warnings.contains("unattended"), "{held}");
}
