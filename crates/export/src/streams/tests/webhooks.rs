//! Webhooks that sign, fail, hang, refuse and answer twice.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::model::{SecretText, WebhookTarget};

/// A request: its headers in lower case, and its body.
pub(super) struct Request {
    pub(super) head: Vec<String>,
    pub(super) bytes: Vec<u8>,
    body: String,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> &str {
        let head = self.head.iter().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        head.unwrap_or_default()
    }

    fn events(&self) -> Vec<Value> {
        let body: Value = serde_json::from_str(&self.body).unwrap();
        body["data"]["events"].as_array().unwrap().clone()
    }

    fn texts(&self) -> Vec<u64> {
        texts(&self.events())
    }
}

/// A server that answers each request as it is told for its number; requests come out.
pub(super) fn serve(
    answer: impl Fn(usize, &Request) -> String + Send + 'static,
) -> (String, mpsc::Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (sent, received) = mpsc::channel();
    std::thread::spawn(move || {
        // One that hangs stays open.
        let mut hung = Vec::<TcpStream>::new();
        let mut numbers = 0..;
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut head, mut line) = (Vec::new(), String::new());
            while stream.read_line(&mut line).unwrap() > 2 {
                head.push(line.trim_end().to_owned());
                line.clear();
            }
            if head.is_empty() {
                // On a busy machine a client gives up before it has asked.
                continue;
            }
            let number = numbers.next().unwrap();
            let mut request = Request { head, bytes: Vec::new(), body: String::new() };
            let length = request.header("content-length").parse().unwrap();
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            request.body = String::from_utf8_lossy(&body).into_owned();
            request.bytes = body;
            let text = answer(number, &request);
            if text.is_empty() {
                hung.push(stream.into_inner());
            } else {
                let _ = stream.get_mut().write_all(text.as_bytes());
            }
            if sent.send(request).is_err() {
                return;
            }
        }
    });
    (url, received)
}

pub(super) fn status(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n")
}

fn hook(bench: &Bench, url: &str) -> StreamSpec {
    let target = StreamTarget::Webhook(WebhookTarget {
        url: SecretText::new(url.to_owned()),
        key: Some(SecretText::new("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned())),
        headers: [("x-key".to_owned(), SecretText::new("k".to_owned()))].into(),
        batch: 4,
        timeout: Duration::from_millis(300),
    });
    StreamSpec { target, from_start: true, ..bench.file() }
}

/// The next request, without blocking the runtime.
pub(super) async fn next(requests: &mpsc::Receiver<Request>) -> Request {
    let mut request = None;
    eventually("a request", async || {
        request = request.take().or_else(|| requests.try_recv().ok());
        request.is_some()
    })
    .await;
    request.unwrap()
}

#[tokio::test]
async fn a_batch_is_signed_and_comes_again_as_the_same_until_it_is_taken() {
    let bench = Bench::new().await;
    bench.append("ui/s", EventType::MESSAGE_USER, 0..6).await;
    // Away, hanging, two answers at once, and then well.
    let (url, requests) = serve(|number, _| match number {
        0 => status("503 Busy"),
        1 => String::new(),
        2 => status("404 Not Found") + &status("200 OK"),
        _ => status("200 OK") + &status("500 Broken"),
    });
    bench.streams.start(&hook(&bench, &url)).await;
    let first = next(&requests).await;
    assert_eq!(first.texts(), [0, 1, 2, 3]);
    assert_eq!((first.header("x-key"), first.header("content-type")), ("k", "application/json"));
    let (id, at) = (first.header("webhook-id"), first.header("webhook-timestamp"));
    assert!(id.starts_with("msg_") && at.parse::<u64>().is_ok(), "{:?}", first.head);
    let signed = webhook::signature("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", id, at, &first.body);
    assert_eq!(first.header("webhook-signature"), signed.unwrap());
    for _ in 1..4 {
        let again = next(&requests).await;
        assert_eq!((again.header("webhook-id"), again.texts()), (id, vec![0, 1, 2, 3]));
        assert_eq!(again.body, first.body, "a receiver tells what is new by bytes");
    }
    assert_eq!(next(&requests).await.texts(), [4, 5]);
    eventually("all is delivered", async || bench.report().delivered == 6).await;
    assert_eq!((bench.report().dead, bench.report().state), (0, StreamState::Ok));
}

#[tokio::test]
async fn an_event_that_is_refused_again_and_again_does_not_stop_the_others() {
    let bench = Bench::new().await;
    bench.append("ui/s", EventType::MESSAGE_USER, 0..5).await;
    let (url, requests) = serve(|_, request| {
        let refuses = request.texts().contains(&2);
        status(if refuses { "422 Unprocessable Content" } else { "200 OK" })
    });
    bench.streams.start(&hook(&bench, &url)).await;
    let mut seen = Vec::new();
    while seen.last() != Some(&vec![4]) {
        seen.push(next(&requests).await.texts());
    }
    let refused = |texts: &[u64]| seen.iter().filter(|seen| *seen == texts).count();
    assert_eq!((refused(&[0, 1, 2, 3]), refused(&[2])), (5, 5), "{seen:?}");
    seen.dedup();
    assert_eq!(seen, [vec![0, 1, 2, 3], vec![0], vec![1], vec![2], vec![3], vec![4]]);
    eventually("all are counted", async || bench.report().delivered == 4).await;
    assert_eq!((bench.report().dead, bench.report().state), (1, StreamState::Ok));
    let dead = read(&bench.path("streams/audit.dead.ndjson"));
    assert_eq!(dead[0]["event"]["payload"]["t"], 2, "{dead:?}");
    assert_eq!(dead[0]["reason"], "http status: 422");
}

#[tokio::test]
async fn one_that_is_broken_gets_all_once_it_is_mended() {
    let bench = Bench::new().await;
    bench.append("ui/s", EventType::MESSAGE_USER, 0..5).await;
    // It takes the first event, and then breaks for a while.
    let (url, requests) = serve(|number, request| match (number, &*request.texts()) {
        (16.., _) | (_, [0]) => status("200 OK"),
        _ => status("500 Broken"),
    });
    bench.streams.start(&hook(&bench, &url)).await;
    let mut seen = Vec::new();
    while seen.last() != Some(&vec![4]) {
        seen.push(next(&requests).await.texts());
    }
    seen.dedup();
    assert_eq!(seen, [vec![0, 1, 2, 3], vec![0], vec![1], vec![2], vec![3], vec![4]]);
    eventually("it is counted", async || bench.report().delivered == 4).await;
    assert_eq!(bench.report().dead, 1);
}

#[tokio::test]
async fn one_that_hangs_delays_nobody_and_not_the_end() {
    let bench = Bench::new().await;
    let (url, requests) = serve(|_, _| String::new());
    let mut stream = hook(&bench, &url);
    let StreamTarget::Webhook(target) = &mut stream.target else { panic!("no webhook") };
    target.timeout = Duration::from_secs(5);
    bench.streams.start(&stream).await;
    bench.append("ui/s", EventType::MESSAGE_USER, 0..5).await;
    next(&requests).await;
    let begun = std::time::Instant::now();
    bench.append("ui/s", EventType::MESSAGE_USER, 5..500).await;
    bench.journal.close().await;
    bench.streams.clone().ended().await;
    assert!(begun.elapsed() < Duration::from_secs(5));
    // It begins there again.
    let cursor = fs::read_to_string(bench.path("streams/audit.cursor")).unwrap();
    assert!(cursor.contains("\"number\":0"), "{cursor}");
}
