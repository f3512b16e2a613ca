//! Owns the methods of streams.

use schemars::{Schema, SchemaGenerator};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{json, parse, subschema};
use crate::serve::shared::Shared;
use crate::wire::{
    AttachStreamParams, DetachStreamParams, Empty, ReplayToStreamParams, ReplayedToStream,
    RpcError, StreamStatus,
};

#[derive(Clone, Copy, Debug)]
pub(in crate::serve) enum Method {
    List,
    Attach,
    Detach,
    Replay,
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
            let AttachStreamParams { config } = parse(params)?;
            shared.team.attach_stream(config.0).await?
        }
        Method::Detach => {
            let DetachStreamParams { name } = parse(params)?;
            shared.team.detach_stream(name).await?
        }
        Method::Replay => {
            let ReplayToStreamParams { session_id, stream } = parse(params)?;
            // What has happened until now is a part of it.
            let _ = shared.sources.recorded().await;
            let done = shared.team.replay_to_stream(session_id, stream).await?;
            return json(&ReplayedToStream {
                replay_id: (&*done.replay_id).into(),
                journal_session_id: (&*done.session).into(),
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
            (subschema::<AttachStreamParams>(requests), subschema::<StreamStatus<'_>>(answers))
        }
        Method::Detach => {
            (subschema::<DetachStreamParams>(requests), subschema::<StreamStatus<'_>>(answers))
        }
        Method::Replay => (
            subschema::<ReplayToStreamParams>(requests),
            subschema::<ReplayedToStream<'_>>(answers),
        ),
    }
}
