#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use client::{Got, Running};

mod breaks;
mod calls;
mod client;
mod scripts;

/// A request of a plain text, in the form of an API.
fn ask(api: ModelApi, text: &str, stream: bool) -> (String, Value) {
    let message = json!([{ "role": "user", "content": text }]);
    let model = "some-model";
    match api {
        ModelApi::Anthropic => (
            "/v1/messages".to_owned(),
            json!({ "model": model, "max_tokens": 9, "messages": message, "stream": stream }),
        ),
        ModelApi::OpenAiChat => (
            "/v1/chat/completions".to_owned(),
            json!({
                "model": model, "messages": message, "stream": stream,
                "stream_options": { "include_usage": true },
            }),
        ),
        ModelApi::OpenAiResponses => (
            "/v1/responses".to_owned(),
            json!({ "model": model, "input": message, "stream": stream }),
        ),
        ModelApi::Gemini => {
            let action = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
            let body = json!({ "contents": [{ "role": "user", "parts": [{ "text": text }] }] });
            (format!("/v1beta/models/{model}:{action}"), body)
        }
    }
}

async fn send(server: &Running, api: ModelApi, text: &str, stream: bool) -> Got {
    let (path, body) = ask(api, text, stream);
    server.post(&path, &body).await
}

/// The last usage in an answer, in the vendor's form.
fn usage_of(api: ModelApi, got: &Got) -> Value {
    let usage = |event: &Value| match api {
        ModelApi::OpenAiResponses if event["response"].is_object() => {
            event["response"]["usage"].clone()
        }
        ModelApi::Anthropic | ModelApi::OpenAiChat | ModelApi::OpenAiResponses => {
            event["usage"].clone()
        }
        ModelApi::Gemini => event["usageMetadata"].clone(),
    };
    let events = got.events();
    events.iter().rev().map(usage).find(|usage| !usage.is_null()).unwrap_or_default()
}
