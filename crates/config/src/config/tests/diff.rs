//! Tests when a changed key applies to a running team.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};

use super::{Bench, reference};
use crate::config::{ChangeKind, ConfigChange, Plan, Takes, diff};

const BEFORE: &str = r#"
[[agents]]
id = "ui"
command = ["a"]
[agents.zone]
[[agents]]
id = "api"
command = ["a"]
"#;

fn reported(change: &ConfigChange) -> String {
    let agent = change.agent.as_ref().map(|agent| format!("{agent} ")).unwrap_or_default();
    let kind = match change.kind {
        ChangeKind::Added => " added",
        ChangeKind::Removed => " removed",
        ChangeKind::Changed => "",
    };
    let waits = match change.takes {
        Takes::AtOnce => "",
        Takes::AtAgentStart => " (agent)",
        Takes::AtTeamStart => " (team)",
    };
    format!("{agent}{}{kind}{waits}\n", change.key)
}

/// Goes from one text to another while `running` runs by `started`.
fn check(before: &str, after: &str, started: Option<&str>, expected: &Expect) {
    let bench = Bench::new();
    let config = |text: &str| bench.compile(text).unwrap_or_else(|errors| panic!("{errors}"));
    let (before, after, started) = (config(before), config(after), started.map(config));
    let plan = Plan::new(&before, &after, |id| started.as_ref()?.agent(id));
    let list = |list: &[ConfigChange]| list.iter().map(reported).collect::<String>();
    let text = format!("applied\n{}waits\n{}", list(&plan.applied), list(&plan.needs_restart));
    expected.assert_eq(&text);
    if let Some(next) = plan.config {
        // What was taken in is no news any more.
        let again = Plan::new(&next, &after, |id| started.as_ref()?.agent(id));
        assert_eq!(list(&again.applied), "");
        assert_eq!(list(&again.needs_restart), list(&plan.needs_restart));
    }
}

#[test]
fn an_agent_that_runs_takes_some_keys_at_its_next_start() {
    let after = BEFORE.replace(
        "[\"a\"]\n[agents.zone]",
        "[\"b\"]\nmodel = \"m\"\n[agents.zone]\ndenied = [\"x\"]",
    );
    check(
        BEFORE,
        &after,
        Some(BEFORE),
        &expect![[r#"
        applied
        ui zone.denied
        waits
        ui command (agent)
        ui model (agent)
    "#]],
    );
    // One that does not run has nothing to wait for.
    check(
        BEFORE,
        &after,
        None,
        &expect![[r#"
        applied
        ui command
        ui model
        ui zone.denied
        waits
    "#]],
    );
    // It waits as long as it runs by what it was started with, and back is back.
    check(
        &after,
        &after,
        Some(BEFORE),
        &expect![[r#"
        applied
        waits
        ui command (agent)
        ui model (agent)
    "#]],
    );
    check(
        &after,
        BEFORE,
        Some(BEFORE),
        &expect![[r#"
        applied
        ui command
        ui model
        ui zone.denied
        waits
    "#]],
    );
}

#[test]
fn terminals_can_be_taken_but_not_given() {
    let without = BEFORE.replace("[agents.zone]", "[agents.zone]\nterminals = \"deny\"");
    check(
        BEFORE,
        &without,
        Some(BEFORE),
        &expect![[r#"
        applied
        ui zone.terminals
        waits
    "#]],
    );
    check(
        &without,
        BEFORE,
        Some(&without),
        &expect![[r#"
        applied
        waits
        ui zone.terminals (agent)
    "#]],
    );
    check(
        &without,
        BEFORE,
        Some(BEFORE),
        &expect![[r#"
        applied
        ui zone.terminals
        waits
    "#]],
    );
}

#[test]
fn an_agent_changes_hands_while_it_runs() {
    let after = BEFORE.replace("id = \"api\"", "id = \"api\"\nowner = \"ada\"");
    check(
        BEFORE,
        &after,
        Some(BEFORE),
        &expect![[r#"
        applied
        api owner
        waits
    "#]],
    );
}

#[test]
fn the_teams_own_patterns_are_not_the_agents() {
    let after = format!(
        "[zones]\ndenied = [\"**/.env\"]\nreadable = [\"docs/**\"]\nbase = false\n{BEFORE}"
    );
    check(
        BEFORE,
        &after,
        Some(BEFORE),
        &expect![[r#"
        applied
        zones.denied
        zones.readable
        zones.base
        waits
    "#]],
    );
}

#[test]
fn agents_come_and_go_but_for_the_orchestrator() {
    let lead = format!("[orchestrator]\nagent = \"api\"\n{BEFORE}");
    let after = "agents = [{ id = \"new\", command = [\"a\"] }]";
    check(
        &lead,
        after,
        Some(&lead),
        &expect![[r#"
        applied
        new agents added
        ui agents removed
        waits
        orchestrator.agent (team)
        api agents removed (team)
    "#]],
    );
}

#[test]
fn another_workspace_takes_all_with_it() {
    let after = format!(
        "[team]\nworkspace = \"src\"\nstop_grace_s = 1\n{}",
        BEFORE.replace("id = \"api\"", "id = \"new\"")
    );
    check(
        BEFORE,
        &after,
        Some(BEFORE),
        &expect![[r#"
        applied
        waits
        team.name (team)
        team.workspace (team)
        ui cwd (team)
        team.stop_grace_s (team)
        new agents added (team)
        api agents removed (team)
    "#]],
    );
}

/// A key that the reader knows and the comparison doesn't would be ignored by a reload.
#[test]
fn every_key_is_compared() {
    let mut compared: BTreeSet<String> = diff::keys().collect();
    // Compared as a whole.
    assert!(
        ["notify", "routing", "prices", "providers", "streams"]
            .iter()
            .all(|whole| compared.remove(*whole))
    );
    // Read as what they come to: a command, an environment, a prompt, the keys of a template.
    let others = ["agents.id", "agents.prompt_file", "agents.template"].map(str::to_owned);
    let known: BTreeSet<String> = reference::known()
        .into_iter()
        .filter(|key| {
            !key.starts_with("profiles.")
                && !key.starts_with("plugins.")
                && !key.starts_with("prices.")
                && !key.starts_with("providers.")
                && !key.starts_with("notify.")
                && !key.starts_with("streams.")
                && !key.starts_with("routing.")
                // Read when a run begins, and when a slot is asked for.
                && !key.starts_with("tiers.")
                && !key.starts_with("runs.")
                && !key.starts_with("worktree.")
        })
        .filter(|key| !others.contains(key))
        .collect();
    assert_eq!(compared, known);
}
