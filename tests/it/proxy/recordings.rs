//! Recorded traffic of real agents, played through `observe` in both directions: forwarded lines, lines
//! that a zone takes out, and the lines of the port.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use expect_test::expect;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::{Peer, Puppet, Stage};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings");

/// Where the recordings have a file that is in no workspace.
const OUTSIDE: &str = "/outside";

type Actions = BTreeMap<String, BTreeSet<String>>;

#[derive(Deserialize)]
struct Truth {
    required: Actions,
    shell: Actions,
    maybe: Actions,
    stop_reasons: Vec<String>,
    last_usage: Value,
    workspace: String,
}

#[derive(Deserialize)]
struct Recorded {
    dir: String,
    line: String,
}

struct Recording {
    name: String,
    lines: Vec<Recorded>,
    truth: Truth,
}

/// What was said and heard on either side, and by the port.
#[derive(Default)]
struct Played {
    by_agent: Vec<String>,
    to_editor: Vec<String>,
    by_editor: Vec<String>,
    to_agent: Vec<String>,
    port: Vec<Value>,
}

fn recordings() -> Vec<Recording> {
    let folder = std::fs::read_dir(CORPUS).unwrap();
    let mut paths: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ndjson"));
    paths.sort();
    assert!(!paths.is_empty());
    paths.iter().map(|path| recording(path)).collect()
}

fn recording(path: &Path) -> Recording {
    let truth = std::fs::read_to_string(path.with_extension("truth.json")).unwrap();
    let lines = std::fs::read_to_string(path).unwrap();
    Recording {
        name: path.file_stem().unwrap().to_string_lossy().into_owned(),
        lines: lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
        truth: serde_json::from_str(&truth).unwrap(),
    }
}

impl Recording {
    /// Plays it in the order in which it was recorded: a direction is silent until all that was
    /// said before in the other has come through.
    fn play(&self, flags: &[&str]) -> Played {
        let stage = Stage::new();
        let known = [&self.truth.required, &self.truth.shell, &self.truth.maybe];
        for path in known.iter().flat_map(|actions| actions.keys()) {
            let name = path.rsplit('/').next().unwrap_or(path);
            if name.len() > 1 && name.contains('.') && !path.starts_with('/') {
                stage.file(&format!("shop/{path}"), "");
            }
        }
        let workspace = stage.path("shop").display().to_string();
        let mut agent = stage.puppet("agent");
        let command = Puppet::command(&stage.path(""), "agent");
        let command: Vec<_> = command.iter().map(String::as_str).collect();
        let args =
            [&["observe", "--port", "0", "--cwd", &workspace], flags, &["--"], &command].concat();
        let mut program = stage.start(&args);
        let mut port = program.connect();
        let mut editor = Peer::of(program.stdin.take().unwrap(), program.stdout.take().unwrap());
        let mut played = Played::default();
        stage.file("outside/secret.txt", "");
        let outside = stage.path("outside").display().to_string();
        let moved = |recorded: &Recorded| {
            recorded.line.replace(&self.truth.workspace, &workspace).replace(OUTSIDE, &outside)
        };
        for (number, run) in self.lines.chunk_by(|one, next| one.dir == next.dir).enumerate() {
            let mark = format!(r#"{{"jsonrpc":"2.0","method":"_mark","params":{{"n":{number}}}}}"#);
            let lines: Vec<String> = run.iter().map(moved).collect();
            let text = format!("{}\n{mark}\n", lines.join("\n"));
            let (from, to): (&mut Peer, &mut Peer) = if run[0].dir == "up" {
                (&mut editor, &mut agent)
            } else {
                (&mut agent, &mut editor)
            };
            let (said, heard) = if run[0].dir == "up" {
                (&mut played.by_editor, &mut played.to_agent)
            } else {
                (&mut played.by_agent, &mut played.to_editor)
            };
            from.send_raw(text.as_bytes());
            said.extend(lines);
            loop {
                let line = to.expect_raw(|_| true);
                if line == mark {
                    break;
                }
                heard.push(line);
            }
        }
        // A request that never came to the editor is answered, and that may come late.
        let taken_out = missing(&played.by_agent, &played.to_editor);
        let asks = |line: &&Value| line.get("method").is_some() && line.get("id").is_some();
        let answers = taken_out.iter().filter(asks).count();
        while played.to_agent.len() < played.by_editor.len() + answers {
            played.to_agent.push(agent.expect_raw(|_| true));
        }
        for stop_reason in &self.truth.stop_reasons {
            port.expect(&json!({"type": "turn", "stop_reason": stop_reason}));
        }
        editor.close();
        agent.close();
        port.until_end();
        program.wait();
        let port = json!(port.transcript).to_string().replace(&outside, OUTSIDE);
        played.port = serde_json::from_str(&port).unwrap();
        played
    }

    /// What the port said differently from what happened.
    fn differences(&self, port: &[Value]) -> Vec<String> {
        let of = |kind: &'static str| port.iter().filter(move |line| line["type"] == kind);
        let snapshots = of("snapshot").flat_map(|line| line["nodes"].as_object().unwrap().values());
        let deltas = of("delta").flat_map(|line| line["updates"].as_array().unwrap());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let mut found = Actions::new();
        for node in snapshots.chain(deltas) {
            found.entry(text(&node["path"])).or_default().insert(text(&node["last_action"]));
        }
        let known = [&self.truth.required, &self.truth.shell];
        let missed = known.iter().flat_map(|actions| actions.keys());
        let missed =
            missed.filter(|path| !found.contains_key(*path)).map(|it| format!("missed {it}"));
        let maybe = &[&self.truth.maybe];
        let is_true = |path: &String, action: &String| {
            let mut all = known.iter().chain(maybe);
            all.any(|actions| actions.get(path).is_some_and(|actions| actions.contains(action)))
        };
        let pairs = found.iter().flat_map(|(path, all)| all.iter().map(move |one| (path, one)));
        let reported_falsely = pairs.filter(|(path, action)| !is_true(path, action));
        let reported_falsely =
            reported_falsely.map(|(path, action)| format!("false: {action} {path}"));
        let mut differences: Vec<String> = missed.chain(reported_falsely).collect();
        let stops: Vec<_> = of("turn").map(|line| text(&line["stop_reason"])).collect();
        if stops != self.truth.stop_reasons {
            differences.push(format!("stop reasons {stops:?}"));
        }
        // A line without it has what was spent alone.
        let usage = of("usage").rfind(|usage| !usage["used"].is_null()).map_or(
            Value::Null,
            |usage| json!({"used": usage["used"], "size": usage["size"], "cost": usage["cost"]}),
        );
        if usage != self.truth.last_usage {
            differences.push(format!("usage {usage}"));
        }
        differences.into_iter().map(|it| format!("{}: {it}", self.name)).collect()
    }
}

/// The messages of `all` that are not among `some`, whose order is the same.
fn missing(all: &[String], some: &[String]) -> Vec<Value> {
    let mut some = some.iter().peekable();
    let missing = all.iter().filter(|line| some.next_if_eq(line).is_none());
    let missing = missing.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(some.next(), None, "a line that nobody said, or not in this place");
    missing
}

#[test]
fn what_needs_no_verdict_passes_as_it_was_recorded_and_is_reported_as_it_happened() {
    // A zone that all that was asked for is in.
    let wide: &[&str] = &["--zone", "**", "--zone", "/**"];
    for recording in recordings() {
        for flags in [&[], wide] {
            let played = recording.play(flags);
            assert!(played.to_editor == played.by_agent, "{} {flags:?}", recording.name);
            assert!(played.to_agent == played.by_editor, "{} {flags:?}", recording.name);
            assert_eq!(recording.differences(&played.port), Vec::<String>::new(), "{flags:?}");
        }
    }
}

#[test]
fn a_zone_takes_out_what_is_outside_of_it_and_nothing_else() {
    let recordings = recordings();
    let mut taken_out = String::new();
    for recording in &recordings {
        let played = recording.play(&["--zone", "**", "--deny", "core/**"]);
        let mut answers = missing(&played.to_agent, &played.by_editor);
        // An access that is done all the same is reported again.
        let mut ids = BTreeSet::new();
        let denied = played.port.iter().filter(|line| line["status"] == "denied");
        let mut denied = denied
            .filter(|line| ids.insert(line["id"].to_string()))
            .map(|line| format!("{} {}", line["action"], line["path"]));
        for request in missing(&played.by_agent, &played.to_editor) {
            let answer = answers.iter().position(|answer| answer["id"] == request["id"]);
            let answer = answers.remove(answer.unwrap_or_else(|| panic!("no answer to {request}")));
            let refused = match answer["error"]["code"].as_i64() {
                Some(-32001) => "refused",
                None if answer["result"]["outcome"].is_object() => "rejected",
                _ => panic!("{answer} to {request}"),
            };
            let what = denied.next().unwrap().replace('"', "");
            let method = request["method"].as_str().unwrap();
            writeln!(taken_out, "{}: {method}, {what}: {refused}", recording.name).unwrap();
        }
        assert_eq!((answers.len(), denied.next()), (0, None), "{}", recording.name);
    }
    expect![[r#"
        acpx-opencode: session/request_permission, read core/auth.rs: rejected
        acpx-opencode: session/request_permission, read /outside/secret.txt: rejected
        acpx-opencode: session/request_permission, write core/injected.py: rejected
        acpx-opencode: fs/write_text_file, write core/injected.py: refused
        claude-code-acp: session/request_permission, read core/auth.rs: rejected
        claude-code-acp: terminal/create, read core/auth.rs: refused
        claude-code-acp: fs/read_text_file, read core/auth.rs: refused
        claude-code-acp: fs/read_text_file, read /outside/secret.txt: refused
        claude-code-acp: session/request_permission, write core/injected.py: rejected
        claude-code-acp: fs/write_text_file, write core/injected.py: refused
        claude-code-acp: fs/read_text_file, read core/db.py: refused
        codex-acp: session/request_permission, write core/injected.py: rejected
        copilot: session/request_permission, read core/auth.rs: rejected
        copilot: session/request_permission, write core/injected.py: rejected
        gemini-nofs: session/request_permission, write core/injected.py: rejected
        gemini: fs/read_text_file, read core/injected.py: refused
        gemini: fs/read_text_file, read core/injected.py: refused
        kimi130: session/request_permission, read core/auth.rs: rejected
        kimi130: terminal/create, read core/auth.rs: refused
        kimi130: fs/read_text_file, read core/auth.rs: refused
        kimi130: fs/read_text_file, read /outside/secret.txt: refused
        kimi130: session/request_permission, write core/injected.py: rejected
        kimi130: fs/write_text_file, write core/injected.py: refused
        kimi130: fs/read_text_file, read core/db.py: refused
        opencode-errfs: session/request_permission, read core/auth.rs: rejected
        opencode-errfs: session/request_permission, read /outside/secret.txt: rejected
        opencode-errfs: session/request_permission, write core/injected.py: rejected
        opencode-errfs: fs/write_text_file, write core/injected.py: refused
        opencode: session/request_permission, read core/auth.rs: rejected
        opencode: session/request_permission, read /outside/secret.txt: rejected
        opencode: session/request_permission, write core/injected.py: rejected
        opencode: fs/write_text_file, write core/injected.py: refused
        vibe: session/request_permission, read /outside/secret.txt: rejected
    "#]]
    .assert_eq(&taken_out);
}
