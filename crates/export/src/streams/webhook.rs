//! Posts batches of lines to a web address, signed as Standard Webhooks has it. Blocks its thread.

use std::fmt::Write as _;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::batch::StreamLine;
use super::health::Failure;
use crate::model::{WebhookTarget, now_ms, rfc3339};
use crate::post::{Post, PostFailed};

/// The statuses by which a receiver refuses what is in a request. By others it is away, or does not know
/// the sender: then it may take the same request later.
const REFUSALS: [u16; 7] = [400, 406, 409, 413, 415, 422, 500];

#[derive(Debug)]
pub(super) struct Webhook {
    target: WebhookTarget,
    team: String,
    stream: String,
}

impl Webhook {
    pub(super) fn new(target: WebhookTarget, team: &str, stream: &str) -> Self {
        Self { target, team: team.to_owned(), stream: stream.to_owned() }
    }

    pub(super) fn most(&self) -> usize {
        self.target.batch
    }

    pub(super) fn deliver(&self, lines: &[StreamLine]) -> Result<(), Failure> {
        let [first, ..] = lines else { return Ok(()) };
        let body = body(&self.team, &self.stream, lines);
        let id = format!("msg_{}_{}", first.id.replace('/', "."), lines.len());
        // Of this attempt: receivers refuse old ones. What is sent is the same each time.
        let seconds = (now_ms() / 1_000).to_string();
        let target = &self.target;
        let headers = target.headers.iter();
        let mut headers: Vec<_> =
            headers.map(|(name, value)| (name.clone(), value.reveal().to_owned())).collect();
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        if let Some(key) = &target.key {
            let signature = signature(key.reveal(), &id, &seconds, &body)?;
            headers.push(("webhook-signature".to_owned(), signature));
        }
        headers.push(("webhook-id".to_owned(), id));
        headers.push(("webhook-timestamp".to_owned(), seconds));
        let (url, headers, body) = (target.url.reveal(), &*headers, body.as_bytes());
        // A connection of its own: what a server says after its answer is never read.
        let post = Post { url, headers, body, timeout: target.timeout, redirects: 0 };
        post.send().map(drop).map_err(failure)
    }
}

/// The request's body: an object with the type, the lines, and the time of the last one, so that a retry has the
/// same bytes.
fn body(team: &str, stream: &str, lines: &[StreamLine]) -> String {
    let time = lines.last().map_or(0, StreamLine::timestamp_ms);
    let bytes: usize = lines.iter().map(|line| line.json.len() + 1).sum();
    let mut body = String::with_capacity(bytes + 256);
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    // Writing to a string can't fail.
    let _ = write!(
        body,
        "{{\"type\":\"eisen.events\",\"timestamp\":{},\"data\":{{\"team\":{},\"stream\":{},\"events\":[",
        quoted(&rfc3339(time / 1_000)),
        quoted(team),
        quoted(stream)
    );
    for (at, line) in lines.iter().enumerate() {
        if at > 0 {
            body.push(',');
        }
        body += &line.json;
    }
    body + "]}}"
}

/// The signature of a request by a key in base64.
pub(super) fn signature(key: &str, id: &str, seconds: &str, body: &str) -> Result<String, Failure> {
    let key = BASE64_STANDARD.decode(key).map_err(Failure::new)?;
    let mut mac = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &key));
    for part in [id, ".", seconds, ".", body] {
        mac.update(part.as_bytes());
    }
    Ok(format!("v1,{}", BASE64_STANDARD.encode(mac.sign())))
}

pub(super) fn failure(failed: PostFailed) -> Failure {
    let is_refusal = failed.status.is_some_and(|status| REFUSALS.contains(&status));
    let is_doubtful = failed.status == Some(500);
    Failure { why: failed.why, is_refusal, is_doubtful, retry_after: failed.retry_after }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The example of the specification.
    #[test]
    fn a_signature_is_that_of_standard_webhooks() {
        let signed = signature(
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "1614265330",
            "{\"test\": 2432232314}",
        );
        assert_eq!(signed.unwrap(), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
