//! Requests that go nowhere.

use super::harness::{FakeProvider, Stand, TOKEN, call, call_of};
use crate::endpoint::{Endpoint, EndpointError};
use crate::provider::ProviderKind::{Anthropic, Gemini, OpenAi};

#[tokio::test]
async fn a_token_that_is_nobodys_is_refused_in_the_vendors_shape() {
    for (kind, start, shape) in [
        (OpenAi, "HTTP/1.1 401 ", r#""code":"invalid_api_key""#),
        (Anthropic, "HTTP/1.1 401 ", r#"{"type":"error","error":{"type":"authentication_error","#),
        (Gemini, "HTTP/1.1 400 ", r#""status":"INVALID_ARGUMENT""#),
    ] {
        let mut fake = FakeProvider::start(vec![]).await;
        let mut stand = Stand::before(kind, &fake, "").await;
        let call = call_of(kind);
        for wrong in [
            call.replace(TOKEN, "other"),
            call.replace(TOKEN, ""),
            call.replace(TOKEN, &"x".repeat(5000)),
            call.replace("content-type", "x-api-key: other\r\ncontent-type"),
            call.replace("authorization", "x-other")
                .replace("x-api-key", "x-other")
                .replace("x-goog-api-key", "x-other"),
        ] {
            let got = stand.ask(&wrong).await;
            assert!(got.starts_with(start) && got.contains(shape), "{wrong}\n{got}");
        }
        assert!(stand.has_no_report() && fake.requests.try_recv().is_err());
    }
}

#[tokio::test]
async fn requests_that_are_not_for_the_endpoint_go_nowhere() {
    let mut fake = FakeProvider::start(vec![]).await;
    let stand = Stand::before(OpenAi, &fake, "").await;
    let good = call_of(OpenAi);
    let absolute = good.replace("POST /p", &format!("POST http://{}/p", fake.address));
    let connect =
        format!("CONNECT {} HTTP/1.1\r\nhost: HOST\r\nconnection: close\r\n\r\n", fake.address);
    for (wrong, status) in [
        (absolute, 400),
        (connect, 400),
        (good.replace("host: HOST", "host: api.example"), 421),
        (good.replace("host: HOST", "host: HOST\r\nhost: api.example"), 421),
        (good.replace("host: HOST\r\n", ""), 421),
        (good.replace("content-type", "origin: http://HOST\r\ncontent-type"), 403),
        (good.replace("/p/chat", "/p/../chat"), 400),
        (good.replace("/p/chat", "/p/x%2f%2e%2e/chat"), 400),
        (good.replace("/p/", "/q/"), 404),
        (good.replace("/p/chat/completions", "/"), 404),
        (good.replace("content-type", "upgrade: websocket\r\ncontent-type"), 426),
    ] {
        let got = stand.ask(&wrong).await;
        assert!(got.starts_with(&format!("HTTP/1.1 {status} ")), "{wrong}\n{got}");
    }
    assert!(fake.requests.try_recv().is_err());
    let long = format!("x-long: {}\r\ncontent-type", "x".repeat(64 << 10));
    let got = stand.ask(&good.replace("content-type", &long)).await;
    assert!(got.starts_with("HTTP/1.1 431 ") || got.is_empty(), "{got}");
}

#[tokio::test]
async fn a_body_that_is_too_long_or_can_be_read_in_two_ways_is_not_sent() {
    let mut fake = FakeProvider::start(vec![]).await;
    let mut stand = Stand::before(OpenAi, &fake, "").await;
    let shown = format!("authorization: Bearer {TOKEN}");
    let long = call("/p/responses", &shown, "{}").replace("length: 2", "length: 67108865");
    let got = stand.ask(&long).await;
    assert!(got.starts_with("HTTP/1.1 413 ") && got.contains("67108864 bytes"), "{got}");
    for body in [r#"{"max_tokens":1,"max_tokens":9}"#, "[]", "{\"model\":", r#"{"Model":"x"}"#] {
        let got = stand.ask(&call("/p/chat/completions", &shown, body)).await;
        assert!(got.starts_with("HTTP/1.1 400 ") && got.contains("invalid_request_error"), "{got}");
    }
    assert!(stand.has_no_report() && fake.requests.try_recv().is_err());
}

#[tokio::test]
async fn an_address_that_others_reach_is_not_listened_on() {
    let stand = Stand::of(vec![]).await;
    let anywhere = "0.0.0.0:0".parse().unwrap();
    let bound = Endpoint::bind(anywhere, vec![], std::sync::Arc::clone(&stand.known)).await;
    assert!(matches!(bound, Err(EndpointError::NotLoopback(_))));
}
