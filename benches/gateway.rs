//! The cost of the gateway for a client: prompts of a scripted agent through `eisen-core team acp`, against the same
//! through `eisen-core agent attach`; and what the gateway answers itself over a WebSocket, against a process that
//! only answers, in a few bytes. Both sides of a pair take turns, so that the machine cancels out of the ratios.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Stdio};
use std::time::Instant;

use crate::figures::median;
use crate::team::{RunningTeam, eisen_core};
use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{InitializeRequest, ListSessionsRequest};
use agent_client_protocol::{Agent, Client, Error};
use agent_client_protocol_http::HttpClient;
use async_tungstenite::tokio::accept_async;
use async_tungstenite::tungstenite::Message;
use futures_util::StreamExt as _;
use serde_json::{Value, json};

/// Turns of each side, the first of which warms up, and round trips in a turn.
const TURNS: usize = 41;
const TRIPS: usize = 100;

/// A prompt through `acp` may take so much of one through `attach`.
const MOST_OF_ATTACH: f64 = 1.15;

/// A round trip to the gateway over a WebSocket may take so much of one to a process that only answers.
const MOST_OF_BARE: f64 = 1.6;

const SCRIPT: &str = "[agent]\nname = \"ui\"\n[[on]]\nsteps = [{ say = \"heard\" }]\n";

const PROGRAM: &str = env!("CARGO_BIN_EXE_eisen-core");

pub(crate) fn run() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if crate::arguments() == ["answer"] {
        runtime.block_on(answer());
        return;
    }
    let team = GatewayTeam::up();
    let bare = Bare::serve();
    // Before there are sessions to list.
    let over_socket = runtime.block_on(over_socket(&team, &bare)).unwrap();
    let hop = hop(&team);
    println!("a prompt through acp: {hop:.3} of attach (bound {MOST_OF_ATTACH})");
    println!("a WebSocket's round trip: {over_socket:.3} of a bare one (bound {MOST_OF_BARE})");
    assert!(hop <= MOST_OF_ATTACH, "the gateway's hop takes too long");
    assert!(over_socket <= MOST_OF_BARE, "the gateway's WebSocket takes too long");
}

fn hop(team: &GatewayTeam) -> f64 {
    let mut sides = [&["acp"][..], &["attach", "ui"]].map(|args| BenchEditor::start(team, args));
    let mut pairs = Pairs::default();
    for turn in 0..TURNS {
        let mut took = [0.0; 2];
        for at in [turn % 2, (turn + 1) % 2] {
            let begun = Instant::now();
            for _ in 0..TRIPS {
                sides[at].prompt();
            }
            took[at] = begun.elapsed().as_secs_f64();
        }
        pairs.add(turn, took);
    }
    pairs.ratio("prompt", ["acp", "attach"])
}

/// Lets the gateway and the process that only answers take turns.
async fn over_socket(team: &GatewayTeam, bare: &Bare) -> Result<f64, Error> {
    let mut headers = http::HeaderMap::new();
    headers.insert("authorization", format!("Bearer {}", team.token).parse().unwrap());
    let transport = |address: &str| {
        let builder = HttpClient::builder(format!("ws://{address}"));
        let headers = headers.clone();
        builder.configure_http(|it| it.no_proxy().default_headers(headers)).build().unwrap()
    };
    let (ours, bare) = (transport(&team.gateway), transport(&bare.address));
    Client
        .v1()
        .connect_with(ours, async move |ours: ConnectionTo<Agent>| {
            initialize(&ours).await?;
            Client
                .v1()
                .connect_with(bare, async move |bare: ConnectionTo<Agent>| {
                    initialize(&bare).await?;
                    let mut pairs = Pairs::default();
                    for turn in 0..TURNS {
                        let mut took = [0.0; 2];
                        for at in [turn % 2, (turn + 1) % 2] {
                            let begun = Instant::now();
                            for _ in 0..TRIPS {
                                list([&ours, &bare][at]).await?;
                            }
                            took[at] = begun.elapsed().as_secs_f64();
                        }
                        pairs.add(turn, took);
                    }
                    Ok(pairs.ratio("ws", ["gateway", "bare"]))
                })
                .await
        })
        .await
}

async fn initialize(agent: &ConnectionTo<Agent>) -> Result<(), Error> {
    agent.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await.map(drop)
}

async fn list(agent: &ConnectionTo<Agent>) -> Result<(), Error> {
    let listed = agent.send_request(ListSessionsRequest::new()).block_task().await?;
    assert!(listed.sessions.is_empty());
    Ok(())
}

/// An agent that answers at once over a WebSocket, at a port that is printed.
async fn answer() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    let (stream, _) = listener.accept().await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut socket = accept_async(stream).await.unwrap();
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(line) = message else { continue };
        let asked: Value = serde_json::from_str(&line).unwrap();
        let result = match asked["method"].as_str() {
            Some("initialize") => json!({ "protocolVersion": 1 }),
            _ => json!({ "sessions": [] }),
        };
        let line = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }).to_string();
        socket.send(Message::text(line)).await.unwrap();
    }
}

/// How long both sides took, turn by turn, in seconds.
#[derive(Default)]
struct Pairs(Vec<[f64; 2]>);

impl Pairs {
    fn add(&mut self, turn: usize, took: [f64; 2]) {
        if turn > 0 {
            self.0.push(took);
        }
    }

    /// Prints the medians; returns that of the ratios.
    #[expect(clippy::cast_precision_loss)]
    fn ratio(&self, what: &str, names: [&str; 2]) -> f64 {
        let Self(all) = self;
        let trip = |at: usize| median(all.iter().map(|pair| pair[at])) * 1e6 / TRIPS as f64;
        println!("{what}: {} {:.0} µs, {} {:.0} µs", names[0], trip(0), names[1], trip(1));
        median(all.iter().map(|[ours, other]| ours / other))
    }
}

/// The process that only answers.
struct Bare {
    address: String,
    program: Child,
}

impl Bare {
    fn serve() -> Self {
        let mut command = crate::part("gateway");
        let mut program =
            command.arg("answer").stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(program.stdout.take().unwrap()).lines();
        Self { address: said.next().unwrap().unwrap(), program }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// A team of one scripted agent, with its gateway at an address of its own.
struct GatewayTeam {
    _program: RunningTeam,
    folder: tempfile::TempDir,
    gateway: String,
    token: String,
}

impl GatewayTeam {
    fn up() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("work")).unwrap();
        std::fs::write(at("agent.toml"), SCRIPT).unwrap();
        let command = json!([PROGRAM, "scripted-agent", at("agent.toml")]);
        let config = format!(
            "[team]\nname = \"bench\"\nworkspace = \"work\"\nlisten = \"127.0.0.1:0\"\ntools = false\n\
             [gateway]\nlisten = \"127.0.0.1:0\"\n[[agents]]\nid = \"ui\"\ncommand = {command}\n\
             [agents.zone]\nallowed = [\"**\"]\nenforce = \"protocol\"\n"
        );
        std::fs::write(at("eisen.toml"), config).unwrap();
        let mut program = eisen_core(folder.path(), &["up"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said: Lines<BufReader<ChildStderr>> =
            BufReader::new(program.stderr.take().unwrap()).lines();
        // Both lines are there then, whichever comes first.
        let mut starts = ["eisen-core acp: ", "eisen-core tcp port: "].to_vec();
        while !starts.is_empty() {
            let line = said.next().unwrap().unwrap();
            starts.retain(|start| !line.starts_with(start));
        }
        std::thread::spawn(move || said.for_each(drop));
        let mut token =
            eisen_core(folder.path(), &["web", "token", "--scope", "control", "--json"]);
        let made = token.stdout(Stdio::piped()).output().unwrap();
        let made: Value = serde_json::from_slice(&made.stdout).unwrap();
        let gateway = made["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        let token = made["token"].as_str().unwrap().to_owned();
        Self { _program: RunningTeam(program), folder, gateway, token }
    }
}

/// A client on the standard streams of `acp` or `attach`, with a session.
struct BenchEditor {
    program: Child,
    stdin: ChildStdin,
    lines: BufReader<ChildStdout>,
    session: Value,
}

impl BenchEditor {
    fn start(team: &GatewayTeam, args: &[&str]) -> Self {
        let mut command = eisen_core(team.folder.path(), args);
        let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = program.stdin.take().unwrap();
        let lines = BufReader::new(program.stdout.take().unwrap());
        let mut this = Self { program, stdin, lines, session: Value::Null };
        this.call("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": {} }));
        let params = json!({ "cwd": team.folder.path().join("work"), "mcpServers": [] });
        this.session = this.call("session/new", &params)["sessionId"].clone();
        this
    }

    fn prompt(&mut self) {
        let prompt = json!([{ "type": "text", "text": "say something" }]);
        let params = json!({ "sessionId": self.session, "prompt": prompt });
        assert_eq!(self.call("session/prompt", &params)["stopReason"], "end_turn");
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        let line = json!({ "jsonrpc": "2.0", "id": "b", "method": method, "params": params });
        self.stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it has ended");
            let mut line: Value = serde_json::from_str(&line).unwrap();
            if line["id"] == "b" {
                return line["result"].take();
            }
        }
    }
}

impl Drop for BenchEditor {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
