//! Runs by a tier: the next candidate takes over where the one before can't work, and is told what it did.

use std::process::Command;

use serde_json::Value;

use crate::harness::{EISEN_CORE, Ended, Stage, program, run};

/// Each acts, and then fails with what its model's service says.
const FAILING: &str = r#"
[agent]
name = "first"
[[on]]
steps = [
  { say = "I begin with the header." },
  { write = "src/ui/new.ts", content = "half of it" },
  { run = "touch src/ui/touched.ts" },
  { fail = "SERVICE" },
]
"#;

const SECOND: &str = r#"
[agent]
name = "second"
[[on]]
prompt = "*I begin with the header*"
steps = [{ disk_read = "src/ui/new.ts", on_ok = [{ say = "I go on with {last}." }], on_error = [{ say = "I begin anew." }] }]
[[on]]
prompt = "Hand-over"
steps = [{ say = "I was told nothing." }]
[[on]]
steps = [{ say = "Done at once." }]
"#;

const LIMITED: &str = "429 Too Many Requests, retry after 300 s";

/// A stage with a git repository, a user's file, and the scripts of the profiles `first` and `second`.
fn stage(service: &str, config: &str) -> Stage {
    let stage = Stage::new();
    let made = program("git").args(["init", "-q"]).arg(stage.path("shop")).status().unwrap();
    assert!(made.success());
    stage.file("first.toml", &FAILING.replace("SERVICE", service));
    stage.file("second.toml", SECOND);
    let profile = |name: &str| {
        let script = stage.path(&format!("{name}.toml")).display().to_string();
        format!(
            "[profiles.{name}]\ncommand = [\"{EISEN_CORE}\", \"scripted-agent\", \"{script}\"]\n"
        )
    };
    let gone = "[profiles.gone]\ncommand = [\"no-such-agent\"]\n";
    let any_memory = if config.contains("[runs]") { "" } else { Stage::ANY_MEMORY };
    let text = format!("{}{}{gone}{config}{any_memory}", profile("first"), profile("second"));
    stage.file("home/config.toml", &text);
    stage
}

const SMART: &str = "[[tiers]]\nname = \"smart\"\n\
                     candidates = [{ profile = \"gone\" }, { profile = \"first\" }, { profile = \"second\" }]\n";

fn command(stage: &Stage, args: &[&str]) -> Command {
    let mut command = stage.eisen_core(args);
    command.current_dir(stage.path("shop/src"));
    command
}

fn by_tier(stage: &Stage, args: &[&str]) -> (Ended, Value) {
    let all = [&["run", "--tier", "smart", "--json"], args, &["Rename it"]].concat();
    let ended = run(&mut command(stage, &all));
    let told = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.stderr));
    (ended, told)
}

#[test]
fn the_next_candidate_goes_on_with_what_was_done() {
    let stage = stage(LIMITED, SMART);
    let (ended, told) = by_tier(&stage, &[]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(told["text"], "I go on with half of it.");
    assert_eq!((&told["profile"], &told["tier"]), (&"second".into(), &"smart".into()));
    let attempts = told["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2);
    assert!(attempts[0]["reason"].as_str().unwrap().contains("rate limited"), "{told}");
    let said: Vec<_> = ended.stderr.lines().filter(|line| line.contains("goes on with")).collect();
    assert_eq!(said.len(), 1, "{}", ended.stderr);
    assert!(said[0].contains("first is rate limited (try again at "), "{}", said[0]);
    assert!(ended.stderr.contains("gone is not installed: begins with first"), "{}", ended.stderr);
    assert!(ended.stderr.contains("touch src/ui/touched.ts"), "{}", ended.stderr);

    // The next run does not ask the first one again.
    let tiers = run(&mut command(&stage, &["tiers", "--json"]));
    let tiers: Value = serde_json::from_str(&tiers.stdout).unwrap();
    assert_eq!(tiers[0]["taken"]["profile"], "second");
    assert_eq!(tiers[0]["candidates"][1]["reason"], "rate limited");
    let (_, told) = by_tier(&stage, &[]);
    assert_eq!(
        (&told["text"], told["attempts"].as_array().unwrap().len()),
        (&"Done at once.".into(), 1)
    );
    // Nor does a team.
    stage.file("shop/eisen.toml", "[[agents]]\nid = \"ui\"\ntier = \"smart\"\n");
    let explained = run(stage.eisen_core(&["check"]).current_dir(stage.path("shop")));
    assert!(explained.stdout.contains("second.toml"), "{} {}", explained.stdout, explained.stderr);
    // A run of that agent alone is not hindered.
    let named = run(&mut command(&stage, &["run", "--profile", "first", "Rename it"]));
    assert_eq!(named.code, 1, "{}", named.stderr);
}

#[test]
fn what_was_written_is_taken_back_if_so_configured() {
    let stage =
        stage(LIMITED, &format!("{SMART}[runs]\nmin_free_mb = 0\non_failover = \"undo\"\n"));
    let (ended, told) = by_tier(&stage, &[]);
    assert_eq!(told["text"], "I begin anew.", "{}", ended.stderr);
    assert!(ended.stderr.contains("taken back"), "{}", ended.stderr);
}

#[test]
fn a_short_hint_is_waited_out_with_the_same_candidate() {
    let service = "429 Too Many Requests, retry after 1 s";
    let stage = stage(service, SMART);
    let text = FAILING.replace("[[on]]\n", "[[on]]\ntimes = 1\n").replace("SERVICE", service);
    stage.file("first.toml", &format!("{text}[[on]]\nsteps = [{{ say = \"Now I can.\" }}]\n"));
    let (ended, told) = by_tier(&stage, &[]);
    assert_eq!((ended.code, &told["text"]), (0, &"Now I can.".into()), "{}", ended.stderr);
    assert_eq!(told["profile"], "first");
    assert!(ended.stderr.contains("is asked again in 1 s"), "{}", ended.stderr);
}

#[test]
fn without_another_candidate_the_error_names_each() {
    let only = SMART.replace(", { profile = \"second\" }", "");
    let exhausted = stage(LIMITED, &only);
    let (ended, told) = by_tier(&exhausted, &[]);
    assert_eq!((ended.code, &told["status"]), (1, &"failed".into()));
    let reason = told["reason"].as_str().unwrap();
    for part in ["first is rate limited", "gone is not installed", "try again at"] {
        assert!(reason.contains(part), "{reason}");
    }
    // Now none can be started.
    let (ended, told) = by_tier(&exhausted, &[]);
    assert_eq!((ended.code, told["attempts"].as_array().unwrap().len()), (125, 0), "{told}");
    // The user does not want another one.
    let (ended, told) = by_tier(&stage(LIMITED, SMART), &["--no-failover"]);
    assert_eq!((ended.code, &told["profile"]), (1, &"first".into()), "{}", ended.stderr);
}

#[test]
fn what_is_no_setback_is_the_runs_own_end() {
    let stage = stage("prompt is too long", SMART);
    let (ended, told) = by_tier(&stage, &[]);
    assert_eq!((ended.code, &told["profile"]), (1, &"first".into()), "{}", ended.stderr);
    assert!(told["reason"].as_str().unwrap().contains("too long"), "{told}");
}

#[test]
fn who_stays_silent_is_passed_over_and_left_alone_for_a_while() {
    let bound = "[runs]\nmin_free_mb = 0\nsilence_s = 1\n";
    let stage = stage(LIMITED, &format!("{SMART}{bound}"));
    let silent = "[agent]\nname = \"first\"\n[[on]]\nsteps = [{ wait = \"cancel\" }]\n";
    stage.file("first.toml", silent);
    // Where nobody takes over, it has all the time that the run has.
    let (ended, told) = by_tier(&stage, &["--no-failover", "--timeout", "3"]);
    assert_eq!((ended.code, &told["profile"]), (124, &"first".into()), "{}", ended.stderr);
    let (ended, told) = by_tier(&stage, &[]);
    assert_eq!((ended.code, &told["text"]), (0, &"I was told nothing.".into()), "{}", ended.stderr);
    let reason = told["attempts"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("silent: it showed no progress since its prompt, for 1 s"), "{reason}");
    assert!(ended.stderr.contains("first is silent (try again at "), "{}", ended.stderr);
    let tiers = run(&mut command(&stage, &["tiers", "--json"]));
    let tiers: Value = serde_json::from_str(&tiers.stdout).unwrap();
    assert_eq!(tiers[0]["taken"]["profile"], "second");
    assert_eq!(tiers[0]["candidates"][1]["reason"], "silent");
}

#[test]
fn who_is_stuck_after_it_began_is_asked_again_next_time() {
    // A machine that has much to do can keep an agent for a second from its first word.
    let bound = "[runs]\nmin_free_mb = 0\nsilence_s = 3\n";
    let stage = stage(LIMITED, &format!("{SMART}{bound}"));
    let stuck = r#"
[agent]
name = "first"
[[on]]
steps = [
  { say = "I begin with the header." },
  { disk_write = "src/ui/new.ts", content = "what was made" },
  { wait = "cancel" },
]
"#;
    stage.file("first.toml", stuck);
    let (ended, told) = by_tier(&stage, &[]);
    assert_eq!((ended.code, &told["text"]), (0, &"I go on with what was made.".into()), "{told}");
    let reason = told["attempts"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("stuck: it showed no progress any more, for 3 s"), "{reason}");
    let tiers = run(&mut command(&stage, &["tiers", "--json"]));
    let tiers: Value = serde_json::from_str(&tiers.stdout).unwrap();
    assert_eq!(tiers[0]["taken"]["profile"], "first");
}

#[test]
fn a_broken_file_and_an_unknown_tier_are_wrong_usage() {
    let stage = stage(LIMITED, &format!("{SMART}[slot]\n"));
    let wrong = run(&mut command(&stage, &["run", "--tier", "smart", "Rename it"]));
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("config.toml"), "{}", wrong.stderr);
    stage.file("home/config.toml", "");
    let unknown = run(&mut command(&stage, &["run", "--tier", "smart", "Rename it"]));
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
    // The team's own file has it.
    stage.file(
        "shop/eisen.toml",
        "[[tiers]]\nname = \"own\"\ncandidates = [{ profile = \"codex\" }]\n",
    );
    assert!(run(&mut command(&stage, &["tiers"])).stdout.contains("own"));
}
