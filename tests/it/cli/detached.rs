//! `up -d` and `down`: teams without a terminal.

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getsid};

use super::assert_ended;
use crate::harness::{Ended, Lines, Port, Stage, agent, program, run};

/// Brings up the team that was configured, detached; takes it down again when dropped.
struct Detached<'a>(&'a Stage);

impl Detached<'_> {
    fn up(stage: &Stage) -> (Detached<'_>, Ended) {
        let ended = stage.run(&["up", "-d"]);
        (Detached(stage), ended)
    }

    fn await_ready(&self, agent: &str) {
        let port = self.0.run_file("shop").unwrap()["port"].as_u64().unwrap();
        Port::connect(u16::try_from(port).unwrap()).agent_is(agent, "ready");
    }

    fn pid(&self) -> Pid {
        let pid = self.0.run_file("shop").unwrap()["pid"].as_i64().unwrap();
        Pid::from_raw(i32::try_from(pid).unwrap())
    }
}

impl Drop for Detached<'_> {
    fn drop(&mut self) {
        let _ = self.0.run(&["down", "--kill"]);
    }
}

#[test]
fn a_detached_team_runs_until_it_is_taken_down() {
    let stage = Stage::new();
    stage.configure("", vec![agent("ui").with("prompt = \"good morning\"")]);
    let (team, up) = Detached::up(&stage);
    assert_eq!((up.code, up.stderr.as_str()), (0, ""), "{up:?}");
    let run_file = stage.run_file("shop").unwrap();
    let first = format!(
        "shop: up, listens on {} (pid {})",
        run_file["address"].as_str().unwrap(),
        run_file["pid"]
    );
    let console = stage.path("home/logs/shop.console");
    let said: Vec<_> = up.stdout.lines().collect();
    assert_eq!(said[..2], [first, format!("console: {}", console.display())]);
    assert!(
        said[2].contains("eisen-core agent watch") && said[2].contains("down stops"),
        "{said:?}"
    );
    // Neither the session of its starter, nor a terminal.
    assert_eq!(getsid(Some(team.pid())).unwrap(), team.pid());

    team.await_ready("ui");
    assert_ended(&stage.run(&["prompt", "ui", "hello"]), 0, "hello\n", "");
    let again = stage.run(&["up", "-d"]);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.stderr.contains("the team `shop` runs already"), "{again:?}");
    assert_ended(&stage.run(&["down", "--team", "shop"]), 0, "shop: stopped\n", "");
    assert!(!stage.run_path("shop").exists());
    let shown = std::fs::read_to_string(&console).unwrap();
    for line in
        ["listens on", "ui            says: good morning", "next: ", "says: hello", "stopped"]
    {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let none = "error: the team of this folder, shop, does not run: `eisen-core up` starts it\n";
    assert_ended(&stage.run(&["down"]), 1, "", none);
    let none = "error: no team is running; start one with `eisen-core up`\n";
    assert_ended(&stage.run(&["--cwd", "/", "down"]), 1, "", none);
}

#[test]
fn a_prompt_of_the_start_goes_to_an_agent_that_is_ready() {
    let stage = Stage::new();
    let mut ui = stage.puppet("ui");
    stage.configure("", vec![agent("slow").puppet(), agent("ui").puppet()]);
    let _slow = stage.puppet("slow");
    let up = stage.run(&["up", "-d", "--prompt", "good evening"]);
    let _team = Detached(&stage);
    assert_eq!(up.code, 0, "{up:?}");
    ui.connect("s1");
    let (turn, text) = ui.prompted();
    assert_eq!(text, "good evening");
    ui.end_turn(&turn);
}

#[test]
fn a_team_that_fails_to_come_up_says_so_with_its_exit_code() {
    let stage = Stage::new();
    stage.configure("", vec![agent("ui")]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let failed = stage.run(&["up", "-d", "--port", &port]);
    assert_ended(
        &failed,
        1,
        "",
        &format!("error: port {port} is taken by another program; --port 0 takes a free one\n"),
    );
    stage.file("eisen.toml", "[team]\nnam = 3\n");
    let wrong = stage.run(&["up", "-d"]);
    assert_eq!((wrong.code, wrong.stdout.as_str()), (2, ""), "{wrong:?}");
    assert!(wrong.stderr.contains("nam"), "{wrong:?}");
}

#[test]
fn a_team_that_does_not_stop_or_was_killed_is_down_all_the_same() {
    let stage = Stage::new();
    let stubborn = agent("ui").start("{ ignore_eof = true }, { ignore_term = true }");
    stage.configure("stop_grace_s = 3600", vec![stubborn]);
    let (_team, up) = Detached::up(&stage);
    assert_eq!(up.code, 0, "{up:?}");
    // What it left behind is printed to standard error.
    let down = stage.run(&["down", "--timeout", "0"]);
    assert_eq!((down.code, down.stdout.as_str()), (0, "shop: killed\n"), "{down:?}");
    assert!(!stage.run_path("shop").exists());

    let (team, up) = Detached::up(&stage);
    assert_eq!(up.code, 0, "{up:?}");
    let other = stage.run(&["down", "--team", "web"]);
    assert_ended(&other, 1, "", "error: no team `web` is running; there are shop\n");
    kill(team.pid(), Signal::SIGKILL).unwrap();
    // Until the kernel has taken it away, it is one that runs.
    let down = stage.run(&["down"]);
    assert_eq!(down.code, 0, "{down:?}");
    assert!(!stage.run_path("shop").exists());
    assert!(std::fs::read_dir(stage.path("tmp")).unwrap().next().is_none());
}

#[test]
fn of_several_teams_one_is_named_or_all_are_meant() {
    let stage = Stage::new();
    stage.configure("", vec![agent("ui")]);
    let (_team, up) = Detached::up(&stage);
    assert_eq!(up.code, 0, "{up:?}");
    let shop = stage.read("eisen.toml");
    stage.file("web.toml", &shop.replace("name = \"shop\"", "name = \"web\""));
    let web = stage.run(&["up", "-d", "-c", "web.toml"]);
    assert_eq!(web.code, 0, "{web:?}");
    let which = stage.run(&["--cwd", "/", "down"]);
    assert_eq!((which.code, which.stdout.as_str()), (1, ""));
    assert!(which.stderr.contains("--team: shop, web"), "{which:?}");
    assert_ended(&stage.run(&["down", "--all"]), 0, "shop: stopped\nweb: stopped\n", "");
}

/// A terminal that goes takes its session with it by SIGHUP.
#[test]
fn a_detached_team_outlives_its_terminal() {
    let stage = Stage::new();
    stage.configure("", vec![agent("ui")]);
    let shell = stage.eisen_core(&[]);
    let mut session = program("setsid");
    session.args(["sh", "-c", "\"$0\" up -d && kill -HUP 0"]).arg(shell.get_program());
    session.envs(shell.get_envs().filter_map(|(name, value)| Some((name, value?))));
    session
        .current_dir(shell.get_current_dir().unwrap())
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = session.spawn().unwrap();
    let lines = Lines::of(child.stdout.take().unwrap());
    let team = Detached(&stage);
    let up = lines.rest().join("\n");
    child.wait().unwrap();
    assert!(up.starts_with("shop: up"), "{up}");
    team.await_ready("ui");
    assert_ended(&stage.run(&["prompt", "ui", "hello"]), 0, "hello\n", "");
    assert_eq!(run(&mut stage.eisen_core(&["down"])).stdout, "shop: stopped\n");
    drop(team);
}
