//! `undo` and `redo` with the real program: in a team that runs, in one that is gone, and killed at
//! random moments.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use eisen_core::journal::{self, Blob, EventType, Keep, NewEvent, Place, Settings, hash_of};
use eisen_core::model::AgentId;
use serde_json::{Value, json};

use crate::harness::{Stage, agent, eventually};

/// Modes and contents of all below a folder.
fn look(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let (mut all, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let found = fs::symlink_metadata(&path).unwrap();
            let content = if found.is_dir() { Vec::new() } else { fs::read(&path).unwrap() };
            if found.is_dir() {
                folders.push(path.clone());
            }
            let inside = path.strip_prefix(root).unwrap().to_owned();
            all.insert(inside, (found.permissions().mode(), content));
        }
    }
    all
}

fn events(stage: &Stage, kind: &str) -> Vec<Value> {
    let listed = stage.run(&["history", "--type", kind, "--json"]);
    listed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_undo_in_a_running_team_leaves_what_others_wrote() {
    let stage = Stage::new();
    let shop = stage.path("shop");
    let team = stage.team("", vec![agent("ui").zone("src/**"), agent("api").zone("src/api/**")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let before = look(&shop);
    port.prompt("ui", "write src/ui/app.ts changed");
    port.prompt("ui", "write src/ui/deep/new.ts made");
    let after = look(&shop);
    port.prompt("api", "write src/api/cart.rs theirs");

    let preview = stage.run(&["undo", "ui", "--dry-run"]);
    assert_eq!(preview.code, 0, "{preview:?}");
    assert!(preview.stdout.contains("-changed"), "{preview:?}");
    assert!(preview.stdout.contains("+ui"), "{preview:?}");
    let done = stage.run(&["undo", "ui"]);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
    assert!(done.stdout.contains("restored  src/ui/app.ts\n"), "{done:?}");
    assert!(done.stdout.contains("removed   src/ui/deep/new.ts\n"), "{done:?}");
    assert_eq!(stage.read("shop/src/api/cart.rs"), "theirs");
    stage.file("shop/src/api/cart.rs", "api\n");
    assert_eq!(look(&shop), before);

    let undone = events(&stage, "undo").pop().unwrap();
    assert_eq!((&undone["agent_id"], &undone["payload"]["turns"]), (&json!("ui"), &json!([0, 1])));
    let again = stage.run(&["undo", "ui"]);
    assert_eq!((again.code, again.stdout.as_str()), (0, ""), "{again:?}");
    assert_eq!(stage.run(&["redo", "api"]).code, 1);
    let redone = port.call("redo", &json!({ "agent_id": "ui" })).unwrap();
    assert_eq!(events(&stage, "redo").pop().unwrap()["id"], redone["event_id"]);
    assert_eq!(look(&shop), after);

    // The undo's own writes are nobody's.
    port.prompt("ui", "write src/ui/app.ts last");
    let files = || {
        let mut files = events(&stage, "file");
        files.retain(|event| event["payload"]["path"] == "src/ui/app.ts");
        files
    };
    eventually("the last write is in the journal", || files().len() > 1);
    let causes: Vec<_> = files().iter().map(|it| it["payload"]["cause"].clone()).collect();
    assert_eq!(causes, ["agent", "agent"]);
}

#[test]
fn an_undo_is_refused_in_a_turn_and_over_a_clash() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "write src/ui/app.ts changed");
    let turn = port.begin_waiting("ui");
    let busy = stage.run(&["undo", "ui"]);
    assert_eq!(busy.code, 1);
    assert!(busy.stderr.contains("is in a turn"), "{busy:?}");
    port.call("cancel", &json!({ "agent_id": "ui" })).unwrap();
    port.answer(turn).unwrap();

    stage.file("shop/src/ui/app.ts", "a person's\n");
    let clash = stage.run(&["undo", "ui"]);
    assert_eq!((clash.code, clash.stdout.as_str()), (1, ""));
    assert!(clash.stderr.contains("src/ui/app.ts: "), "{clash:?}");
    assert_eq!(stage.read("shop/src/ui/app.ts"), "a person's\n");
    assert_eq!(stage.run(&["undo", "ui", "--force"]).code, 0);
    assert_eq!(stage.read("shop/src/ui/app.ts"), "ui\n");
    assert_eq!(stage.run(&["redo"]).code, 0);
    assert_eq!(stage.read("shop/src/ui/app.ts"), "a person's\n");
    let token = port.call("undo", &json!({ "agent_id": "nobody" })).unwrap_err();
    assert_eq!(token["code"], 404);
}

#[test]
fn a_team_that_is_gone_can_be_undone() {
    let stage = Stage::new();
    let before = look(&stage.path("shop"));
    let team = stage.team("", vec![agent("ui").zone("src/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "write src/ui/app.ts changed");
    let after = look(&stage.path("shop"));
    drop(port);
    team.stop();
    let preview = stage.run(&["undo", "ui", "--turn", "0", "--dry-run", "--json"]);
    let preview: Value = serde_json::from_str(&preview.stdout).unwrap();
    assert_eq!((&preview["refused"], &preview["event_id"]), (&json!(null), &json!(null)));
    assert_eq!(look(&stage.path("shop")), after);
    assert_eq!(stage.run(&["undo", "ui", "--turn", "0"]).code, 0);
    assert_eq!(look(&stage.path("shop")), before);
    assert_eq!(stage.run(&["redo", "ui"]).code, 0);
    assert_eq!(look(&stage.path("shop")), after);
}

/// A workspace in which an agent rewrote, made and removed files, with the journal of that.
struct Scene {
    stage: Stage,
    before: BTreeMap<PathBuf, (u32, Vec<u8>)>,
    after: BTreeMap<PathBuf, (u32, Vec<u8>)>,
}

const FILES: usize = 200;

impl Scene {
    fn new() -> Self {
        let stage = Stage::new();
        let state_of = |text: &str| {
            json!({
                "hash": hash_of(text.as_bytes()), "size": text.len(), "mode": 0o644,
                "kind": "file", "stored": true,
            })
        };
        let folder = json!({
            "hash": null, "size": 0, "mode": 0o755, "kind": "folder", "stored": true,
        });
        let mut changes = vec![("made".to_owned(), Value::Null, folder, Vec::new())];
        fs::create_dir(stage.path("work")).unwrap();
        for n in 0..FILES {
            let (old, new) = (format!("old {n}\n"), format!("new {n}\n"));
            let contents = vec![old.clone().into_bytes(), new.clone().into_bytes()];
            let (path, before, after) = match n % 3 {
                0 => (format!("f{n}"), state_of(&old), state_of(&new)),
                1 => (format!("made/f{n}"), Value::Null, state_of(&new)),
                _ => (format!("f{n}"), state_of(&old), Value::Null),
            };
            if !before.is_null() {
                stage.file(&format!("work/{path}"), &old);
            }
            changes.push((path, before, after, contents));
        }
        let before = look(&stage.path("work"));
        fs::create_dir(stage.path("work/made")).unwrap();
        for (path, _, after, contents) in &changes {
            match contents.last() {
                Some(content) if !after.is_null() => {
                    fs::write(stage.path("work").join(path), content).unwrap();
                }
                Some(_) => fs::remove_file(stage.path("work").join(path)).unwrap(),
                None => {}
            }
        }
        let scene = Self { before, after: look(&stage.path("work")), stage };
        scene.record(changes);
        scene
    }

    fn record(&self, changes: Vec<(String, Value, Value, Vec<Vec<u8>>)>) {
        let event = |(path, before, after, contents): (String, Value, Value, Vec<Vec<u8>>)| {
            let kind = match (before.is_null(), after.is_null()) {
                (true, _) => EventType::FILE_CREATE,
                (_, true) => EventType::FILE_DELETE,
                _ => EventType::FILE_WRITE,
            };
            let payload = json!({
                "path": path, "before": before, "after": after, "cause": "agent",
                "restorable": true,
            });
            let place = Place::Agent(AgentId::new("ui"));
            let blobs = contents.into_iter().map(Blob::new).collect();
            NewEvent::new(place, kind, &payload).with(blobs)
        };
        let settings = Settings {
            team: "work".to_owned(),
            path: self.stage.path("journal.db"),
            keep: Keep::default(),
            quotas: None,
        };
        let events = changes.into_iter().map(event).collect();
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let journal = journal::open(settings).await.unwrap();
            journal.append_all(events).await.unwrap();
        });
        eventually("the journal is closed", || self.run("undo", &["--dry-run"]).status.success());
    }

    fn command(&self, command: &str, args: &[&str]) -> Command {
        let (journal, work) = (self.stage.path("journal.db"), self.stage.path("work"));
        let mut line = vec![command];
        line.extend(if command == "undo" { &["ui"][..] } else { &[] });
        line.extend(["--file", journal.to_str().unwrap(), "--cwd", work.to_str().unwrap()]);
        line.extend(args);
        let mut command = self.stage.eisen_core(&line);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    fn run(&self, command: &str, args: &[&str]) -> std::process::Output {
        self.command(command, args).output().unwrap()
    }
}

#[test]
fn an_undo_that_is_killed_is_finished_or_taken_back() {
    const ROUNDS: u64 = 30;
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let scene = Scene::new();
    let work = scene.stage.path("work");
    let started = Instant::now();
    assert!(scene.run("undo", &[]).status.success());
    let whole = started.elapsed();
    assert_eq!(look(&work), scene.before);
    let mut half = 0;
    for round in 0..ROUNDS {
        let (command, is) =
            if round % 2 == 0 { ("redo", &scene.after) } else { ("undo", &scene.before) };
        let mut killed = scene.command(command, &[]).spawn().unwrap();
        let after = whole.mul_f64(random.f64() * 1.2);
        let until = Instant::now() + after;
        while Instant::now() < until && killed.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        let _ = killed.kill();
        killed.wait().unwrap();
        let left = scene.stage.path("journal.db.undo").exists();
        half += u32::from(left);
        // What is next done begins with what is left.
        let ended = scene.run(command, &[]);
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        let now = look(&work);
        assert!(now == *is, "round {round}: {said}");
        assert!(!scene.stage.path("journal.db.undo").exists(), "round {round}");
    }
    println!("{half} of {ROUNDS} were killed half-way");
    assert!(half > 0, "none of {ROUNDS} was killed half-way");
}

#[test]
fn a_rewind_takes_back_the_files_too_in_a_team_that_runs_and_in_one_that_is_gone() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "write src/ui/app.ts one");
    port.prompt("ui", "write src/ui/app.ts two");
    port.prompt("ui", "write src/ui/new.ts three");
    let turn_end = |turn: u64| {
        let found = || events(&stage, "turn.end").into_iter().find(|it| it["turn"] == turn);
        eventually("the turn is in the journal", || found().is_some());
        found().unwrap()["id"].as_str().unwrap().to_owned()
    };
    let to = turn_end(1);
    let rewind = |to: &str| stage.run(&["rewind", "ui/ui-s1", "--to", to, "--files"]);
    let done = rewind(&to);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(stage.read("shop/src/ui/app.ts"), "two");
    assert!(!stage.has("shop/src/ui/new.ts"));
    let to = turn_end(0);
    stage.file("shop/src/ui/app.ts", "a person's");
    let refused = rewind(&to);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_eq!(events(&stage, "session.rewind").len(), 1);
    stage.file("shop/src/ui/app.ts", "two");
    drop(port);
    team.stop();
    let done = rewind(&to);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(stage.read("shop/src/ui/app.ts"), "one");
    let rewinds = events(&stage, "session.rewind");
    assert_eq!(rewinds[1]["payload"]["files"], true);
}
