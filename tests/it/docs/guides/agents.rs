//! The home of a reader: the project and the agents that `examples/first-team/make.sh` makes.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use super::page;
use crate::harness::{EISEN_CORE, Stage, run};

/// A program that stands in for Tailscale's.
const TAILSCALE: &str = r#"#!/bin/sh
echo '{"BackendState":"Running","Self":{"DNSName":"laptop.tail1234.ts.net."}}'
"#;

/// What else is on PATH: whatever agents this machine has, a guide does not meet them.
const PROGRAMS: [&str; 8] = ["cat", "git", "grep", "head", "ls", "sh", "tail", "tee"];

/// The reader's home is `user`, the project `user/shop`.
pub(super) fn stage() -> Stage {
    let stage = Stage::new();
    stage.with_any_memory();
    stage.file(
        "user/.gitconfig",
        "[user]\n\tname = Ana\n\temail = ana@example.org\n[init]\n\tdefaultBranch = main\n",
    );
    std::fs::create_dir(stage.path("bin")).unwrap();
    symlink(EISEN_CORE, stage.path("bin/eisen-core")).unwrap();
    for program in PROGRAMS {
        symlink(found(program), stage.path("bin").join(program)).unwrap();
    }
    let tailscale = stage.path("bin/tailscale");
    std::fs::write(&tailscale, TAILSCALE).unwrap();
    std::fs::set_permissions(&tailscale, std::fs::Permissions::from_mode(0o755)).unwrap();
    let made =
        run(stage.program(page::path("examples/first-team/make.sh")).arg(stage.path("user")));
    assert_eq!(made.code, 0, "{made:?}");
    stage
}

/// A program as the reader starts it, in the reader's home.
pub(super) fn command(stage: &Stage, program: &str) -> Command {
    let mut command = stage.program(stage.path("bin").join(program));
    let path = std::env::join_paths([stage.path("user/shop-agents"), stage.path("bin")]).unwrap();
    command.env("PATH", path).current_dir(stage.path("user"));
    command
}

/// Where a program of this machine is.
fn found(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let at = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|at| at.exists());
    at.unwrap_or_else(|| panic!("the guides need `{program}`"))
}
