//! Tries to escape from a zone that the kernel enforces, by real programs.
//!
//! Each escape is tried first without a wall, as the same user on the same files, and must get
//! through there: else it proves nothing. Then it is tried by an agent's own process, by a terminal
//! of an agent, and by an agent that is confined strictly.

#![cfg(target_os = "linux")]

mod life;
mod scene;
mod table;
mod user;
mod victim;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;

use crate::harness::{Program, Puppet, Stage, Team, run};
use scene::{Outcome, Scene, ZONE, skipped};
use user::User;

const ESCAPES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/confine/confinement/escapes");

#[test]
fn nothing_escapes() {
    escapes_fail(User::Own);
}

#[test]
fn nothing_escapes_from_an_ordinary_user() {
    if nix::unistd::geteuid().is_root() {
        escapes_fail(User::Nobody);
    }
}

fn escapes_fail(user: User) {
    let stage = Stage::new();
    tools(&stage);
    for folder in ["user", "temporary"] {
        std::fs::create_dir_all(stage.path(folder)).unwrap();
    }
    user.own(&stage.path(""));
    let [bare, child, strict, terminal] =
        ["bare", "child", "strict", "terminal"].map(|way| Scene::new(&stage, user, way));
    let (team, mut puppet) = up(&stage, user, &child);
    // A client of its own each time: what the races are denied is not told to one that stays.
    let start = |agent: &str| {
        team.steer().call("start_agent", &json!({"agent_id": agent})).unwrap();
    };
    let supervisor = team.program.id();

    let mut shell = None;
    let tried = bare.play(supervisor, team.token(), |plan| {
        shell = Some(user.command(&stage, "sh").arg(plan).spawn().unwrap());
    });
    shell.unwrap().wait().unwrap();
    let gets_through = proved(user, &bare, &tried);

    let mut broken = Vec::new();
    for scene in [&child, &strict] {
        let tried = scene.play(supervisor, team.token(), |_| {
            start(scene.way());
        });
        broken.extend(escaped(scene, &tried));
    }
    let tried = terminal.play(supervisor, team.token(), |plan| {
        start("terminal");
        puppet.connect("t1");
        let line = format!("sh {}", plan.display());
        let created = puppet.call("terminal/create", &json!({"sessionId": "t1", "command": line}));
        assert!(created["result"]["terminalId"].is_string(), "{created}");
    });
    broken.extend(escaped(&terminal, &tried));
    let ended = team.stop();
    assert!(
        broken.is_empty(),
        "{} of {gets_through} escapes that work without a wall got through one:\n{}\n\n{}",
        broken.len(),
        broken.join("\n"),
        ended.stderr
    );
}

/// Compiles and copies what the escapes are made of.
fn tools(stage: &Stage) {
    let tools = stage.path("shop/tools");
    std::fs::create_dir_all(&tools).unwrap();
    for entry in std::fs::read_dir(ESCAPES).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, tools.join(path.file_name().unwrap())).unwrap();
    }
    for (program, args) in [
        ("call", &["call.c", "-pthread"][..]),
        ("race", &["race.c", "-pthread"]),
        ("victim", &["victim.c"]),
        ("say", &["say.c"]),
        ("say.so", &["say.c", "-shared", "-fPIC", "-DLIBRARY"]),
    ] {
        let mut cc = crate::harness::program("cc");
        let rounds = std::env::var("EISEN_ROUNDS").map(|rounds| format!("-DROUNDS={rounds}"));
        let cc = cc.args(["-O1", "-o", program]).args(rounds).args(args).current_dir(&tools);
        let done = run(cc);
        assert_eq!(done.code, 0, "these tests need a C compiler:\n{}", done.stderr);
    }
}

/// Brings up a team whose agents start on request. It inherits a descriptor that none
/// of them is to have. Only that of an ordinary user keeps a code graph, which reads anew what the races change.
fn up(stage: &Stage, user: User, child: &Scene) -> (Team, Puppet) {
    let hidden = stage.path("outside/**/hidden/**").display().to_string();
    let mut text = format!(
        "[team]\nname = \"shop\"\nworkspace = \"shop\"\nlisten = \"127.0.0.1:0\"\n\
         [zones]\ndenied = [\"**/.env\", {hidden:?}]\ngit = \"commit\"\n\
         [graph]\nenabled = {}\n",
        matches!(user, User::Nobody),
    );
    let terminal = stage.puppet("terminal");
    for end in ["terminal.in", "terminal.out"] {
        user.own(&stage.path(end));
    }
    let plan = |way: &str| stage.path(&format!("shop/tools/{way}.sh")).display().to_string();
    for (id, command, session, confine) in [
        ("child", vec!["sh".to_owned(), plan("child")], false, "workspace"),
        ("strict", vec!["sh".to_owned(), plan("strict")], false, "strict"),
        ("terminal", Puppet::command(&stage.path(""), "terminal"), true, "workspace"),
    ] {
        let command: Vec<_> = command.iter().map(|word| word.replace('$', "$$")).collect();
        let _ = writeln!(
            text,
            "[[agents]]\nid = {id:?}\ncommand = {command:?}\nautostart = false\n\
             session = {session}\ninitialize_timeout_s = 3600\nrestart = {{ policy = \"never\" }}\n\
             {ZONE}\nconfine = {confine:?}\n"
        );
    }
    stage.file("eisen.toml", &text);
    user.own(&stage.path("eisen.toml"));
    let mut command = user.command(stage, "sh");
    let inherited = format!("exec 9< '{}'", child.secret_file("read-inherited").display());
    command.args(["-c", &format!("{inherited}; exec \"$@\""), "sh"]);
    command.arg(user.eisen_core(stage)).args(["up", "-c", "eisen.toml"]);
    (Team::of(Program::start(&mut command), stage), terminal)
}

/// Checks that each escape gets through where there is no wall, but for what this machine does not
/// have; returns how many do.
fn proved(user: User, scene: &Scene, tried: &BTreeMap<&str, Outcome>) -> usize {
    let mut worthless = Vec::new();
    let mut proved = 0;
    for trial in &scene.trials {
        let outcome = &tried[trial.name];
        if outcome.seen.iter().any(|(shows, _)| *shows == trial.shows) {
            proved += 1;
        } else if outcome.code == 77 && outcome.output.contains("missing:") {
            skipped(user, trial.name, outcome.output.lines().last().unwrap_or_default());
        } else {
            worthless.push(format!("{}: {outcome:?}", trial.name));
        }
    }
    assert!(
        worthless.is_empty(),
        "{} escapes fail without a wall, so that what they show of one is worthless:\n{}",
        worthless.len(),
        worthless.join("\n")
    );
    proved
}

/// Returns what shows that an escape got through a wall, or could not even be tried.
fn escaped(scene: &Scene, tried: &BTreeMap<&str, Outcome>) -> Vec<String> {
    let mut broken = Vec::new();
    for trial in &scene.trials {
        let outcome = &tried[trial.name];
        for (_, how) in &outcome.seen {
            broken.push(format!("{} {}: {how}", scene.way(), trial.name));
        }
        if !outcome.output.starts_with("tried\n") {
            broken.push(format!("{} {}: was not tried: {outcome:?}", scene.way(), trial.name));
        }
    }
    broken
}
