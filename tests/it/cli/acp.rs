//! `acp`: the team as one ACP agent.

use std::process::Stdio;
use std::sync::mpsc;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ContentBlock, InitializeRequest, NewSessionRequest, PromptRequest, SessionNotification,
    SessionUpdate, StopReason, TextContent,
};
use agent_client_protocol::{Agent, ByteStreams, Client};
use serde_json::json;
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

use crate::harness::{Editor, Stage, agent};

fn gateway(stage: &Stage, args: &[&str]) -> Editor {
    Editor::start(&mut stage.eisen_core(args))
}

/// A team whose orchestrator may read what is in `src/api`.
fn configure(stage: &Stage) {
    stage.configure(
        "[orchestrator]\nagent = \"api\"",
        vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**").loads("")],
    );
}

/// Opens a session in the workspace; returns its id.
fn open(client: &mut Editor, stage: &Stage) -> String {
    let opened = client.call("session/new", &json!({"cwd": stage.in_shop(""), "mcpServers": []}));
    opened["result"]["sessionId"].as_str().unwrap().to_owned()
}

/// What came first in a turn.
fn prompt(client: &mut Editor, session: &str, text: &str) -> String {
    let id = client.begin(session, text);
    let answer = client.answer(&id);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    client.reported()
}

#[tokio::test]
async fn a_client_of_the_protocols_library_works_with_the_team() {
    let stage = Stage::new();
    configure(&stage);
    let team = stage.up();
    team.steer_when_ready(&["ui", "api"]);
    let mut child = tokio::process::Command::from(stage.eisen_core(&["acp"]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let stdin = child.stdin.take().unwrap().compat_write();
    let stdout = child.stdout.take().unwrap().compat();
    let (sender, said) = mpsc::channel();
    let shop = stage.in_shop("");
    Client
        .v1()
        .on_receive_notification(
            async move |reported: SessionNotification, _| {
                match reported.update {
                    SessionUpdate::AgentMessageChunk(chunk) => {
                        if let ContentBlock::Text(text) = chunk.content {
                            sender.send(text.text).unwrap();
                        }
                    }
                    SessionUpdate::AvailableCommandsUpdate(commands) => {
                        let names = commands.available_commands.into_iter().map(|it| it.name);
                        sender.send(names.collect::<Vec<_>>().join(" ")).unwrap();
                    }
                    _ => {}
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_with(ByteStreams::new(stdin, stdout), |team: ConnectionTo<Agent>| async move {
            let initialize = InitializeRequest::new(ProtocolVersion::V1);
            let introduced = team.send_request(initialize).block_task().await?;
            assert_eq!(introduced.agent_info.unwrap().title.as_deref(), Some("Team shop"));
            let opened = team.send_request(NewSessionRequest::new(shop)).block_task().await?;
            for prompt in ["read src/ui/app.ts", "/select ui", "read src/ui/app.ts"] {
                let prompt = vec![ContentBlock::Text(TextContent::new(prompt))];
                let request = PromptRequest::new(opened.session_id.clone(), prompt);
                let ended = team.send_request(request).block_task().await?;
                assert_eq!(ended.stop_reason, StopReason::EndTurn);
            }
            Ok(())
        })
        .await
        .unwrap();
    let said: Vec<_> = said.try_iter().collect();
    let commands = "agents select team blocked allow deny";
    assert_eq!(said[0], commands);
    assert!(said[1].starts_with("refused: Outside agent zone: src/ui/app.ts."), "{said:?}");
    assert_eq!(said[2], commands);
    assert_eq!(said[3], "This session is at `ui` now.");
    assert!(said[4].starts_with("got "), "{said:?}");
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}

#[test]
fn a_file_starts_the_team_and_a_session_outlasts_its_client() {
    let stage = Stage::new();
    configure(&stage);
    let mut first = gateway(&stage, &["acp", "-c", "eisen.toml"]);
    first.initialize(&json!({}));
    // Some clients end all processes that descend from an agent.
    assert_eq!(first.children(), "");
    let session = open(&mut first, &stage);
    assert_eq!(prompt(&mut first, &session, "read src/api/cart.rs"), "got api\n");
    let said = prompt(&mut first, &session, "/select nobody");
    assert!(said.ends_with("The session stays at `api`."), "{said}");
    let said = prompt(&mut first, &session, "/agents");
    // It may still be starting: only `api`, where sessions begin, was waited for.
    assert!(said.starts_with("Agents:\n- `ui`: "), "{said}");
    assert!(said.contains(", zone `src/ui/**`\n- `api`: ready, zone `src/api/**`"), "{said}");
    first.close();
    assert_eq!(first.end(), (0, String::new()));

    let mut second = gateway(&stage, &["acp", "-c", "eisen.toml"]);
    let mut third = gateway(&stage, &["acp", "--team", "shop"]);
    for client in [&mut second, &mut third] {
        client.initialize(&json!({}));
        let load = json!({"sessionId": session, "cwd": stage.in_shop(""), "mcpServers": []});
        let loaded = client.call("session/load", &load);
        assert!(loaded["error"].is_null(), "{loaded}");
    }
    assert!(prompt(&mut second, &session, "read src/api/cart.rs").starts_with("got "));
    assert!(third.reported().starts_with("got "));
    let said = prompt(&mut third, &session, "/select ui --history");
    assert_eq!(said, "This session is at `ui` now.");
    assert_eq!(stage.run(&["down"]).code, 0);
    assert_eq!(third.end().0, 1);
}

#[test]
fn a_session_begins_at_the_agent_that_the_file_names() {
    let stage = Stage::new();
    let keys = "[orchestrator]\nagent = \"api\"\n[gateway]\ndefault = \"ui\"";
    let agents = vec![agent("api").zone("src/api/**"), agent("ui").zone("src/ui/**")];
    let team = stage.team(keys, agents);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let mut client = gateway(&stage, &["acp"]);
    client.initialize(&json!({}));
    let session = open(&mut client, &stage);
    assert_eq!(prompt(&mut client, &session, "read src/ui/app.ts"), "got ui\n");
    // One that has left the team begins none.
    port.call("remove_agent", &json!({"agent_id": "ui"})).unwrap();
    let session = open(&mut client, &stage);
    assert_eq!(prompt(&mut client, &session, "read src/api/cart.rs"), "got api\n");
}

#[test]
fn of_two_clients_the_first_that_decides_decides_for_both() {
    let stage = Stage::new();
    configure(&stage);
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui", "api"]);
    let (mut one, mut other) = (gateway(&stage, &["acp"]), gateway(&stage, &["acp"]));
    for client in [&mut one, &mut other] {
        client.initialize(&json!({}));
    }
    let session = open(&mut one, &stage);
    let load = json!({"sessionId": session, "cwd": stage.in_shop(""), "mcpServers": []});
    let loaded = other.call("session/load", &load);
    assert!(loaded["error"].is_null(), "{loaded}");
    let turn = one.begin(&session, "ask src/api/cart.rs");
    let asked = one.expect(&json!({"method": "session/request_permission"}));
    let params = other.serve(
        "session/request_permission",
        &json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}}),
    );
    assert_eq!(params, asked["params"]);
    let settled = one.expect(&json!({"method": "$/cancel_request"}));
    assert_eq!(settled["params"]["requestId"], asked["id"]);
    assert_eq!(one.answer(&turn)["result"]["stopReason"], "end_turn");
    assert_eq!(one.reported(), other.reported());
    one.close();
    assert_eq!(one.end().0, 0);

    // The other one still has it. When it leaves in a turn, nobody waits for that.
    other.begin(&session, "wait");
    port.expect(&json!({"type": "usage", "agent_id": "api", "used": 7}));
    other.kill();
    port.expect(&json!({"type": "turn", "agent_id": "api", "stop_reason": "cancelled"}));
}

#[test]
fn a_file_does_not_take_another_team_of_its_name() {
    let stage = Stage::new();
    configure(&stage);
    let team = stage.up();
    team.steer_when_ready(&["ui", "api"]);
    stage.file("elsewhere/src/app.ts", "");
    let other = stage.read("eisen.toml").replace("\"shop\"\nlisten", "\"elsewhere\"\nlisten");
    stage.file("other.toml", &other);
    let ended = stage.run(&["acp", "-c", "other.toml"]);
    assert_eq!((ended.code, &*ended.stdout), (1, ""));
    assert!(ended.stderr.contains("the team `shop` that runs is another one"), "{}", ended.stderr);
}
