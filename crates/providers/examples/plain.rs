//! Compares the endpoint with a plain proxy of the same library, in one run: the first byte of an answer, the
//! throughput of a stream, and the memory of calls that wait.
#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eisen_providers::counting::CallReport;
use eisen_providers::endpoint::{AgentConnection, CallRefusal, Callers, Endpoint, ProviderCall};
use eisen_providers::provider::{ModelProvider, ProviderKind};
use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// Calls that wait at once.
const WAITING: u64 = 1000;

/// Events of a long stream, each with a word of text.
const EVENTS: usize = 200_000;

/// Calls whose first byte is measured.
const SHORT: usize = 2000;

struct Anyone;

impl Callers for Anyone {
    type Caller = ();
    type Ticket = ();

    async fn caller(&self, token: &str, _: &AgentConnection, _: &str) -> Option<()> {
        (token == "token").then_some(())
    }

    async fn admit(&self, (): (), _: &ProviderCall) -> Result<(), CallRefusal> {
        Ok(())
    }

    fn counted(&self, (): (), report: CallReport) {
        assert!(report.setback.is_none());
    }
}

#[tokio::main]
async fn main() {
    let direct = serve_model().await;
    let plain = serve_plain(direct).await;
    let provider = ModelProvider::new("p", ProviderKind::OpenAi, &format!("http://{direct}"));
    let provider = provider.unwrap().with_key("key".to_owned()).unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let endpoint = Endpoint::bind(any, vec![provider], Anyone).await.unwrap();
    let counted = endpoint.address();
    tokio::spawn(endpoint.run(CancellationToken::new()));

    let (mut by_plain, mut by_endpoint) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        by_plain.push(first_byte(plain, "/chat/completions").await);
        by_endpoint.push(first_byte(counted, "/p/chat/completions").await);
    }
    let (by_plain, by_endpoint) = (middle(by_plain), middle(by_endpoint));
    println!("first byte: plain {by_plain:.0} µs, endpoint {by_endpoint:.0} µs");
    let (mut by_plain, mut by_endpoint) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        by_plain.push(throughput(plain, "/chat/completions").await);
        by_endpoint.push(throughput(counted, "/p/chat/completions").await);
    }
    let (by_plain, by_endpoint) = (middle(by_plain), middle(by_endpoint));
    let ratio = by_endpoint / by_plain;
    println!("stream: plain {by_plain:.0} MB/s, endpoint {by_endpoint:.0} MB/s, ratio {ratio:.2}");
    for (name, address, path) in
        [("plain", plain, "/chat/completions"), ("endpoint", counted, "/p/chat/completions")]
    {
        let per_call = memory(address, path).await;
        println!("memory of a call, both ends and the model included: {name} {per_call} KB");
    }
}

fn middle(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn call(address: SocketAddr, path: &str, what: &str) -> String {
    let body = format!(r#"{{"model":"{what}","stream":true,"max_tokens":100}}"#);
    format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer token\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The middle time to the first byte of short answers, one after the other, in µs.
async fn first_byte(address: SocketAddr, path: &str) -> f64 {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let request = call(address, path, "short");
    let mut times = Vec::new();
    let mut got = Vec::new();
    for _ in 0..SHORT {
        got.clear();
        let begun = Instant::now();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.read_buf(&mut got).await.unwrap();
        times.push(begun.elapsed().as_secs_f64() * 1e6);
        while !got.ends_with(b"0\r\n\r\n") {
            assert!(stream.read_buf(&mut got).await.unwrap() > 0);
        }
    }
    middle(times)
}

/// The bytes of a stream in MB/s.
async fn throughput(address: SocketAddr, path: &str) -> f64 {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request =
        call(address, path, "long").replace("content-type", "connection: close\r\ncontent-type");
    let begun = Instant::now();
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut bytes, mut buffer) = (0, vec![0; 1 << 16]);
    loop {
        match stream.read(&mut buffer).await.unwrap() {
            0 => {
                return f64::from(u32::try_from(bytes).unwrap())
                    / 1e6
                    / begun.elapsed().as_secs_f64();
            }
            read => bytes += read,
        }
    }
}

/// KB of this process for each call that has begun and waits, with a socket at each of its ends.
async fn memory(address: SocketAddr, path: &str) -> u64 {
    let before = resident();
    let mut waiting = Vec::new();
    for _ in 0..WAITING {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(call(address, path, "waits").as_bytes()).await.unwrap();
        assert!(stream.read(&mut [0; 512]).await.unwrap() > 0);
        waiting.push(stream);
    }
    let after = resident();
    drop(waiting);
    tokio::time::sleep(Duration::from_secs(1)).await;
    (after - before.min(after)) / WAITING
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A model that writes as fast as it can: by the raw bytes of its answer.
async fn serve_model() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let event = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
                 \"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}],\"usage\":null}\n\n";
    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
    let many = Arc::new(chunk.repeat(100));
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (chunk, many) = (chunk.clone(), Arc::clone(&many));
            tokio::spawn(async move {
                stream.set_nodelay(true).unwrap();
                let mut request = vec![0; 4096];
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                while let Ok(read @ 1..) = stream.read(&mut request).await {
                    let request = String::from_utf8_lossy(&request[..read]);
                    let rest = if request.contains("short") { "0\r\n\r\n" } else { "" };
                    let begin = format!("{head}{chunk}{rest}");
                    let _ = stream.write_all(begin.as_bytes()).await;
                    if request.contains("long") {
                        for _ in 0..EVENTS / 100 {
                            let _ = stream.write_all(many.as_bytes()).await;
                        }
                        let _ = stream.write_all(b"0\r\n\r\n").await;
                    }
                }
            });
        }
    });
    address
}

/// A proxy that passes requests on, and does nothing else.
async fn serve_plain(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client: Client<HttpConnector, Incoming> = {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        Client::builder(TokioExecutor::new()).http1_read_buf_exact_size(16 * 1024).build(tcp)
    };
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let client = client.clone();
            let service = service_fn(move |mut request: Request<Incoming>| {
                let client = client.clone();
                async move {
                    let uri = format!("http://{to}{}", request.uri());
                    *request.uri_mut() = uri.parse().unwrap();
                    let host = HeaderValue::from_str(&to.to_string()).unwrap();
                    request.headers_mut().insert(header::HOST, host);
                    request.headers_mut().remove(header::CONNECTION);
                    let answer = client.request(request).await.unwrap();
                    Ok::<Response<Incoming>, Infallible>(answer)
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}
