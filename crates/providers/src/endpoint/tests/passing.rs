//! Requests and answers that pass, and the changes on the way.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::harness::{
    FakeProvider, KEY, Reply, Stand, TOKEN, answer, call, call_of, provider, soon,
};
use crate::counting::CallEnd;
use crate::provider::ProviderKind::{self, Anthropic, Gemini, OpenAi};
use crate::provider::{KeyPlace, ProviderKey};

const USAGE: &str =
    r#"{"model":"m-1","usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}"#;

#[tokio::test]
async fn a_request_goes_on_with_the_key_and_host_of_the_provider_and_nothing_else_is_changed() {
    let mut fake = FakeProvider::start(vec![answer(
        "200 OK",
        "x-request-id: r1\r\nconnection: x-hop\r\nx-hop: 1\r\nset-cookie: a\r\nset-cookie: b\r\n",
        USAGE,
    )])
    .await;
    let mut stand = Stand::before(OpenAi, &fake, "/base/v1").await;
    let body = r#"{"model":"m", "max_tokens":5, "x":"é"}"#;
    let got = stand
        .ask(&format!(
            "POST /p/chat/completions?b=1&a=%20x&key=k HTTP/1.1\r\nx-first: 1\r\nHost: HOST\r\n\
             user-agent: agent/1\r\nAuthorization: bearer {TOKEN}\r\naccept-encoding: gzip, br\r\n\
             x-twice: 1\r\nconnection: close, x-hop\r\nx-hop: 1\r\nte: trailers\r\nproxy-authorization: p\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nx-twice: 2\r\nx-last: \r\n\r\n{body}",
            body.len()
        ))
        .await;
    let sent = fake.request().await;
    assert_eq!(
        sent,
        format!(
            "POST /base/v1/chat/completions?b=1&a=%20x&key=k HTTP/1.1\r\nx-first: 1\r\nhost: {}\r\n\
             user-agent: agent/1\r\nauthorization: Bearer {KEY}\r\naccept-encoding: identity\r\n\
             x-twice: 1\r\nx-twice: 2\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
             x-last: \r\n\r\n{body}",
            fake.address,
            body.len()
        )
    );
    let (head, rest) = got.split_once("\r\n\r\n").unwrap();
    assert_eq!(rest, USAGE);
    assert!(
        head.starts_with(
            "HTTP/1.1 200 OK\r\nx-request-id: r1\r\nset-cookie: a\r\nset-cookie: b\r\n"
        ),
        "{head}"
    );
    assert!(!head.contains("x-hop") && !got.contains("SECRET"), "{head}");
    let report = stand.report().await;
    assert_eq!((report.end, report.status), (CallEnd::Whole, Some(200)));
    let spending = report.spending.unwrap();
    assert_eq!(spending.model.as_deref(), Some("m-1"));
    assert_eq!(spending.tokens.unwrap().get(crate::model::TokenKind::Total).known(), Some(10));
    let asked = stand.known.asked.lock()[0].clone();
    assert_eq!((asked.model.as_deref(), asked.sizes.most_output), (Some("m"), Some(5)));
    assert!(asked.is_known && stand.has_no_report());
}

#[tokio::test]
async fn each_kind_has_its_own_key_header_and_takes_the_token_at_each_place() {
    for (kind, shown, key) in [
        (OpenAi, format!("authorization: Bearer {TOKEN}"), format!("authorization: Bearer {KEY}")),
        (Anthropic, format!("x-api-key: {TOKEN}"), format!("x-api-key: {KEY}")),
        (Anthropic, format!("authorization: Bearer {TOKEN}"), format!("x-api-key: {KEY}")),
        (Gemini, format!("x-goog-api-key: {TOKEN}"), format!("x-goog-api-key: {KEY}")),
    ] {
        let mut fake = FakeProvider::start(vec![answer("200 OK", "", "{}")]).await;
        let stand = Stand::before(kind, &fake, "").await;
        stand.ask(&call("/p/anything", &shown, "{}")).await;
        let sent = fake.request().await;
        assert!(sent.contains(&format!("\r\n{key}\r\n")) && !sent.contains(TOKEN), "{sent}");
    }
    // In the address; the key is never there.
    for (query, sent_query) in [("?key=TOKEN", ""), ("?alt=sse&key=TOKEN&x=1", "?alt=sse&x=1")] {
        let mut fake = FakeProvider::start(vec![answer("200 OK", "", "{}")]).await;
        let stand = Stand::before(Gemini, &fake, "").await;
        let query = query.replace("TOKEN", TOKEN);
        stand.ask(&call(&format!("/p/v1beta/models/g:generateContent{query}"), "x: 1", "{}")).await;
        let sent = fake.request().await;
        let first = format!("POST /v1beta/models/g:generateContent{sent_query} HTTP/1.1\r\n");
        assert!(sent.starts_with(&first), "{sent}");
        assert!(sent.contains(&format!("x-goog-api-key: {KEY}\r\n")) && !sent.contains(TOKEN));
    }
    // A place of the provider's own, and no key at all.
    let mut fake =
        FakeProvider::start(vec![answer("200 OK", "", "{}"), answer("200 OK", "", "{}")]).await;
    let mut azure = provider(OpenAi, fake.address, "");
    let place = KeyPlace::Header("api-key".parse().unwrap());
    azure.key = Some(ProviderKey::new(KEY.to_owned(), &place).unwrap());
    let stand = Stand::of(vec![azure]).await;
    stand.ask(&call_of(OpenAi)).await;
    let sent = fake.request().await;
    assert!(sent.contains(&format!("api-key: {KEY}")) && !sent.contains("authorization"), "{sent}");
    let mut local = provider(OpenAi, fake.address, "");
    local.key = None;
    stand.providers.replace(vec![local]);
    stand.ask(&call_of(OpenAi)).await;
    let sent = fake.request().await;
    assert!(!sent.contains("authorization") && !sent.contains(TOKEN), "{sent}");
}

#[tokio::test]
async fn a_model_has_its_other_name_at_the_provider_and_the_rest_stays() {
    for (kind, path, body, line, sent_body) in [
        (
            OpenAi,
            "/p/responses",
            r#"{"a":{"model":"fast"},"model" : "fast" ,"b":1}"#,
            "POST /responses ",
            r#"{"a":{"model":"fast"},"model" : "real/\"x\"" ,"b":1}"#,
        ),
        (
            OpenAi,
            "/p/responses",
            r#"{"model":"other"}"#,
            "POST /responses ",
            r#"{"model":"other"}"#,
        ),
        (
            Gemini,
            "/p/v1beta/models/fast:generateContent",
            r#"{"model":"fast"}"#,
            "POST /v1beta/models/real%2F%22x%22:generateContent ",
            r#"{"model":"fast"}"#,
        ),
    ] {
        let mut fake = FakeProvider::start(vec![answer("200 OK", "", "{}")]).await;
        let mut mapped = provider(kind, fake.address, "");
        mapped.models.insert("fast".to_owned(), "real/\"x\"".to_owned());
        let stand = Stand::of(vec![mapped]).await;
        stand.ask(&call(path, &format!("authorization: Bearer {TOKEN}"), body)).await;
        let sent = fake.request().await;
        assert!(
            sent.starts_with(line) && sent.ends_with(&format!("\r\n\r\n{sent_body}")),
            "{sent}"
        );
        assert!(sent.contains(&format!("content-length: {}\r\n", sent_body.len())), "{sent}");
        let asked = stand.known.asked.lock()[0].clone();
        let is_mapped = asked.model.as_deref() == Some("fast");
        assert_eq!(asked.sent_model.as_deref(), is_mapped.then_some("real/\"x\""));
    }
}

#[tokio::test]
async fn an_event_arrives_before_the_next_one_is_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stand = Stand::of(vec![provider(OpenAi, listener.local_addr().unwrap(), "")]).await;
    let mut agent = stand.send(&call_of(OpenAi)).await;
    let (mut there, _) = soon(listener.accept()).await.unwrap();
    assert!(soon(there.read(&mut [0; 4096])).await.unwrap() > 0);
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    there.write_all(head.as_bytes()).await.unwrap();
    let mut got = Vec::new();
    for event in ["data: 1\n\n", "data: 2\n\n", "data: [DONE]\n\n"] {
        there.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).await.unwrap();
        while !String::from_utf8_lossy(&got).contains(event) {
            assert!(soon(agent.read_buf(&mut got)).await.unwrap() > 0);
        }
    }
}

#[tokio::test]
async fn answers_of_all_sorts_arrive_as_they_are() {
    for (status, headers, body) in [
        ("302 Found", "location: http://elsewhere.example/\r\n", ""),
        ("429 Too Many Requests", "retry-after: 7\r\n", r#"{"error":{"type":"rate_limit_error"}}"#),
        ("500 Internal Server Error", "", "<html>"),
        ("404 Not Found", "x-y: z\r\n", "{}"),
        ("200 OK", "content-encoding: gzip\r\n", "not really gzip"),
        ("529 Overloaded", "", "{}"),
    ] {
        let mut fake = FakeProvider::start(vec![answer(status, headers, body)]).await;
        let mut stand = Stand::before(Anthropic, &fake, "").await;
        let got = stand.ask(&call_of(Anthropic)).await;
        fake.request().await;
        assert!(got.starts_with(&format!("HTTP/1.1 {}", &status[..3])), "{got}");
        assert!(got.contains(headers) && got.ends_with(&format!("\r\n\r\n{body}")), "{got}");
        let report = stand.report().await;
        assert_eq!(report.status, status[..3].parse().ok());
        assert_eq!(report.spending.is_some(), status.starts_with("200"), "{status}");
        assert_eq!(report.setback.is_some(), ["429", "529"].contains(&&status[..3]), "{status}");
    }
}

#[tokio::test]
async fn reading_and_counting_tokens_asks_for_no_admission() {
    let shown = format!("x-api-key: {TOKEN}");
    let get = format!(
        "GET /p/v1/models?limit=1 HTTP/1.1\r\nhost: HOST\r\n{shown}\r\naccept-encoding: br\r\nconnection: close\r\n\r\n"
    );
    let count = call("/p/v1/messages/count_tokens", &shown, r#"{"model":"m"}"#);
    for (request, line) in
        [(get, "GET /v1/models?limit=1 "), (count, "POST /v1/messages/count_tokens ")]
    {
        let mut fake =
            FakeProvider::start(vec![answer("200 OK", "", r#"{"input_tokens":5}"#)]).await;
        let mut stand = Stand::before(Anthropic, &fake, "").await;
        *stand.known.refusal.lock() =
            Some(crate::endpoint::CallRefusal { why: "none left".to_owned(), retry_after: None });
        let got = stand.ask(&request).await;
        assert!(got.starts_with("HTTP/1.1 200 OK"), "{got}");
        let sent = fake.request().await;
        assert!(sent.starts_with(line), "{sent}");
        assert_eq!(sent.contains("accept-encoding: br"), request.starts_with("GET"), "{sent}");
        assert!(stand.has_no_report());
    }
}

#[tokio::test]
async fn a_path_that_is_not_known_is_admitted_and_passes_with_any_body() {
    let mut fake =
        FakeProvider::start(vec![answer("200 OK", "", "{}"), answer("200 OK", "", USAGE)]).await;
    let mut stand = Stand::before(OpenAi, &fake, "/v1").await;
    let file = format!(
        "POST /p/files HTTP/1.1\r\nhost: HOST\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: multipart/form-data; boundary=x\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n\
         5\r\nhello\r\n0\r\n\r\n"
    );
    let got = stand.ask(&file).await;
    assert!(got.starts_with("HTTP/1.1 200"), "{got}");
    let sent = fake.request().await;
    assert!(sent.starts_with("POST /v1/files ") && sent.contains("5\r\nhello\r\n"), "{sent}");
    assert!(!stand.known.asked.lock()[0].is_known);
    stand.report().await;
    stand.ask(&call("/p/moderations", &format!("authorization: Bearer {TOKEN}"), "no json")).await;
    assert!(fake.request().await.ends_with("no json"));
    let tokens = stand.report().await.spending.unwrap().tokens.unwrap();
    assert_eq!(tokens.get(crate::model::TokenKind::Total).known(), Some(10));
}

#[tokio::test]
async fn a_recording_provider_hands_bodies_over_and_another_does_not() {
    for is_recording in [true, false] {
        let fake = FakeProvider::start(vec![answer("200 OK", "", r#"{"secret":"x","a":1}"#)]).await;
        let mut one = provider(OpenAi, fake.address, "");
        one.record = is_recording;
        let mut stand = Stand::of(vec![one]).await;
        let body = r#"{"model":"m","password":"x"}"#;
        stand.ask(&call("/p/responses", &format!("authorization: Bearer {TOKEN}"), body)).await;
        let record = stand.report().await.record;
        assert_eq!(record.is_some(), is_recording);
        if let Some(record) = record {
            assert_eq!(record.request(&[]), r#"{"model":"m","password":"***"}"#);
            assert_eq!(record.answer(&[]), r#"{"secret":"***","a":1}"#);
        }
    }
}

#[tokio::test]
async fn a_thousand_calls_run_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut stand = Stand::of(vec![provider(OpenAi, listener.local_addr().unwrap(), "")]).await;
    let calls = 1000;
    let mut agents = Vec::new();
    let mut there = Vec::new();
    for _ in 0..calls {
        agents.push(stand.send(&call_of(OpenAi)).await);
        there.push(soon(listener.accept()).await.unwrap().0);
    }
    let Reply(bytes, _) = answer("200 OK", "", USAGE);
    for stream in &mut there {
        stream.write_all(&bytes).await.unwrap();
    }
    for agent in &mut agents {
        let mut got = String::new();
        soon(agent.read_to_string(&mut got)).await.unwrap();
        assert!(got.ends_with(USAGE), "{got}");
    }
    for _ in 0..calls {
        assert_eq!(stand.report().await.end, CallEnd::Whole);
    }
}

#[tokio::test]
async fn a_connection_serves_one_call_after_the_other() {
    let fake =
        FakeProvider::start(vec![answer("200 OK", "", "{}"), answer("200 OK", "", "{}")]).await;
    let mut stand = Stand::before(ProviderKind::OpenAi, &fake, "").await;
    let first = call_of(OpenAi).replace("connection: close\r\n", "");
    let got = stand.ask(&format!("{first}{}", call_of(OpenAi))).await;
    assert_eq!(got.matches("HTTP/1.1 200").count(), 2, "{got}");
    for _ in 0..2 {
        assert_eq!(stand.report().await.end, CallEnd::Whole);
    }
}
