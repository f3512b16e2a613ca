//! The team as one ACP agent, by requests with server-sent events, at an address of its own.

use std::io::Read as _;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ContentBlock, InitializeRequest, LoadSessionRequest, NewSessionRequest, PromptRequest,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionId, SessionNotification, SessionUpdate, StopReason,
    TextContent,
};
use agent_client_protocol::{Agent, Client, Error};
use agent_client_protocol_http::HttpClient;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::client::{Answer, Site};
use crate::harness::{Stage, Team, agent};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize",
    "params":{"protocolVersion":1,"clientCapabilities":{}}}"#;

/// A team whose gateway has an address of its own, and no page.
fn team(stage: &Stage) -> Team {
    let keys = "[orchestrator]\nagent = \"api\"\n[gateway]\nlisten = \"127.0.0.1:0\"";
    let agents = vec![agent("ui").zone("src/ui/**"), agent("api").zone("src/api/**").loads("")];
    stage.team(keys, agents)
}

/// Makes a token; returns it with the place of the gateway.
fn token(stage: &Stage, scope: &str) -> (String, Site) {
    let made = stage.run(&["web", "token", "--scope", scope, "--json"]).stdout;
    let made: Value = serde_json::from_str(&made).unwrap();
    let host = made["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    (made["token"].as_str().unwrap().to_owned(), Site { host })
}

/// Works with the team as a client of the protocol's library, which allows what it is asked for. What
/// the agent says goes to `said`.
async fn work(
    (url, token): (&str, &str),
    said: UnboundedSender<String>,
    work: impl AsyncFnOnce(ConnectionTo<Agent>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut headers = http::HeaderMap::new();
    headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
    let transport = HttpClient::builder(url)
        .configure_http(|client| client.no_proxy().default_headers(headers))
        .build()
        .unwrap();
    Client
        .v1()
        .on_receive_notification(
            async move |reported: SessionNotification, _| {
                if let SessionUpdate::AgentMessageChunk(chunk) = reported.update
                    && let ContentBlock::Text(text) = chunk.content
                {
                    let _ = said.send(text.text);
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |_: RequestPermissionRequest, responder, _| {
                let selected = SelectedPermissionOutcome::new("allow_once");
                let outcome = RequestPermissionOutcome::Selected(selected);
                responder.respond(RequestPermissionResponse::new(outcome))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(transport, async move |team: ConnectionTo<Agent>| {
            let initialize = InitializeRequest::new(ProtocolVersion::V1);
            let introduced = team.send_request(initialize).block_task().await?;
            assert_eq!(introduced.agent_info.unwrap().title.as_deref(), Some("Team shop"));
            work(team).await
        })
        .await
}

async fn prompt(team: &ConnectionTo<Agent>, session: &SessionId, text: &str) -> Result<(), Error> {
    let prompt = vec![ContentBlock::Text(TextContent::new(text))];
    let request = PromptRequest::new(session.clone(), prompt);
    let ended = team.send_request(request).block_task().await?;
    assert_eq!(ended.stop_reason, StopReason::EndTurn);
    Ok(())
}

async fn next(said: &mut UnboundedReceiver<String>) -> String {
    said.recv().await.unwrap()
}

#[tokio::test]
async fn the_protocols_own_client_works_with_the_team() {
    let stage = Stage::new();
    let team = team(&stage);
    let _port = team.steer_when_ready(&["ui", "api"]);
    let (token, Site { host }) = token(&stage, "control");
    let shop = stage.in_shop("");
    for scheme in ["http", "ws"] {
        let url = format!("{scheme}://{host}");
        let (sender, mut said) = unbounded_channel();
        let (others_sender, mut others_said) = unbounded_channel();
        work((&url, &token), sender, async |team| {
            let opened = team.send_request(NewSessionRequest::new(&shop)).block_task().await?;
            let session = opened.session_id;
            prompt(&team, &session, "ask src/api/cart.rs").await?;
            assert_eq!(next(&mut said).await, "allow_once");
            // Another client loads the session, and both see what is said.
            work((&url, &token), others_sender, async |other| {
                let load = LoadSessionRequest::new(session.clone(), &shop);
                other.send_request(load).block_task().await?;
                prompt(&other, &session, "read src/api/cart.rs").await
            })
            .await?;
            assert_eq!(next(&mut said).await, "got api\n");
            prompt(&team, &session, "/select ui").await?;
            assert_eq!(next(&mut said).await, "This session is at `ui` now.");
            prompt(&team, &session, "read src/ui/app.ts").await
        })
        .await
        .unwrap();
        assert_eq!(next(&mut said).await, "got ui\n");
        let mut others = Vec::new();
        others_said.recv_many(&mut others, 9).await;
        assert_eq!(others.last().unwrap(), "got api\n", "{others:?}");
    }
}

#[test]
fn a_client_that_vanishes_in_a_turn_cancels_it() {
    for scheme in ["http", "ws"] {
        let stage = Stage::new();
        let team = team(&stage);
        let mut port = team.steer_when_ready(&["ui", "api"]);
        let (token, Site { host }) = token(&stage, "control");
        let (url, shop) = (format!("{scheme}://{host}"), stage.in_shop(""));
        let (vanish, vanishes) = oneshot::channel::<()>();
        let (end, ends) = oneshot::channel::<()>();
        let client = async move {
            let (sender, _said) = unbounded_channel();
            let waits = work((&url, &token), sender, async |team| {
                let opened = team.send_request(NewSessionRequest::new(&shop)).block_task().await?;
                prompt(&team, &opened.session_id, "wait").await
            });
            tokio::select! {
                ended = waits => panic!("{ended:?}"),
                _ = vanishes => {}
            }
            // What the library still does is done by then.
            let _ = ends.await;
        };
        let client = std::thread::spawn(|| Runtime::new().unwrap().block_on(client));
        port.expect(&json!({"type": "usage", "agent_id": "api", "used": 7}));
        vanish.send(()).unwrap();
        port.expect(&json!({"type": "turn", "agent_id": "api", "stop_reason": "cancelled"}));
        end.send(()).unwrap();
        client.join().unwrap();
    }
}

#[test]
fn who_has_not_the_authority_of_a_person_gets_nothing() {
    let stage = Stage::new();
    let _team = team(&stage);
    let (control, site) = token(&stage, "control");
    let (deciding, _) = token(&stage, "decide");
    let scoped = stage.run(&["token", "create", "--owner", "ada", "--may", "control"]).stdout;
    let scoped = scoped.split_whitespace().next().unwrap();
    let bearer = |token: &str| format!("Authorization: Bearer {token}");
    let post = |lines: &[&str]| {
        let lines = [&["Content-Type: application/json"], lines].concat();
        site.send("POST /acp", &lines, INITIALIZE)
    };
    assert_eq!(post(&[]).status, 401);
    assert_eq!(post(&[&bearer(&"0".repeat(64))]).status, 401);
    assert_eq!(post(&[&bearer(&deciding)]).status, 403);
    assert_eq!(post(&[&bearer(scoped)]).status, 403);
    let control = bearer(&control);
    assert_eq!(post(&[&control, "Host: localhost"]).status, 421);
    assert_eq!(post(&[&control, "Origin: http://evil.example"]).status, 403);
    assert_eq!(post(&[&control, "Origin: null"]).status, 403);
    let events = ["Accept: text/event-stream", "Acp-Connection-Id: x"];
    for method in ["GET /acp", "DELETE /acp"] {
        assert_eq!(site.ask(method, &events).status, 401, "{method}");
        let foreign = [&events[..], &[&control, "Host: team.example"]].concat();
        assert_eq!(site.ask(method, &foreign).status, 421, "{method}");
        assert_eq!(site.ask(method, &[&events[..], &[&control]].concat()).status, 404, "{method}");
    }
    // The page is not there.
    for path in ["/", "/ws", "/metrics", "/enter?link=x"] {
        assert_eq!(site.get(path, &[&control]).status, 404, "{path}");
    }
    let answer = post(&[&control, &format!("Origin: http://{}", site.host)]);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.field("content-type"), Some("application/json"));
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(body["result"]["agentInfo"]["title"], "Team shop");
}

/// A connection, by hand.
struct ByHand<'a> {
    site: &'a Site,
    bearer: String,
    id: String,
}

impl<'a> ByHand<'a> {
    fn open(site: &'a Site, token: &str) -> Self {
        let bearer = format!("Authorization: Bearer {token}");
        let lines = ["Content-Type: application/json", &bearer];
        let answer = site.send("POST /acp", &lines, INITIALIZE);
        let id = answer.field("acp-connection-id").unwrap();
        let id = format!("Acp-Connection-Id: {id}");
        Self { site, bearer, id }
    }

    fn post(&self, lines: &[&str], body: &str) -> Answer {
        let ours = ["Content-Type: application/json", &self.bearer, &self.id];
        self.site.send("POST /acp", &[&ours, lines].concat(), body)
    }
}

#[test]
fn what_is_no_message_of_a_connection_is_refused() {
    let stage = Stage::new();
    let _team = team(&stage);
    let (token_of_ada, site) = token(&stage, "control");
    let (token_of_bob, _) = token(&stage, "control");
    let ada = ByHand::open(&site, &token_of_ada);
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}"#;
    assert_eq!(ada.post(&[], list).status, 202);
    for (body, code) in [("nonsense", -32700), ("[]", -32600), ("7", -32600)] {
        let answer = ada.post(&[], body);
        assert_eq!(answer.status, 400, "{body}");
        let answer: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &Value::Null));
    }
    let about = r#"{"jsonrpc":"2.0","id":3,"method":"m","params":{"sessionId":"s"}}"#;
    assert_eq!(ada.post(&["Acp-Session-Id: t"], about).status, 400);
    let json = "Content-Type: application/json";
    assert_eq!(site.send("POST /acp", &[json, &ada.bearer], list).status, 400);
    let text = ["Content-Type: text/plain", &ada.bearer, &ada.id];
    assert_eq!(site.send("POST /acp", &text, list).status, 415);
    let bearer = format!("Authorization: Bearer {token_of_bob}");
    assert_eq!(site.send("POST /acp", &[json, &bearer, &ada.id], list).status, 404);
    assert_eq!(site.ask("GET /acp", &[&ada.bearer, &ada.id, "Accept: text/html"]).status, 406);
    assert_eq!(site.ask("PUT /acp", &[&ada.bearer, &ada.id]).status, 405);
    // An `initialize` that fails opens nothing.
    let bad = INITIALIZE.replace(r#"{"protocolVersion":1,"clientCapabilities":{}}"#, "[]");
    let answer = site.send("POST /acp", &[json, &ada.bearer], &bad);
    assert_eq!((answer.status, answer.field("acp-connection-id")), (200, None));
    assert!(answer.body.contains("-32602"), "{answer:?}");
}

#[test]
fn a_stream_ends_with_its_connection_or_its_token() {
    let stage = Stage::new();
    let _team = team(&stage);
    let (token, site) = token(&stage, "control");
    let open = || {
        let it = ByHand::open(&site, &token);
        let lines = ["Accept: text/event-stream", &it.bearer, &it.id];
        // It ends with the stream, not a minute later.
        let (status, stream) = site.keep("/acp", &[&lines[..], &["Connection: close"]].concat());
        assert_eq!(status, 200);
        assert_eq!(site.ask("GET /acp", &lines).status, 409);
        (it, stream)
    };
    let end = |stream: &mut std::net::TcpStream| {
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        rest
    };
    let (first, mut of_first) = open();
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}"#;
    assert_eq!(first.post(&[], list).status, 202);
    let mut said = [0; 1];
    of_first.read_exact(&mut said).unwrap();
    assert_eq!(site.ask("DELETE /acp", &[&first.bearer, &first.id]).status, 202);
    end(&mut of_first);
    assert_eq!(first.post(&[], list).status, 404);
    let (second, mut of_second) = open();
    assert_eq!(stage.run(&["web", "revoke"]).code, 0);
    end(&mut of_second);
    assert_eq!(second.post(&[], list).status, 401);
}
