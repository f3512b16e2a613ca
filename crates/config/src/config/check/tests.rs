#![allow(clippy::unwrap_used)]
// Tables of texts read better so, and `expect!` writes its own literals.
#![allow(clippy::format_collect, clippy::format_push_string, clippy::needless_raw_string_hashes)]

mod hints;
mod manners;
#[cfg(target_os = "linux")]
mod sockets;

use expect_test::expect;

use super::*;

/// Writes a workspace and its configuration, and returns the report with neutral paths.
fn checked(files: &[&str], toml: &str) -> (String, Report) {
    checked_on(&Kernel::default(), files, toml)
}

fn checked_on(kernel: &Kernel, files: &[&str], toml: &str) -> (String, Report) {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().canonicalize().unwrap();
    for file in files {
        let path = workspace.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, if file.ends_with("ignore") { "dist\n.env\n" } else { "" }).unwrap();
    }
    let file = workspace.join("eisen.toml");
    std::fs::write(&file, toml).unwrap();
    let config =
        Config::load(&file, &workspace.join("dir")).unwrap_or_else(|errors| panic!("{errors}"));
    let report = check(&config, kernel, "by looking", Vec::new(), &mut |_| {});
    (report.to_string().replace(workspace.to_str().unwrap(), "FOLDER"), report)
}

#[test]
fn a_command_that_is_there_and_cannot_run_is_not_called_missing() {
    let agent = |id: &str| format!("[[agents]]\nid = \"{id}\"\ncommand = [\"./{id}\"]\n");
    let toml = ["plain", "folder", "gone"].map(agent).concat();
    let (text, _) = checked(&["plain", "folder/x"], &toml);
    for shown in ["/plain  (not executable)", "/folder  (a folder)", "/gone  (not found)"] {
        assert!(text.contains(shown), "{text}");
    }
}

#[test]
fn a_report_shows_what_was_understood() {
    let (text, report) = checked(
        &[
            ".gitignore",
            ".git/config",
            ".env",
            "README.md",
            "src/ui/a.ts",
            "src/ui/b.ts",
            "src/ui/old/c.ts",
            "src/api/d.rs",
            "types/t.rs",
            "dist/out.js",
            "docs/x/y.md",
        ],
        r#"
        [team]
        name = "shop"
        max_memory_mb = 100
        [orchestrator]
        agent = "lead"
        on_block = "hold"
        [zones]
        shared = ["types/**"]
        denied = ["**/.env", "**/*.pem"]
        readable = ["docs"]
        [[agents]]
        id = "lead"
        command = ["eisen-core", "scripted-agent", "lead.toml"]
        [[agents]]
        id = "ui"
        command = ["no-such-program-anywhere", "acp"]
        depends_on = ["lead"]
        [agents.zone]
        allowed = ["src/ui/**", "dist/**", "/tmp/out/**"]
        denied = ["src/ui/old/**"]
        [agents.restart]
        policy = "never"
        [[agents]]
        id = "api"
        command = ["sh", "-c", "exit"]
        cwd = "src"
        autostart = false
        [agents.zone]
        allowed = ["src/**", "app/**"]
        terminals = "deny"
        confine = "strict"
        [agents.limits]
        processes = 3
        "#,
    );
    let sh = find_program("sh", &std::env::var("PATH").unwrap()).unwrap();
    let text = text.replace(sh.to_str().unwrap(), "SH");
    expect![[r#"
        team shop
          workspace     FOLDER
          port          127.0.0.1:17320
          orchestrator  lead; a blocked access is held up to 120 s

        agent lead
          command       eisen-core scripted-agent lead.toml  (this program)
          cwd           .
          allowed       **
          shared        types/**
          denied        **/.env, **/*.pem
          readable      docs, and 53 built-in patterns (`base`)
          git folder    read
          terminals     offered
          tier          protocol: this system has no such kernel
          restart       on failure, up to 5 times within 60 s, after 0.2 s to 10 s

        agent ui
          command       no-such-program-anywhere acp  (not found)
          cwd           .
          starts after  lead
          allowed       src/ui/**, dist/**, /tmp/out/**
          shared        types/**
          denied        **/.env, **/*.pem, src/ui/old/**
          readable      docs, and 53 built-in patterns (`base`)
          git folder    read
          terminals     offered
          tier          protocol: this system has no such kernel
          restart       never

        agent api
          command       sh -c exit  (SH)
          cwd           src
          allowed       src/**, app/**
          shared        types/**
          denied        **/.env, **/*.pem
          readable      docs, and 53 built-in patterns (`base`)
          git folder    read
          terminals     refused
          tier          protocol: this system has no such kernel
          restart       on failure, up to 5 times within 60 s, after 0.2 s to 10 s
          limits        3 processes; held by looking

        files (9)
          lead          owns nothing, may write everything
          ui            2 files: src/ui/a.ts, src/ui/b.ts
          api           4 files: src/api/d.rs, src/ui/a.ts, src/ui/b.ts, src/ui/old/c.ts
          nobody        5 files: .gitignore, README.md, docs/x/y.md, eisen.toml, types/t.rs
          shared        1 file by `types/**`

        overlaps: both may write
          ui by `src/ui/**` and api by `src/**`: 2 files: src/ui/a.ts, src/ui/b.ts

        tiers
          At the protocol tier a zone binds what an agent asks its client for: `fs/*`, `terminal/create`,
          permissions. It can't hold what the agent's own process does: an agent with a shell can read past
          its zone, and could read the control token and approve its own accesses. What is seen of that is
          reported after the fact.

        warnings
          lead has no zone: it may write everywhere in the workspace, and owns nothing
          ui: there is no program `no-such-program-anywhere` on PATH
          api: allowed `app/**` matches no file
          lead, ui, api: denied `**/*.pem` matches no file
          lead, ui, api: readable `docs` matches a folder, but not what is in it; write `docs/**`
    "#]].assert_eq(&text);
    assert_eq!(report.summary(), "3 agents, 9 files, 5 warnings");
}

#[test]
fn what_can_not_work_is_warned_of() {
    let warnings = |toml| checked(&["a"], toml).1.warnings().join("\n");
    assert_eq!(warnings(""), "there is no agent: add `[[agents]]`");
    let toml = r#"
        orchestrator.agent = "a"
        [[agents]]
        id = "a"
        command = ["./missing"]
        session = false
        depends_on = ["b"]
        [agents.zone]
        [[agents]]
        id = "b"
        command = ["sh"]
        env = { PATH = "/nowhere" }
        autostart = false
        [agents.zone]
    "#;
    let (text, report) = checked(&["a"], toml);
    assert!(text.contains("/missing  (not found)"), "{text}");
    let warnings = report.warnings().join("\n");
    let folder = warnings.split("no program ").nth(1).unwrap().split("/missing").next().unwrap();
    expect![[r#"
        a: there is no program FOLDER/missing
        a orchestrates, but without a session it can't get briefings
        a waits for b, which does not start by itself
        b: there is no program `sh` on PATH"#]]
    .assert_eq(&warnings.replace(folder, "FOLDER"));
}

#[test]
fn a_big_workspace_is_counted_not_listed() {
    let names: Vec<String> = (0..300).map(|number| format!("src/{number:03}.rs")).collect();
    let files: Vec<&str> = names.iter().map(String::as_str).collect();
    let (text, report) = checked(
        &files,
        "agents = [{ id = \"a\", command = [\"sh\"], zone = { allowed = [\"src/*\"] } }]",
    );
    assert!(
        text.contains(
            "300 files: src/000.rs, src/001.rs, src/002.rs, src/003.rs, src/004.rs, and 295 more"
        ),
        "{text}"
    );
    assert_eq!(report.summary(), "1 agent, 301 files, 0 warnings");
}

#[test]
fn a_file_is_whose_the_zone_says() {
    let (text, report) = checked(
        &["src/ui/a.ts", "src/ui/legacy/b.ts", "src/ui/old/c.ts", "src/api/d.rs", "run/e", "dir/t"],
        r#"
        [[agents]]
        id = "ui"
        command = ["sh"]
        [agents.zone]
        allowed = ["src/ui/**", "dir/**"]
        denied = ["src/ui/legacy", "src/ui/o*", "run"]
        [[agents]]
        id = "all"
        command = ["sh"]
        [agents.zone]
        allowed = ["src/**", "run/**"]
        denied = ["lost"]
        [[agents]]
        id = "run"
        command = ["sh"]
        [agents.zone]
        allowed = ["run", "run/*"]
        "#,
    );
    let files = text.split("\nfiles ").nth(1).unwrap().split("\ntiers").next().unwrap();
    expect![[r#"
        (7)
          ui            1 file: src/ui/a.ts
          all           5 files: run/e, src/api/d.rs, src/ui/a.ts, src/ui/legacy/b.ts, src/ui/old/c.ts
          run           1 file: run/e
          nobody        2 files: dir/t, eisen.toml

        overlaps: both may write
          ui by `src/ui/**` and all by `src/**`: 1 file: src/ui/a.ts
          all by `run/**` and run by `run/*`: 1 file: run/e
    "#]].assert_eq(files);
    expect![[r#"
        run: allowed `run` matches a folder, but not what is in it; write `run/**`
        all: denied `lost` matches no file"#]]
    .assert_eq(&report.warnings().join("\n"));
}

#[test]
#[cfg(target_os = "linux")]
fn each_tier_is_reported_with_what_it_holds() {
    let toml = r#"
        [zones]
        denied = ["**/.env"]
        readable = ["docs/**"]
        shared = ["types/**"]
        [[agents]]
        id = "ui"
        command = ["sh"]
        [agents.zone]
        allowed = ["src/**", "Makefile", "new/**"]
        sockets = ["/run/postgresql/*"]
        [[agents]]
        id = "api"
        command = ["sh"]
        [agents.zone]
        allowed = ["src/**"]
        enforce = "kernel"
        confine = "strict"
        [[agents]]
        id = "old"
        command = ["sh"]
        [agents.zone]
        enforce = "protocol"
    "#;
    let files = ["src/a.ts", "src/api/.env", "src/api/b.ts", "docs/c.md", "types/d.ts", "Makefile"];
    let mut texts = String::new();
    for kernel in [
        Kernel { holds: true, missing: Vec::new() },
        Kernel { holds: true, missing: vec!["scopes for signals (Linux 6.12)".to_owned()] },
        Kernel { holds: false, missing: vec!["Landlock".to_owned()] },
    ] {
        let (text, report) = checked_on(&kernel, &files, toml);
        let lines = |start: &str| {
            let lines = text.lines().filter(|line| line.starts_with(start)).collect::<Vec<_>>();
            lines.join("\n")
        };
        let tiers = text.split("\ntiers\n").nth(1).unwrap().split("\nwarnings").next().unwrap();
        let refused: Vec<_> =
            report.warnings().iter().filter(|warning| warning.contains("not start")).collect();
        texts += &format!("{}\n{}\n{refused:?}\n{tiers}\n", lines("  tier "), lines("  outside "));
    }
    expect![[r#"
          tier          kernel
          tier          kernel
          tier          protocol
          outside       as usual for the user
          outside       only what the zone, programs and the profile need
        []
          At the protocol tier a zone binds what an agent asks its client for: `fs/*`, `terminal/create`,
          permissions. It can't hold what the agent's own process does: an agent with a shell can read past
          its zone, and could read the control token and approve its own accesses. What is seen of that is
          reported after the fact.
          At the kernel tier the *wall* (path rules) holds every process of the agent, and the *doorbell*
          judges each name before it is accessed.
            exact: the wall grants just the pattern.
            narrowed: the wall grants less; the doorbell does the rest.
            by the doorbell: later files are held by it alone.
          ui            shared `types/**`, readable `docs/**`: exact
                        allowed `src/**`: narrowed: what is made later, or replaced in one step, right in `src/api`, `src` is opened by the doorbell, and can't be executed
                        allowed `Makefile`, 31 built-in (`base`): narrowed: a file that is made later, or replaced in one step, is opened by the doorbell, and can't be executed
                        allowed `new/**`, 22 built-in (`base`): narrowed: there is no such folder: what is made in it later is opened by the doorbell, and can't be executed
                        denied `**/.env`: by the doorbell: what matches it now is held by rules; a file made later that matches is held by the doorbell only
          api           shared `types/**`, readable `docs/**`: exact
                        allowed `src/**`: narrowed: what is made later, or replaced in one step, right in `src/api`, `src` is opened by the doorbell, and can't be executed
                        denied `**/.env`: by the doorbell: what matches it now is held by rules; a file made later that matches is held by the doorbell only
                        31 built-in (`base`): narrowed: a file that is made later, or replaced in one step, is opened by the doorbell, and can't be executed
                        22 built-in (`base`): narrowed: there is no such folder: what is made in it later is opened by the doorbell, and can't be executed

          tier          kernel, as far as it goes: this kernel lacks scopes for signals (Linux 6.12)
          tier          kernel, so it will not start: this kernel lacks scopes for signals (Linux 6.12)
          tier          protocol
          outside       as usual for the user
          outside       only what the zone, programs and the profile need
        ["api will not start: its zone must be held by the kernel, and this kernel lacks scopes for signals (Linux 6.12)"]
          At the protocol tier a zone binds what an agent asks its client for: `fs/*`, `terminal/create`,
          permissions. It can't hold what the agent's own process does: an agent with a shell can read past
          its zone, and could read the control token and approve its own accesses. What is seen of that is
          reported after the fact.
          At the kernel tier the *wall* (path rules) holds every process of the agent, and the *doorbell*
          judges each name before it is accessed.
            exact: the wall grants just the pattern.
            narrowed: the wall grants less; the doorbell does the rest.
            by the doorbell: later files are held by it alone.
          ui            shared `types/**`, readable `docs/**`: exact
                        allowed `src/**`: narrowed: what is made later, or replaced in one step, right in `src/api`, `src` is opened by the doorbell, and can't be executed
                        allowed `Makefile`, 31 built-in (`base`): narrowed: a file that is made later, or replaced in one step, is opened by the doorbell, and can't be executed
                        allowed `new/**`, 22 built-in (`base`): narrowed: there is no such folder: what is made in it later is opened by the doorbell, and can't be executed
                        denied `**/.env`: by the doorbell: what matches it now is held by rules; a file made later that matches is held by the doorbell only
          api           shared `types/**`, readable `docs/**`: exact
                        allowed `src/**`: narrowed: what is made later, or replaced in one step, right in `src/api`, `src` is opened by the doorbell, and can't be executed
                        denied `**/.env`: by the doorbell: what matches it now is held by rules; a file made later that matches is held by the doorbell only
                        31 built-in (`base`): narrowed: a file that is made later, or replaced in one step, is opened by the doorbell, and can't be executed
                        22 built-in (`base`): narrowed: there is no such folder: what is made in it later is opened by the doorbell, and can't be executed

          tier          protocol: this kernel lacks Landlock
          tier          kernel, so it will not start: this kernel lacks Landlock
          tier          protocol
          outside       only what the zone, programs and the profile need
        ["api will not start: its zone must be held by the kernel, and this kernel lacks Landlock"]
          At the protocol tier a zone binds what an agent asks its client for: `fs/*`, `terminal/create`,
          permissions. It can't hold what the agent's own process does: an agent with a shell can read past
          its zone, and could read the control token and approve its own accesses. What is seen of that is
          reported after the fact.
          At the kernel tier the *wall* (path rules) holds every process of the agent, and the *doorbell*
          judges each name before it is accessed.
            exact: the wall grants just the pattern.
            narrowed: the wall grants less; the doorbell does the rest.
            by the doorbell: later files are held by it alone.
          api           shared `types/**`, readable `docs/**`: exact
                        allowed `src/**`: narrowed: what is made later, or replaced in one step, right in `src/api`, `src` is opened by the doorbell, and can't be executed
                        denied `**/.env`: by the doorbell: what matches it now is held by rules; a file made later that matches is held by the doorbell only
                        31 built-in (`base`): narrowed: a file that is made later, or replaced in one step, is opened by the doorbell, and can't be executed
                        22 built-in (`base`): narrowed: there is no such folder: what is made in it later is opened by the doorbell, and can't be executed

    "#]].assert_eq(&texts);
}
