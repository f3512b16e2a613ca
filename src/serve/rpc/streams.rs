//! Owns the methods of streams.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
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
    }
}
