#![allow(clippy::unwrap_used)]

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use eisen_base::task;
use serde_json::json;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::serve::run_file::Remains;
use crate::serve::run_file::RunInfo;
use crate::serve::tests::fake::Fake;
use crate::serve::{Limits, RunFile, Server, Tokens};
use crate::wire::{
    AgentDetails, AgentParams, Empty, ListAgents, PromptAgent, PromptParams, StopAgent,
};

fn info(team: &str, address: &str) -> RunInfo {
    let address: SocketAddr = address.parse().unwrap();
    let remains = Remains::default();
    let (name, port) = (team.to_owned(), address.port());
    RunInfo { team: name, pid: 1, port, address, token: team.to_owned(), challenge: true, remains }
}

fn outside() -> Environment {
    Environment::default()
}

#[test]
fn the_team_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let find = |environment: &Environment, team| {
        Target::find(environment, dir.path(), team, None).map_err(|error| error.to_string())
    };
    let none = find(&outside(), None).err().unwrap();
    assert_eq!(none, "no team is running; start one with `eisen-core up`");

    let shop = info("shop", "0.0.0.0:4711");
    let _shop = RunFile::create(dir.path(), "shop", shop.address, &shop.token).unwrap();
    let found = find(&outside(), None).unwrap();
    assert_eq!(found.token, "shop");
    assert_eq!(found.addresses, ["127.0.0.1:4711".parse().unwrap()]);
    assert_eq!(
        find(&outside(), Some("api")).err().unwrap(),
        "no team `api` is running; there are shop"
    );

    let api = info("api", "[::1]:4712");
    let _api = RunFile::create(dir.path(), "api", api.address, &api.token).unwrap();
    assert_eq!(
        find(&outside(), None).err().unwrap(),
        "several teams are running: say which with --team: api, shop"
    );
    assert!(find(&outside(), Some("api")).unwrap() == Target::from(api));
    let inside = Environment { team: Some("shop".to_owned()), ..outside() };
    assert_eq!(find(&inside, None).unwrap().team(), "shop");
    assert_eq!(find(&inside, Some("api")).unwrap().team(), "api");
}

#[test]
fn a_run_of_observe_counts_only_where_no_team_runs() {
    let dir = tempfile::tempdir().unwrap();
    let address = "127.0.0.1:4711".parse().unwrap();
    let name = format!("observe-{}", std::process::id());
    let _observe = RunFile::create(dir.path(), &name, address, "observe").unwrap();
    let find = |team| Target::find(&outside(), dir.path(), team, None).unwrap();
    assert_eq!(find(None).token, "observe");
    let _shop = RunFile::create(dir.path(), "shop", address, "shop").unwrap();
    assert_eq!(find(None).token, "shop");
    assert_eq!(find(Some(&name)).token, "observe");
}

#[test]
fn the_orchestrator_talks_to_its_own_team() {
    let dir = tempfile::tempdir().unwrap();
    let shop = info("shop", "127.0.0.1:4711");
    let _shop = RunFile::create(dir.path(), "shop", shop.address, &shop.token).unwrap();
    let inside = Environment {
        team: Some("inner".to_owned()),
        port: Some("4713".to_owned()),
        address: None,
        token: Some("orchestrator".to_owned()),
        tool_token: None,
        here: vec!["shop".to_owned()],
    };
    for team in [None, Some("inner")] {
        let found = Target::find(&inside, dir.path(), team, None).unwrap();
        assert_eq!(found.token, "orchestrator");
        assert_eq!(found.addresses[0], "127.0.0.1:4713".parse().unwrap());
    }
    let by_port = |port| Target::find(&Environment::default(), dir.path(), None, Some(port));
    assert!(matches!(by_port(1), Err(ClientError::NoTeamOn(1))));
    assert_eq!(Target::find(&inside, dir.path(), Some("shop"), None).unwrap().token, "shop");
    let address = Some("192.0.2.1:4713".to_owned());
    let beyond = Target::find(&Environment { address, ..inside.clone() }, dir.path(), None, None);
    assert_eq!(beyond.unwrap().addresses, ["192.0.2.1:4713".parse().unwrap()]);
    // An agent that is no orchestrator has a port and no token.
    let agent = Environment { token: None, ..inside.clone() };
    assert_eq!(Target::find(&agent, dir.path(), None, None).unwrap().token, "shop");
    let broken = Environment { port: Some("x".to_owned()), ..inside };
    assert!(matches!(Target::find(&broken, dir.path(), None, None), Err(ClientError::Port(_))));
}

/// A running port, and how to reach it.
async fn port(limits: Limits) -> (Target, Arc<Fake>, CancellationToken) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addresses = vec![listener.local_addr().unwrap()];
    let tokens = Tokens::generate(None).unwrap();
    let fake = Fake::new(64);
    let target = Target {
        team: "shop".to_owned(),
        addresses,
        token: tokens.owner().to_owned(),
        proves: true,
    };
    let bus = fake.bus.clone();
    let server = Server::new(listener, bus, fake.clone(), fake.clone(), tokens, limits).unwrap();
    let cancel = CancellationToken::new();
    task::spawn(server.run(cancel.clone()));
    (target, fake, cancel)
}

async fn agents(target: &Target) -> Result<Vec<AgentDetails<'static>>, ClientError> {
    Connection::open(target).await?.call::<ListAgents>(&Empty {}).await
}

#[tokio::test]
async fn a_call_gets_its_answer() {
    let (target, ..) = port(Limits::default()).await;
    assert_eq!(agents(&target).await.unwrap()[0].status.agent_id, "ui");
    let mut team = Connection::open(&target).await.unwrap();
    let error = team.call::<StopAgent>(&AgentParams { agent_id: "nobody".into() }).await;
    assert!(matches!(error, Err(ClientError::Refused { code: 404, .. })), "{error:?}");
    // Larger than what the pipes between hold, both ways.
    let (agent_id, text) = ("ui".to_owned(), Some("x".repeat(900_000)));
    let prompt = PromptParams {
        agent_id: agent_id.into(),
        text,
        session_id: None,
        blocks: None,
        stream: None,
    };
    assert_eq!(team.call::<PromptAgent>(&prompt).await.unwrap().text, "Done.");
}

#[tokio::test]
async fn what_keeps_a_call_from_its_answer_is_said() {
    let (target, _, cancel) = port(Limits { max_connections: 0, ..Limits::default() }).await;
    let full = agents(&target).await.unwrap_err();
    assert!(matches!(full, ClientError::Refused { code: 500, .. }), "{full}");
    cancel.cancel();

    let (target, ..) = port(Limits::default()).await;
    let stranger = Target { token: "wrong".to_owned(), ..target.clone() };
    let refused = agents(&stranger).await.unwrap_err();
    assert_eq!(refused.to_string(), "wrong token (code 401)");

    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let nobody = Target { addresses: vec![free], ..target };
    let error = agents(&nobody).await.unwrap_err();
    assert!(matches!(error, ClientError::Connect { .. }), "{error}");
}

/// The output of an editor that is gone; signals the first failed write.
struct Gone(Option<oneshot::Sender<()>>);

impl AsyncWrite for Gone {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.take().unwrap().send(()).unwrap();
        Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn an_editor_whose_output_breaks_before_its_input_ends_has_left() {
    let (target, ..) = port(Limits::default()).await;
    let (broke, broken) = oneshot::channel();
    let (mut editor, input) = tokio::io::duplex(64);
    // The agent repeats it.
    editor.write_all(b"hello").await.unwrap();
    let leaving = async {
        broken.await.unwrap();
        drop(editor);
    };
    let (ended, ()) =
        tokio::join!(attach::attach(&target, "ui", input, Gone(Some(broke))), leaving);
    ended.unwrap();
}

/// A server that is none of ours gets no token: it may have taken the port of a team that ended.
#[tokio::test]
async fn no_token_is_sent_to_whoever_has_the_port() {
    for knows_challenges in [true, false] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let serving = task::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let (read, mut write) = stream.into_split();
            let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(read));
            let mut heard = String::new();
            while let Ok(Some(line)) = lines.next_line().await {
                heard += &line;
                let answer = if knows_challenges {
                    json!({ "type": "rpc_result", "id": null, "result": { "challenge": "00" } })
                } else {
                    json!({ "type": "rpc_error", "id": null, "error": { "code": 404, "message": "x" } })
                };
                let _ = write.write_all(format!("{answer}\n").as_bytes()).await;
            }
            heard
        });
        let token = format!("{}{}", crate::tokens::PREFIX, "ab".repeat(32));
        let environment =
            Environment { port: Some(port), token: Some(token.clone()), ..Environment::default() };
        let target = Target::find(&environment, std::path::Path::new("/nonexistent"), None, None);
        drop(Connection::open(&target.unwrap()).await);
        let heard = serving.await.unwrap();
        assert!(heard.contains("auth_challenge") && !heard.contains("abab"), "{heard}");
    }
}
