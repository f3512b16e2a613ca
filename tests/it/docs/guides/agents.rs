//! The home of a reader: a project in git, and agents on PATH.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use crate::harness::{EISEN_CORE, Stage, run};

/// What each agent does, by its prompts.
const SCRIPT: &str = include_str!("agents.toml");

/// The prompts of the guide on branches, with what the agents do there. They are looked at before the others.
const ON_BRANCHES: &str = r#"
[[on]]
prompt = "*ound totals to cents, with a test. Commit it*"
steps = [
  { write = "src/api/cart.js", replace = [
    "return items.reduce((sum, item) => sum + item.price, 0);",
    "const sum = items.reduce((sum, item) => sum + item.price, 0);\n  return Math.round(sum * 100) / 100;",
  ] },
  { write = "test/cart.js", content = "const { total } = require('../src/api/cart');\n\nconsole.assert(total([{ price: 0.1 }, { price: 0.2 }]) === 0.3);\n" },
  { run = "git add -A && git commit -q -m 'Round totals to cents'", required = true },
  { usage = { used = 14_000, size = 200_000, cost = 0.06 } },
  { say = "Totals are rounded to cents. test/cart.js tests it.\n" },
  { answer = '{"usage":{"inputTokens":11400,"outputTokens":1000,"totalTokens":12400}}' },
]

[[on]]
prompt = "*10 % off from ten items on. Commit it*"
steps = [
  { write = "src/api/cart.js", replace = [
    "return items.reduce((sum, item) => sum + item.price, 0);",
    "const sum = items.reduce((sum, item) => sum + item.price, 0);\n  return items.length < 10 ? sum : sum * 0.9;",
  ] },
  { run = "git add -A && git commit -q -m 'Take 10 % off from ten items on'", required = true },
  { usage = { used = 12_000, size = 200_000, cost = 0.04 } },
  { say = "From ten items on the total is 10 % less.\n" },
  { answer = '{"usage":{"inputTokens":9400,"outputTokens":800,"totalTokens":10200}}' },
]

[[on]]
prompt = "*ebase onto main*"
steps = [
  { run = "git rebase main", on_ok = [{ fail = "there was no conflict" }] },
  { write = "src/api/cart.js", content = """
function total(items) {
  const sum = items.reduce((sum, item) => sum + item.price, 0);
  return Math.round((items.length < 10 ? sum : sum * 0.9) * 100) / 100;
}

module.exports = { total };
""" },
  { run = "git add -A && git -c core.editor=: rebase --continue", required = true },
  { usage = { used = 18_000, size = 200_000, cost = 0.05 } },
  { say = "Rebased. The discount comes first, then the total is rounded.\n" },
  { answer = '{"usage":{"inputTokens":15200,"outputTokens":900,"totalTokens":16100}}' },
]

"#;

/// The programs of agents, by the names that profiles know them by.
const AGENTS: [&str; 3] = ["claude-agent-acp", "gemini", "opencode"];

/// A program that stands in for Tailscale's.
const TAILSCALE: &str = r#"#!/bin/sh
echo '{"BackendState":"Running","Self":{"DNSName":"laptop.tail1234.ts.net."}}'
"#;

/// What else is on PATH: whatever agents this machine has, a guide does not meet them.
const PROGRAMS: [&str; 8] = ["cat", "git", "grep", "head", "ls", "sh", "tail", "tee"];

const FILES: [(&str, &str); 7] = [
    (".gitignore", ".env\n"),
    (".env", "PORT=8080\n"),
    ("docs/rules.md", "Reading is fine. A file is changed by the agent that owns it.\n"),
    (
        "src/api/cart.js",
        "function total(items) {\n  return items.reduce((sum, item) => sum + item.price, 0);\n}\n\n\
         module.exports = { total };\n",
    ),
    (
        "src/ui/header.js",
        "const { total } = require('../api/cart');\n\nmodule.exports = (items) => `Cart`;\n",
    ),
    ("test/header.js", "require('../src/ui/header');\n"),
    ("package.json", "{ \"name\": \"shop\" }\n"),
];

/// The reader's home is `user`, the project `user/shop`.
pub(super) fn stage() -> Stage {
    let stage = Stage::new();
    stage.with_any_memory();
    stage.file(
        "user/.gitconfig",
        "[user]\n\tname = Ana\n\temail = ana@example.org\n[init]\n\tdefaultBranch = main\n",
    );
    for (path, text) in FILES {
        stage.file(&format!("user/shop/{path}"), text);
    }
    std::fs::create_dir(stage.path("bin")).unwrap();
    symlink(EISEN_CORE, stage.path("bin/eisen-core")).unwrap();
    for program in PROGRAMS {
        symlink(found(program), stage.path("bin").join(program)).unwrap();
    }
    for agent in AGENTS {
        let script = stage.path(&format!("{agent}.toml"));
        let text = format!("[agent]\nname = {agent:?}\n{ON_BRANCHES}{SCRIPT}");
        stage.file(&format!("{agent}.toml"), &text);
        let program = stage.path("bin").join(agent);
        let line = format!("#!/bin/sh\nexec eisen-core dev scripted-agent {}\n", script.display());
        std::fs::write(&program, line).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let tailscale = stage.path("bin/tailscale");
    std::fs::write(&tailscale, TAILSCALE).unwrap();
    std::fs::set_permissions(&tailscale, std::fs::Permissions::from_mode(0o755)).unwrap();
    for words in [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "Begin"]] {
        let made = run(command(&stage, "git").args(words).current_dir(stage.path("user/shop")));
        assert_eq!(made.code, 0, "{made:?}");
    }
    stage
}

/// A program as the reader starts it, in the reader's home.
pub(super) fn command(stage: &Stage, program: &str) -> Command {
    let mut command = stage.program(stage.path("bin").join(program));
    command.env("PATH", stage.path("bin")).current_dir(stage.path("user"));
    command
}

/// Where a program of this machine is.
fn found(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let at = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|at| at.exists());
    at.unwrap_or_else(|| panic!("the guides need `{program}`"))
}
