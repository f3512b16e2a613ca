//! Usual work of programs inside a zone that the kernel enforces.

use serde_json::json;

use super::user::{User, find};
use crate::harness::{Program, Puppet, Stage, Team, program, run};

const LIFE: &str = include_str!("life/life.sh");

/// What a program does, what it needs, and what is then in its file `out` (or in all of it, line by
/// line).
struct Task {
    name: &'static str,
    needs: &'static [&'static str],
    out: &'static str,
}

const fn task(name: &'static str, needs: &'static [&'static str], out: &'static str) -> Task {
    Task { name, needs, out }
}

#[rustfmt::skip]
const TASKS: &[Task] = &[
    task("compile", &["cc"], "compiled"),
    task("compile-with-temporary-files", &["cc", "ar"], "main"),
    task("shared-library", &["cc", "python3"], "42"),
    task("make", &["make"], "made"),
    task("cargo", &["cargo"], "built again"),
    task("git-read", &["git"], "first"),
    task("git-commit", &["git"], "from inside"),
    task("git-own", &["git"], "one"),
    task("git-guarded", &["git"], "guarded"),
    task("git-submodule", &["git"], "in a submodule"),
    task("npm", &["npm"], "ran"),
    task("node", &["node"], "text more 600 1000000"),
    task("node-child-and-worker", &["node"], "worker"),
    task("python-modules", &["python3"], "imported"),
    task("python-temporary-files", &["python3"], "temporary"),
    task("python-sqlite", &["python3"], "[('delete',), ('wal',)]"),
    task("python-processes", &["python3"], "[1, 4, 9]\nb'piped'\n20"),
    task("python-descriptors", &["python3"], "hello 2 b'b' sub/file\nunnamed ['hard', 'out', 'sub']"),
    task("save-by-sed", &["sed"], "sed line"),
    task("save-by-vim", &["vim"], "first vim"),
    task("save-by-vim-with-backup", &["vim"], "first backup"),
    task("save-by-python", &["python3"], "python\nagain"),
    task("save-by-node", &["node"], "node"),
    task("save-in-place", &[], "in place\nappended"),
    task("folders", &[], "./a/b/c/x\n./hard\n"),
    task("archives", &["tar"], "750\nx"),
    task("modes", &[], "600\n700"),
    task("scripts", &["python3"], "script\npython\ncopied"),
    task("redirections", &[], "three\nmore\nHERE\nx\ny\nthree"),
    task("pipes-with-names", &[], "through\nthrough"),
    task("sockets", &["python3"], "b'hello'\nb'hello'\nb'pair'\nb'tcp'\nb'udp'"),
    task("beside-denied-sockets", &["python3"], "b'hello' 0o700\nb'hello' 0o700\nb'hello' 0o700\n98\n[7, 8]"),
    task("beside-denied-pipes", &["python3"], "through\nand back\nat once"),
    task("terminals", &["python3"], "terminal"),
    task("threads-with-names", &["python3"], "worker"),
    task("calls-of-new-kernels", &["python3"], "EAGAIN"),
    task("own-children", &[], "trapped"),
    task("own-children-traced", &["strace"], ""),
    task("temporary-folder", &[], "x"),
    task("outside", &[], "outside"),
    task("from-outside-and-back", &[], "x"),
    task("walks", &[], "\n1"),
    task("parallel", &[], "200"),
    task("names-at-the-end", &["cc"], "x"),
];

#[test]
fn a_normal_life_goes_on() {
    live(User::Own, "workspace");
}

#[test]
fn a_normal_life_of_an_ordinary_user_goes_on() {
    if nix::unistd::geteuid().is_root() {
        live(User::Nobody, "workspace");
    }
}

/// Has each task done, first where there is no wall.
fn live(user: User, confine: &str) {
    let stage = Stage::new();
    for folder in ["user", "temporary", "shop/life/bare", "shop/life/zoned", "shop/closed"] {
        std::fs::create_dir_all(stage.path(folder)).unwrap();
    }
    stage.file("shop/life/life.sh", LIFE);
    stage.file("shop/closed/secret", "first and secret\n");
    let tasks = TASKS.iter().filter(|task| wanted(task.name)).collect::<Vec<_>>();
    for task in &tasks {
        for way in ["bare", "zoned"] {
            std::fs::create_dir_all(stage.path(&format!("shop/life/{way}/{}", task.name))).unwrap();
            stage.file(&format!("shop/single-{way}-{}.txt", task.name), "first line\n");
            if task.name.starts_with("beside-denied") {
                // No rule lets names be made in such a folder.
                stage.file(&format!("shop/life/{way}/{}/.env", task.name), "denied\n");
            }
        }
    }
    repository(&stage);
    let mut puppet = stage.puppet("ui");
    user.own(&stage.path(""));
    let team = up(&stage, user, confine);
    team.steer();
    puppet.connect("u1");

    let mut failed = Vec::new();
    for task in tasks {
        let needed = task.needs.iter().find(|program| !has(&stage, user, program));
        if let Some(program) = needed {
            super::skipped(user, task.name, &format!("needs {program}"));
            continue;
        }
        println!("{}", task.name);
        let bare = run(user.command(&stage, "sh").args(["-c", &line(&stage, "bare", task.name)]));
        let out = out(&stage, "bare", task.name);
        // That one shows what is held, not what goes on.
        let must_work = task.name != "git-guarded";
        if must_work && (bare.code != 0 || !expected(task, &out)) {
            failed.push(format!("{} does not work without a wall: {out:?} {bare:?}", task.name));
        }
        let (code, said) = zoned(&mut puppet, &line(&stage, "zoned", task.name));
        let out = self::out(&stage, "zoned", task.name);
        if code != json!(0) || !expected(task, &out) {
            failed.push(format!("{}: {code} {out:?}\n{said}", task.name));
        }
    }
    let ended = team.stop();
    assert!(failed.is_empty(), "{} failed:\n{}\n{}", failed.len(), failed.join("\n"), ended.stderr);
}

fn expected(task: &Task, out: &str) -> bool {
    out.contains(task.out)
}

fn out(stage: &Stage, way: &str, task: &str) -> String {
    std::fs::read_to_string(stage.path(&format!("shop/life/{way}/{task}/out"))).unwrap_or_default()
}

/// Runs a command in a terminal; returns its exit code and output.
fn zoned(agent: &mut Puppet, line: &str) -> (serde_json::Value, String) {
    let created = agent.call("terminal/create", &json!({"sessionId": "u1", "command": line}));
    let terminal = &created["result"]["terminalId"];
    assert!(terminal.is_string(), "{created}");
    let this = json!({"sessionId": "u1", "terminalId": terminal});
    let exit = agent.call("terminal/wait_for_exit", &this);
    let output = agent.call("terminal/output", &this);
    agent.call("terminal/release", &this);
    let said = output["result"]["output"].as_str().unwrap().to_owned();
    (exit["result"]["exitCode"].clone(), said)
}

fn line(stage: &Stage, way: &str, task: &str) -> String {
    let single = stage.path(&format!("shop/single-{way}-{task}.txt"));
    let folder = stage.path(&format!("shop/life/{way}/{task}"));
    // In the environment, so that the words of the line name no file.
    format!("cd {} && SINGLE={} sh ../../life.sh {task}", folder.display(), single.display())
}

fn has(stage: &Stage, user: User, program: &str) -> bool {
    if program == "cargo" {
        // It may be a user's own, where no other can reach it.
        return run(user.command(stage, "sh").args(["-c", "cargo --version"])).code == 0;
    }
    find(program).is_some()
}

fn repository(stage: &Stage) {
    let shop = stage.path("shop");
    let git = |args: &[&str]| {
        let mut command = program("git");
        command.args(args).current_dir(&shop).env("HOME", stage.path("user"));
        let done = run(&mut command);
        assert_eq!(done.code, 0, "{}", done.stderr);
    };
    stage.file("shop/single.txt", "first\n");
    stage.file("shop/.gitignore", "life\n");
    git(&["init", "-q"]);
    git(&["config", "user.name", "u"]);
    git(&["config", "user.email", "e"]);
    git(&["add", ".gitignore", "single.txt"]);
    git(&["commit", "-q", "-m", "first"]);
    let library = stage.path("library").display().to_string();
    git(&["init", "-q", &library]);
    let author = ["-c", "user.name=u", "-c", "user.email=e", "-C", &library];
    git(&[&author[..], &["commit", "-q", "--allow-empty", "-m", "of a library"]].concat());
    for way in ["bare", "zoned"] {
        let place = format!("life/{way}/git-submodule/lib");
        let allowed = "protocol.file.allow=always";
        git(&["-c", allowed, "submodule", "--quiet", "add", "--force", &library, &place]);
        git(&["-C", &place, "config", "user.name", "u"]);
        git(&["-C", &place, "config", "user.email", "e"]);
    }
}

fn up(stage: &Stage, user: User, confine: &str) -> Team {
    let command: Vec<_> =
        Puppet::command(&stage.path(""), "ui").iter().map(|word| word.replace('$', "$$")).collect();
    stage.file(
        "eisen.toml",
        &format!(
            "[team]\nname = \"shop\"\nworkspace = \"shop\"\nlisten = \"127.0.0.1:0\"\n\
             [zones]\ngit = \"commit\"\ndenied = [\"**/.env\"]\nreadable = [\"single.txt\"]\n\
             [[agents]]\nid = \"ui\"\ncommand = {command:?}\n[agents.zone]\n\
             allowed = [\"life/**\", \"single-*.txt\"]\nconfine = {confine:?}\n"
        ),
    );
    let mut command = user.command(stage, user.eisen_core(stage).to_str().unwrap());
    command.args(["up", "-c", "eisen.toml"]);
    Team::of(Program::start(&mut command), stage)
}

fn wanted(name: &str) -> bool {
    let only = std::env::var("EISEN_TASKS");
    only.as_ref().map_or(true, |only| only.split(' ').any(|only| name.starts_with(only)))
}
