//! An editor built on the protocol's own library.

use std::process::Stdio;
use std::sync::mpsc;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ClientCapabilities, ContentBlock, FileSystemCapabilities, InitializeRequest, NewSessionRequest,
    PromptRequest, ReadTextFileRequest, ReadTextFileResponse, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome,
    SessionNotification, SessionUpdate, StopReason, TextContent,
};
use agent_client_protocol::{Agent, ByteStreams, Client};
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

use crate::harness::{Stage, agent};

#[tokio::test]
async fn an_editor_of_another_make_works() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/ui/**")]);
    team.steer_when_ready(&["ui"]);
    let command = stage.eisen_core(&["attach", "ui"]);
    let mut child = tokio::process::Command::from(command)
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
                if let SessionUpdate::AgentMessageChunk(chunk) = reported.update
                    && let ContentBlock::Text(text) = chunk.content
                {
                    sender.send(text.text).unwrap();
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |_: ReadTextFileRequest, responder, _| {
                responder.respond(ReadTextFileResponse::new("unsaved"))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |asked: RequestPermissionRequest, responder, _| {
                let chosen = SelectedPermissionOutcome::new(asked.options[0].option_id.clone());
                let outcome = RequestPermissionOutcome::Selected(chosen);
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(ByteStreams::new(stdin, stdout), |team: ConnectionTo<Agent>| async move {
            let files = FileSystemCapabilities::new().read_text_file(true);
            let capabilities = ClientCapabilities::new().fs(files);
            let initialize = InitializeRequest::new(ProtocolVersion::V1);
            let introduced = team
                .send_request(initialize.client_capabilities(capabilities))
                .block_task()
                .await?;
            assert_eq!(introduced.agent_info.unwrap().name, "ui");
            let opened = team.send_request(NewSessionRequest::new(shop)).block_task().await?;
            for prompt in
                ["read src/ui/app.ts", "read src/api/cart.rs", "ask src/ui/app.ts", "run pwd"]
            {
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
    assert_eq!(said[0], "got unsaved");
    assert!(said[1].starts_with("refused: Outside agent zone: src/api/cart.rs."), "{said:?}");
    // The first option that was offered.
    assert_eq!(said[2], "allow_always");
    assert_eq!(said[3].trim_end(), stage.in_shop("").trim_end_matches('/'));
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}
