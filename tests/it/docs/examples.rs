//! The programs in `examples/` do what they say.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::json;

use crate::harness::{Program, Stage, agent, program, run};

#[test]
fn the_subscriber_allows_by_its_rules() {
    if program("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let stage = Stage::new();
    let team =
        stage.team("[orchestrator]\non_block = \"hold\"", vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let mut subscriber = program("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/subscriber.py"))
        .args(["--port", &team.program.port.to_string()])
        .args(["--resolve", "--allow", "src/{api,db}/**"])
        .env("EISEN_TOKEN", team.token())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();

    let prompt = port.begin("ui", "read src/api/cart.rs");
    let pending = port.blocked("pending");
    assert_eq!(port.blocked("allowed")["id"], pending["id"]);
    assert_eq!(port.said(prompt), "got api\n");

    team.stop();
    assert!(subscriber.wait().unwrap().success());
}

/// The concepts show what it did; what only depends on the run is left out of the comparison.
#[test]
#[cfg(target_os = "linux")]
fn an_agent_that_is_a_shell_is_stopped_as_the_concepts_have_it() {
    let concepts = include_str!("../../../docs/concepts.md");
    let (_, section) = concepts.split_once("## An example").unwrap();
    let (section, _) = section.split_once("## Hold and grant").unwrap();
    let blocks: Vec<&str> = section.split("```text\n").skip(1).collect();
    let [decisions, console, log] = blocks[..] else { panic!("{} blocks", blocks.len()) };
    let lines = |block: &str| -> Vec<String> {
        block.lines().take_while(|line| *line != "```").map(str::to_owned).collect()
    };

    let stage = Stage::new();
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/config/shell.toml");
    let team = Program::start(&mut stage.eisen_core(&["up", "--port", "0", "-c", config]));
    let mut port = team.connect();
    for (id, said) in ["b1", "b2"].iter().zip(lines(decisions).chunks(2)) {
        port.expect(&json!({"type": "blocked", "id": id, "status": "pending"}));
        let words: Vec<&str> = said[0].strip_prefix("$ eisen-core ").unwrap().split(' ').collect();
        assert_eq!(run(&mut stage.eisen_core(&words)).stdout.trim_end(), said[1]);
    }
    port.expect(&json!({"type": "blocked", "path": "src/api", "sweep": 3}));
    let mut logged: Vec<String> = run(&mut stage.eisen_core(&["logs", "--raw", "ui"]))
        .stdout
        .lines()
        .map(str::to_owned)
        .collect();
    team.signal(Signal::SIGINT);
    let ended = team.wait();

    let event = |line: &String| line.split_once("s  ").map(|(_, event)| event.to_owned());
    // Where PATH does not lead to the program, it is called by its path.
    let stdout = ended.stdout.replace(crate::harness::EISEN_CORE, "eisen-core");
    let mut shown: Vec<_> = stdout.lines().map(str::to_owned).collect();
    shown.retain(|line| lines(console).iter().any(|reported| event(reported) == event(line)));
    let events = |lines: &[String]| lines.iter().map(event).collect::<Vec<_>>();
    assert_eq!(events(&shown), events(&lines(console)), "{}", ended.stdout);
    // Folders have their entries in any order.
    let mut reported = lines(log);
    logged.sort();
    reported.sort();
    assert_eq!(logged, reported);
}

/// One of the examples of the crates, which `cargo test --workspace` builds.
fn example(name: &str) -> Command {
    let programs = Path::new(env!("CARGO_BIN_EXE_eisen-core")).parent().unwrap();
    Command::new(programs.join("examples").join(name))
}

#[test]
#[cfg(target_os = "linux")]
fn a_sandbox_says_what_a_program_was_denied_beside_its_folder() {
    let place = tempfile::tempdir().unwrap();
    let (folder, secret) = (place.path().join("work"), place.path().join("secret"));
    fs::create_dir(&folder).unwrap();
    fs::write(&secret, "secret").unwrap();
    let script = "echo inside >here; cat ../secret; echo x >../made; cat here";
    let ended = run(example("confine").arg(&folder).args(["sh", "-c", script]));
    assert!(ended.stdout.contains("inside\n") && !ended.stdout.contains("secret\nx"), "{ended:?}");
    for (action, name) in [("read", "secret"), ("write", "made")] {
        let denied = format!("denied: {action} {} (", place.path().join(name).display());
        assert!(ended.stdout.contains(&denied), "{ended:?}");
    }
    assert_eq!(fs::read_to_string(folder.join("here")).unwrap(), "inside\n");
    assert!(!place.path().join("made").exists());
}

#[test]
fn the_calls_of_a_file_are_printed() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("a.py"), "def one():\n    two()\n\ndef two():\n    pass\n")
        .unwrap();
    let ended = run(example("calls").arg(place.path()).arg("a.py"));
    assert_eq!(ended.stdout, "1 files read, 1 calls found\na.py::one calls a.py::two\n");
}

#[test]
fn what_a_program_changed_in_a_folder_is_shown_and_taken_back() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir(path("sub")).unwrap();
    for (name, text) in [("changed", "one\n"), ("gone", "x\n"), ("sub/deep", "deep\n")] {
        fs::write(path(name), text).unwrap();
    }
    let script = "echo two >>changed; rm gone; rm -r sub; mkdir -p new/er; echo n >new/er/file; ln -s changed link";
    let ended = run(example("undo").arg(place.path()).args(["sh", "-c", script]));
    for said in
        ["+++ b/changed\n@@ -1 +1,2 @@\n one\n+two\n", "deleted file mode", "+++ b/new/er/file"]
    {
        assert!(ended.stdout.contains(said), "{said}: {ended:?}");
    }
    for (name, text) in [("changed", "one\n"), ("gone", "x\n"), ("sub/deep", "deep\n")] {
        assert_eq!(fs::read_to_string(path(name)).unwrap(), text, "{name}");
    }
    assert!(!path("new").exists() && path("link").symlink_metadata().is_err(), "{ended:?}");
}

#[test]
fn a_program_that_changed_nothing_leaves_nothing_to_take_back() {
    let place = tempfile::tempdir().unwrap();
    let ended = run(example("undo").arg(place.path()).arg("true"));
    assert_eq!(ended.stdout, "0 paths are as they were\n");
}
