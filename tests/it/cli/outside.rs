//! Files outside the workspace that agents write: what the journal keeps of them, and who gets it. What
//! is kept below `$EISEN_DIR`, all of which `purge` knows.

use std::path::PathBuf;

use serde_json::json;

use crate::harness::{EISEN_CORE, Port, Stage, agent, eventually, program, run};

const SECRET: &str = "hunter2-is-the-login";

/// All that a client can get of the files that the team wrote, as one text. Prompts name what is to be
/// written, and are no files.
fn all_of(port: &mut Port) -> String {
    let diff = port.call("get_diff", &json!({ "ignored": true })).unwrap().to_string();
    let mut all = vec![diff];
    let listed = port.call("list_events", &json!({})).unwrap()["events"].clone();
    let found =
        port.call("search_events", &json!({ "query": "hunter2" })).unwrap()["events"].clone();
    let events = [listed, found].map(|events| events.as_array().unwrap().clone()).concat();
    for event in events.into_iter().filter(|event| event["type"] != "message.user") {
        let one = port.call("get_event", &json!({ "id": event["id"] })).unwrap();
        all.extend([event.to_string(), one.to_string()]);
    }
    all.join("\n")
}

#[test]
fn what_is_outside_the_workspace_goes_to_nobody_whose_zone_would_not_open_it() {
    let stage = Stage::new();
    stage.file("state/auth.json", "{}\n");
    let login = stage.path("state/auth.json").canonicalize().unwrap().display().to_string();
    let keys = "[journal]\noutside = \"content\"\n[orchestrator]\nagent = \"lead\"";
    let zone = format!("[agents.zone]\nallowed = [\"src/ui/**\", \"{login}\"]");
    let lead = agent("lead").zone("src/**");
    let team = stage.team(keys, vec![lead, agent("ui").with(&zone)]);
    let mut person = team.steer_when_ready(&["lead", "ui"]);
    person.prompt("ui", &format!("write {login} {SECRET}"));
    person.prompt("ui", "write src/ui/app.ts inside-words");
    let blamed = person.call("blame", &json!({ "path": login })).unwrap();
    assert_eq!(blamed["lines"][0]["text"], SECRET, "{blamed}");

    let token = person.prompt("lead", "run printf %s \"$EISEN_TOKEN\"");
    let mut by_lead = team.watch();
    by_lead.auth(token.trim());
    let made = stage.run(&["token", "create", "--owner", "ada", "--may", "read"]);
    let mut by_ada = team.watch();
    by_ada.auth(made.stdout.trim());
    for port in [&mut by_lead, &mut by_ada] {
        let refused = port.call("blame", &json!({ "path": login })).unwrap_err();
        assert_eq!(refused["code"], 403, "{refused}");
        let all = all_of(port);
        assert!(!all.contains(SECRET), "{all}");
        assert!(all.contains("inside-words"), "{all}");
    }
    team.stop();
}

#[test]
fn contents_outside_are_named_by_doctor_and_go_with_gc_outside_alone() {
    let stage = Stage::new();
    stage.file("state/auth.json", "{}\n");
    let login = stage.path("state/auth.json").canonicalize().unwrap().display().to_string();
    let zone = format!("[agents.zone]\nallowed = [\"src/ui/**\", \"{login}\"]");
    let write = |keys: &str, secret: &str| {
        let team = stage.team(keys, vec![agent("ui").with(&zone)]);
        let mut port = team.steer_when_ready(&["ui"]);
        port.prompt("ui", &format!("write {login} {secret}"));
        port.prompt("ui", "write src/ui/app.ts inside-words");
        drop(port);
        team.stop();
        stage.run(&["doctor", "--json"]).stdout
    };
    assert!(
        !write("", SECRET).contains("outside-contents"),
        "the journal has no content by default"
    );
    let undone = stage.run(&["undo", "ui", "--outside", "--dry-run"]);
    assert!(undone.stderr.contains("not kept"), "{undone:?}");
    // A write of what is there changes nothing.
    let listed = write("[journal]\noutside = \"content\"", "another-login");
    assert!(listed.contains("outside-contents"), "{listed}");
    let contents = || {
        let database =
            rusqlite::Connection::open(stage.path("home/teams/shop/journal.db")).unwrap();
        let count = |sql| database.query_row(sql, [], |row| row.get::<_, u64>(0)).unwrap();
        count("SELECT count(*) FROM contents")
    };
    let before = contents();
    stage.run(&["gc"]);
    assert_eq!(contents(), before);
    let listed = stage.run(&["gc", "--outside", "--dry-run"]).stdout;
    assert!(listed.contains("contents of files outside its workspace"), "{listed}");
    assert_eq!(stage.run(&["gc", "--outside"]).code, 0);
    assert!(contents() < before && contents() > 0);
    assert!(!stage.run(&["doctor", "--json"]).stdout.contains("outside-contents"));
}

/// A file that no room has registered would keep what `purge` is to take out.
#[test]
fn each_file_below_the_folder_of_all_state_is_registered() {
    let stage = Stage::new();
    stage.with_any_memory();
    // Runs have a repository.
    let made = program("git").args(["init", "-q"]).arg(stage.path("shop")).status().unwrap();
    assert!(made.success());
    let unregistered = || eisen_core::care::unregistered_files(&stage.path("home")).unwrap();
    let keys = "[orchestrator]\non_block = \"hold\"\n[web]\nlisten = \"127.0.0.1:0\"\n\
                [[streams]]\nname = \"log\"\nkind = \"file\"\npath = \"events.ndjson\"\n\
                [[streams]]\nname = \"hook\"\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/\"";
    // Too large for the journal's own file.
    let large = [&b"hunter2"[..], &vec![0; 3 << 20]].concat();
    std::fs::write(stage.path("shop/src/ui/large"), large).unwrap();
    let ui = agent("ui").zone("src/ui/**").with("enforce = \"kernel\"");
    let team = stage.team(keys, vec![ui, agent("api")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    port.prompt("ui", "write src/ui/new.ts hunter2");
    port.prompt("ui", "run rm src/ui/large");
    let kept = || std::fs::read_dir(stage.path("home/teams/shop/journal.db.kept")).unwrap().count();
    eventually("the large file is kept", || kept() == 1);
    let held = port.begin("ui", "read src/api/cart.rs");
    let blocked = port.blocked("pending");
    let task = json!({ "agent": "api", "task": "run echo hunter2", "key": "hunter2" });
    port.call("delegate_task", &task).unwrap();
    stage.run(&["token", "create", "--owner", "ada", "--may", "read"]);
    stage.run(&["web", "token"]);
    stage.file("one.toml", "[agent]\nname = \"one\"\n[[on]]\nsteps = [{ say = \"hunter2\" }]\n");
    let script = stage.path("one.toml").display().to_string();
    let args = ["run", "say hunter2", "--", EISEN_CORE, "scripted-agent", &script];
    let ran = run(stage.eisen_core(&args).current_dir(stage.path("shop")));
    assert_eq!(ran.code, 0, "{ran:?}");
    stage.run(&["doctor"]);
    assert_eq!(unregistered(), Vec::<PathBuf>::new());
    port.resolve(&blocked, &json!({ "decision": "deny" })).unwrap();
    port.said(held);
    drop(port);
    team.stop();
    // What kills leave.
    for left in ["eisen-drafts/1.path", "journal.db.undo", "journal.db.drafts/.eisen-1.tmp"] {
        stage.file(&format!("home/teams/shop/{left}"), "");
    }
    for left in [".places-1", "teams/shop/journal.db.corrupt-1.kept/1"] {
        stage.file(&format!("home/{left}"), "");
    }
    assert_eq!(unregistered(), Vec::<PathBuf>::new());
    std::fs::remove_file(stage.path("home/teams/shop/journal.db.undo")).unwrap();

    let purged = stage.run(&["purge", "--matching", "hunter2"]);
    let again = stage.run(&["purge", "--matching", "hunter2"]);
    assert_eq!((purged.code, again.code, kept()), (0, 0, 0), "{purged:?} {again:?}");
    assert!(
        purged.stdout.contains(": run") && again.stderr.contains("nothing has it"),
        "{again:?}"
    );
    stage.file("home/teams/shop/novel", "hunter2");
    let named = stage.run(&["purge", "--matching", "hunter2"]);
    assert!(named.code == 1 && named.stderr.contains("novel is not purged"), "{named:?}");
}
