//! Runs that agents start: children of the run or the agent that asks, as the kernel and the port see
//! it, in its zone, bounded, and ended with it.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{EISEN_CORE, Ended, Port, Stage, agent, eventually, program, run};

/// An agent whose prompt is a line for a shell.
const SCRIPT: &str = r#"
[agent]
name = "one"
[[on]]
regex = '^hang$'
steps = [{ say = "So far." }, { wait = "cancel" }]
[[on]]
regex = '^say '
steps = [{ say = "{prompt}" }]
[[on]]
regex = '(?s)^(?<line>.*)$'
steps = [{ run = "{line}", on_ok = [{ say = "{last}" }], on_error = [{ say = "failed: {error}" }] }]
"#;

/// A stage whose workspace is a git repository.
fn repository() -> Stage {
    let stage = Stage::new();
    let made = program("git").args(["init", "-q"]).arg(stage.path("shop")).status().unwrap();
    assert!(made.success());
    stage.with_any_memory();
    stage.file("one.toml", SCRIPT);
    stage
}

/// A run whose last argument is its prompt, in which `eisen-core` is the program under test.
fn command(stage: &Stage, args: &[&str]) -> Command {
    let args: Vec<_> = args.iter().map(|arg| arg.replace("eisen-core", EISEN_CORE)).collect();
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let script = stage.path("one.toml").display().to_string();
    let agent = ["--", EISEN_CORE, "scripted-agent", &script];
    let mut command = stage.eisen_core(&[&["run"], &args[..], &agent].concat());
    command.current_dir(stage.path("shop"));
    command
}

fn run_agent(stage: &Stage, args: &[&str]) -> Ended {
    run(&mut command(stage, args))
}

/// All runs, oldest first.
fn runs(stage: &Stage) -> Vec<Value> {
    serde_json::from_str(&stage.run(&["runs", "--all", "--json"]).stdout).unwrap()
}

fn one(stage: &Stage, id: &str) -> Value {
    runs(stage).into_iter().find(|run| run["id"] == id).unwrap()
}

/// What an agent of the team `shop` gets from a line.
fn line(port: &mut Port, agent: &str, line: &str) -> String {
    let line = line.replace("eisen-core", EISEN_CORE);
    port.prompt(agent, &format!("run {line}"))
}

#[test]
fn a_run_of_an_agent_of_a_run_is_its_child_whatever_it_says_of_itself() {
    let stage = repository();
    for forged in ["", "EISEN_DEPTH=0 EISEN_RUN=01M8 EISEN_PARENT=shop/api EISEN_TEAM=other "] {
        let inner = format!("{forged}eisen-core run --json --budget minutes=30 'say I am inside'");
        let ended = run_agent(&stage, &["--json", &inner]);
        let outer: Value = serde_json::from_str(&ended.stdout).unwrap();
        let told = outer["text"].as_str().unwrap();
        let inner: Value = serde_json::from_str(told).unwrap_or_else(|_| panic!("{outer}"));
        assert_eq!(
            (&inner["status"], &inner["text"]),
            (&json!("succeeded"), &json!("say I am inside"))
        );
        let (outer, inner) = (outer["id"].as_str().unwrap(), inner["id"].as_str().unwrap());
        let (above, below) = (one(&stage, outer), one(&stage, inner));
        assert_eq!((&above["parent"], &above["depth"]), (&Value::Null, &json!(0)));
        assert_eq!((&below["parent"], &below["depth"]), (&json!(outer), &json!(1)));
        assert_eq!(below["team"], format!("run-{outer}"));
        // Its answer is kept as any other's.
        let result = stage.run(&["result", inner]);
        assert_eq!((result.code, &*result.stdout), (0, "say I am inside\n"));
        let tree = stage.run(&["runs", "--all", "--tree"]).stdout;
        let lines: Vec<_> = tree.lines().collect();
        let at = lines.iter().position(|line| line.starts_with(outer)).unwrap();
        assert!(lines[at + 1].starts_with(&format!("  {inner}")), "{tree}");
    }
}

#[test]
fn without_the_variables_an_agents_process_starts_nothing() {
    let stage = repository();
    for stripped in [
        "env -u EISEN_TOKEN",
        "env -i PATH=\"$PATH\"",
        "env -u EISEN_TOKEN EISEN_DIR=/tmp/x setsid -w",
    ] {
        for args in [
            "run 'say hi'",
            "run --detach 'say hi'",
            "runs",
            "run --prepared 01M8CH144YK5GV0MWJCEK65NDH",
        ] {
            let inner = format!("{stripped} eisen-core {args} 2>&1; echo \"exit $?\"");
            let told = run_agent(&stage, &[&inner]).stdout;
            assert!(told.trim_end().ends_with("exit 2"), "{inner}: {told}");
        }
    }
    assert!(runs(&stage).iter().all(|run| run["depth"] == 0 && run["parent"].is_null()));
    // Outside of agents a variable makes nothing deeper.
    let told = run(command(&stage, &["--json", "say hi"]).env("EISEN_DEPTH", "4"));
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(one(&stage, told["id"].as_str().unwrap())["depth"], 0);
}

#[test]
fn what_is_too_deep_is_refused_with_the_chain() {
    let stage = repository();
    let mut inner = "eisen-core run \"say bottom\" 2>&1; true".to_owned();
    for _ in 0..3 {
        inner = format!("eisen-core run {inner:?} 2>&1");
    }
    let told = run_agent(&stage, &[&inner]).stdout;
    let mut ids: Vec<_> =
        runs(&stage).iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 4, "{told}");
    ids.reverse();
    let chain =
        format!("too deep: {} (you) ← {}; `[team] max_depth` is 3", ids[0], ids[1..].join(" ← "));
    assert!(told.contains(&chain), "{chain}: {told}");
}

#[test]
fn an_agents_run_is_in_its_zone_and_named_after_it() {
    let stage = Stage::new();
    let team = stage.team(
        "max_depth = 1\n",
        vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**")],
    );
    let mut port = team.steer_when_ready(&["ui", "api"]);
    // In a script: no terminal is opened for a command that names paths outside the zone.
    let mut asks = |zone: &str, prompt: &str| {
        let ask = format!("{EISEN_CORE} run --zone '{zone}' '{prompt}' 2>&1; echo \"exit $?\"\n");
        stage.file("shop/src/ui/ask.sh", &ask);
        port.prompt("ui", "run sh src/ui/ask.sh")
    };
    let told = asks("src/**", "write src/api/cart.rs x");
    assert!(told.contains("cut to that of the agent") && told.contains("src/ui/**"), "{told}");
    assert!(told.contains("refused"), "{told}");
    assert_eq!(stage.read("shop/src/api/cart.rs"), "api\n");
    let told = asks("src/api/**", "read x");
    assert!(
        told.contains("within the zone of `ui`") && told.trim_end().ends_with("exit 2"),
        "{told}"
    );

    let all = runs(&stage);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(
        (&all[0]["parent"], &all[0]["depth"], &all[0]["team"]),
        (&json!("shop/ui"), &json!(1), &json!("shop"))
    );
    let id = all[0]["id"].as_str().unwrap();
    let tree = stage.run(&["runs", "--tree"]).stdout;
    let lines: Vec<_> = tree.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("shop/ui")).unwrap();
    assert!(lines[at + 1].starts_with(&format!("  {id}")), "{tree}");

    // Others of the team can't ask for it.
    let ask = format!("eisen-core result {id} 2>/dev/null; echo \"exit $?\"");
    assert!(line(&mut port, "ui", &ask).contains("refused"));
    assert_eq!(line(&mut port, "api", &ask).trim(), "exit 2");
    let listed = "eisen-core runs --json 2>/dev/null";
    let own: Vec<Value> = serde_json::from_str(&line(&mut port, "ui", listed)).unwrap();
    assert_eq!(own.len(), 1, "{own:?}");
    assert_eq!(own[0]["blocked"][0]["path"], "src/api/cart.rs", "{own:?}");
    assert_eq!(line(&mut port, "api", listed).trim(), "[]");

    let deep = "eisen-core run \"run eisen-core run x 2>&1; true\" 2>&1";
    let told = line(&mut port, "ui", deep);
    assert!(told.contains("← shop/ui; `[team] max_depth` is 1"), "{told}");
}

#[test]
fn a_run_is_ended_without_its_team_and_with_what_started_it() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let mut detached = || {
        let told = line(&mut port, "ui", "eisen-core run --detach 'run sleep 600' 2>/dev/null");
        told.trim().to_owned()
    };
    let (first, second) = (detached(), detached());
    assert_eq!(one(&stage, &first)["status"], "running");
    assert_eq!(stage.run(&["result", &first]).code, 1);
    assert_eq!(stage.run(&["kill", &first]).code, 0);
    for _ in 0..2 {
        assert_eq!(stage.run(&["wait", &first]).code, 137);
    }
    assert_eq!(one(&stage, &first)["status"], "killed");
    assert_eq!(one(&stage, &second)["status"], "running");
    assert_eq!(port.prompt("ui", "run echo still here"), "still here\n");
    // By the agent that started it.
    assert_eq!(line(&mut port, "ui", &format!("eisen-core kill {second}; echo $?")), "0\n");
    assert_eq!(line(&mut port, "ui", &format!("eisen-core wait {second}; echo $?")), "137\n");

    // A command that is killed leaves no run behind.
    line(&mut port, "ui", "timeout -s KILL 2 eisen-core run 'run sleep 600'; true");
    let third = runs(&stage).pop().unwrap()["id"].as_str().unwrap().to_owned();
    eventually("the run ends with its command", || one(&stage, &third)["status"] == "killed");

    let told = line(&mut port, "ui", "eisen-core run --detach 'run sleep 600' 2>/dev/null");
    port.call("stop_agent", &json!({ "agent_id": "ui" })).unwrap();
    assert_eq!(stage.run(&["wait", told.trim()]).code, 137);
    assert_eq!(team.stop().code, 0);
}

/// A script whose agent knows what it is told; anything else is a line for a shell.
fn answering(on: &str) -> String {
    SCRIPT.replacen("[[on]]", &format!("{on}\n[[on]]"), 1)
}

#[test]
fn files_and_a_schema_go_with_an_agents_run() {
    let stage = repository();
    let on = r#"
[[on]]
regex = '(?s)^Read:.*Remember the cart'
steps = [{ say = "I do." }]
[[on]]
regex = '^Your last message does not fit'
steps = [{ say = "{\"count\": 2}" }]
[[on]]
regex = '^Count'
steps = [{ say = "{\"count\": \"two\"}" }]
"#;
    stage.file("one.toml", &answering(on));
    stage.file("shop/note.md", "Remember the cart.\n");
    let schema = r#"{"type":"object","properties":{"count":{"type":"integer","maximum":5}}}"#;
    stage.file("shop/count.json", schema);
    stage.file("shop/circle.json", r##"{"$ref":"#"}"##);
    let told = run_agent(&stage, &["eisen-core run --file note.md Read: 2>&1"]).stdout;
    assert!(told.starts_with("I do.\n"), "{told}");
    let told =
        run_agent(&stage, &["eisen-core run --json --schema count.json 'Count' 2>&1"]).stdout;
    let inner: Value = serde_json::from_str(&told).unwrap_or_else(|_| panic!("{told}"));
    assert_eq!((&inner["status"], &inner["text"]), (&json!("succeeded"), &json!("{\"count\": 2}")));

    let started = runs(&stage).len();
    // The supervisor's own folder is none of the agent's.
    for (args, why) in [
        ("--file none.md Read:", "cannot read the file none.md"),
        ("--file \"$EISEN_DIR\"/config.toml Read:", "cannot read the file"),
        ("--schema circle.json Count", "in a circle"),
    ] {
        let told = run_agent(&stage, &[&format!("eisen-core run {args} 2>&1; echo \"exit $?\"")]);
        assert!(told.stdout.contains(why), "{}", told.stdout);
        assert!(told.stdout.trim_end().ends_with("exit 2"), "{}", told.stdout);
    }
    assert_eq!(runs(&stage).len(), started + 3);
}

#[test]
fn an_agents_run_goes_on_with_the_next_candidate_of_its_tier() {
    let stage = repository();
    let first = r#"
[agent]
name = "first"
[[on]]
steps = [{ say = "I begin." }, { fail = "429 Too Many Requests, retry after 300 s" }]
"#;
    let second = r#"
[agent]
name = "second"
[[on]]
prompt = "*I begin.*"
steps = [{ read = "src/api/secret.ts", on_ok = [{ say = "I left." }], on_error = [{ say = "I go on." }] }]
[[on]]
steps = [{ say = "I am new." }]
"#;
    let mut keys = format!(
        "{}[[tiers]]\nname = \"smart\"\ncandidates = [{{ profile = \"first\" }}, {{ profile = \"second\" }}]\n",
        Stage::ANY_MEMORY
    );
    for (name, script) in [("first", first), ("second", second)] {
        stage.file(&format!("{name}.toml"), script);
        let script = stage.path(&format!("{name}.toml")).display().to_string();
        keys = format!(
            "{keys}[profiles.{name}]\ncommand = [\"{EISEN_CORE}\", \"scripted-agent\", \"{script}\"]\n"
        );
    }
    stage.file("home/config.toml", &keys);
    stage.file("shop/src/api/secret.ts", "secret");
    let ask = |options: &str| {
        let line = format!("eisen-core run {options} --zone 'src/ui/**' x 2>&1; true");
        run_agent(&stage, &[&line]).stdout
    };
    let json = |told: String| -> Value {
        serde_json::from_str(&told).unwrap_or_else(|_| panic!("{told}"))
    };
    let moved = json(ask("--json --tier smart"));
    let found = (&moved["status"], &moved["text"], &moved["tier"], &moved["profile"]);
    let want = ["succeeded", "I go on.", "smart", "second"].map(Value::from);
    assert_eq!(found, (&want[0], &want[1], &want[2], &want[3]), "{moved}");
    // The first one is not asked again for a while.
    let next = json(ask("--json --tier smart --no-failover"));
    assert_eq!((&next["text"], &next["profile"]), (&"I am new.".into(), &"second".into()));
    let wrong = ask("--tier best");
    assert!(wrong.contains("there is no tier `best`; there are: smart"), "{wrong}");
    stage.file("home/config.toml", &keys.replace(", { profile = \"second\" }", ""));
    let none = ask("--tier smart");
    assert!(none.contains("can work now: first is rate limited (try again at"), "{none}");
}

#[test]
fn an_agent_goes_on_with_sessions_of_runs_below_it_and_no_others() {
    let stage = repository();
    let says = |name: &str| {
        format!(
            "[agent]\nname = \"{name}\"\nload = []\nfork = true\n[[on]]\nsteps = [{{ say = \"{{prompt}}\" }}]\n"
        )
    };
    stage.file("shop/two.toml", &says("two"));
    // It gives its session the name that the session of the agent above has.
    stage.file("shop/forged.toml", &says("one"));
    // A run of a person has such a session, too.
    let mut own =
        stage.eisen_core(&["run", "secret", "--", EISEN_CORE, "scripted-agent", "two.toml"]);
    assert_eq!(run(own.current_dir(stage.path("shop"))).code, 0);
    let ask = r#"
try() { eisen-core run "$@" 2>&1; echo "exit $?"; }
for session in last two-s1 one-s1 "$EISEN_RUN"; do try --session $session x; try --fork $session x; done > none
eisen-core run --json a -- eisen-core scripted-agent two.toml > a
eisen-core run --json --session last b > b
eisen-core run --json --fork two-s1 c > c
try --session one-s1 x > above
try --session "$EISEN_RUN" x >> above
try --session two-s1 --profile codex x > other
eisen-core run y -- eisen-core scripted-agent forged.toml > y 2>&1
try --session last x > forged
"#;
    stage.file("shop/ask.sh", &ask.replace("eisen-core", EISEN_CORE));
    let told = run_agent(&stage, &["sh ask.sh; echo done"]);
    assert_eq!(told.stdout, "done\n", "{}", told.stderr);
    let read = |name: &str| stage.read(&format!("shop/{name}"));
    let json = |name: &str| -> Value {
        serde_json::from_str(&read(name)).unwrap_or_else(|_| panic!("{name}: {}", read(name)))
    };
    let (a, b, c) = (json("a"), json("b"), json("c"));
    assert_eq!((&a["session_id"], &a["status"]), (&json!("two-s1"), &json!("succeeded")));
    assert_eq!((&b["session_id"], &b["text"]), (&json!("two-s1"), &json!("b")));
    assert_eq!((&c["status"], &c["text"]), (&json!("succeeded"), &json!("c")));
    assert_ne!(c["session_id"], "two-s1");
    let refused = "are not for its runs";
    for (name, why, count) in [
        ("none", refused, 8),
        ("above", refused, 2),
        ("other", "no other agent has it", 1),
        ("forged", "has the session `one-s1` now", 1),
    ] {
        let told = read(name);
        assert_eq!(told.matches(why).count(), count, "{name}: {told}");
        assert_eq!(told.matches("exit 2").count(), count, "{name}: {told}");
    }
    // The person's, the agent's, and those that were not refused.
    assert_eq!(runs(&stage).len(), 6);
}

#[test]
fn killing_a_run_ends_all_below_it_and_its_end_too() {
    let stage = repository();
    let below = "id=$(eisen-core run --detach hang 2>/dev/null); eisen-core run hang; echo $id";
    let id = run_agent(&stage, &["--detach", below]).stdout.trim().to_owned();
    eventually("both are there", || runs(&stage).len() == 3);
    assert_eq!(stage.run(&["kill", "--tree", &id]).code, 0);
    let statuses: Vec<_> = runs(&stage).iter().map(|run| run["status"].clone()).collect();
    assert_eq!(statuses, ["killed", "killed", "killed"]);

    // What goes on in the background ends with the turn that started it.
    let ended = run_agent(&stage, &["--json", "eisen-core run --detach hang 2>/dev/null"]);
    let ended: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(ended["status"], "succeeded");
    let left = one(&stage, ended["text"].as_str().unwrap());
    assert_eq!((&left["status"], &left["exit_code"]), (&json!("killed"), &json!(137)));
}

#[test]
fn a_run_whose_supervisor_is_killed_is_lost() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let told = line(&mut port, "ui", "eisen-core run --detach 'run sleep 600' 2>/dev/null");
    team.program.signal(nix::sys::signal::Signal::SIGKILL);
    team.program.wait();
    assert_eq!(stage.run(&["wait", told.trim()]).code, 1);
    assert_eq!(one(&stage, told.trim())["status"], "lost");
}
