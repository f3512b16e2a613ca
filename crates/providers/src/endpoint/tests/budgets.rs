//! Calls that are refused before they are sent.

use std::time::Duration;

use super::harness::{FakeProvider, Stand, call_of};
use crate::endpoint::CallRefusal;
use crate::provider::ProviderKind::{Anthropic, Gemini, OpenAi};

#[tokio::test]
async fn a_refusal_has_the_vendors_shape_for_no_credit_with_the_reason() {
    for (kind, status, parts) in [
        (
            OpenAi,
            429,
            &[
                r#""type":"insufficient_quota","param":null,"code":"insufficient_quota""#,
                r#"{"error":{"message":"You exceeded your current quota. eisen-core: the budget of the team is used up""#,
            ][..],
        ),
        (
            Anthropic,
            400,
            &[
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. eisen-core: the budget of the team is used up"}}"#,
            ],
        ),
        (
            Gemini,
            429,
            &[
                r#"{"error":{"code":429,"message":"You exceeded your current quota. eisen-core: the budget of the team is used up","status":"RESOURCE_EXHAUSTED","#,
                r#""@type":"type.googleapis.com/google.rpc.QuotaFailure""#,
                r#""retryDelay":"61s""#,
            ],
        ),
    ] {
        let mut fake = FakeProvider::start(vec![]).await;
        let mut stand = Stand::before(kind, &fake, "").await;
        *stand.known.refusal.lock() = Some(CallRefusal {
            why: "the budget of the team is used up".to_owned(),
            retry_after: Some(Duration::from_millis(60_500)),
        });
        let got = stand.ask(&call_of(kind)).await;
        assert!(got.starts_with(&format!("HTTP/1.1 {status} ")), "{got}");
        for part in parts {
            assert!(got.contains(part), "{got}");
        }
        assert!(got.contains("\r\nx-should-retry: false\r\nretry-after: 61\r\n"), "{got}");
        assert!(stand.has_no_report() && fake.requests.try_recv().is_err());
    }
}
