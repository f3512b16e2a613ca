//! Has a team perform a method: the request is sent again, as the same one, until the answer is there.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::Subscriber;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout, timeout_at};

use super::message::{self, HubRequest, Reply, ReplyPart, SendError, Sender, kind, subject};
use crate::serve::Refused;
use crate::tokens::Visitor;

/// When a request is sent again, first and then.
const AGAIN: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(5);

/// Bytes and parts of an answer.
const LONGEST: usize = 128 << 20;
const MOST_PARTS: u32 = 1 << 17;

/// A method that a team is to perform.
pub(super) struct Errand<'a> {
    pub(super) host: &'a str,
    pub(super) by: Visitor,
    pub(super) method: &'a str,
    pub(super) params: Box<RawValue>,
    /// How long nothing may be heard.
    pub(super) patience: Duration,
}

/// The start of the team that is asked, and its last beat; None: it is not heard any more.
pub(super) type HeardStart = Option<(String, u64)>;

pub(super) async fn ask(
    sender: &Sender,
    errand: Errand<'_>,
    standing: impl Fn() -> HeardStart,
) -> Result<Box<RawValue>, Refused> {
    let Errand { host, by, method, params, patience } = errand;
    let away = || Refused::new(500, format!("the host `{host}` does not answer"));
    let (epoch, beat) = standing().ok_or_else(away)?;
    let inbox = sender.client.new_inbox();
    let subscribing = timeout(AGAIN, sender.client.subscribe(inbox.clone())).await;
    let mut replies = subscribing.ok().and_then(Result::ok).ok_or_else(away)?;
    let (id, method) = (ulid::Ulid::generate().to_string(), method.to_owned());
    let request = HubRequest { id, epoch, inbox, beat, by, method, params: Some(params) };
    let (mut heard, mut pause) = (Instant::now(), AGAIN);
    let mut parts = Parts::default();
    loop {
        if standing().is_some_and(|(epoch, _)| epoch != request.epoch) {
            let message = format!(
                "the team of host `{host}` was started anew: whether this was done is not known"
            );
            return Err(Refused::new(409, message));
        }
        let to = subject(host, kind::REQUEST);
        if sender.send(to, &request, &[]).await == Err(SendError::TooLong) {
            let most = sender.client.max_payload();
            let message = format!("a request over NATS has at most {most} bytes here");
            return Err(Refused::wrong(message));
        }
        let until = Instant::now() + pause;
        pause = LATER;
        while let Ok(reply) = timeout_at(until, next(&mut replies, sender, &request.id)).await {
            let Some((part, bytes)) = reply else { return Err(away()) };
            heard = Instant::now();
            let Some(whole) = parts.add(&part, bytes) else { continue };
            return match serde_json::from_slice(&whole) {
                Ok(Reply::Result(result)) => Ok(result),
                Ok(Reply::Error { code, message }) => Err(Refused::new(code, message)),
                Err(_) => Err(Refused::new(500, format!("the answer of `{host}` can't be read"))),
            };
        }
        if heard.elapsed() > patience {
            return Err(away());
        }
    }
}

/// Waits for a signed part of the reply; None: the connection has ended.
async fn next(replies: &mut Subscriber, sender: &Sender, id: &str) -> Option<(ReplyPart, Bytes)> {
    loop {
        let message = replies.next().await?;
        if let Some((part, bytes)) = message::read::<ReplyPart>(&message, &sender.key)
            && part.id == id
        {
            return Some((part, bytes));
        }
    }
}

/// The parts of an answer that came.
#[derive(Default)]
struct Parts {
    count: u32,
    got: BTreeMap<u32, Bytes>,
    bytes: usize,
}

impl Parts {
    /// Adds a part; returns the answer once it is whole.
    fn add(&mut self, part: &ReplyPart, bytes: Bytes) -> Option<Bytes> {
        if part.parts == 0 || part.parts > MOST_PARTS || part.number >= part.parts {
            return None;
        }
        if part.parts != self.count {
            *self = Self { count: part.parts, ..Self::default() };
        }
        self.bytes += bytes.len();
        if self.bytes > LONGEST {
            *self = Self::default();
            return None;
        }
        if let Some(before) = self.got.insert(part.number, bytes) {
            self.bytes -= before.len();
        }
        if self.got.len() < self.count as usize {
            return None;
        }
        let got = std::mem::take(self).got;
        let mut whole = BytesMut::new();
        for bytes in got.into_values() {
            whole.extend_from_slice(&bytes);
        }
        Some(whole.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_once_all_parts_are_there() {
        let mut parts = Parts::default();
        let mut add = |number, count, bytes: &'static str| {
            let part = ReplyPart { id: "r".to_owned(), number, parts: count };
            parts.add(&part, Bytes::from_static(bytes.as_bytes()))
        };
        assert_eq!(add(1, 2, "b"), None);
        assert_eq!(add(1, 2, "b"), None);
        assert_eq!(add(0, 2, "a"), Some(Bytes::from_static(b"ab")));
        assert_eq!(add(0, 1, "c"), Some(Bytes::from_static(b"c")));
        assert_eq!(add(3, 2, "x"), None);
        assert_eq!(add(0, 0, "x"), None);
    }
}
