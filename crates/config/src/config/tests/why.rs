use std::path::Path;

use expect_test::expect;

use super::Bench;
use crate::config::{Config, Why};
use crate::model::{Action, AgentId};

const TEAM: &str = r#"
[zones]
shared = ["types/**"]
denied = ["**/.env"]
readable = ["docs/**"]
git = "read"
[[agents]]
id = "ui"
command = ["true"]
[agents.zone]
allowed = ["src/ui/**"]
denied = ["src/ui/secret/**"]
[[agents]]
id = "api"
command = ["true"]
[agents.zone]
allowed = ["src/api/**"]
enforce = "protocol"
[[agents]]
id = "free"
command = ["true"]
"#;

fn why(config: &Config, agent: &str, path: &str, action: Action) -> Why {
    config.why(&AgentId::new(agent), Path::new(path), action).unwrap()
}

#[test]
fn each_answer_names_the_rule_and_what_would_allow_it() {
    let bench = Bench::new();
    let git = bench.path().join(".git");
    std::fs::create_dir_all(git.join("objects")).unwrap();
    std::fs::create_dir_all(git.join("refs")).unwrap();
    std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let config = bench.compile(TEAM).unwrap();
    let mut said = String::new();
    for (agent, path) in [
        ("ui", "src/ui/a.ts"),
        ("ui", "src/api/b.ts"),
        ("ui", "src/core/deep/c.ts"),
        ("ui", "types/t.ts"),
        ("ui", "docs/d.md"),
        ("ui", "AGENTS.md"),
        ("ui", "src/ui/.env"),
        ("ui", "src/ui/secret/x"),
        ("ui", "target/debug/x"),
        ("ui", "packages/web/node_modules/x/y"),
        ("ui", "Cargo.lock"),
        ("ui", "a[b]/c"),
        ("ui", ".git/index"),
        ("ui", ".git/config"),
        ("ui", "/var/tmp/x"),
        ("api", "/var/tmp/x"),
        ("ui", "/home/user/.eisen/run/x"),
        ("ui", "../x"),
        ("ui", "a\0b"),
        ("free", "src/ui/a.ts"),
    ] {
        for action in [Action::Read, Action::Write] {
            said += &why(&config, agent, path, action).to_string();
            said += "\n";
        }
    }
    let root = bench.path();
    let parent = root.parent().unwrap().to_str().unwrap();
    expect![[r#"
        ui may read src/ui/a.ts: `src/ui/**` in `allowed` of [agents.zone] of ui
          owned by ui
        ui may write src/ui/a.ts: `src/ui/**` in `allowed` of [agents.zone] of ui
          owned by ui
        ui may not read src/api/b.ts: no pattern of ui's zone matches it
          owned by api
          to allow it: add "src/api/b.ts" to `readable` of [agents.zone] of ui
        ui may not write src/api/b.ts: no pattern of ui's zone matches it
          owned by api
          to allow it: add "src/api/b.ts" to `allowed` of [agents.zone] of ui
        ui may not read src/core/deep/c.ts: no pattern of ui's zone matches it
          owned by nobody
          to allow it: add "src/core/**" to `readable` of [agents.zone] of ui
        ui may not write src/core/deep/c.ts: no pattern of ui's zone matches it
          owned by nobody
          to allow it: add "src/core/**" to `allowed` of [agents.zone] of ui
        ui may read types/t.ts: `types/**` in `shared` of [zones]
          owned by nobody
        ui may write types/t.ts: `types/**` in `shared` of [zones]
          owned by nobody
        ui may read docs/d.md: `docs/**` in `readable` of [zones]
          owned by nobody
        ui may not write docs/d.md: no pattern of ui's zone matches it
          owned by nobody
          to allow it: add "docs/d.md" to `allowed` of [agents.zone] of ui
        ui may read AGENTS.md: `**/AGENTS.md` in `readable` of the built-in ones (`base`)
          owned by nobody
        ui may not write AGENTS.md: no pattern of ui's zone matches it
          owned by nobody
          to allow it: add "AGENTS.md" to `allowed` of [agents.zone] of ui
        ui may not read src/ui/.env: `**/.env` in `denied` of [zones]
          owned by nobody
          to allow it: take "**/.env" out of `denied` of [zones], or make it narrower
        ui may not write src/ui/.env: `**/.env` in `denied` of [zones]
          owned by nobody
          to allow it: take "**/.env" out of `denied` of [zones], or make it narrower
        ui may not read src/ui/secret/x: `src/ui/secret/**` in `denied` of [agents.zone] of ui
          owned by nobody
          to allow it: take "src/ui/secret/**" out of `denied` of [agents.zone] of ui, or make it narrower
        ui may not write src/ui/secret/x: `src/ui/secret/**` in `denied` of [agents.zone] of ui
          owned by nobody
          to allow it: take "src/ui/secret/**" out of `denied` of [agents.zone] of ui, or make it narrower
        ui may not read target/debug/x: no pattern of ui's zone matches it
          owned by nobody
          to allow it: add "target/**" to `readable` of [zones]
        ui may not write target/debug/x: no pattern of ui's zone matches it
          owned by nobody
          to allow it: add "target" to `build` of [zones]
        ui may not read packages/web/node_modules/x/y: no pattern of ui's zone matches it
          owned by nobody
          to allow it: add "packages/web/node_modules/**" to `readable` of [zones]
        ui may not write packages/web/node_modules/x/y: no pattern of ui's zone matches it
          owned by nobody
          to allow it: add "packages/web/node_modules" to `build` of [zones]
        ui may not read Cargo.lock: no pattern of ui's zone matches it
          owned by nobody
          to allow it: add "Cargo.lock" to `readable` of [zones]
        ui may not write Cargo.lock: no pattern of ui's zone matches it
          owned by nobody
          to allow it: add "Cargo.lock" to `shared` of [zones]
        ui may not read a[b]/c: no pattern of ui's zone matches it
          owned by nobody
          to allow it: add "a[[]b[]]/**" to `readable` of [agents.zone] of ui
        ui may not write a[b]/c: no pattern of ui's zone matches it
          owned by nobody
          to allow it: add "a[[]b[]]/**" to `allowed` of [agents.zone] of ui
        ui may read .git/index: `git = "read"` of [zones]
          owned by nobody
        ui may not write .git/index: it lies in a git folder, and [zones] has `git = "read"`
          owned by nobody
          to allow it: set `git = "commit"` in [zones]
        ui may read .git/config: `git = "read"` of [zones]
          owned by nobody
        ui may not write .git/config: it lies in a git folder, and [zones] has `git = "read"`
          owned by nobody
          no pattern allows it
        ui may read /var/tmp/x: it lies outside the workspace, where `confine` lets the agent's programs go on where the kernel holds the zone; what it asks its client for is denied
          owned by nobody
        ui may write /var/tmp/x: it lies outside the workspace, where `confine` lets the agent's programs go on where the kernel holds the zone; what it asks its client for is denied
          owned by nobody
        api may not read /var/tmp/x: no pattern of api's zone matches it
          owned by nobody
          to allow it: add "/var/tmp/x" to `readable` of [agents.zone] of api
        api may not write /var/tmp/x: no pattern of api's zone matches it
          owned by nobody
          to allow it: add "/var/tmp/x" to `allowed` of [agents.zone] of api
        ui may not read /home/user/.eisen/run/x: it lies in $EISEN_DIR, which is closed to all agents
          owned by nobody
          no pattern allows it
        ui may not write /home/user/.eisen/run/x: it lies in $EISEN_DIR, which is closed to all agents
          owned by nobody
          no pattern allows it
        ui may read @/x: it lies outside the workspace, where `confine` lets the agent's programs go on where the kernel holds the zone; what it asks its client for is denied
          owned by nobody
        ui may write @/x: it lies outside the workspace, where `confine` lets the agent's programs go on where the kernel holds the zone; what it asks its client for is denied
          owned by nobody
        ui may not read a␀b: no path leads there
          owned by nobody
          no pattern allows it
        ui may not write a␀b: no path leads there
          owned by nobody
          no pattern allows it
        free may read src/ui/a.ts: free has no [agents.zone], and so `**`
          owned by ui
        free may write src/ui/a.ts: free has no [agents.zone], and so `**`
          owned by ui
    "#]].assert_eq(&said.replace(parent, "@").replace('\0', "␀"));
    assert!(config.why(&AgentId::new("nobody"), Path::new("x"), Action::Read).is_none());
}

/// Each proposal is tried: with it in the file the access is allowed.
#[test]
fn a_proposal_that_is_written_into_the_file_allows_the_access() {
    let bench = Bench::new();
    for (path, action) in [
        ("src/core/x", Action::Write),
        ("src/api/b.ts", Action::Read),
        ("target/debug/x", Action::Write),
        ("Cargo.lock", Action::Write),
        ("odd $name/{x}/[y]", Action::Write),
    ] {
        let config = bench.compile(TEAM).unwrap();
        let mend = why(&config, "ui", path, action).mend.unwrap();
        let value = toml::Value::String(mend.value.replace('$', "$$"));
        let line = format!("{} = [{value}, ", mend.key);
        let head = if mend.section == "[zones]" { "[zones]" } else { "[agents.zone]" };
        let (before, behind) = TEAM.split_once(head).unwrap();
        let lists = format!("{} = [", mend.key);
        let (section, rest) = behind.split_once("[[agents]]").unwrap_or((behind, ""));
        let section = if section.contains(&format!("\n{lists}")) {
            section.replacen(&lists, &line, 1)
        } else {
            format!("{section}{line}]\n")
        };
        let text = format!("{before}{head}{section}[[agents]]{rest}");
        let config = bench.compile(&text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        let after = why(&config, "ui", path, action);
        assert!(after.allowed, "{path}: {after}\n{text}");
    }
}
