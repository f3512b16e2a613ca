//! A real server of NATS, and who listens there.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use async_nats::{Client, ConnectOptions, Message, Subscriber};
use futures_util::StreamExt as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::PATIENCE;

/// The password of each login.
const PASSWORD: &str = "p/w:1";

/// How many tests one server has accounts for.
const ACCOUNTS: usize = 64;

/// The server that tests share: it ends with the last of those that run at once.
static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());

/// An account of a server of NATS, which no other test sees anything of.
pub(crate) struct Nats {
    server: Arc<Server>,
    user: String,
}

/// A server that keeps what it stored, also when it was killed and runs again.
struct Server {
    port: u16,
    store: TempDir,
    child: Mutex<Option<Child>>,
    /// How many accounts are taken.
    taken: AtomicUsize,
}

impl Nats {
    /// An account of the server that all tests share. None where the program is not installed.
    pub(crate) fn shared() -> Option<Self> {
        let mut shared = SHARED.lock().unwrap();
        let server = match shared.upgrade() {
            Some(server) => server,
            None => Server::start()?,
        };
        *shared = Arc::downgrade(&server);
        Some(Self::of(server))
    }

    /// An account of a server that the test may end. None where the program is not installed.
    pub(crate) fn own() -> Option<Self> {
        Some(Self::of(Server::start()?))
    }

    fn of(server: Arc<Server>) -> Self {
        let number = server.taken.fetch_add(1, Ordering::Relaxed);
        assert!(number < ACCOUNTS, "a server of NATS has {ACCOUNTS} accounts");
        Self { server, user: format!("eisen{number}") }
    }

    pub(crate) fn kill(&self) {
        self.server.kill();
    }

    pub(crate) fn run(&self) {
        self.server.run();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let child = self.server.child.lock().unwrap();
        let id = child.as_ref().unwrap().id();
        kill(Pid::from_raw(i32::try_from(id).unwrap()), signal).unwrap();
    }

    /// Its address, with the login that it wants.
    pub(crate) fn url(&self) -> String {
        let password = PASSWORD.replace('/', "%2F").replace(':', "%3A");
        format!("nats://{}:{password}@127.0.0.1:{}", self.user, self.server.port)
    }

    pub(crate) fn tap(&self, host: &str) -> NatsTap {
        let runtime = Runtime::new().unwrap();
        let options =
            ConnectOptions::with_user_and_password(self.user.clone(), PASSWORD.to_owned());
        let (client, requests) = runtime.block_on(async {
            let client = options.connect(format!("127.0.0.1:{}", self.server.port)).await.unwrap();
            let subject = format!("eisen-hub.{host}.down.request");
            let requests = client.subscribe(subject).await.unwrap();
            (client, requests)
        });
        let tap = NatsTap { runtime, client, requests };
        tap.runtime.block_on(tap.round_trip());
        tap
    }
}

impl Server {
    fn start() -> Option<Arc<Self>> {
        if Command::new("nats-server").arg("--version").output().is_err() {
            eprintln!("skipped: nats-server is not installed");
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let store = TempDir::new().unwrap();
        let mut accounts = String::new();
        for number in 0..ACCOUNTS {
            let user = format!("{{ user: eisen{number}, password: {PASSWORD:?} }}");
            let _ = writeln!(accounts, "a{number} {{ jetstream: enabled, users: [{user}] }}");
        }
        let config = format!("accounts {{\n{accounts}}}\n");
        std::fs::write(store.path().join("config"), config).unwrap();
        let server = Self { port, store, child: Mutex::default(), taken: AtomicUsize::new(0) };
        server.run();
        Some(Arc::new(server))
    }

    fn run(&self) {
        let mut command = Command::new("nats-server");
        command.args(["-js", "-a", "127.0.0.1", "-p", &self.port.to_string()]);
        command.arg("-c").arg(self.store.path().join("config"));
        command.arg("-sd").arg(self.store.path());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        *self.child.lock().unwrap() = Some(command.spawn().unwrap());
    }

    fn kill(&self) {
        if let Some(mut child) = self.child.lock().unwrap().take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for Server {
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
