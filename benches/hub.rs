//! What a hub costs. The lines of a team's port on their way into NATS, against a bare client of NATS that
//! publishes the same bytes to the same server: a line a message, as they come from a bus, and also as the
//! messages of many lines that a team makes of them, which the bare client finds ready. And the delivery of
//! lines by a hub of 20 teams with 200 agents, against that by the port of one of these teams. Both sides of
//! a pair run at the same time, or take turns, so that the machine cancels out of the ratios.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::{Client, Subscriber};
use bytes::Bytes;
use eisen_core::bus::{Backlog, Bus};
use eisen_core::hub::{Hub, HubKey, HubSettings, MemberSettings, Neighbours, serve};
use eisen_core::model::{
    AgentId, Event, NatsAccess, SecretText, SessionId, SessionKey, SessionMode, Spent, TurnEnd,
};
use eisen_core::serve::{Limits, Server, Sources, Team, Tokens, bind, encode};
use futures_util::StreamExt as _;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::fanout::Publisher as _;
use crate::fanout::ours::Ours;
use crate::figures::within;

/// The rate into NATS may be so much of that of a bare client.
const LEAST_OF_BARE: f64 = 0.7;

/// The 99th percentile of delivery may be so many times that of a port.
const MOST_OF_PORT: f64 = 3.0;

/// Lines before their publisher waits until they have arrived.
const BATCH: u32 = 2_000;
const ROUNDS: usize = 41;

const TEAMS: usize = 20;
const AGENTS: usize = 10;

/// Each agent says something so often, for so long.
const EACH: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(15);

pub(crate) fn run() {
    let Some(nats) = Nats::start() else { return };
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let [rate, of_ready] = rates(&runtime, &nats);
    println!("lines into NATS: {rate:.2} of a bare client's rate (bound {LEAST_OF_BARE})");
    println!("and {of_ready:.2} of that of one that has ready messages of many lines");
    let delivery = delivery(&runtime, &nats);
    println!("p99 of delivery by the hub: {delivery:.2} of a port's (bound {MOST_OF_PORT})");
    assert!(rate >= LEAST_OF_BARE, "lines go into NATS too slowly");
    assert!(delivery <= MOST_OF_PORT, "the hub delivers too late");
}

/// The rate of lines, compared with a bare client's that publishes each as a message, and with one's that
/// publishes the team's messages.
fn rates(runtime: &Runtime, nats: &Nats) -> [f64; 2] {
    let mut ours = Ours::start(runtime);
    let cancel = CancellationToken::new();
    runtime.spawn(serve(nats.member("rate"), ours.gateway.clone(), cancel.clone()));
    let rates = runtime.block_on(async {
        let client = async_nats::connect(nats.url()).await.unwrap();
        let mut live = client.subscribe("eisen-hub.rate.up.live").await.unwrap();
        let mut bare = client.subscribe("bare").await.unwrap();
        let publisher = async_nats::connect(nats.url()).await.unwrap();
        client.flush().await.unwrap();
        // The first feed has arrived once nothing more comes.
        let mut seq = 1_000_000_000;
        while timeout(Duration::from_secs(3), live.next()).await.is_ok() {}
        let mut rates = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            let (begun, mut payloads, mut lines) = (Instant::now(), Vec::new(), 0);
            for sent in 0..BATCH {
                ours.publish(seq);
                seq += 1;
                if sent % 64 == 63 {
                    tokio::task::yield_now().await;
                }
            }
            while lines < u64::from(BATCH) {
                let payload = live.next().await.unwrap().payload;
                lines += lines_in(&payload) - 1;
                payloads.push(payload);
            }
            let took = begun.elapsed();
            let each = payloads.iter().flat_map(lines_of).collect();
            let of_ready = bare_time(&publisher, &mut bare, payloads).await;
            let of_lines = bare_time(&publisher, &mut bare, each).await;
            if round > 2 {
                for (rates, took) in rates.iter_mut().zip([took, of_lines, of_ready]) {
                    rates.push(1.0 / took.as_secs_f64());
                }
            }
        }
        rates
    });
    cancel.cancel();
    let [ours, of_lines, of_ready] = rates.map(|rates| within(0.5, rates));
    let a_second = [ours, of_lines, of_ready].map(|rate| rate * f64::from(BATCH));
    println!("lines a second: {a_second:.0?}");
    [ours / of_lines, ours / of_ready]
}

/// How long a bare client takes for these messages, until they have arrived.
async fn bare_time(publisher: &Client, arrived: &mut Subscriber, payloads: Vec<Bytes>) -> Duration {
    let (begun, count) = (Instant::now(), payloads.len());
    for payload in payloads {
        publisher.publish("bare", payload).await.unwrap();
    }
    for _ in 0..count {
        std::hint::black_box(lines_in(&arrived.next().await.unwrap().payload));
    }
    begun.elapsed()
}

/// The lines of a message, without its head.
fn lines_of(payload: &Bytes) -> Vec<Bytes> {
    let ends = payload.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let ends: Vec<_> = ends.collect();
    ends.windows(2).map(|pair| payload.slice(pair[0]..pair[1])).collect()
}

/// Lines of a message, its head counted.
fn lines_in(payload: &[u8]) -> u64 {
    payload.split(|byte| *byte == b'\n').count() as u64 - 1
}

fn delivery(runtime: &Runtime, nats: &Nats) -> f64 {
    let start = Instant::now();
    let cancel = CancellationToken::new();
    let teams: Vec<_> = (0..TEAMS).map(|_| Ours::start(runtime)).collect();
    for (number, team) in teams.iter().enumerate() {
        let member = nats.member(&format!("h{number}"));
        runtime.spawn(serve(member, team.gateway.clone(), cancel.clone()));
    }
    let [hub, port] = runtime.block_on(async {
        let port = hub(nats, cancel.clone()).await;
        // All feeds have begun once their first lines are there.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let heard =
            [port, teams[0].port()].map(|port| tokio::spawn(delays(port, start, cancel.clone())));
        tokio::time::sleep(Duration::from_secs(1)).await;
        let saying =
            teams.iter().flat_map(|team| (0..AGENTS).map(|agent| say(&team.bus, agent, start)));
        timeout(LONG, futures_util::future::join_all(saying)).await.unwrap_err();
        tokio::time::sleep(Duration::from_secs(1)).await;
        cancel.cancel();
        let [hub, port] = heard;
        [hub.await.unwrap(), port.await.unwrap()]
    });
    let wanted = LONG.as_millis() / EACH.as_millis() * (TEAMS * AGENTS) as u128;
    assert!(hub.len() as u128 > wanted * 9 / 10, "the hub delivered {} of {wanted}", hub.len());
    let [hub, port] = [hub, port].map(|delays| within(0.99, delays));
    println!("p99 of delivery: {:.0} µs by the hub, {:.0} µs by a port", hub * 1e6, port * 1e6);
    hub / port
}

/// An agent that ends a turn now and then; the turn's number says when.
async fn say(bus: &Bus, agent: usize, start: Instant) {
    let key = SessionKey::new(AgentId::new(format!("agent-{agent}")), SessionId::new("s"));
    let mut ticks = interval(EACH);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::time::sleep(EACH * u32::try_from(agent).unwrap() / 10).await;
    loop {
        ticks.tick().await;
        let turn = u64::try_from(start.elapsed().as_nanos()).unwrap();
        let (mode, stop_reason) = (SessionMode::SingleAgent, "end_turn".into());
        bus.publish(Event::Turn(TurnEnd {
            key: key.clone(),
            mode,
            turn,
            stop_reason,
            reason: None,
            spent: Spent::default(),
        }));
    }
}

/// How late a client of a port gets the ends of turns.
async fn delays(port: u16, start: Instant, cancel: CancellationToken) -> Vec<f64> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let mut lines = BufReader::new(stream).lines();
    let mut delays = Vec::new();
    while let Some(Ok(Some(line))) = cancel.run_until_cancelled(lines.next_line()).await {
        let said = line.split("\"turn\":").nth(1).and_then(|rest| rest.split([',', '}']).next());
        let Some(said) = said.and_then(|text| text.parse().ok()) else { continue };
        delays.push(start.elapsed().saturating_sub(Duration::from_nanos(said)).as_secs_f64());
    }
    delays
}

/// A hub; returns its port.
async fn hub(nats: &Nats, cancel: CancellationToken) -> u16 {
    let listener = bind("127.0.0.1:0".parse().unwrap(), "/nowhere".as_ref()).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let bus = Bus::encoding(Backlog { events: 4096, bytes: 32 << 20 }, encode);
    let (access, key) = (nats.access(), nats.key());
    let settings = HubSettings { access, key, bus: bus.clone(), tokens: None };
    let (hub, listening) = Hub::start(settings, cancel.clone()).await.unwrap();
    tokio::spawn(listening);
    let limits = Limits {
        max_connections: 16,
        max_line_bytes: 4 << 20,
        write_deadline: Duration::from_secs(60),
    };
    let (sources, team): (Arc<dyn Sources>, Arc<dyn Team>) = (Arc::new(hub.clone()), Arc::new(hub));
    let tokens = Tokens::generate(None).unwrap();
    let server = Server::new(listener, bus, sources, team, tokens, limits).unwrap();
    tokio::spawn(server.run(cancel));
    port
}

/// A server of NATS, with a key for all that use it.
struct Nats {
    port: u16,
    folder: tempfile::TempDir,
    child: Child,
}

impl Nats {
    fn start() -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("nats-server");
        command.args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"]);
        command.arg(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            println!("left out: nats-server is not installed");
            return None;
        };
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Self { port, folder, child })
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    fn access(&self) -> NatsAccess {
        NatsAccess { url: SecretText::new(self.url()), token: None, credentials: None }
    }

    fn key(&self) -> HubKey {
        HubKey::of_user(self.folder.path()).unwrap()
    }

    fn member(&self, host: &str) -> MemberSettings {
        let (host, team) = (host.to_owned(), "bench".to_owned());
        let neighbours = Neighbours::default();
        MemberSettings { host, team, access: self.access(), key: self.key(), neighbours }
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
