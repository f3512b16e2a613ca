//! Owns the methods of streams.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::object::Object;
use super::{Empty, json, parse, subschema};
use crate::serve::shared::Shared;
use crate::serve::wire::{RpcError, StreamStatus};

#[derive(Clone, Copy, Debug)]
pub(in crate::serve) enum Method {
    List,
    Attach,
    Detach,
    Replay,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AttachStreamParams")]
struct AttachStream {
    /// A `[[streams]]` table of the configuration, as JSON; the name alone of one that was detached.
    config: Object,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "DetachStreamParams")]
struct DetachStream {
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ReplayToStreamParams")]
struct ReplayToStream {
    /// As for `list_events`.
    session_id: String,
    /// The stream's name.
    stream: String,
}

/// A session that was delivered to a stream once more.
#[derive(Debug, Serialize, JsonSchema)]
struct ReplayedToStream<'a> {
    /// As in `origin` of each event.
    replay_id: &'a str,
    /// The session of the journal.
    journal_session_id: &'a str,
    /// Events that were delivered.
    events: u64,
    /// Events that the receiver refused for good.
    dead: u64,
}

pub(super) async fn call(
    shared: &Shared,
    method: Method,
    params: Option<&RawValue>,
) -> Result<Value, RpcError> {
    let stream = match method {
        Method::List => {
            let Empty {} = parse(params)?;
            let all = shared.team.streams();
            return json(&all.iter().map(StreamStatus::from).collect::<Vec<_>>());
        }
        Method::Attach => {
            let AttachStream { config } = parse(params)?;
            shared.team.attach_stream(config.0).await?
        }
        Method::Detach => {
            let DetachStream { name } = parse(params)?;
            shared.team.detach_stream(name).await?
        }
        Method::Replay => {
            let ReplayToStream { session_id, stream } = parse(params)?;
            // What has happened until now is a part of it.
            let _ = shared.sources.recorded().await;
            let done = shared.team.replay_to_stream(session_id, stream).await?;
            return json(&ReplayedToStream {
                replay_id: &done.replay_id,
                journal_session_id: &done.session,
                events: done.events,
                dead: done.dead,
            });
        }
    };
    json(&StreamStatus::from(&stream))
}

pub(super) fn schemas(
    method: Method,
    requests: &mut SchemaGenerator,
    answers: &mut SchemaGenerator,
) -> (Schema, Schema) {
    match method {
        Method::List => (subschema::<Empty>(requests), subschema::<Vec<StreamStatus<'_>>>(answers)),
        Method::Attach => {
            (subschema::<AttachStream>(requests), subschema::<StreamStatus<'_>>(answers))
        }
        Method::Detach => {
            (subschema::<DetachStream>(requests), subschema::<StreamStatus<'_>>(answers))
        }
        Method::Replay => {
            (subschema::<ReplayToStream>(requests), subschema::<ReplayedToStream<'_>>(answers))
        }
    }
}
