//! Streams into a real server of NATS, which is away for a while.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use async_nats::jetstream::{self, consumer};
use futures_util::StreamExt as _;

use super::*;
use crate::model::{NatsAccess, NatsTarget, SecretText};

/// A server that keeps what it stored; ends with the test.
struct NatsServer {
    port: u16,
    store: TempDir,
    child: Option<Child>,
}

impl NatsServer {
    /// None where the program is not installed.
    fn start() -> Option<Self> {
        if Command::new("nats-server").arg("--version").output().is_err() {
            eprintln!("skipped: nats-server is not installed");
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self { port, store: TempDir::new().unwrap(), child: None };
        server.run();
        Some(server)
    }

    /// A server that asks for signed logins, and has no `JetStream`.
    fn start_signed() -> Option<Self> {
        let mut server = Self::start()?;
        server.kill();
        let path = server.store.path().join("nats.conf");
        std::fs::write(&path, include_str!("nats.conf")).unwrap();
        server.execute(&["-c", path.to_str().unwrap()]);
        Some(server)
    }

    fn run(&mut self) {
        let store = self.store.path().to_str().unwrap().to_owned();
        self.execute(&["-js", "-sd", &store]);
    }

    fn execute(&mut self, arguments: &[&str]) {
        let mut command = Command::new("nats-server");
        command.args(["-a", "127.0.0.1", "-p", &self.port.to_string()]).args(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().unwrap());
    }

    fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The messages of the stream, with their subjects, once there are so many.
    async fn messages(&self, count: usize) -> Vec<(String, Value)> {
        let mut client = None;
        eventually("the server answers", async || {
            client = async_nats::connect(self.url()).await.ok();
            client.is_some()
        })
        .await;
        let context = jetstream::new(client.unwrap());
        eventually("all messages", async || match context.get_stream("EISEN").await {
            Ok(stream) => stream.cached_info().state.messages >= count as u64,
            Err(_) => false,
        })
        .await;
        let stream = context.get_stream("EISEN").await.unwrap();
        assert_eq!(stream.cached_info().state.messages, count as u64);
        let config = consumer::pull::Config::default();
        let consumer = stream.create_consumer(config).await.unwrap();
        let messages = consumer.messages().await.unwrap().take(count);
        let read = messages.map(|message| {
            let message = message.unwrap();
            (message.subject.to_string(), serde_json::from_slice(&message.payload).unwrap())
        });
        read.collect().await
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn nats(bench: &Bench, server: &NatsServer) -> StreamSpec {
    let target = StreamTarget::Nats(NatsTarget {
        access: NatsAccess { url: SecretText::new(server.url()), token: None, credentials: None },
        subject: None,
        stream: Some("EISEN".to_owned()),
        inbox: None,
    });
    StreamSpec { target, from_start: true, ..bench.file() }
}

/// The texts of one session's messages.
fn of(messages: &[(String, Value)], agent: &str) -> Vec<u64> {
    let of_agent = messages.iter().filter(|(_, line)| line["agent_id"] == agent);
    of_agent.filter_map(|(_, line)| line["payload"]["t"].as_u64()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nats_stores_each_event_once_also_when_it_was_away_and_when_events_come_twice() {
    let Some(mut server) = NatsServer::start() else { return };
    let bench = Bench::new().await;
    bench.append("ui/s", EventType::MESSAGE_USER, 0..300).await;
    bench.append("a.b/s", EventType::TURN_END, 300..400).await;
    bench.streams.start(&nats(&bench, &server)).await;
    let messages = server.messages(400).await;
    assert_eq!(of(&messages, "ui"), (0..300).collect::<Vec<_>>());
    assert_eq!(of(&messages, "a.b"), (300..400).collect::<Vec<_>>());
    let subject = |agent: &str| {
        let found = messages.iter().find(|(_, line)| line["agent_id"] == agent);
        found.map(|(subject, _)| subject.clone()).unwrap()
    };
    assert_eq!(subject("ui"), "eisen.shop.ui.message.user");
    assert_eq!(subject("a.b"), "eisen.shop.a_b.turn.end");

    server.kill();
    bench.append("ui/s", EventType::MESSAGE_USER, 400..600).await;
    eventually("it fails", async || bench.report().failures > 0).await;
    server.run();
    let messages = server.messages(600).await;
    assert_eq!(of(&messages, "ui"), (0..300).chain(400..600).collect::<Vec<_>>());

    // All comes again, and is known.
    bench.streams.end("audit", true).await;
    bench.streams.start(&nats(&bench, &server)).await;
    eventually("all is delivered again", async || bench.report().delivered == 600).await;
    assert_eq!(server.messages(600).await.len(), 600);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_over_the_servers_limit_is_put_aside_and_a_missing_stream_is_named() {
    let Some(server) = NatsServer::start() else { return };
    let bench = Bench::new().await;
    let large = json!({ "t": 0, "text": "x".repeat(2 << 20) });
    let place = Place::Agent(AgentId::new("ui"));
    bench.journal.append(NewEvent::new(place, EventType::REPORT, &large)).await.unwrap();
    bench.append("ui/s", EventType::MESSAGE_USER, 1..3).await;
    let mut spec = nats(&bench, &server);
    let StreamTarget::Nats(target) = &mut spec.target else { panic!("no NATS") };
    let stream = target.stream.take();
    bench.streams.start(&spec).await;
    let told = |report: &StreamReport| report.reason.as_deref().unwrap_or_default().to_owned();
    eventually("it is named", async || {
        let why = told(&bench.report());
        why.contains("max payload size exceeded") || why.contains("no stream of JetStream takes")
    })
    .await;
    bench.streams.end("audit", true).await;
    let StreamTarget::Nats(target) = &mut spec.target else { panic!("no NATS") };
    target.stream = stream;
    bench.streams.start(&spec).await;
    assert_eq!(of(&server.messages(2).await, "ui"), [1, 2]);
    eventually("it is counted", async || bench.report().dead == 1).await;
    assert_eq!(bench.report().state, StreamState::Ok);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_challenge_of_a_server_is_signed_by_a_file_of_credentials() {
    let Some(server) = NatsServer::start_signed() else { return };
    let bench = Bench::new().await;
    bench.append("ui/s", EventType::MESSAGE_USER, 0..3).await;
    let credentials = include_str!("nats.creds");
    let file = bench.folder.path().join("nats.creds");
    let mut spec = nats(&bench, &server);
    let StreamTarget::Nats(target) = &mut spec.target else { panic!("no NATS") };
    target.access.credentials = Some(file.clone());
    target.stream = None;
    // The key of another user, and the seed with a letter changed.
    let other = "SUAFOWQKAPQLWVJVDAITTA3LFINQ5HPSGZIATSKGGRYDUHL5BCMK6XS6U4";
    let (before, rest) = credentials.split_once("SUA").unwrap();
    let (_, after) = rest.split_once('\n').unwrap();
    for (text, why) in [
        (credentials.to_owned(), "no stream of JetStream takes"),
        (format!("{before}{other}\n{after}"), "authorization violation"),
        (credentials.replace("SUAAH", "SUAAX"), "its checksum is wrong"),
        (String::new(), "cannot parse user JWT"),
    ] {
        std::fs::write(&file, text).unwrap();
        bench.streams.start(&spec).await;
        let mut told = None;
        eventually(why, async || {
            told = bench.report().reason.clone();
            told.as_deref().is_some_and(|told| told.contains(why))
        })
        .await;
        bench.streams.end("audit", true).await;
    }
}
