use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use async_nats::{Client, ConnectOptions, Message, Subscriber};
use futures_util::StreamExt as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::PATIENCE;

/// The login that the server wants.
const LOGIN: [&str; 2] = ["eisen", "p/w:1"];

/// A server of NATS that keeps what it stored; ends with the test.
pub(crate) struct NatsServer {
    port: u16,
    store: TempDir,
    child: Option<Child>,
}

impl NatsServer {
    /// None where the program is not installed.
    pub(crate) fn start() -> Option<Self> {
        if Command::new("nats-server").arg("--version").output().is_err() {
            eprintln!("skipped: nats-server is not installed");
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self { port, store: TempDir::new().unwrap(), child: None };
        server.run();
        Some(server)
    }

    pub(crate) fn run(&mut self) {
        let mut command = Command::new("nats-server");
        command.args(["-js", "-a", "127.0.0.1", "-p", &self.port.to_string()]);
        command.args(["--user", LOGIN[0], "--pass", LOGIN[1]]).arg("-sd");
        command.arg(self.store.path()).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().unwrap());
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = self.child.as_ref().unwrap().id();
        kill(Pid::from_raw(i32::try_from(id).unwrap()), signal).unwrap();
    }

    /// Its address, with the login that it wants.
    pub(crate) fn url(&self) -> String {
        format!("nats://eisen:p%2Fw%3A1@127.0.0.1:{}", self.port)
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Hears the requests that one host gets, and sends them again: somebody with the login of NATS, without
/// the key of the hub.
pub(crate) struct NatsTap {
    runtime: Runtime,
    client: Client,
    requests: Subscriber,
}

impl NatsServer {
    pub(crate) fn tap(&self, host: &str) -> NatsTap {
        let runtime = Runtime::new().unwrap();
        let [user, password] = LOGIN.map(str::to_owned);
        let options = ConnectOptions::with_user_and_password(user, password);
        let (client, requests) = runtime.block_on(async {
            let client = options.connect(format!("127.0.0.1:{}", self.port)).await.unwrap();
            let subject = format!("eisen-hub.{host}.down.request");
            let requests = client.subscribe(subject).await.unwrap();
            (client, requests)
        });
        let tap = NatsTap { runtime, client, requests };
        tap.runtime.block_on(tap.round_trip());
        tap
    }
}

impl NatsTap {
    /// Waits for a request of a method; others are passed over.
    pub(crate) fn request(&mut self, method: &str) -> Message {
        let Self { runtime, requests, .. } = self;
        runtime.block_on(async {
            loop {
                let message = timeout(PATIENCE, requests.next()).await.unwrap().unwrap();
                if body(&message)["method"] == method {
                    return message;
                }
            }
        })
    }

    /// Sends a request again, and waits until the server has it.
    pub(crate) fn send(&self, request: &Message) {
        self.runtime.block_on(async {
            let Message { subject, headers, payload, .. } = request.clone();
            self.client.publish_with_headers(subject, headers.unwrap(), payload).await.unwrap();
            self.round_trip().await;
        });
    }

    /// Sends a request again; returns what it is answered with: None while it is under way.
    pub(crate) fn again(&self, request: &Message) -> Option<Value> {
        let inbox = body(request)["inbox"].as_str().unwrap().to_owned();
        let mut replies = self.runtime.block_on(self.client.subscribe(inbox)).unwrap();
        self.send(request);
        let reply = async { timeout(PATIENCE, replies.next()).await.unwrap().unwrap() };
        let reply = self.runtime.block_on(reply);
        let (head, answer) = (body(&reply), parts(&reply).1);
        assert!(head["parts"].as_u64().unwrap() <= 1, "{head}");
        (head["parts"] == 1).then(|| serde_json::from_slice(answer).unwrap())
    }

    /// All that was said on this connection before is known to the server.
    async fn round_trip(&self) {
        let inbox = self.client.new_inbox();
        let mut own = self.client.subscribe(inbox.clone()).await.unwrap();
        self.client.publish(inbox, "here".into()).await.unwrap();
        timeout(PATIENCE, own.next()).await.unwrap().unwrap();
    }
}

/// The line of JSON that a message begins with.
fn body(message: &Message) -> Value {
    serde_json::from_slice(parts(message).0).unwrap()
}

/// That line, and the bytes behind it.
fn parts(message: &Message) -> (&[u8], &[u8]) {
    let payload = &message.payload[..];
    let end = payload.iter().position(|byte| *byte == b'\n');
    end.map_or((payload, &[][..]), |end| (&payload[..end], &payload[end + 1..]))
}
