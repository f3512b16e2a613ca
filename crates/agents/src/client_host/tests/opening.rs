#![allow(clippy::unwrap_used)]

use eisen_base::task;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;

/// Runs `initialize` and `new_session` against answers in order, and returns what was sent after
/// `initialize`, and what came of it.
async fn check(settings: HostSettings, answers: &[Value], expected: Expect) {
    check_opening(settings, None, answers, expected).await;
}

/// The same, with `restore_session` if there was a session before.
async fn check_opening(
    settings: HostSettings,
    last: Option<&str>,
    answers: &[Value],
    expected: Expect,
) {
    let last = last.map(SessionId::new);
    let Scene { host, mut agent, .. } = start(settings);
    let opening = task::spawn({
        let host = host.clone();
        async move {
            host.initialize().await?;
            match last {
                Some(last) => host.restore_session(last).await,
                None => host.new_session().await,
            }
        }
    });
    let mut reported = Vec::new();
    for answer in answers {
        let request = agent.recv().await;
        if request["method"] != "initialize" {
            reported.push(format!("{} {}", request["method"].as_str().unwrap(), request["params"]));
        }
        let mut answer = answer.clone();
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = request["id"].clone();
        agent.send(answer).await;
    }
    reported.push(match opening.await.unwrap() {
        Ok(session) => format!("open: {session}\n"),
        Err(error) => format!("failed: {error}\n"),
    });
    expected.assert_eq(&reported.join("\n"));
}

fn initialized() -> Value {
    json!({ "result": {
        "protocolVersion": 1,
        "agentInfo": { "name": "fake", "version": "0.1" },
        "agentCapabilities": { "loadSession": true },
        "authMethods": [{ "id": "key", "name": "API key" }, { "id": "login", "name": "Log in" }],
    } })
}

fn opened() -> Value {
    json!({ "result": {
        "sessionId": "s",
        "modes": { "availableModes": [{ "id": "plan", "name": "Plan" }] },
        "models": { "availableModels": [{ "modelId": "m", "name": "M" }] },
        "configOptions": [{ "id": "x", "category": "model", "type": "select",
            "options": [{ "value": "big", "name": "Big" }] }],
    } })
}

#[tokio::test]
async fn a_session_is_opened_step_by_step() {
    check(
        settings(),
        &[initialized(), opened()],
        expect![[r#"
            session/new {"cwd":"/w","mcpServers":[]}
            open: s
        "#]],
    )
    .await;
    let configured = HostSettings {
        mcp_servers: vec![json!({ "name": "db", "command": "db-mcp", "args": [], "env": [] })],
        auth_method: Some("key".to_owned()),
        mode: Some("Plan".to_owned()),
        model: Some("big".to_owned()),
        ..settings()
    };
    let ok = json!({ "result": null });
    check(
        configured,
        &[initialized(), ok.clone(), opened(), ok.clone(), ok.clone()],
        expect![[r#"
            authenticate {"methodId":"key"}
            session/new {"cwd":"/w","mcpServers":[{"name":"db","command":"db-mcp","args":[],"env":[]}]}
            session/set_mode {"sessionId":"s","modeId":"plan"}
            session/set_config_option {"sessionId":"s","configId":"x","value":"big"}
            open: s
        "#]],
    )
    .await;
    let levels = json!({ "result": {
        "configOptions": [{ "id": "t", "category": "thought_level", "type": "select",
            "options": [{ "value": "hi", "name": "High" }] }],
    } });
    let thinks = HostSettings {
        model: Some("big".to_owned()),
        thinking: Some("high".to_owned()),
        ..settings()
    };
    // The levels are those of the model.
    check(
        thinks.clone(),
        &[initialized(), opened(), levels, ok.clone()],
        expect![[r#"
            session/new {"cwd":"/w","mcpServers":[]}
            session/set_config_option {"sessionId":"s","configId":"x","value":"big"}
            session/set_config_option {"sessionId":"s","configId":"t","value":"hi"}
            open: s
        "#]],
    )
    .await;
    // It keeps its own.
    check(
        thinks,
        &[initialized(), opened(), ok.clone()],
        expect![[r#"
            session/new {"cwd":"/w","mcpServers":[]}
            session/set_config_option {"sessionId":"s","configId":"x","value":"big"}
            open: s
        "#]],
    )
    .await;
    let other = HostSettings { model: Some("M".to_owned()), ..settings() };
    check(
        other,
        &[initialized(), opened(), ok],
        expect![[r#"
        session/new {"cwd":"/w","mcpServers":[]}
        session/set_model {"sessionId":"s","modelId":"m"}
        open: s
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_model_that_the_agent_has_not_is_chosen_by_its_providers_name() {
    let ok = json!({ "result": null });
    let mapped = |model: &str| HostSettings {
        model: Some(model.to_owned()),
        model_there: Some("M".to_owned()),
        ..settings()
    };
    check(
        mapped("fast"),
        &[initialized(), opened(), ok.clone()],
        expect![[r#"
            session/new {"cwd":"/w","mcpServers":[]}
            session/set_model {"sessionId":"s","modelId":"m"}
            open: s
        "#]],
    )
    .await;
    check(
        mapped("big"),
        &[initialized(), opened(), ok],
        expect![[r#"
            session/new {"cwd":"/w","mcpServers":[]}
            session/set_config_option {"sessionId":"s","configId":"x","value":"big"}
            open: s
        "#]],
    )
    .await;
}

#[tokio::test]
async fn what_goes_wrong_is_said() {
    let with = |auth: Option<&str>, mode: Option<&str>| HostSettings {
        auth_method: auth.map(str::to_owned),
        mode: mode.map(str::to_owned),
        ..settings()
    };
    let refused =
        |code: i64, message: &str| json!({ "error": { "code": code, "message": message } });
    let v2 = json!({ "result": { "protocolVersion": 2 } });
    check(
        with(None, None),
        &[v2],
        expect![[r"
        failed: the agent speaks protocol version 2, and this client only version 1
    "]],
    )
    .await;
    check(
        with(None, None),
        &[json!({ "result": {} })],
        expect![[r"
        failed: the agent's answer to `initialize` can't be read: it has no `protocolVersion`
    "]],
    )
    .await;
    check(
        with(None, None),
        &[refused(-32603, "no")],
        expect![[r"
        failed: the agent answered `initialize` with error -32603: no
    "]],
    )
    .await;
    check(
        with(Some("oauth"), None),
        &[initialized()],
        expect![[r"
        failed: the agent offers no auth method `oauth`; it offers `key`, `login`
    "]],
    )
    .await;
    check(
        with(Some("key"), None),
        &[initialized(), refused(1, "bad key")],
        expect![[r#"
        authenticate {"methodId":"key"}
        failed: the agent answered `authenticate` with error 1: bad key
    "#]],
    )
    .await;
    check(
        with(None, None),
        &[initialized(), refused(-32000, "Authentication required")],
        expect![[r#"
            session/new {"cwd":"/w","mcpServers":[]}
            failed: the agent answered `session/new` with error -32000: Authentication required; set `auth_method` to one that the agent offers (`key`, `login`), or log in with its own command
        "#]],
    )
    .await;
    check(
        with(None, Some("yolo")),
        &[initialized(), opened()],
        expect![[r#"
        session/new {"cwd":"/w","mcpServers":[]}
        failed: the agent offers no mode `yolo`; it offers `plan`
    "#]],
    )
    .await;
    check(
        with(None, None),
        &[initialized(), json!({ "result": {} })],
        expect![[r#"
        session/new {"cwd":"/w","mcpServers":[]}
        failed: the agent's answer to `session/new` can't be read: it has no `sessionId`
    "#]],
    )
    .await;
}

#[tokio::test]
async fn client_and_agent_say_who_they_are() {
    for terminals in [true, false] {
        let Scene { host, mut agent, .. } = start(HostSettings { terminals, ..settings() });
        assert_eq!(host.agent_info(), None);
        let (done, ()) = tokio::join!(host.initialize(), async {
            let request = agent.expect("initialize").await;
            let said = json!({
                "protocolVersion": 1,
                "clientCapabilities": {
                    "fs": { "readTextFile": true, "writeTextFile": true },
                    "terminal": terminals,
                    "elicitation": { "form": {} },
                },
                "clientInfo": { "name": "eisen-core", "version": env!("CARGO_PKG_VERSION") },
            });
            assert_eq!(request["params"], said);
            agent.answer(&request, initialized()["result"].clone()).await;
        });
        done.unwrap();
        let known = AgentInfo {
            name: Some("fake".to_owned()),
            version: Some("0.1".to_owned()),
            load_session: true,
            resume_session: false,
            fork_session: false,
            embedded_context: false,
            images: false,
            auth_methods: vec!["key".to_owned(), "login".to_owned()],
        };
        assert_eq!(host.agent_info(), Some(&known));
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_says_nothing_times_out() {
    let Scene { host, mut agent, .. } = start(settings());
    let error = host.initialize().await.unwrap_err();
    assert_eq!(error.to_string(), "the agent did not answer `initialize` within 60 s");
    // Its late answer is dropped.
    let request = agent.expect("initialize").await;
    agent.answer(&request, initialized()["result"].clone()).await;
    let error = host.new_session().await.unwrap_err();
    assert_eq!(error.to_string(), "the agent did not answer `session/new` within 60 s");
}

#[tokio::test]
async fn the_last_session_is_opened_again_where_the_agent_can() {
    let able = |capabilities: Value| json!({ "result": { "protocolVersion": 1, "agentCapabilities": capabilities } });
    let both = able(json!({ "loadSession": true, "sessionCapabilities": { "resume": {} } }));
    let load = able(json!({ "loadSession": true, "sessionCapabilities": { "resume": null } }));
    let neither = able(json!({ "loadSession": false }));
    let ok = json!({ "result": {} });
    let check = async |answers: &[Value], settings: HostSettings, expected: Expect| {
        check_opening(settings, Some("old"), answers, expected).await;
    };
    check(
        &[both.clone(), ok.clone()],
        settings(),
        expect![[r#"
            session/resume {"sessionId":"old","cwd":"/w","mcpServers":[]}
            open: old
        "#]],
    )
    .await;
    check(
        &[load.clone(), json!({ "result": null })],
        settings(),
        expect![[r#"
            session/load {"sessionId":"old","cwd":"/w","mcpServers":[]}
            open: old
        "#]],
    )
    .await;
    check(
        &[neither, opened()],
        settings(),
        expect![[r#"
            session/new {"cwd":"/w","mcpServers":[]}
            open: s
        "#]],
    )
    .await;
    check(
        &[load.clone(), json!({ "error": { "code": -32002, "message": "gone" } }), opened()],
        settings(),
        expect![[r#"
            session/load {"sessionId":"old","cwd":"/w","mcpServers":[]}
            session/new {"cwd":"/w","mcpServers":[]}
            open: s
        "#]],
    )
    .await;
    // Mode and model are set again, if the agent says again what it offers.
    let configured = HostSettings { mode: Some("plan".to_owned()), ..settings() };
    check(
        &[both, opened(), ok.clone()],
        configured.clone(),
        expect![[r#"
            session/resume {"sessionId":"old","cwd":"/w","mcpServers":[]}
            session/set_mode {"sessionId":"old","modeId":"plan"}
            open: old
        "#]],
    )
    .await;
    check(
        &[load, ok],
        configured,
        expect![[r#"
            session/load {"sessionId":"old","cwd":"/w","mcpServers":[]}
            open: old
        "#]],
    )
    .await;
}
