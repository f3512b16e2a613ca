//! Providers that are away, slow or cut, and agents that go away.

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use super::harness::{FakeProvider, Reply, Stand, Then, answer, call_of, provider, soon};
use crate::counting::{CallEnd, ProviderTrouble};
use crate::provider::ProviderKind::{self, Anthropic, Gemini, OpenAi};

#[tokio::test]
async fn a_stream_that_is_cut_at_any_byte_is_cut_there_for_the_agent_too() {
    let events = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":7}}}\n\n\
                  data: {\"usage\":{\"output_tokens\":3}}\n\n";
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let whole = format!("{:x}\r\n{events}\r\n0\r\n\r\n", events.len());
    let begin = whole.find("data").unwrap();
    let replies = (0..whole.len())
        .map(|at| Reply(format!("{head}{}", &whole[..at]).into_bytes(), Then::Close));
    let fake = FakeProvider::start(replies.collect()).await;
    let mut stand = Stand::before(Anthropic, &fake, "").await;
    for at in 0..whole.len() {
        let got = stand.ask(&call_of(Anthropic)).await;
        let report = stand.report().await;
        let came = events.get(..at.saturating_sub(begin)).unwrap_or(events);
        assert_eq!(report.end, CallEnd::CutByProvider, "cut at {at}");
        assert!(!got.ends_with("0\r\n\r\n"), "cut at {at}, and ended: {got}");
        let body = unchunked(got.split_once("\r\n\r\n").unwrap().1);
        assert_eq!(body, came, "cut at {at}");
        let input = report.spending.unwrap().tokens.unwrap().get(crate::model::TokenKind::Input);
        let is_measured = came.contains('}');
        assert_eq!(!input.is_estimated(), is_measured, "cut at {at}: {input:?}");
    }
}

/// The data of chunks, the last of which may be cut.
fn unchunked(mut chunks: &str) -> String {
    let mut data = String::new();
    while let Some((length, rest)) = chunks.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        data.push_str(rest.get(..length).unwrap_or(rest));
        chunks = rest.get(length + 2..).unwrap_or_default();
    }
    data
}

#[tokio::test]
async fn a_body_of_known_length_that_is_cut_is_cut_for_the_agent() {
    let Reply(mut bytes, then) = answer("200 OK", "", r#"{"usage":{}}"#);
    bytes.truncate(bytes.len() - 4);
    let fake = FakeProvider::start(vec![Reply(bytes, then)]).await;
    let mut stand = Stand::before(OpenAi, &fake, "").await;
    let got = stand.ask(&call_of(OpenAi)).await;
    assert!(got.contains("content-length: 12") && got.ends_with("\r\n\r\n{\"usage\""), "{got}");
    assert_eq!(stand.report().await.end, CallEnd::CutByProvider);
}

#[tokio::test]
async fn a_provider_that_is_away_is_told_in_the_vendors_shape_and_as_a_setback() {
    for (kind, shape) in [
        (
            OpenAi,
            r#"{"error":{"message":"eisen-core: the provider can't be reached","type":"server_error","param":null,"code":null}}"#,
        ),
        (
            Anthropic,
            r#"{"type":"error","error":{"type":"api_error","message":"eisen-core: the provider can't be reached"}}"#,
        ),
        (
            Gemini,
            r#"{"error":{"code":502,"message":"eisen-core: the provider can't be reached","status":"UNAVAILABLE"}}"#,
        ),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let mut stand = Stand::of(vec![provider(kind, address, "")]).await;
        let got = stand.ask(&call_of(kind)).await;
        assert!(got.starts_with("HTTP/1.1 502 ") && got.ends_with(shape), "{got}");
        let report = stand.report().await;
        assert_eq!((report.end, report.spending), (CallEnd::Unsent, None));
        assert_eq!(report.setback.unwrap().trouble, ProviderTrouble::Away);
    }
}

#[tokio::test]
async fn a_provider_that_ends_before_its_answer_may_have_spent_what_was_asked_for() {
    let fake = FakeProvider::start(vec![Reply(Vec::new(), Then::Close)]).await;
    let mut stand = Stand::before(OpenAi, &fake, "").await;
    let got = stand.ask(&call_of(OpenAi)).await;
    assert!(got.starts_with("HTTP/1.1 502 ") && !got.contains("SECRET"), "{got}");
    let report = stand.report().await;
    assert_eq!(report.end, CallEnd::Unanswered);
    let output = report.spending.unwrap().tokens.unwrap().get(crate::model::TokenKind::Output);
    assert_eq!((output.least(), output.known()), (0, Some(50)));
}

#[tokio::test]
async fn an_agent_that_goes_away_ends_the_call_at_the_provider_and_is_counted() {
    // Before the answer, and within it.
    for begun in ["", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\ndata:\r\n"] {
        let reply = Reply(begun.as_bytes().to_vec(), Then::Wait);
        let mut fake = FakeProvider::start(vec![reply]).await;
        let mut stand = Stand::before(ProviderKind::OpenAi, &fake, "").await;
        let mut agent = stand.send(&call_of(OpenAi)).await;
        fake.request().await;
        if !begun.is_empty() {
            assert!(soon(agent.read(&mut [0; 1024])).await.unwrap() > 0);
        }
        drop(agent);
        soon(fake.closed.recv()).await.unwrap();
        assert_eq!(stand.report().await.end, CallEnd::CutByAgent);
    }
}

#[tokio::test]
async fn the_end_of_the_endpoint_counts_what_runs() {
    let mut fake = FakeProvider::start(vec![Reply(Vec::new(), Then::Wait)]).await;
    let mut stand = Stand::before(OpenAi, &fake, "").await;
    let _agent = stand.send(&call_of(OpenAi)).await;
    fake.request().await;
    stand.stop().await;
    assert_eq!(stand.report().await.end, CallEnd::CutByAgent);
}
