//! The messages between a hub and its teams: a line of JSON, for some kinds with bytes behind it. All are
//! signed; who has not the key is not heard.

use std::time::Duration;

use async_nats::client::PublishErrorKind;
use async_nats::{Client, HeaderMap, Message};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::key::HubKey;
use crate::tokens::Visitor;

/// The header with the signature.
const SIGNATURE: &str = "Eisen-Signature";

/// How long a message may wait for the connection.
const STUCK: Duration = Duration::from_secs(2);

/// The beginning of subjects; then comes the host, then the kind.
const PREFIX: &str = "eisen-hub";

/// The part behind the host in a subject: `up` from the team, `down` to it.
pub(super) mod kind {
    /// A team says that it is there.
    pub(in crate::hub) const BEAT: &str = "up.beat";
    /// Bytes of the lines of a team's port.
    pub(in crate::hub) const LIVE: &str = "up.live";
    /// Both, of which one subscription keeps the order.
    pub(in crate::hub) const UP: &str = "up.*";
    /// A hub wants the whole state again.
    pub(in crate::hub) const SYNC: &str = "down.sync";
    /// A hub asks the team to run a method.
    pub(in crate::hub) const REQUEST: &str = "down.request";
    pub(in crate::hub) const DOWN: &str = "down.*";
}

/// The subject of a kind of message of a host, or of all hosts with `*`.
pub(super) fn subject(host: &str, kind: &str) -> String {
    format!("{PREFIX}.{host}.{kind}")
}

/// The host in a subject, and the kind of message.
pub(super) fn parts_of(subject: &str) -> Option<(&str, &str)> {
    subject.strip_prefix(PREFIX)?.strip_prefix('.')?.split_once('.')
}

/// A team is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Beat {
    /// Names this start of the team: a ULID, so that a later one is greater.
    pub(super) epoch: String,
    /// One more each time.
    pub(super) number: u64,
    pub(super) team: String,
    /// By the clock of the team.
    pub(super) timestamp_ms: u64,
    /// The last feed, and how many chunks of it were sent.
    pub(super) feed: u64,
    pub(super) chunks: u64,
    /// Only if true: the team stops.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) ending: bool,
}

/// The head of a chunk of lines. A feed begins with the whole state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Chunk {
    pub(super) epoch: String,
    pub(super) feed: u64,
    /// From 0 in each feed.
    pub(super) number: u64,
}

/// The whole state is wanted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Sync {
    pub(super) epoch: String,
    /// The feed that can't be followed: a later one is under way already.
    pub(super) feed: u64,
}

/// A method to perform.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct HubRequest {
    /// A request that is sent again has the same.
    pub(super) id: String,
    pub(super) epoch: String,
    /// Where the answer goes.
    pub(super) inbox: String,
    /// The last beat that was heard before it was sent first.
    pub(super) beat: u64,
    pub(super) by: Visitor,
    pub(super) method: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) params: Option<Box<RawValue>>,
}

/// The head of a part of a reply.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ReplyPart {
    pub(super) id: String,
    /// From 0.
    pub(super) number: u32,
    /// 0: the request is under way.
    pub(super) parts: u32,
}

/// A reply, once all of its parts are there.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    Result(Box<RawValue>),
    Error { code: u16, message: String },
}

/// Why a message was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SendError {
    /// The server takes none so long.
    TooLong,
    /// The server takes nothing now.
    Stuck,
}

/// Publishes signed messages. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    pub(super) client: Client,
    pub(super) key: HubKey,
}

impl Sender {
    pub(super) async fn send(
        &self,
        subject: String,
        head: &impl Serialize,
        bytes: &[u8],
    ) -> Result<(), SendError> {
        // Fails only for a map with keys that are not text.
        let mut body = serde_json::to_vec(head).unwrap_or_default();
        if !bytes.is_empty() {
            body.push(b'\n');
            body.extend_from_slice(bytes);
        }
        let mut headers = HeaderMap::new();
        headers.insert(SIGNATURE, self.key.sign(&subject, &body));
        let publish = self.client.publish_with_headers(subject, headers, body.into());
        match timeout(STUCK, publish).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) if error.kind() == PublishErrorKind::MaxPayloadExceeded => {
                Err(SendError::TooLong)
            }
            Ok(Err(_)) | Err(_) => Err(SendError::Stuck),
        }
    }

    /// Bytes that go into one message, beside its head.
    pub(super) fn room(&self) -> usize {
        (self.client.max_payload() / 2).clamp(1 << 10, 1 << 18)
    }
}

/// Returns the head of a signed message, and the bytes behind it; None: it is not signed with the key,
/// or no such message.
pub(super) fn read<T: for<'de> Deserialize<'de>>(
    message: &Message,
    key: &HubKey,
) -> Option<(T, Bytes)> {
    let signature = message.headers.as_ref()?.get(SIGNATURE)?.as_str();
    if !key.is_signed(message.subject.as_str(), &message.payload, signature) {
        return None;
    }
    let end = message.payload.iter().position(|byte| *byte == b'\n');
    let end = end.unwrap_or(message.payload.len());
    let head = serde_json::from_slice(&message.payload[..end]).ok()?;
    Some((head, message.payload.slice((end + 1).min(message.payload.len())..)))
}
