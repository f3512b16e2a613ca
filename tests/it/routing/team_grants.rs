//! What a person allows for the team, and by a pattern.

use serde_json::{Value, json};

use crate::harness::{Stage, agent};

const HOLD: &str = "[orchestrator]\non_block = \"hold\"\n\
                    [zones]\ndenied = [\"**/closed.txt\"]\nsecrets = \"ask\"";

#[test]
fn what_is_allowed_for_the_team_outlasts_it_and_ends_by_revoking_it() {
    let stage = Stage::new();
    let team = stage.team(HOLD, vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let prompt = port.begin("ui", "write test/a.ts one");
    assert_eq!(port.blocked("pending")["match"], "test/**");
    let allowed = stage.run(&["inbox", "allow", "b1", "--for", "team", "--match", "test/**"]);
    assert_eq!(allowed.code, 0, "{allowed:?}");
    assert_eq!(port.said(prompt), "written");
    assert_eq!(port.prompt("ui", "write test/deep/b.ts two"), "written");
    let listed = stage.run(&["team", "grants", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(
        (&listed[0]["id"], &listed[0]["match"], &listed[0]["applies"]),
        (&json!("g1"), &json!("test/**"), &json!(true))
    );
    team.stop();

    // Gone, the team still has it; the configuration has nothing of it.
    let kept: Value = serde_json::from_str(&stage.read("home/teams/shop.json")).unwrap();
    assert_eq!(kept["grants"][0]["match"], "test/**");
    assert!(!stage.read("eisen.toml").contains("test/**"));
    let shown = stage.run(&["check"]).stdout;
    assert!(shown.contains("g1: ui may write `test/**`: allowed by a person"), "{shown}");
    let why = stage.run(&["why", "ui", "test/c.ts", "--action", "write"]).stdout;
    assert!(why.starts_with("ui may write test/c.ts: g1: "), "{why}");
    let why = stage.run(&["why", "ui", "test/closed.txt", "--action", "write"]).stdout;
    assert!(why.starts_with("ui may not write"), "{why}");
    let rows = stage.run(&["team", "grants"]).stdout;
    assert!(rows.contains("test/** (asked for test/a.ts)"), "{rows}");

    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "write test/c.ts three"), "written");
    let revoked = stage.run(&["team", "grants", "revoke", "g1"]);
    assert_eq!(revoked.stdout, "g1: revoked: ui may no longer write test/**\n", "{revoked:?}");
    let told = stage.run(&["history", "--type", "grant.revoke"]);
    assert!(told.stdout.contains("write test/** by person"), "{told:?}");
    port.begin("ui", "write test/d.ts four");
    assert_eq!(port.blocked("pending")["path"], "test/d.ts");
    let again = stage.run(&["team", "grants", "revoke", "g1"]);
    assert!(again.code == 1 && again.stderr.contains("team grants"), "{again:?}");
    team.stop();
    assert!(!stage.has("home/teams/shop.json"));
}

#[test]
fn a_pattern_opens_neither_what_is_denied_nor_secrets() {
    let stage = Stage::new();
    let team = stage.team(HOLD, vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let prompt = port.begin("ui", "write test/a.ts one");
    port.blocked("pending");
    let wide = ["inbox", "allow", "b1", "--scope", "session", "--match", "**"];
    assert_eq!(stage.run(&wide).code, 0);
    assert_eq!(port.said(prompt), "written");
    assert_eq!(port.prompt("ui", "write docs/b.md two"), "written");
    for path in ["test/closed.txt", "test/.env", ".git/config"] {
        port.begin("ui", &format!("write {path} x"));
        let blocked = port.blocked("pending");
        assert_eq!((&blocked["path"], blocked.get("match")), (&json!(path), None));
        port.resolve(&blocked, &json!({"decision": "deny"})).unwrap();
    }
}

#[test]
fn an_agent_allows_nothing_for_the_team() {
    let stage = Stage::new();
    let mut lead = stage.puppet("lead");
    let agents = vec![agent("lead").puppet().zone("docs/**"), agent("ui").zone("src/ui/**")];
    let team = stage.team("[orchestrator]\nagent = \"lead\"\non_block = \"hold\"", agents);
    lead.connect("l1");
    let mut port = team.steer_when_ready(&["lead", "ui"]);
    let prompt = port.begin("ui", "write test/a.ts one");
    port.blocked("pending");
    let (briefing, _) = lead.prompted();
    let said = lead.run("l1", "eisen-core inbox allow b1 --for team; echo $?");
    assert!(said.contains("only a person allows for the team") && said.ends_with("1\n"), "{said}");
    let line = "eisen-core inbox allow b1 --scope session --match 'test/**'; echo $?";
    let said = lead.run("l1", line);
    assert!(said.ends_with("0\n"), "{said}");
    lead.end_turn(&briefing);
    assert_eq!(port.said(prompt), "written");
    assert_eq!(port.prompt("ui", "write test/b.ts two"), "written");
    assert!(!stage.has("home/teams/shop.json"));
}

#[test]
#[cfg(target_os = "linux")]
fn the_kernel_lets_pass_what_a_pattern_opens_until_it_is_revoked() {
    let stage = Stage::new();
    let ui = agent("ui").zone("src/ui/**").with("enforce = \"kernel\"");
    let team = stage.team(HOLD, vec![ui]);
    let mut port = team.steer_when_ready(&["ui"]);
    let write = "run mkdir -p test/new && echo one > test/new/a.ts && cat test/new/a.ts";
    let prompt = port.begin("ui", write);
    let blocked = port.blocked("pending");
    let allow = json!({"decision": "allow", "scope": "team", "match": "test/**"});
    port.resolve(&blocked, &allow).unwrap();
    assert!(port.said(prompt).ends_with("one\n"));
    let said = port.prompt("ui", "run echo two > test/new/b.ts && cat test/new/b.ts test/new/a.ts");
    assert!(said.ends_with("two\none\n"), "{said}");
    port.call("revoke_grant", &json!({"id": "g1"})).unwrap();
    port.begin("ui", "run echo three > test/new/c.ts");
    assert_eq!(port.blocked("pending")["path"], "test/new/c.ts");
}

#[test]
fn grants_of_a_team_that_is_gone_count_as_its_configuration_and_rules_have_it() {
    let stage = Stage::new();
    let rule = "[[routing]]\npaths = [\"test/kept/**\"]\ndecide = \"deny\"\n";
    stage.configure(&format!("{HOLD}\n{rule}"), vec![agent("ui").zone("src/ui/**")]);
    let workspace = stage.in_shop("").trim_end_matches('/').to_owned();
    let grant = |id: &str, agent: &str, path: &str| {
        json!({
            "id": id, "workspace": workspace, "agent": agent, "path": path, "action": "write",
            "match": "test/**", "by": "person", "granted_ms": 1,
        })
    };
    let grants = [grant("g1", "ui", "test/kept/a.ts"), grant("g2", "gone", "test/a.ts")];
    stage.file("home/teams/shop.json", &json!({ "grants": grants }).to_string());
    let listed: Value =
        serde_json::from_str(&stage.run(&["team", "grants", "--json"]).stdout).unwrap();
    assert_eq!((&listed[0]["applies"], &listed[1]["applies"]), (&json!(true), &json!(false)));
    let rows = stage.run(&["team", "grants"]).stdout;
    assert!(rows.contains("asked for test/a.ts; the team has no such agent"), "{rows}");
    let why = |path: &str| stage.run(&["why", "ui", path, "--action", "write"]).stdout;
    assert!(why("test/b.ts").starts_with("ui may write test/b.ts: g1: "), "{}", why("test/b.ts"));
    let kept = why("test/kept/b.ts");
    assert!(
        kept.starts_with("ui may not write") && kept.contains("rule 1 of [[routing]]"),
        "{kept}"
    );
    // The very path that a person allowed is open, as the rule says.
    assert!(why("test/kept/a.ts").starts_with("ui may write test/kept/a.ts: g1: "));
}

#[test]
fn a_file_of_grants_that_is_broken_opens_nothing_and_says_what_to_do() {
    let stage = Stage::new();
    stage.configure(HOLD, vec![agent("ui").zone("src/ui/**")]);
    let workspace = stage.in_shop("").trim_end_matches('/').to_owned();
    let grant = json!({
        "id": "g1", "workspace": workspace, "agent": "ui", "path": "test/a.ts", "action": "write",
        "match": "../**", "by": "person", "granted_ms": 1,
    });
    stage.file("home/teams/shop.json", &json!({ "grants": [grant] }).to_string());
    for command in [&["up"][..], &["check"], &["team", "grants"]] {
        let refused = stage.run(command);
        assert_ne!(refused.code, 0, "{command:?}");
        assert!(refused.stderr.contains("mend it, or delete it"), "{command:?}: {refused:?}");
    }
}
