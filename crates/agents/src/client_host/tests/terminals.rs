#![allow(clippy::unwrap_used)]

use super::*;

/// An agent whose terminals run in a folder of their own.
struct Shells {
    scene: Scene,
    folder: tempfile::TempDir,
    next: u64,
}

impl Shells {
    fn new(settings: HostSettings) -> Self {
        Self { scene: start(settings), folder: tempfile::tempdir().unwrap(), next: 0 }
    }

    async fn create(&mut self, request: Value) -> Value {
        let id = self.next_id();
        self.scene.agent.permit(id, self.folder.path(), Action::Read);
        self.scene.agent.ask(id, "terminal/create", request).await
    }

    async fn run(&mut self, command: &str) -> Value {
        let created = self.create(json!({ "sessionId": "s", "command": command })).await;
        assert!(created["terminalId"].is_string(), "{created}");
        json!({ "sessionId": "s", "terminalId": created["terminalId"] })
    }

    async fn ask(&mut self, what: &str, terminal: &Value) -> Value {
        let id = self.next_id();
        self.scene.agent.ask(id, &format!("terminal/{what}"), terminal.clone()).await
    }

    fn next_id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Asks for the output until it contains `text`.
    async fn shows(&mut self, terminal: &Value, text: &str) -> Value {
        let mut output = Value::Null;
        eventually(text, async || {
            output = self.ask("output", terminal).await;
            output["output"].as_str().unwrap().contains(text)
        })
        .await;
        output
    }
}

fn exited(code: i32) -> Value {
    json!({ "exitCode": code })
}

fn killed() -> Value {
    json!({ "signal": "SIGKILL" })
}

#[tokio::test]
async fn a_shell_line_runs_to_its_end() {
    let mut shells = Shells::new(settings());
    let terminal = shells.run("echo out; echo err >&2; pwd; exit 3").await;
    assert_eq!(shells.ask("wait_for_exit", &terminal).await, exited(3));
    let folder = shells.folder.path().canonicalize().unwrap();
    let output = format!("out\nerr\n{}\n", folder.display());
    let reported = json!({ "output": output, "truncated": false, "exitStatus": exited(3) });
    assert_eq!(shells.ask("output", &terminal).await, reported);
    assert_eq!(shells.ask("kill", &terminal).await, json!({}));
    assert_eq!(shells.ask("output", &terminal).await, reported);
    assert_eq!(shells.ask("release", &terminal).await, json!({}));
    for what in ["output", "wait_for_exit", "kill", "release"] {
        assert_eq!(shells.ask(what, &terminal).await["code"], -32002, "{what}");
    }
}

#[tokio::test]
async fn arguments_and_environment_are_passed_as_they_are() {
    let env = [("A", "configured"), ("B", "configured"), ("EISEN_DEPTH", "1")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let mut shells = Shells::new(HostSettings { env, ..settings() });
    let script = "printf '%s|' \"$1\" $A $B $EISEN_DEPTH";
    let created = shells
        .create(json!({
            "sessionId": "s",
            "command": "sh",
            "args": ["-c", script, "sh", "a; echo 'b"],
            "env": [{ "name": "B", "value": "asked" }, { "name": "EISEN_DEPTH", "value": "9" }],
            "cwd": "/nowhere",
            "outputByteLimit": null,
        }))
        .await;
    assert_eq!(shells.ask("wait_for_exit", &created).await, exited(0));
    let output = shells.ask("output", &created).await;
    assert_eq!(output["output"], "a; echo 'b|configured|asked|1|");
}

#[tokio::test]
async fn a_killed_terminal_stays_until_it_is_released() {
    let mut shells = Shells::new(settings());
    let terminal = shells.run("echo started; cat /dev/zero > /dev/null").await;
    let output = shells.shows(&terminal, "started").await;
    assert_eq!(output.get("exitStatus"), None);
    // The wait is answered by the kill.
    shells.scene.agent.request(100, "terminal/wait_for_exit", terminal.clone()).await;
    shells.scene.agent.request(101, "terminal/kill", terminal.clone()).await;
    let mut answers = [shells.scene.agent.recv().await, shells.scene.agent.recv().await];
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers[0]["result"], killed());
    assert_eq!(answers[1]["result"], json!({}));
    let output = shells.ask("output", &terminal).await;
    assert_eq!(output["output"], "started\n");
    assert_eq!(output["exitStatus"], killed());
}

#[tokio::test]
async fn a_released_terminal_is_killed() {
    let mut shells = Shells::new(settings());
    let terminal = shells.run("echo $$; exec cat /dev/zero > /dev/null").await;
    let output = shells.shows(&terminal, "\n").await;
    let pid: i32 = output["output"].as_str().unwrap().trim().parse().unwrap();
    shells.scene.agent.request(100, "terminal/wait_for_exit", terminal.clone()).await;
    shells.scene.agent.request(101, "terminal/release", terminal).await;
    let mut answers = [shells.scene.agent.recv().await, shells.scene.agent.recv().await];
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers[0]["result"], killed());
    assert_eq!(answers[1]["result"], json!({}));
    assert!(is_gone(pid));
}

#[tokio::test]
async fn what_runs_on_in_the_background_does_not_hold_the_terminal() {
    let mut shells = Shells::new(settings());
    let terminal = shells.run("cat /dev/zero > /dev/null & echo done").await;
    assert_eq!(shells.ask("wait_for_exit", &terminal).await, exited(0));
    assert_eq!(shells.ask("output", &terminal).await["output"], "done\n");
    assert_eq!(shells.ask("release", &terminal).await, json!({}));
}

#[tokio::test]
async fn long_output_keeps_its_end() {
    let mut shells = Shells::new(settings());
    let line = "i=0; while [ $i -lt 20000 ]; do echo \"é $i\"; i=$((i+1)); done";
    let request = json!({ "sessionId": "s", "command": line, "outputByteLimit": 17 });
    let terminal = shells.create(request).await;
    assert_eq!(shells.ask("wait_for_exit", &terminal).await, exited(0));
    let reported =
        json!({ "output": " 19998\né 19999\n", "truncated": true, "exitStatus": exited(0) });
    let output = shells.ask("output", &terminal).await;
    // 17 bytes back there is the second byte of an é.
    assert_eq!(output["output"].as_str().unwrap().len(), 16);
    assert_eq!(output, reported);
}

#[tokio::test]
async fn what_cannot_start_is_an_error() {
    let mut shells = Shells::new(settings());
    let request = json!({ "sessionId": "s", "command": "/no/such/program", "args": ["x"] });
    let error = shells.create(request).await;
    assert_eq!(error["code"], -32603);
    assert!(error["message"].as_str().unwrap().contains("/no/such/program"), "{error}");
    let request = json!({ "sessionId": "s", "command": "x", "env": [{ "name": "", "value": "" }] });
    assert_eq!(shells.create(request).await["code"], -32602);
    let none = json!({ "sessionId": "s", "terminalId": "term_7" });
    assert_eq!(shells.ask("output", &none).await["code"], -32002);
    assert_eq!(shells.ask("output", &json!({})).await["code"], -32602);
}

#[tokio::test]
async fn terminals_are_counted() {
    let mut shells = Shells::new(settings());
    let mut last = Value::Null;
    for _ in 0..64 {
        last = shells.run(":").await;
    }
    let request = json!({ "sessionId": "s", "command": ":" });
    assert_eq!(shells.create(request.clone()).await["code"], -32603);
    shells.ask("release", &last).await;
    eventually("there is room for a terminal", async || {
        shells.create(request.clone()).await.get("terminalId").is_some()
    })
    .await;
}

#[tokio::test]
async fn the_agents_end_ends_its_terminals() {
    let mut shells = Shells::new(settings());
    let terminal = shells.run("echo $$; exec cat /dev/zero > /dev/null").await;
    let output = shells.shows(&terminal, "\n").await;
    let pid: i32 = output["output"].as_str().unwrap().trim().parse().unwrap();
    let Scene { agent, task, .. } = shells.scene;
    drop(agent);
    task.await.unwrap();
    assert!(is_gone(pid));
}

#[tokio::test]
async fn a_cancelled_request_is_answered_and_the_terminal_lives_on() {
    let mut shells = Shells::new(settings());
    let terminal = shells.run("cat /dev/zero > /dev/null").await;
    shells.scene.agent.request(100, "terminal/wait_for_exit", terminal.clone()).await;
    for id in [json!("100"), json!(7), json!(100), json!(100)] {
        let params = json!({ "requestId": id });
        let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": params });
        shells.scene.agent.send(cancel).await;
    }
    assert_eq!(shells.scene.agent.answered(100).await["code"], -32800);
    assert_eq!(shells.ask("output", &terminal).await.get("exitStatus"), None);
    assert_eq!(shells.ask("kill", &terminal).await, json!({}));
    assert_eq!(shells.ask("wait_for_exit", &terminal).await, killed());
}

fn is_gone(pid: i32) -> bool {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None).is_err()
}
