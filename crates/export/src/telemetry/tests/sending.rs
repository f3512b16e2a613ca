//! Requests to a collector that takes them, is away, is slow, or answers nonsense. Decoded by the
//! protocol's official types.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use eisen_base::task;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message;
use tokio::sync::oneshot;

use super::{record, settings, shown, text, turn_end};
use crate::bus::{Backlog, Bus};
use crate::model::Record;
use crate::otlp;
use crate::telemetry::{Settings, start};

/// A request as a collector got it: the head, in small letters, and the spans.
struct Got {
    head: String,
    sent: otlp::ExportTraceServiceRequest,
}

impl Got {
    fn spans(&self) -> String {
        let all = self.sent.resource_spans.iter().flat_map(|spans| &spans.scope_spans);
        shown(&all.flat_map(|spans| spans.spans.clone()).collect::<Vec<_>>())
    }
}

/// Runs in a thread of its own: a paused clock stands still while the runtime's own threads work.
fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> oneshot::Receiver<T> {
    let (done, is_done) = oneshot::channel();
    std::thread::spawn(move || done.send(work()));
    is_done
}

fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    (listener, address)
}

/// Reads one request.
fn read(stream: TcpStream) -> (Got, TcpStream) {
    let mut stream = BufReader::new(stream);
    let (mut head, mut line, mut length) = (String::new(), String::new(), 0);
    while stream.read_line(&mut line).unwrap() > 2 {
        let lower = line.to_ascii_lowercase();
        length =
            lower.strip_prefix("content-length: ").map_or(length, |it| it.trim().parse().unwrap());
        head.push_str(&lower);
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    // Nothing in it is unknown to them, and they would have sent the same bytes.
    let official = ExportTraceServiceRequest::decode(&*body).unwrap();
    assert_eq!(official.encode_to_vec(), body);
    let sent = otlp::ExportTraceServiceRequest::decode(&*body).unwrap();
    (Got { head, sent }, stream.into_inner())
}

/// Takes one request, and answers it.
fn take(listener: &TcpListener, status: &str, body: &[u8]) -> Got {
    let (got, mut stream) = read(listener.accept().unwrap().0);
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    // Whoever sent it may be gone.
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
    got
}

fn to(otlp: &str) -> Settings {
    Settings { otlp: otlp.to_owned(), headers: Vec::new(), spans: settings(false), parent: None }
}

fn publish_turn(bus: &Bus) {
    bus.publish(record("ui", Record::TurnBegan, 2_000));
    let prompt = text(r#"[{"type":"text","text":"Mend it"}]"#);
    bus.publish(record("ui", Record::Prompt(prompt), 2_000));
    bus.publish(turn_end("ui", "end_turn", None));
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_sent_soon_after_it_ended() {
    let (listener, address) = listen();
    let bus = Bus::new(Backlog::of(64));
    let headers = vec![("x-api-key".to_owned(), "k-123".to_owned())];
    let (_, following) =
        start(Settings { headers, ..to(&format!("{address}/base/")) }, bus.subscribe());
    let following = task::spawn(following);
    publish_turn(&bus);
    let got = beside(move || (take(&listener, "200 OK", b""), listener)).await;
    let (got, listener) = got.unwrap();
    assert!(got.head.starts_with("post /base/v1/traces http/1.1\r\n"), "{}", got.head);
    for header in ["content-type: application/x-protobuf\r\n", "x-api-key: k-123\r\n"] {
        assert!(got.head.contains(header), "{}", got.head);
    }
    let names: Vec<_> = got.spans().lines().map(str::to_owned).collect();
    assert!(names.iter().any(|line| line.contains("invoke_workflow shop (internal")), "{names:?}");
    assert!(names.iter().any(|line| line.contains("invoke_agent ui (client")), "{names:?}");
    assert!(!got.spans().contains("Mend it"), "a text was sent");
    let resource = got.sent.resource_spans[0].resource.clone().unwrap();
    let keys: Vec<_> = resource.attributes.iter().map(|attribute| &*attribute.key).collect();
    assert_eq!(keys, ["service.name", "service.version", "eisen.team.name"]);
    // The rest comes at the end.
    drop(bus);
    let last = beside(move || take(&listener, "200 OK", b"")).await.unwrap();
    assert!(last.spans().contains(" run shop (internal"), "{}", last.spans());
    following.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_collector_refuses_for_now_is_sent_again() {
    let (listener, address) = listen();
    let bus = Bus::new(Backlog::of(64));
    let (_, following) = start(to(&address), bus.subscribe());
    let following = task::spawn(following);
    publish_turn(&bus);
    let again = beside(move || {
        take(&listener, "503 Service Unavailable\r\nretry-after: 2", b"");
        // One that closes without a word.
        drop(read(listener.accept().unwrap().0));
        take(&listener, "429 Too Many Requests", b"");
        (take(&listener, "200 OK", b"\xff\xff garbage"), listener)
    });
    let (got, listener) = again.await.unwrap();
    assert!(got.spans().contains("invoke_agent ui"), "{}", got.spans());
    // A refusal for good is not repeated, and what follows is sent.
    publish_turn(&bus);
    let refusing = beside(move || {
        take(&listener, "400 Bad Request", b"");
        listener
    });
    let listener = refusing.await.unwrap();
    publish_turn(&bus);
    let partial = ExportTracePartialSuccess {
        rejected_spans: 1,
        error_message: "too old\nby far".to_owned(),
    };
    let answer = ExportTraceServiceResponse { partial_success: Some(partial) }.encode_to_vec();
    let next = beside(move || (take(&listener, "200 OK", &answer), listener));
    let (got, listener) = next.await.unwrap();
    assert_eq!(got.spans().matches("invoke_agent ui").count(), 1);
    drop(bus);
    beside(move || take(&listener, "200 OK", b"")).await.unwrap();
    following.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_collector_gets_the_pause_that_it_asks_for() {
    let (listener, address) = listen();
    let bus = Bus::new(Backlog::of(64));
    let (_, following) = start(to(&address), bus.subscribe());
    task::spawn(following);
    publish_turn(&bus);
    for (asked, pause) in [("90", 90), ("86400", 300)] {
        let status = format!("503 Service Unavailable\r\nretry-after: {asked}");
        let refusing = listener.try_clone().unwrap();
        beside(move || take(&refusing, &status, b"")).await.unwrap();
        let refused = tokio::time::Instant::now();
        let again = listener.try_clone().unwrap();
        let (got, stream) = beside(move || read(again.accept().unwrap().0)).await.unwrap();
        assert!(got.spans().contains("invoke_agent ui"), "{}", got.spans());
        let waited = refused.elapsed().as_secs();
        assert!((pause..pause + 2).contains(&waited), "{waited} s, where {asked} were asked for");
        // Closed without a word: it comes once more.
        drop(stream);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_is_for_good_is_not_repeated() {
    let (listener, address) = listen();
    let bus = Bus::new(Backlog::of(64));
    let (_, following) = start(to(&address), bus.subscribe());
    let following = task::spawn(following);
    // The protocol says so of all but 429, 502, 503 and 504.
    for status in ["500 Internal Server Error", "501 Not Implemented", "401 Unauthorized"] {
        publish_turn(&bus);
        let refusing = listener.try_clone().unwrap();
        let got = beside(move || take(&refusing, status, b"")).await.unwrap();
        assert_eq!(got.spans().matches("invoke_agent ui").count(), 1, "{status}");
    }
    publish_turn(&bus);
    let taking = listener.try_clone().unwrap();
    let got = beside(move || take(&taking, "200 OK", b"")).await.unwrap();
    assert_eq!(got.spans().matches("invoke_agent ui").count(), 1);
    drop(bus);
    let got = beside(move || take(&listener, "200 OK", b"")).await.unwrap();
    assert!(!got.spans().contains("invoke_agent ui"), "{}", got.spans());
    following.await.unwrap();
}

#[tokio::test]
async fn the_end_of_a_team_does_not_wait_for_a_collector_that_hangs_or_is_gone() {
    for hangs in [true, false] {
        let (listener, address) = listen();
        let bus = Bus::new(Backlog::of(64));
        let (_, following) = start(to(&address), bus.subscribe());
        let listener = hangs.then_some(listener);
        publish_turn(&bus);
        drop(bus);
        let began = Instant::now();
        following.await;
        assert!(began.elapsed().as_millis() < 2_000, "{:?}", began.elapsed());
        drop(listener);
    }
}

#[tokio::test(start_paused = true)]
async fn a_redirect_does_not_take_the_headers_elsewhere() {
    let (listener, address) = listen();
    let (elsewhere, other) = listen();
    let bus = Bus::new(Backlog::of(64));
    let headers = vec![("x-api-key".to_owned(), "k-123".to_owned())];
    let (_, following) = start(Settings { headers, ..to(&address) }, bus.subscribe());
    drop(bus);
    let moved = format!("307 Temporary Redirect\r\nlocation: {other}/v1/traces");
    let taking = beside(move || take(&listener, &moved, b""));
    following.await;
    taking.await.unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    assert!(elsewhere.accept().is_err(), "the redirect was followed");
}
