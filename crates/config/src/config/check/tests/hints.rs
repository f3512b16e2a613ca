use std::path::Path;
use std::process::Command;

use expect_test::expect;

use crate::config::Config;
use crate::config::check::{hints, remembered};

/// A workspace `shop` with these files, and its configuration.
fn shop(files: &[&str], toml: &str) -> (tempfile::TempDir, Config) {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().canonicalize().unwrap().join("shop");
    std::fs::create_dir(&workspace).unwrap();
    for file in files {
        let path = workspace.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    let file = workspace.join("eisen.toml");
    std::fs::write(&file, toml).unwrap();
    let config = Config::load(&file, &folder.path().join("dir"));
    let config = config.unwrap_or_else(|errors| panic!("{errors}"));
    (folder, config)
}

fn hinted(files: &[&str], toml: &str, eisen_dir: &str) -> String {
    let (folder, config) = shop(files, toml);
    let root = folder.path().canonicalize().unwrap();
    let hints = hints(&config, &root.join(eisen_dir));
    hints.join("\n").replace(root.to_str().unwrap(), "@") + "\n"
}

#[test]
fn patterns_that_mean_something_else_are_hinted_at() {
    let toml = r#"
        [zones]
        shared = ["types/**.ts"]
        denied = ['sec\ret', "/var/**"]
        [[agents]]
        id = "ui"
        command = ["true"]
        [agents.zone]
        allowed = ["/src/**", 'src\**', 'src\ui\**', 'src\\ui\\**', "a/***/b", "src/ui/** ", "$HOME/x/**", "$id/**", 'src/\[x\]/**', "src/**/*.ts", "[*]*"]
    "#;
    expect![[r#"
        [zones] shared: `types/**.ts` has `**` next to other characters, where it stays within one folder: write `types/**/*.ts` for any depth
        [zones] denied: `sec\ret` has `\`, which takes the next sign literally; folders are parted by `/`: write `sec/ret`
        ui: allowed: `/src/**` names a place outside the workspace, which does not exist: write `src/**`
        ui: allowed: `src\**` has `\`, which takes the next sign literally; folders are parted by `/`: write `src/**`
        ui: allowed: `src\ui\**` has `\`, which takes the next sign literally; folders are parted by `/`: write `src/ui/**`
        ui: allowed: `src\\ui\\**` has `\`, which takes the next sign literally; folders are parted by `/`: write `src/ui/**`
        ui: allowed: `a/***/b` has `**` next to other characters, where it stays within one folder: write `a/**/b` for any depth
        ui: allowed: `src/ui/** ` begins or ends with a blank, which only names with one match: write `src/ui/**`
        ui: allowed: `$HOME/x/**` takes `$HOME` literally: a variable is `${HOME}`
    "#]].assert_eq(&hinted(&["src/ui/a.ts"], toml, "dir"));
}

#[test]
fn commands_that_are_no_acp_agents_are_hinted_at() {
    let agent = |id: &str, command: &str| {
        format!(
            "[[agents]]\nid = \"{id}\"\ncommand = {command}\nenv = {{ PATH = \"/nowhere\" }}\nzone = {{ allowed = [\"{id}/**\"] }}\n"
        )
    };
    let toml = [
        agent("a", "[\"./bin/claude\", \"-p\"]"),
        agent("b", "[\"./bin/codex\"]"),
        agent("c", "[\"./bin/opencode\"]"),
        agent("d", "[\"./bin/opencode\", \"acp\"]"),
        agent("e", "[\"./bin/plain\"]"),
        agent("f", "[\"./bin\"]"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().canonicalize().unwrap();
    std::fs::create_dir(workspace.join("bin")).unwrap();
    for (program, mode) in
        [("claude", 0o755), ("codex", 0o755), ("opencode", 0o755), ("plain", 0o644)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let file = workspace.join("bin").join(program);
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let file = workspace.join("eisen.toml");
    std::fs::write(&file, toml.concat()).unwrap();
    let config = Config::load(&file, Path::new("/nonexistent/dir")).unwrap();
    let hints = hints(&config, Path::new("/nonexistent/dir"));
    let hints = hints.join("\n").replace(workspace.to_str().unwrap(), "@") + "\n";
    expect![[r#"
        a: `claude` does not speak ACP by itself, its adapter `claude-agent-acp` does (install it with `npm install -g @agentclientprotocol/claude-agent-acp`): write `profile = "claude-code"`
        b: `codex` does not speak ACP by itself, its adapter `codex-acp` does (install it with `npm install -g @agentclientprotocol/codex-acp`): write `profile = "codex"`
        c: `opencode` without arguments does not speak ACP: write `command = ["opencode", "acp"]`, or name its profile
        e: @/bin/plain is not executable: `chmod +x @/bin/plain`
        f: @/bin is a folder: name the program in it
    "#]].assert_eq(&hints);
}

#[test]
fn what_is_dangerous_for_the_team_is_hinted_at() {
    let toml = r#"
        [team]
        listen = "0.0.0.0:17320"
        [[agents]]
        id = "ui"
        command = ["true"]
        zone = { allowed = ["src/**"] }
        [[agents]]
        id = "api"
        command = ["true"]
        zone = { allowed = ["src/api/**"] }
        [[agents]]
        id = "docs"
        command = ["true"]
        zone = { allowed = ["docs/**"] }
    "#;
    expect![[r#"
        the port listens on 0.0.0.0:17320, for other machines too: who has the token steers the team, and it crosses the network unencrypted; "127.0.0.1:17320" and a tunnel (`ssh -L`) are safer
        EISEN_DIR, @/shop/.eisen, lies in the workspace: it holds the control token, and only the kernel keeps agents out of it; set it to a folder outside
        the zones of ui and api overlap: both may write `src/api/**`; `check` counts the files
    "#]].assert_eq(&hinted(&["src/a.ts"], toml, "shop/.eisen"));
    let toml = "[team]\nworkspace = \"/\"";
    expect![[r#"
        the workspace is `/`, every file of this machine: name the folder of the code in `[team] workspace`
        EISEN_DIR, @/shop/.eisen, lies in the workspace: it holds the control token, and only the kernel keeps agents out of it; set it to a folder outside
    "#]].assert_eq(&hinted(&["a"], toml, "shop/.eisen"));
    assert_eq!(hinted(&["a"], "", "dir"), "\n");
}

#[test]
fn denied_files_that_git_tracks_are_named() {
    let toml = |git: &str| {
        format!(
            "[zones]\ndenied = [\"**/.env\", \"keys/**\"]\ngit = \"{git}\"\n[[agents]]\nid = \"ui\"\n\
             command = [\"true\"]\nzone = {{ allowed = [\"src/**\"] }}\n"
        )
    };
    let files = [
        "a.txt",
        "src/.env",
        "keys/a",
        "keys/b",
        "keys/long/name/of/c",
        "keys/long/name/of/d",
        "keys/e",
        "src/b",
    ];
    let (folder, config) = shop(&files, &toml("read"));
    let git = |args: &[&str]| {
        let done = Command::new("git").arg("-C").arg(&config.team.workspace).args(args).output();
        assert!(done.unwrap().status.success(), "{args:?}");
    };
    assert_eq!(remembered(&config), None);
    git(&["init", "-q"]);
    assert_eq!(remembered(&config), None);
    git(&["add", "a.txt", "src/b"]);
    assert_eq!(remembered(&config), None);
    git(&["add", "."]);
    for version in ["2", "3", "4"] {
        git(&["update-index", "--index-version", version]);
        let said = remembered(&config).unwrap();
        for part in ["keys/a (`keys/**`)", "and 1 more", "git rm --cached", "git = \"none\""] {
            assert!(said.contains(part), "{version}: {said}");
        }
    }
    let (_other, none) = shop(&[], &toml("none"));
    assert_eq!(remembered(&none), None);
    // A torn index is none.
    let index = config.team.workspace.join(".git/index");
    let bytes = std::fs::read(&index).unwrap();
    for cut in [0, 3, 11, 40, 100, bytes.len() / 2] {
        std::fs::write(&index, &bytes[..cut]).unwrap();
        assert_eq!(remembered(&config), None, "{cut}");
    }
    drop(folder);
}

#[test]
fn hooks_that_agents_cannot_read_are_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let toml = |git: &str, readable: &str| {
        format!(
            "[zones]\ngit = \"{git}\"\nreadable = [{readable}]\n[[agents]]\nid = \"ui\"\n\
             command = [\"true\"]\nzone = {{ allowed = [\"src/**\"] }}\n"
        )
    };
    for (git, readable, is_named) in
        [("commit", "", true), ("commit", "\".husky/**\"", false), ("read", "", false)]
    {
        let (folder, config) = shop(&["src/b", ".husky/_/pre-commit"], &toml(git, readable));
        let workspace = &config.team.workspace;
        let hook = workspace.join(".husky/_/pre-commit");
        std::fs::set_permissions(hook, std::fs::Permissions::from_mode(0o755)).unwrap();
        for args in [&["init", "-q"][..], &["config", "core.hooksPath", ".husky/_"]] {
            let done = Command::new("git").arg("-C").arg(workspace).args(args).output();
            assert!(done.unwrap().status.success(), "{args:?}");
        }
        let said = hints(&config, &folder.path().join("dir")).join("\n");
        let named = said.contains("ui: commits fail")
            && said.contains("add `.husky/**` to `readable` of [zones]");
        assert_eq!(named, is_named, "{said}");
    }
}
