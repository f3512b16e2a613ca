//! `history`, `export` and `import`: a team's journal, while it runs and after.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Ended, Stage, agent, eventually, run};

#[track_caller]
fn assert_refused(ended: &Ended, code: i32, why: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (code, ""), "{}", ended.stderr);
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
}

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// A team that was told to write and to read, and is gone.
fn gone(stage: &Stage) {
    let team = stage.team("", vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "write src/ui/new.ts fresh margins");
    port.prompt("ui", "read src/api/cart.rs");
    drop(port);
    team.stop();
}

#[test]
fn history_shows_what_a_team_did_when_it_is_gone() {
    let stage = Stage::new();
    gone(&stage);
    let all = stage.run(&["history", "--json"]);
    assert_eq!((all.code, all.stderr.as_str()), (0, ""));
    let all = events(&all.stdout);
    let of_session: Vec<_> = all.iter().filter(|event| event["sequence"].is_u64()).collect();
    for (at, event) in of_session.iter().enumerate() {
        assert_eq!((&event["sequence"], &event["depth"]), (&json!(at), &json!(at)), "{event}");
    }
    let kinds = types(&all);
    for kind in [
        "session.start",
        "message.user",
        "tool.call",
        "tool.result",
        "blocked",
        "message.assistant",
        "turn.end",
        "session.end",
        "agent.state",
    ] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }

    let calls = events(&stage.run(&["history", "ui", "--type", "tool", "--json"]).stdout);
    assert!(types(&calls).iter().all(|kind| kind.starts_with("tool.")), "{calls:?}");
    let session = of_session[0]["session_id"].as_str().unwrap();
    for name in ["ui/ui-s1", session, &session[..20]] {
        let named = events(&stage.run(&["history", name, "--json"]).stdout);
        assert_eq!(named.len(), of_session.len(), "{name}");
    }
    let later = of_session[3]["id"].as_str().unwrap();
    let since = events(&stage.run(&["history", session, "--since", later, "--json"]).stdout);
    assert_eq!(since.len(), of_session.len() - 4);
    assert_eq!(events(&stage.run(&["history", "--since", "1h", "--json"]).stdout).len(), all.len());

    let tree = stage.run(&["history"]).stdout;
    assert!(tree.starts_with(&format!("session {session}  ui/ui-s1  ended\n")), "{tree}");
    assert!(tree.contains("write src/ui/new.ts fresh margins"), "{tree}");
    assert!(tree.contains("outside sessions\n"), "{tree}");
    assert!(tree.contains(" files ") && !tree.contains(" file."), "{tree}");
    let each = stage.run(&["history", "--outside"]).stdout;
    assert!(each.contains(" file.") && !each.contains(" files "), "{each}");

    let found = stage.run(&["history", "search", "fresh", "marg*"]).stdout;
    assert!(found.contains("[fresh] [margins]"), "{found}");
    let id = found.split_whitespace().next().unwrap();
    let shown = stage.run(&["history", "show", id]).stdout;
    assert!(shown.contains("\"text\": \"write src/ui/new.ts fresh margins\""), "{shown}");

    assert_refused(
        &stage.run(&["history", "nobody"]),
        1,
        "there is no agent and no session `nobody`; the agents are: ui",
    );
    assert_refused(&stage.run(&["history", "show", "ffff"]), 1, "there is no event `ffff`");
    assert_refused(&stage.run(&["history", "--since", "soon"]), 2, "write a span");
    assert_refused(&stage.run(&["history", "--team", "other"]), 1, "there is no journal at");
}

#[test]
fn an_export_of_the_import_is_the_same() {
    let stage = Stage::new();
    gone(&stage);
    let export = stage.run(&["export"]);
    assert_eq!(export.code, 0, "{}", export.stderr);
    stage.file("shop.ndjson", &export.stdout);
    assert_refused(&stage.run(&["import", "shop.ndjson"]), 1, "there is a journal already");
    fs::remove_dir_all(stage.path("home/teams/shop")).unwrap();
    assert_eq!(stage.run(&["import", "shop.ndjson"]).code, 0);
    assert_eq!(stage.run(&["export"]).stdout, export.stdout);
    let found = stage.run(&["history", "search", "margins"]).stdout;
    assert!(found.contains("[margins]"), "{found}");

    for (torn, why) in [
        ("", "line 1"),
        ("{}\n", "line 1"),
        (&export.stdout[export.stdout.find('\n').unwrap() + 1..], "no export of a journal"),
        (&export.stdout.replace("\"sequence\":1,", "\"sequence\":0,"), "UNIQUE"),
    ] {
        stage.file("torn.ndjson", torn);
        assert_refused(&stage.run(&["import", "torn.ndjson", "--team", "torn"]), 1, why);
        assert!(!stage.has("home/teams/torn/journal.db"));
    }
}

#[test]
fn a_decision_is_in_the_journal_when_it_is_answered() {
    let stage = Stage::new();
    let keys = "[orchestrator]\non_block = \"hold\"";
    let team = stage.team(keys, vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let reading = port.begin("ui", "read src/api/cart.rs");
    let blocked = port.blocked("pending");
    port.resolve(&blocked, &json!({ "decision": "allow", "scope": "session" })).unwrap();
    // Another program reads the file at once.
    let decided = events(&stage.run(&["history", "--type", "blocked,grant", "--json"]).stdout);
    let states: Vec<_> = decided.iter().map(|event| event["payload"]["status"].clone()).collect();
    assert_eq!(states, [json!("pending"), json!("allowed"), json!(null)]);
    assert_eq!(decided[1]["payload"]["decided_by"], "person");
    assert_eq!(decided[2]["payload"]["scope"], "session");
    assert_eq!(port.said(reading), "got api\n");
}

#[test]
fn a_killed_team_leaves_a_sound_journal() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "write src/ui/new.ts x");
    eventually("the turn is in the journal", || {
        stage.run(&["history", "--type", "turn.end", "--json"]).stdout.contains("turn.end")
    });
    team.program.signal(nix::sys::signal::Signal::SIGKILL);
    eventually("the team is gone", || stage.run(&["ps"]).code == 1);
    let before = events(&stage.run(&["history", "ui/ui-s1", "--json"]).stdout);
    assert_eq!(types(&before).last(), Some(&"turn.end"));
    // The agent's next session has the same id of its own.
    let session = before[0]["session_id"].as_str().unwrap().to_owned();
    let team = stage.up();
    team.steer_when_ready(&["ui"]);
    let after = events(&stage.run(&["history", &session, "--json"]).stdout);
    let interrupted = &after[before.len()];
    assert_eq!(interrupted["payload"]["reason"], "interrupted");
}

#[test]
fn trouble_is_said_once_and_shown_while_it_lasts() {
    let stage = Stage::new();
    stage.file("home/teams/shop/journal.db", "");
    fs::create_dir_all(stage.path("home/teams/shop/journal.db.lock")).unwrap();
    let team = stage.team("", vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "write src/ui/new.ts x");
    let shown = stage.run(&["ps"]).stdout;
    assert!(shown.contains("records nothing"), "{shown}");
    assert!(port.call("get_journal", &json!({})).unwrap()["trouble"].is_string());
    fs::remove_dir(stage.path("home/teams/shop/journal.db.lock")).unwrap();
    eventually("the trouble is over", || {
        port.call("get_journal", &json!({})).unwrap()["trouble"].is_null()
    });
    assert!(!stage.run(&["ps"]).stdout.contains("records nothing"));
    drop(port);
    let said = team.stop().stderr;
    assert_eq!(said.matches("records nothing").count(), 1, "{said}");
}

#[test]
fn check_names_the_journal_and_what_keeps_it_from_being_written() {
    let stage = Stage::new();
    stage.configure("[journal]\npath = \"here/j.db\"", vec![agent("ui")]);
    let report = stage.run(&["check", "-c", "eisen.toml"]).stdout;
    assert!(report.contains("here/j.db"), "{report}");
    assert!(!report.contains("records nothing"), "{report}");
    stage.file("here/j.db", "no database");
    let report = stage.run(&["check", "-c", "eisen.toml"]).stdout;
    assert!(report.contains("records nothing"), "{report}");
    stage.configure("[journal]\nenabled = false", vec![agent("ui")]);
    let team = stage.up();
    team.steer_when_ready(&["ui"]);
    assert!(!stage.has("home/teams/shop/journal.db"));
}

#[test]
fn observe_keeps_one_on_request() {
    let stage = Stage::new();
    stage.file(
        "a.toml",
        "[agent]\nname = \"a\"\n[[on]]\nprompt = \"*\"\nsteps = [{ say = \"hello there\" }]\n",
    );
    let program = crate::harness::EISEN_CORE;
    let mut observed = stage.eisen_core(&[
        "observe",
        "--journal",
        "--port",
        "0",
        "--no-graph",
        "--agent-id",
        "a",
        "--",
        program,
        "scripted-agent",
        "a.toml",
    ]);
    let mut editor = crate::harness::Editor::start(&mut observed);
    editor.initialize(&json!({}));
    let session = editor.open();
    let turn = editor.begin(&session, "hi");
    editor.answer(&turn);
    editor.close();
    editor.end();
    let shown = run(&mut stage.eisen_core(&["history", "--team", "observe-a"])).stdout;
    assert!(shown.contains("hello there"), "{shown}");
    // Its workspace is known.
    let undone = run(&mut stage.eisen_core(&["undo", "a", "--team", "observe-a"]));
    assert_eq!(undone.code, 0, "{}", undone.stderr);
}
