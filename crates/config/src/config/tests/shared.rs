//! `$EISEN_DIR/config.toml`, alone and below an `eisen.toml`.

use std::path::Path;
use std::time::Duration;

use expect_test::expect;

use super::{Bench, listed, surroundings};
use crate::config::{
    Config, ConfigErrors, OnFailover, Pick, RunBounds, SharedConfig, Surroundings,
};

/// Compiles an `eisen.toml` over a user's file.
fn over(user: &str, team: &str) -> Result<Config, ConfigErrors> {
    let bench = Bench::new();
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("config.toml"), user).unwrap();
    let surroundings = Surroundings { eisen_dir: home.path().to_owned(), ..surroundings() };
    Config::compile(&bench.path().join("eisen.toml"), team.to_owned(), &surroundings).0
}

/// A user's file alone.
fn alone(user: &str) -> Result<SharedConfig, ConfigErrors> {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("config.toml"), user).unwrap();
    SharedConfig::read(home.path(), None)
}

fn mistakes(user: &str) -> String {
    alone(user).map_or_else(|errors| listed(&errors), |_| "none\n".to_owned())
}

#[test]
fn without_files_all_has_its_defaults() {
    let shared = SharedConfig::read(Path::new("/nowhere"), None).unwrap();
    assert!(shared.tiers.is_empty() && shared.slots.is_empty() && shared.known().is_empty());
    assert_eq!(shared.runs, RunBounds::default());
    assert_eq!((shared.runs.max_depth, shared.runs.min_free_mb), (3, 4096));
    assert!(!shared.prices.is_empty());
}

#[test]
fn a_teams_file_is_laid_over_the_users() {
    let user = r#"
[profiles.mine]
base = "codex"
args = ["--x"]
[[tiers]]
name = "smart"
candidates = [{ profile = "claude-code", model = "opus" }, { profile = "mine" }]
[[tiers]]
name = "cheap"
pick = "cheapest"
candidates = [{ profile = "codex" }]
[slots]
codex = 3
gemini = 2
[runs]
max_depth = 2
min_free_mb = 100
cooldown_s = 5
silence_s = 20
[prices.m]
input = 1.0
output = 2.0
"#;
    let team = r#"
[profiles.ours]
base = "mine"
[[agents]]
id = "ui"
profile = "mine"
[[tiers]]
name = "smart"
pick = "rotate"
candidates = [{ profile = "ours", thinking = "high" }]
[slots]
codex = 5
gemini = 1
[runs]
max_depth = 9
min_free_mb = 5000
cooldown_s = 7
silence_s = 0
on_failover = "undo"
"#;
    let config = over(user, team).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(config.agents[0].command, ["codex-acp", "--x"]);
    let shared = config.shared;
    let names: Vec<_> = shared.tiers.iter().map(|tier| tier.name.as_str()).collect();
    assert_eq!(names, ["smart", "cheap"]);
    let smart = shared.tier("smart").unwrap();
    assert_eq!((smart.pick, smart.candidates.len()), (Pick::Rotate, 1));
    assert_eq!(smart.candidates[0].thinking.as_deref(), Some("high"));
    assert_eq!(shared.slots.values().copied().collect::<Vec<_>>(), [3, 1]);
    let expected = RunBounds {
        max_depth: 2,
        min_free_mb: 5000,
        cooldown: Duration::from_secs(7),
        silence: Duration::ZERO,
        on_failover: OnFailover::Undo,
        ..RunBounds::default()
    };
    assert_eq!(shared.runs, expected);
    assert_eq!((shared.base_of("ours"), shared.base_of("gemini")), ("codex", "gemini"));
    assert_eq!(shared.prices["m"].output.to_bits(), 2.0f64.to_bits());
    // A run's configuration has them, and they mean the same there.
    let text = format!("{}\n[[agents]]\nid = \"a\"\nprofile = \"ours\"", shared.known());
    let run = over("", &text).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(run.agents[0].profile.title, "Codex");
    assert_eq!(run.agents[0].command, ["codex-acp", "--x"]);
    assert_eq!(run.shared.prices["m"], shared.prices["m"]);
}

#[test]
fn what_a_profile_says_literally_stays_literal() {
    let user = "[profiles.mine]\ncommand = [\"./a\", \"$${HOME}\"]\nenv = { A = \"$$$${B}\" }\n\
                readable = [\"$$MINE_HOME\"]";
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("config.toml"), user).unwrap();
    let shared = SharedConfig::read(home.path(), None).unwrap();
    let text = format!("{}\n[[agents]]\nid = \"a\"\nprofile = \"mine\"", shared.known());
    let run = over("", &text).unwrap_or_else(|errors| panic!("{errors}"));
    let program = home.path().join("a").display().to_string();
    assert_eq!(run.agents[0].command, [program.as_str(), "${HOME}"]);
    assert_eq!(run.agents[0].env["A"], "$${B}");
    assert_eq!(run.agents[0].profile.readable, ["$MINE_HOME"]);
}

#[test]
fn every_mistake_of_the_users_file_is_reported_at_once() {
    let user = r#"[team]
name = "x"
[[tiers]]
name = "smart"
candidates = [{ profile = "cluade-code" }, { profile = "codex" }, { profile = "codex" }, "codex"]
[[tiers]]
name = "smart"
pick = "frist"
candidates = []
[[tiers]]
candidates = [{ model = "m", modle = "n" }]
[[tiers]]
name = "none"
candidate = []
[slots]
codex = 0
nobody = 1
mine = 2
[runs]
max_dept = 1
on_failover = "undone"
patience_s = "60"
[profiles.mine]
base = "codex"
"#;
    expect![[r#"
        1:2 unknown key `team` at the top level | the keys here are `prices`, `profiles`, `providers`, `tiers`, `slots`, `runs`, `hub`, `worktree`
        5:27 there is no profile "cluade-code" | did you mean "claude-code"?
        5:67 the candidate `codex` is there twice | each is tried once: keep one
        5:90 each of `candidates` must be a table, not a string | write `{ profile = "codex" }`
        7:8 there is another tier with the name "smart" | give each its own
        8:8 `pick` can't be "frist" | did you mean "first"? It can be "first", "rotate", "cheapest"
        9:14 this tier is empty | write `candidates = [{ profile = "codex" }, { profile = "opencode" }]`
        10:1 this tier has no `name` | give it one, such as `name = "smart"`
        11:15 this candidate has no `profile` | name one, such as `profile = "codex"`
        11:30 unknown key `modle` in a candidate of `[[tiers]]` | did you mean `model`?
        12:1 this tier has no `candidates` | write `candidates = [{ profile = "codex" }, { profile = "opencode" }]`
        14:1 unknown key `candidate` in `[[tiers]]` | did you mean `candidates`?
        16:9 `codex` must be a whole number from 1 to 10000 | write how many may run at once; leave it out for no limit
        17:1 there is no profile "nobody" | there are auggie, claude-code, cline, codex, copilot, cursor, deepagents, droid, fast-agent, gemini, goose, hermes, kimi, kiro, opencode, openhands, pi, qoder, qwen-code, vibe, mine
        18:1 "mine" is based on "codex" | slots are for all agents with that base: name "codex"
        20:1 unknown key `max_dept` in `[runs]` | did you mean `max_depth`?
        21:15 `on_failover` can't be "undone" | did you mean "undo"? It can be "keep", "undo"
        22:14 `patience_s` must be a whole number from 0 to 86400, not a string | write it without quotes
    "#]]
    .assert_eq(&mistakes(user));
}

#[test]
fn a_team_does_not_start_while_the_users_file_has_a_mistake() {
    let errors = over("[slot]\ncodex = 1", "").unwrap_err();
    assert!(errors.to_string().contains("config.toml"), "{errors}");
    expect![[r#"
        1:2 unknown key `slot` at the top level | slots are `[slots]`, such as `codex = 3` below it
    "#]]
    .assert_eq(&listed(&errors));
}

#[test]
fn an_agent_of_a_tier_takes_a_candidate() {
    let tiers = "[[tiers]]\nname = \"smart\"\ncandidates = [{ profile = \"codex\", model = \"m\" }, \
                 { profile = \"gemini\", thinking = \"high\" }]\n";
    let agent = "[[agents]]\nid = \"ui\"\ntier = \"smart\"\n";
    let bench = Bench::new();
    let take = |profile: &str, thinking: Option<&str>| {
        let thinking = thinking.map(str::to_owned);
        let candidate = crate::config::TierCandidate {
            profile: profile.to_owned(),
            model: None,
            thinking,
            provider: None,
        };
        let taken = std::collections::BTreeMap::from([("ui".to_owned(), candidate)]);
        let surroundings = Surroundings { taken, ..surroundings() };
        let text = format!("{agent}{tiers}");
        let config = Config::compile(&bench.path().join("eisen.toml"), text, &surroundings).0;
        config.unwrap_or_else(|errors| panic!("{errors}")).agents.remove(0)
    };
    let first = take("unknown", None);
    assert_eq!((&*first.profile.title, first.model.as_deref()), ("Codex", Some("m")));
    let second = take("gemini", Some("high"));
    assert_eq!((&*second.profile.title, second.thinking.as_deref()), ("Gemini CLI", Some("high")));
    // Another level of thinking is another candidate.
    assert_eq!(take("gemini", None).profile.title, "Codex");
    let wrong = format!("{agent}model = \"m\"\n[[agents]]\nid = \"api\"\ntier = \"smrt\"\n");
    expect![[r#"
        4:9 `tier` and `model` can't both be given | keep one: the candidates of a tier say it
        7:8 there is no tier "smrt" | did you mean "smart"?
    "#]]
    .assert_eq(&listed(&over(tiers, &wrong).unwrap_err()));
}
