//! Clients that count what they receive, on a thread of their own.

use std::io::Read;
use std::net::TcpStream as StdStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::runtime::Builder;

use super::LINE;

pub(crate) struct Clients {
    all: Vec<Arc<Mutex<Client>>>,
    /// A client that has received what it was to.
    done: Receiver<()>,
}

struct Client {
    /// Bytes received since it joined.
    bytes: usize,
    /// How many are waited for.
    wanted: usize,
    done: SyncSender<()>,
    /// When each line was whole, if that is recorded.
    arrivals: Option<Vec<Instant>>,
}

impl Clients {
    pub(crate) fn connect(port: u16, count: usize) -> Self {
        let (done_sender, done) = sync_channel(count);
        let mut all = Vec::with_capacity(count);
        let mut streams = Vec::with_capacity(count);
        for _ in 0..count {
            streams.push(joined(port));
            let client = Client { bytes: 0, wanted: 0, done: done_sender.clone(), arrivals: None };
            all.push(Arc::new(Mutex::new(client)));
        }
        let clients = all.clone();
        std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_io().build().unwrap();
            runtime.block_on(async {
                let mut tasks = Vec::new();
                for (stream, client) in streams.into_iter().zip(clients) {
                    stream.set_nonblocking(true).unwrap();
                    let stream = TcpStream::from_std(stream).unwrap();
                    tasks.push(tokio::spawn(receive(stream, client)));
                }
                for task in tasks {
                    task.await.unwrap();
                }
            });
        });
        Self { all, done }
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Waits until each client has received `lines` more than when it was last waited for.
    pub(crate) fn wait_for(&self, lines: usize) {
        for client in &self.all {
            let mut client = client.lock().unwrap();
            client.wanted += lines * LINE;
            client.report();
        }
        for _ in &self.all {
            self.done.recv().unwrap();
        }
    }

    /// From now on notes when lines arrive, until that is taken by [`Self::arrivals`].
    pub(crate) fn record(&self) {
        for client in &self.all {
            client.lock().unwrap().arrivals = Some(Vec::new());
        }
    }

    pub(crate) fn arrivals(&self) -> Vec<Vec<Instant>> {
        let taken = self.all.iter().map(|client| client.lock().unwrap().arrivals.take());
        taken.map(Option::unwrap).collect()
    }
}

impl Client {
    /// Signals, once, that all that is waited for is there.
    fn report(&mut self) {
        if self.wanted > 0 && self.bytes >= self.wanted {
            assert_eq!(self.bytes, self.wanted, "the client received something else");
            (self.bytes, self.wanted) = (0, 0);
            self.done.send(()).unwrap();
        }
    }
}

async fn receive(mut stream: TcpStream, client: Arc<Mutex<Client>>) {
    let mut chunk = vec![0; 256 * 1024];
    while let Ok(read @ 1..) = stream.read(&mut chunk).await {
        let mut client = client.lock().unwrap();
        let before = client.bytes / LINE;
        client.bytes += read;
        let lines = client.bytes / LINE - before;
        if let Some(arrivals) = &mut client.arrivals {
            arrivals.extend(std::iter::repeat_n(Instant::now(), lines));
        }
        client.report();
    }
}

/// One that joins and then never reads.
pub(crate) struct Stalled(#[expect(dead_code, reason = "holds the connection")] StdStream);

impl Stalled {
    pub(crate) fn connect(port: u16) -> Self {
        Self(joined(port))
    }
}

/// Connects, and reads the first line.
fn joined(port: u16) -> StdStream {
    let mut stream = StdStream::connect(("127.0.0.1", port)).unwrap();
    let mut byte = [0];
    while byte != [b'\n'] {
        stream.read_exact(&mut byte).unwrap();
    }
    stream
}
