//! A minimal server: serialises a line once, shares its bytes, and writes all waiting lines of a client
//! in one call. It has no snapshots, filters or bounds.

use std::io::IoSlice;
use std::sync::{Arc, Mutex};

use bytes::{Buf, Bytes};
use eisen_core::model::Delta;
use serde::Serialize;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::ours::delta;
use super::{LINE, Publisher};

/// Lines in one write.
const LINES: usize = 512;

pub(crate) struct Bare {
    port: u16,
    clients: Arc<Mutex<Vec<UnboundedSender<Bytes>>>>,
}

impl Bare {
    pub(crate) fn start(runtime: &Runtime) -> Self {
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let clients = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&clients);
        runtime.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let (sender, lines) = unbounded_channel();
                all.lock().unwrap().push(sender);
                stream.write_all(b"welcome\n").await.unwrap();
                tokio::spawn(serve(stream, lines));
            }
        });
        Self { port, clients }
    }
}

impl Publisher for Bare {
    fn publish(&mut self, seq: u64) {
        let line = line(&delta(seq));
        for client in &*self.clients.lock().unwrap() {
            let _ = client.send(line.clone());
        }
    }

    fn port(&self) -> u16 {
        self.port
    }
}

async fn serve(mut stream: TcpStream, mut lines: UnboundedReceiver<Bytes>) {
    let mut waiting = Vec::with_capacity(LINES);
    while lines.recv_many(&mut waiting, LINES).await > 0 {
        let mut first = 0;
        while first < waiting.len() {
            let slices: Vec<_> = waiting[first..].iter().map(|line| IoSlice::new(line)).collect();
            let Ok(mut written) = stream.write_vectored(&slices).await else { return };
            while first < waiting.len() && written >= waiting[first].len() {
                written -= waiting[first].len();
                first += 1;
            }
            if written > 0 {
                waiting[first].advance(written);
            }
        }
        waiting.clear();
    }
}

#[derive(Serialize)]
struct Line<'a> {
    r#type: &'a str,
    agent_id: &'a str,
    session_id: &'a str,
    session_mode: &'a str,
    seq: u64,
    updates: Vec<Node<'a>>,
    removed: Vec<&'a str>,
}

#[derive(Serialize)]
struct Node<'a> {
    path: &'a str,
    heat: f64,
    in_context: bool,
    last_action: &'a str,
    turn_accessed: u64,
    timestamp_ms: u64,
}

fn line(delta: &Delta) -> Bytes {
    let nodes = delta.updates.iter().map(|node| Node {
        path: &node.path,
        heat: node.heat,
        in_context: node.in_context,
        last_action: node.last_action.as_str(),
        turn_accessed: node.turn_accessed,
        timestamp_ms: node.timestamp_ms,
    });
    let mut line = serde_json::to_vec(&Line {
        r#type: "delta",
        agent_id: delta.key.agent.as_str(),
        session_id: delta.key.session.as_str(),
        session_mode: delta.mode.as_str(),
        seq: delta.seq,
        updates: nodes.collect(),
        removed: delta.removed.iter().map(AsRef::as_ref).collect(),
    })
    .unwrap();
    line.push(b'\n');
    assert_eq!(line.len(), LINE);
    line.into()
}
