//! Zones that the kernel enforces, as a team with real programs sees them.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::json;

use crate::harness::{EISEN_CORE, Stage, agent, eventually};

#[test]
fn no_program_of_an_agent_gets_past_its_zone() {
    let stage = Stage::new();
    // Before it speaks the protocol, and in a terminal whose line names no file.
    let past = "echo broken >src/api/cart.rs; cat src/api/order.rs >src/ui/stolen; ";
    let ui = agent("ui").behind(past).zone("src/ui/**").with("enforce = \"kernel\"");
    let team = stage.team("", vec![ui, agent("api").zone("src/api/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let said = port.prompt(
        "ui",
        "run eval \"$(printf 'cat src/a%s' pi/order.rs)\"; echo x >src/ui/mine && cat src/ui/mine",
    );
    assert!(said.contains("denied") && said.ends_with("x\n"), "{said}");
    assert_eq!(stage.read("shop/src/api/cart.rs"), "api\n");
    assert_eq!(stage.read("shop/src/ui/stolen"), "");
}

#[test]
fn an_agent_has_a_temporary_folder_of_its_own_until_its_run_ends() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let script = "run cd $TMPDIR && echo x >a && mv a b && cat b && stat -c %a . && \
                  [ $TMP = $TMPDIR ] && [ $TEMP = $TMPDIR ] && [ $TMUX_TMPDIR = $TMPDIR ] && pwd";
    let said = port.prompt("ui", script);
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[..2], ["x", "700"], "{said}");
    let folder = std::path::Path::new(lines[2]);
    assert!(folder.join("b").is_file());
    port.call("stop_agent", &json!({"agent_id": "ui"})).unwrap();
    assert!(!folder.exists());
    port.call("start_agent", &json!({"agent_id": "ui"})).unwrap();
    port.expect(&json!({"type": "agent", "agent_id": "ui", "state": "ready"}));
    assert!(folder.exists());
}

#[test]
fn a_save_by_a_draft_is_of_the_file_that_is_meant() {
    let stage = Stage::new();
    let save = "import os, sys\npath = sys.argv[1]\ndraft = path + '.tmp.81.c3c2a9'\n\
                open(draft, 'w').write('saved\\n')\nos.replace(draft, path)\n\
                open('src/ui/last', 'w')\n";
    stage.file("shop/src/ui/save.py", save);
    let ui = agent("ui").zone("src/ui/**").with("enforce = \"kernel\"");
    let team = stage.team("[orchestrator]\non_block = \"hold\"", vec![ui]);
    let mut port = team.steer_when_ready(&["ui"]);

    assert_eq!(port.prompt("ui", "run python3 src/ui/save.py src/ui/app.ts"), "");
    let written = RefCell::new(BTreeSet::new());
    port.expect_that("what was saved", |line| {
        let nodes = line["updates"].as_array().into_iter().flatten();
        let nodes = nodes.filter(|node| node["last_action"] == "write");
        written.borrow_mut().extend(nodes.map(|node| node["path"].to_string()));
        written.borrow().contains("\"src/ui/last\"")
    });
    let reported = written.into_inner().into_iter().collect::<Vec<_>>();
    assert_eq!(reported, ["\"src/ui/app.ts\"", "\"src/ui/last\""]);

    // The line of the terminal names no file; the program's arguments do.
    let line = "run python3 src/ui/save.py $(printf src/a%s pi/cart.rs)";
    let prompt = port.begin("ui", line);
    let blocked = port.blocked("pending");
    let asked = (&blocked["path"], &blocked["action"], &blocked["via"]);
    assert_eq!(asked, (&json!("src/api/cart.rs"), &json!("write"), &json!("kernel")));
    port.resolve(&blocked, &json!({"decision": "allow", "scope": "session"})).unwrap();
    port.said(prompt);
    assert_eq!(stage.read("shop/src/api/cart.rs"), "saved\n");
    assert_eq!(port.count(&json!({"type": "blocked", "status": "pending"})), 1);

    // A name that says nothing is of the file that the arguments name beside it.
    stage.file("shop/src/api/stock.rs", "old\n");
    stage.file(
        "shop/src/ui/save.py",
        &save.replace("path + '.tmp.81.c3c2a9'", "'src/api/tmpa8kd0x_1'"),
    );
    let prompt = port.begin("ui", &line.replace("cart", "stock"));
    let blocked = port.blocked("pending");
    assert_eq!(
        (&blocked["path"], &blocked["action"]),
        (&json!("src/api/stock.rs"), &json!("write"))
    );
    port.resolve(&blocked, &json!({"decision": "allow"})).unwrap();
    port.said(prompt);
    assert_eq!(stage.read("shop/src/api/stock.rs"), "saved\n");
    assert_eq!(port.count(&json!({"type": "blocked", "status": "pending"})), 2);
}

#[test]
fn a_pipe_is_waited_at_as_long_as_its_opener_does() {
    let stage = Stage::new();
    // No rule lets pipes be opened there.
    stage.file("shop/src/ui/.env", "denied\n");
    let ui = agent("ui").zone("src/ui/**").with("enforce = \"kernel\"");
    let team = stage.team("[zones]\ndenied = [\"**/.env\"]", vec![ui]);
    let mut port = team.steer_when_ready(&["ui"]);
    let supervisor = team.program.id();
    let waiting = || {
        let tasks = std::fs::read_dir(format!("/proc/{supervisor}/task")).unwrap().flatten();
        tasks
            .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
            .any(|name| name == "deferred\n")
    };
    port.begin("ui", "run mkfifo src/ui/pipe && cat src/ui/pipe");
    eventually("a thread waits at the pipe", waiting);
    port.call("stop_agent", &json!({"agent_id": "ui"})).unwrap();
    eventually("no thread waits at the pipe", || !waiting());
}

#[test]
fn behind_a_doorbell_there_is_no_second() {
    let stage = Stage::new();
    let nested = |enforce: &str| {
        format!(
            "[team]\nlisten = \"127.0.0.1:0\"\n[[agents]]\nid = \"a\"\ncommand = [\"true\"]\n\
             [agents.zone]\nenforce = \"{enforce}\"\n"
        )
    };
    stage.file("shop/src/ui/auto.toml", &nested("auto"));
    stage.file("shop/src/ui/kernel.toml", &nested("kernel"));
    let team = stage.team("", vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let program = "export EISEN_DIR=$TMPDIR/eisen EISEN_DEPTH=; cd src/ui;";
    let said = port.prompt("ui", &format!("run {program} {EISEN_CORE} check -c auto.toml"));
    assert!(said.contains("protocol: this kernel lacks"), "{said}");
    assert!(said.contains("another program's doorbell"), "{said}");
    let said = port.prompt("ui", &format!("run {program} {EISEN_CORE} up -c kernel.toml; echo $?"));
    assert!(said.contains("agent `a` does not start") && said.contains("\n1"), "{said}");
}
