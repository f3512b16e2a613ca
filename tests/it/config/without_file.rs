//! `up` in a folder without a configuration.

use std::os::unix::fs::PermissionsExt as _;

use crate::harness::{Ended, Stage, run};

/// The program in a folder, with these programs on PATH, each of which is an agent that ends at once.
fn at(stage: &Stage, folder: &str, programs: &[&str], args: &[&str]) -> Ended {
    for program in programs {
        stage.file(&format!("bin/{program}"), "#!/bin/sh\nexit 0\n");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(stage.path("bin").join(program), mode).unwrap();
    }
    let mut command = stage.eisen_core(args);
    let command = command.current_dir(stage.path(folder)).env("PATH", stage.path("bin"));
    run(command.env("HOME", stage.path("person")))
}

#[test]
fn the_team_of_a_folder_without_a_file_is_what_init_writes() {
    let stage = Stage::new();
    stage.file("shop/.git/HEAD", "");
    let programs = ["opencode", "gemini", "goose", "claude-code-acp"];
    let checked = at(&stage, "shop/src/api", &programs, &["check"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    let shop = stage.path("shop");
    for part in [format!("on {} (installed, too: ", shop.display()), "--agents".to_owned()] {
        assert!(checked.stderr.contains(&part), "{part}: {checked:?}");
    }
    assert_eq!(checked.stdout.matches("\nagent ").count(), 3, "{checked:?}");
    let lines = |checked: &Ended| {
        let lines = checked.stdout.lines().filter(|line| !line.contains("journal.db"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let without = lines(&checked);
    assert_eq!(at(&stage, "shop", &[], &["init"]).code, 0);
    let with = at(&stage, "shop/src/api", &[], &["check"]);
    // Only whether the file is among those of the workspace differs.
    let differs = |line: &&String| !without.contains(line) && !line.contains("file");
    assert_eq!(lines(&with).iter().find(differs), None, "{with:?}");
    assert_eq!(with.stderr, "");
}

#[test]
fn a_team_without_a_file_is_explained_and_says_that_it_reads_none() {
    let stage = Stage::new();
    stage.file("shop/.git/HEAD", "");
    let in_shop = |args: &[&str]| at(&stage, "shop", &["opencode"], args);
    assert_eq!(in_shop(&["up", "-d"]).code, 0);
    let why = in_shop(&["why", "opencode", "src/a.rs", "--action", "write"]);
    assert!(why.code == 0 && why.stdout.contains("may write"), "{why:?}");
    assert_eq!(in_shop(&["init"]).code, 0);
    let reload = in_shop(&["team", "reload"]);
    assert!(reload.code == 1 && reload.stderr.contains("started without a file"), "{reload:?}");
    assert_eq!(in_shop(&["down"]).code, 0);
}

#[test]
fn a_folder_that_is_too_wide_and_a_machine_without_agents_are_errors() {
    let stage = Stage::new();
    stage.file("person/x", "");
    for (folder, why) in [("person", "your home"), ("", "a folder around your home")] {
        let refused = at(&stage, folder, &["opencode"], &["up"]);
        assert!(refused.code == 2 && refused.stderr.contains(why), "{refused:?}");
    }
    let refused = at(&stage, "shop", &[], &["up", "--agents", "opencode,kimi"]);
    assert!(refused.code == 2 && refused.stderr.contains("`kimi` is not installed"), "{refused:?}");
    std::fs::remove_dir_all(stage.path("bin")).unwrap();
    let none = at(&stage, "shop", &[], &["up"]);
    assert_eq!(none.code, 1, "{none:?}");
    for part in ["OpenCode", "npm install -g", "eisen.toml"] {
        assert!(none.stderr.contains(part), "{part}: {none:?}");
    }
}
