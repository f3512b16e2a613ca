use expect_test::expect;

use super::*;

#[test]
fn what_is_known_of_an_agent_is_reported() {
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
        let reported = text.lines().filter(|line| parts.iter().any(|part| line.contains(part)));
        reported.map(|line| format!("{}\n", line.trim())).collect()
    };
    expect![[r#"
        profile       My Codex, unattended
        login         by `codex login`, once; or by EISEN_NO_SUCH_KEY or EISEN_NOR_THIS, none of which is set
        compress      by the prompt `/compact`
        profile       My Codex
        login         by EISEN_NOR_THIS, which is set
        compress      by the prompt `/compact`
        mine: there is no program `codex-acp` on PATH; install it with `make mine`
        mine: My Codex is not known to offer the `auth_method` guess; it offers api-key, chat-gpt, chatgpt, codex-api-key, openai-api-key
        mine: My Codex opens files by itself, so the protocol can't enforce its zone
        mine runs unattended, and the kernel does not enforce its zone: it can leave the zone without asking
        keyed: there is no program `codex-acp` on PATH; install it with `make mine`
    "#]].assert_eq(&shown(&text));
    let warnings = report.warnings().join("\n");
    assert!(!warnings.contains("opens files") && !warnings.contains("unattended"), "{held}");
}

#[test]
fn a_plugin_that_asks_for_nothing_needs_the_kernel() {
    let toml = r#"
        [[plugins]]
        name = "asking"
        path = "asking.so"
        [[plugins]]
        name = "told"
        path = "told.so"
        [[agents]]
        id = "held"
        protocol = "asking"
        command = ["sh"]
        zone = { allowed = ["a"], enforce = "protocol" }
        [[agents]]
        id = "free"
        protocol = "told"
        command = ["sh"]
        zone = { allowed = ["a"], enforce = "protocol" }
        [[agents]]
        id = "without"
        protocol = "told"
        command = ["sh"]
    "#;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eisen.toml");
    std::fs::write(&file, toml).unwrap();
    let mut config = Config::load(&file, &folder.path().join("dir")).unwrap();
    for plugin in config.agents.iter_mut().filter_map(|agent| agent.plugin.as_mut()) {
        plugin.gates = plugin.name == "asking";
    }
    let report = check(&config, &Kernel::default(), "by looking", Vec::new(), &mut |_| {});
    let warnings: Vec<_> =
        report.warnings().iter().filter(|warning| warning.contains("plugin")).collect();
    let why = "free: the plugin told asks for nothing, so the protocol can't enforce its zone";
    assert_eq!(warnings, [why]);
}

#[test]
fn a_command_whose_files_lie_outside_the_zone_is_warned_of() {
    let kernel = Kernel { holds: true, missing: Vec::new() };
    let toml = r#"
        [[agents]]
        id = "ui"
        command = ["sh", "tools/agent.sh", "src/ui/options", "no/file"]
        [agents.zone]
        allowed = ["src/ui/**"]
    "#;
    let (_, report) = checked_on(&kernel, &["tools/agent.sh", "src/ui/options"], toml);
    let of_files = |warning: &&String| warning.contains("its command needs");
    let reported: Vec<&String> = report.warnings().iter().filter(of_files).collect();
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(
        reported[0].contains("needs tools/agent.sh,") && reported[0].contains("`readable`"),
        "{reported:?}"
    );
}
