//! `init`: a file to begin with.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::harness::{Ended, Stage, run};

/// The program in the workspace, with these programs on PATH and no others.
fn in_shop(stage: &Stage, programs: &[&str], args: &[&str]) -> Ended {
    for program in programs {
        stage.file(&format!("bin/{program}"), "#!/bin/sh\n");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(stage.path("bin").join(program), mode).unwrap();
    }
    let mut command: Command = stage.eisen_core(args);
    run(command.current_dir(stage.path("shop")).env("PATH", stage.path("bin")))
}

#[test]
fn the_file_that_is_written_is_good() {
    for programs in [&[][..], &["opencode"], &["opencode", "gemini", "claude-code-acp"]] {
        let stage = Stage::new();
        let written = in_shop(&stage, programs, &["init"]);
        assert_eq!(written.code, 0, "{written:?}");
        assert!(written.stdout.starts_with("wrote eisen.toml\n"), "{written:?}");
        assert_eq!(written.stdout.contains("eisen-core up"), !programs.is_empty(), "{written:?}");
        let check = in_shop(&stage, &[], &["check"]);
        assert_eq!(check.code, 0, "{check:?}");
        assert_eq!(check.stdout.matches("\nagent ").count(), programs.len(), "{check:?}");
        let shown = in_shop(&stage, &[], &["init", "--stdout"]);
        assert_eq!(shown.stdout, stage.read("shop/eisen.toml"));
    }
}

#[test]
fn where_no_agent_is_found_it_says_what_it_looks_for() {
    let stage = Stage::new();
    let written = in_shop(&stage, &[], &["init"]);
    for part in ["OpenCode", "claude-agent-acp or claude-code-acp", "npm install -g", "goose"] {
        assert!(written.stderr.contains(part), "{part} is not in {}", written.stderr);
    }
}

#[test]
fn a_run_without_an_agent_says_what_to_install_as_the_team_does() {
    let stage = Stage::new();
    stage.file("shop/.git/HEAD", "ref: refs/heads/main\n");
    let up = in_shop(&stage, &[], &["up"]);
    let run = in_shop(&stage, &[], &["run", "Which tests cover the cart?"]);
    assert_eq!((up.code, run.code), (1, 125), "{up:?} {run:?}");
    assert!(
        run.stderr.starts_with("error: no agent") && run.stderr.contains("npm install -g"),
        "{run:?}"
    );
    assert_eq!(run.stderr, up.stderr);
}

#[test]
fn a_file_that_is_there_is_left_alone() {
    let stage = Stage::new();
    stage.file("shop/eisen.toml", "# mine\n");
    let refused = in_shop(&stage, &[], &["init"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    for part in ["eisen.toml", "--force", "--stdout"] {
        assert!(refused.stderr.contains(part), "{part} is not in {}", refused.stderr);
    }
    assert_eq!(stage.read("shop/eisen.toml"), "# mine\n");
    let printed = in_shop(&stage, &[], &["init", "-c", "-"]);
    assert!(printed.code == 0 && printed.stdout.contains("[team]"), "{printed:?}");
    assert_eq!(stage.read("shop/eisen.toml"), "# mine\n");
    assert_eq!(in_shop(&stage, &[], &["init", "--force"]).code, 0);
    assert!(stage.read("shop/eisen.toml").contains("[team]"));
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let stage = Stage::new();
    let failed = in_shop(&stage, &[], &["init", "-c", "none/eisen.toml"]);
    assert!(failed.code == 1 && failed.stderr.contains("none/eisen.toml"), "{failed:?}");
}
