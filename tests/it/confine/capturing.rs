//! The journal's events of what agents wrote: exact, and each of who did it.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::harness::{Port, Stage, Team, agent, eventually};

/// The file events of a journal, in order, and the contents that they name.
struct Changes {
    events: Vec<Value>,
    contents: HashMap<String, Vec<u8>>,
}

impl Changes {
    /// Of a team that has stopped.
    fn of(stage: &Stage) -> Self {
        let exported = stage.run(&["export"]);
        assert_eq!(exported.code, 0, "{}", exported.stderr);
        let (mut events, mut contents) = (Vec::new(), HashMap::new());
        for line in exported.stdout.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            if let Some(content) = line.get("content") {
                let data = STANDARD.decode(content["data"].as_str().unwrap()).unwrap();
                contents.insert(content["hash"].as_str().unwrap().to_owned(), data);
            }
            let kind = line["event"]["type"].as_str().unwrap_or_default();
            if kind.starts_with("file.") && kind != "file.read" {
                events.push(line["event"].clone());
            }
        }
        Self { events, contents }
    }

    /// The changes of a turn as lines: what was done to what, and what was there before and after.
    fn of_turn(&self, turn: u64) -> Vec<String> {
        let of_turn = self.events.iter().filter(|event| event["turn"] == turn);
        of_turn.map(|event| self.line(event)).collect()
    }

    /// What a turn changed in all, by path. A slow machine may show more of the way to it.
    fn net(&self, turn: u64) -> Vec<String> {
        let mut paths: BTreeMap<&str, (String, String)> = BTreeMap::new();
        let mut moves = Vec::new();
        for event in self.events.iter().filter(|event| event["turn"] == turn) {
            let payload = &event["payload"];
            let [before, after] = ["before", "after"].map(|name| self.state(&payload[name]));
            let path = payload["path"].as_str().unwrap();
            let none = || "none".to_owned();
            let mut step = |path, before, after: String| {
                let all = paths.entry(path).or_insert_with(|| (before, none()));
                all.1 = after;
            };
            if let Some(from) = payload["from"].as_str() {
                moves.push((from, path));
                step(from, before, none());
                step(path, none(), after);
            } else {
                step(path, before, after);
            }
        }
        let mut lines = Vec::new();
        let states = paths.clone();
        for (path, (before, after)) in &states {
            let from = moves.iter().find(|(_, to)| to == path && before == "none");
            let from =
                from.filter(|(from, _)| states[from].1 == "none" && states[from].0 != "none");
            let is_moved = moves
                .iter()
                .any(|(old, to)| old == path && states[to].0 == "none" && states[to].1 != "none");
            if let Some((from, _)) = from {
                lines.push(format!("rename {from} → {path}: {} → {after}", states[from].0));
            } else if before != after && !is_moved {
                let kind = match (before.as_str(), after.as_str()) {
                    ("none", _) => "create",
                    (_, "none") => "delete",
                    _ => "write",
                };
                lines.push(format!("{kind} {path}: {before} → {after}"));
            }
        }
        lines
    }

    fn line(&self, event: &Value) -> String {
        let payload = &event["payload"];
        let kind = event["type"].as_str().unwrap().strip_prefix("file.").unwrap();
        let from = payload["from"].as_str().map(|from| format!("{from} → ")).unwrap_or_default();
        let path = payload["path"].as_str().unwrap();
        let [before, after] = ["before", "after"].map(|name| self.state(&payload[name]));
        format!("{kind} {from}{path}: {before} → {after}")
    }

    fn state(&self, state: &Value) -> String {
        if state.is_null() {
            return "none".to_owned();
        }
        let content = state["hash"].as_str().and_then(|hash| self.contents.get(hash));
        assert_eq!(state["stored"], content.is_some() || state["kind"] == "folder", "{state}");
        let content = content.map(|content| String::from_utf8_lossy(content).into_owned());
        let content = content.map_or(String::new(), |text| format!("{text:?}"));
        match state["kind"].as_str().unwrap() {
            "file" if state["mode"] == 0o644 => content,
            kind => format!("{kind} {:o} {content}", state["mode"].as_u64().unwrap()),
        }
    }
}

/// A command of a shell, and the changes that it makes.
const COMMANDS: &[(&str, &[&str])] = &[
    ("echo new >a", &[r#"write a: "old\n" → "new\n""#]),
    ("echo more >>a", &[r#"write a: "new\n" → "new\nmore\n""#]),
    ("echo b >made", &[r#"create made: none → "b\n""#]),
    ("sed -i s/more/less/ a", &[r#"write a: "new\nmore\n" → "new\nless\n""#]),
    ("perl -i -pe s/less/least/ a", &[r#"write a: "new\nless\n" → "new\nleast\n""#]),
    ("mv made moved", &[r#"rename made → moved: "b\n" → "b\n""#]),
    ("cp a copy", &[r#"create copy: none → "new\nleast\n""#]),
    ("truncate -s 3 copy", &[r#"write copy: "new\nleast\n" → "new""#]),
    ("rm copy", &[r#"delete copy: "new" → none"#]),
    ("mkdir empty", &["create empty: none → folder 755 "]),
    ("rmdir empty", &["delete empty: folder 755  → none"]),
    ("ln -s a link", &[r#"create link: none → symlink 777 "a""#]),
    ("rm link", &[r#"delete link: symlink 777 "a" → none"#]),
    ("chmod 755 a", &[r#"write a: "new\nleast\n" → file 755 "new\nleast\n""#]),
    ("chmod 644 a", &[r#"write a: file 755 "new\nleast\n" → "new\nleast\n""#]),
    ("mv a A", &[r#"rename a → A: "new\nleast\n" → "new\nleast\n""#]),
    ("mv A a", &[r#"rename A → a: "new\nleast\n" → "new\nleast\n""#]),
    ("ln a hard", &[r#"create hard: none → "new\nleast\n""#]),
    ("rm hard", &[r#"delete hard: "new\nleast\n" → none"#]),
    ("node -e 'require(\"fs\").writeFileSync(\"made\", \"node\")'; rm made", &[]),
    ("node -e 'require(\"fs\").writeFileSync(\"moved\", \"b\\n\")'", &[]),
    // An open for writing that writes nothing is no write, nor is a new time.
    ("exec 3>>a; touch a", &[]),
    ("echo saved >a.tmp.81; mv a.tmp.81 a", &[r#"write a: "new\nleast\n" → "saved\n""#]),
    ("mv a a~; echo vim >a; rm a~", &[r#"write a: "saved\n" → "vim\n""#]),
    ("printf 'o\\r\\n\\357\\273\\277' >crlf", &[r#"create crlf: none → "o\r\n\u{feff}""#]),
    (
        "mkdir d; echo x >d/x; echo y >d/y",
        &[
            "create d: none → folder 755 ",
            r#"create d/x: none → "x\n""#,
            r#"create d/y: none → "y\n""#,
        ],
    ),
    (
        "mv d e",
        &[
            "rename d → e: folder 755  → folder 755 ",
            r#"rename d/x → e/x: "x\n" → "x\n""#,
            r#"rename d/y → e/y: "y\n" → "y\n""#,
        ],
    ),
    (
        "rm -r e",
        &[
            "delete e: folder 755  → none",
            r#"delete e/x: "x\n" → none"#,
            r#"delete e/y: "y\n" → none"#,
        ],
    ),
    (
        "python3 -c 'import mmap; f = open(\"a\", \"r+b\"); m = mmap.mmap(f.fileno(), 0); f.close(); m[0] = 86'",
        &[r#"write a: "vim\n" → "Vim\n""#],
    ),
    (
        "git diff --no-index moved a >p; sed -i s,/a$,/moved, p; git apply p; rm p",
        &[r#"write moved: "b\n" → "Vim\n""#],
    ),
];

fn said(port: &mut Port, line: &str) {
    let said = port.prompt("ui", &format!("run in src/ui: umask 022; {line}"));
    assert!(!said.starts_with("failed"), "{line}: {said}");
}

#[test]
fn whatever_program_writes_each_change_is_exact_and_of_its_turn() {
    let stage = Stage::new();
    stage.file("shop/src/ui/a", "old\n");
    let mode = fs::Permissions::from_mode(0o644);
    fs::set_permissions(stage.path("shop/src/ui/a"), mode).unwrap();
    let team = stage.team("", vec![agent("ui").zone("src/ui/**").with("enforce = \"kernel\"")]);
    let mut port = team.steer_when_ready(&["ui"]);
    for (command, _) in COMMANDS {
        said(&mut port, command);
    }
    drop(port);
    team.stop();

    let changes = Changes::of(&stage);
    for (turn, (command, expected)) in (0..).zip(COMMANDS) {
        let found = changes.net(turn);
        let found: Vec<_> = found.iter().map(|line| line.replace("src/ui/", "")).collect();
        assert_eq!(found, *expected, "{command}");
    }
    for event in &changes.events {
        let payload = &event["payload"];
        let who = (&event["agent_id"], &payload["cause"], &payload["by"], &payload["restorable"]);
        let exact = (&json!("ui"), &json!("agent"), &json!("doorbell"), &json!(true));
        assert_eq!(who, exact, "{event}");
        assert!(event["session_id"].is_string() && payload["pid"].is_u64(), "{event}");
        assert!(payload["tool_call_id"].is_string(), "{event}");
    }
}

/// What an agent starts before it speaks the protocol: a process that has a file open and writes the
/// lines that come through a pipe to it.
fn holding(file: &str) -> String {
    format!(
        "mkfifo {file}.pipe; (exec 5>>{file} 6<>{file}.pipe; while read -r line <&6; do \
         echo \"$line\" >&5; done) >/dev/null 2>&1 </dev/null & until [ -e {file} ]; do :; done; "
    )
}

fn kernel(port: &mut Port, agent: &str, line: &str) {
    let said = port.prompt(agent, &format!("run {line}"));
    assert!(!said.starts_with("failed"), "{line}: {said}");
}

fn stopped(stage: &Stage, port: Port, team: Team) -> Changes {
    drop(port);
    team.stop();
    Changes::of(stage)
}

#[test]
fn what_is_written_through_an_old_descriptor_is_of_the_turn_in_which_it_is() {
    let stage = Stage::new();
    let ui = agent("ui").behind(&holding("src/ui/held")).zone("src/ui/**");
    let team = stage.team("", vec![ui.with("enforce = \"kernel\"")]);
    let mut port = team.steer_when_ready(&["ui"]);
    // The file is older than the first turn.
    eventually("the file has its event", || {
        let made = port.call("list_events", &json!({ "types": ["file.create"] })).unwrap();
        !made["events"].as_array().unwrap().is_empty()
    });
    for word in ["one", "two"] {
        let wait = format!("until grep -q {word} src/ui/held; do :; done");
        kernel(&mut port, "ui", &format!("echo {word} >src/ui/held.pipe; {wait}"));
    }
    let changes = stopped(&stage, port, team);
    assert_eq!(changes.of_turn(0), [r#"write src/ui/held: "" → "one\n""#]);
    assert_eq!(changes.of_turn(1), [r#"write src/ui/held: "one\n" → "one\ntwo\n""#]);
    let made = &changes.events[0];
    assert_eq!(changes.line(made), r#"create src/ui/held: none → """#);
    let of = (&made["agent_id"], &made["session_id"], &made["turn"]);
    assert_eq!(of, (&json!("ui"), &Value::Null, &Value::Null));
}

#[test]
fn two_agents_in_one_file_contest_it() {
    let stage = Stage::new();
    let api = agent("api").behind(&holding("src/ui/log")).zone("src/**");
    let ui = agent("ui").zone("src/ui/**").with("enforce = \"kernel\"");
    let team = stage.team("", vec![ui, api.with("enforce = \"kernel\"")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    kernel(&mut port, "ui", "echo ui >>src/ui/log");
    kernel(&mut port, "ui", "echo alone >src/ui/alone");
    let changes = stopped(&stage, port, team);
    let contested = |turn: u64| {
        let event =
            changes.events.iter().find(|event| event["agent_id"] == "ui" && event["turn"] == turn);
        event.unwrap()["payload"]["contested"].clone()
    };
    assert_eq!(contested(0), json!(["api"]));
    assert_eq!(contested(1), Value::Null);
}

#[test]
fn what_nobody_of_the_team_wrote_is_outside() {
    let stage = Stage::new();
    stage.file("shop/src/ui/a", "old\n");
    let ui = agent("ui").zone("src/ui/**").with("enforce = \"kernel\"");
    let team = stage.team("", vec![ui]);
    let mut port = team.steer_when_ready(&["ui"]);
    kernel(&mut port, "ui", "echo agent >src/ui/a");
    stage.file("shop/src/ui/a", "person\n");
    kernel(&mut port, "ui", "echo again >>src/ui/a");
    let changes = stopped(&stage, port, team);
    let lines: Vec<_> = changes.events.iter().map(|event| changes.line(event)).collect();
    assert_eq!(
        lines,
        [
            r#"write src/ui/a: "old\n" → "agent\n""#,
            r#"write src/ui/a: "agent\n" → "person\n""#,
            r#"write src/ui/a: "person\n" → "person\nagain\n""#,
        ]
    );
    let outside = &changes.events[1];
    let who = (&outside["agent_id"], &outside["turn"], &outside["payload"]["cause"]);
    assert_eq!(who, (&Value::Null, &Value::Null, &json!("outside")));
}

#[test]
fn a_second_name_of_a_file_changes_with_it() {
    let stage = Stage::new();
    stage.file("shop/src/ui/a", "old\n");
    let team = stage.team("", vec![agent("ui").zone("src/ui/**").with("enforce = \"kernel\"")]);
    let mut port = team.steer_when_ready(&["ui"]);
    kernel(&mut port, "ui", "ln src/ui/a src/ui/b");
    kernel(&mut port, "ui", "echo new >src/ui/a");
    let changes = stopped(&stage, port, team);
    let mut both = changes.of_turn(1);
    both.sort();
    assert_eq!(
        both,
        [r#"write src/ui/a: "old\n" → "new\n""#, r#"write src/ui/b: "old\n" → "new\n""#]
    );
}

#[test]
fn without_contents_there_are_hashes_and_reads_are_once_a_turn() {
    let stage = Stage::new();
    stage.file("shop/src/ui/a", "old\n");
    let ui = agent("ui").zone("src/ui/**").with("enforce = \"kernel\"");
    let team = stage.team("[journal]\ncontent = \"metadata\"", vec![ui]);
    let mut port = team.steer_when_ready(&["ui"]);
    kernel(&mut port, "ui", "cat src/ui/a; cat src/ui/a; echo new >src/ui/a");
    let changes = stopped(&stage, port, team);
    let [event] = &changes.events[..] else { panic!("{:?}", changes.events) };
    let hash = blake3::hash(b"old\n").to_hex().to_string();
    assert_eq!(event["payload"]["before"]["hash"], hash);
    assert_eq!(event["payload"]["restorable"], false);
    assert!(changes.contents.is_empty());
    let reads = stage.run(&["history", "--type", "file.read", "--json"]).stdout;
    let reads = reads.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let reads: Vec<_> = reads.filter(|it| it["payload"]["path"] == "src/ui/a").collect();
    assert_eq!(reads.len(), 1, "{reads:?}");
    assert_eq!((&reads[0]["turn"], &reads[0]["payload"]["by"]), (&json!(0), &json!("doorbell")));
}

#[test]
fn what_is_denied_to_anybody_is_neither_read_nor_hashed() {
    let stage = Stage::new();
    stage.file("shop/src/ui/.env", "SESAME\n");
    let ui = agent("ui").zone("src/ui/**").with("enforce = \"kernel\"");
    let api = agent("api").zone("src/api/**").with("denied = [\"**/.env\"]");
    let team = stage.team("", vec![api, ui]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    kernel(&mut port, "ui", "echo SESAME2 >src/ui/.env");
    let changes = stopped(&stage, port, team);
    let [event] = &changes.events[..] else { panic!("{:?}", changes.events) };
    let payload = &event["payload"];
    assert_eq!((&payload["denied"], &payload["restorable"]), (&json!(true), &json!(false)));
    assert_eq!((&payload["before"], &payload["after"]), (&Value::Null, &Value::Null));
    assert!(changes.contents.is_empty());
}

#[test]
fn what_the_client_writes_for_an_agent_is_exact_in_both_tiers() {
    let stage = Stage::new();
    let [ui, api] = ["ui", "api"].map(|id| agent(id).zone(&format!("src/{id}/**")));
    let agents = vec![ui.with("enforce = \"kernel\""), api.with("enforce = \"protocol\"")];
    let team = stage.team("", agents);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    for agent in ["ui", "api"] {
        assert_eq!(port.prompt(agent, &format!("write src/{agent}/new/file fresh")), "written");
        assert_eq!(port.prompt(agent, &format!("write src/{agent}/new/file old")), "written");
    }
    let changes = stopped(&stage, port, team);
    let of = |agent: &str, turn: u64| {
        let events =
            changes.events.iter().filter(|it| it["agent_id"] == agent && it["turn"] == turn);
        let lines = events.map(|event| {
            assert_eq!(event["payload"]["by"], "client_host");
            changes.line(event).replace(&format!("src/{agent}/"), "")
        });
        lines.collect::<Vec<_>>()
    };
    for agent in ["ui", "api"] {
        let made = of(agent, 0);
        assert!(made[0].starts_with("create new: none → folder"), "{made:?}");
        assert!(made[1].starts_with("create new/file: none → "), "{made:?}");
        assert!(made[1].contains("\"fresh\""), "{made:?}");
        assert!(of(agent, 1)[0].starts_with("write new/file"), "{made:?}");
    }
}
