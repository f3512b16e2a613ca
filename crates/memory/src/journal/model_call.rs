//! The payload of `model.call`: a call of a model with its bodies.

use std::time::Duration;

use serde::Serialize;

use crate::model::KeptCall;

#[derive(Serialize)]
pub(super) struct ModelCallPayload<'a> {
    provider: &'a str,
    model: Option<&'a str>,
    status: Option<u16>,
    end: &'a str,
    first_byte_ms: Option<u64>,
    duration_ms: u64,
    request: &'a str,
    answer: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

pub(super) fn payload(call: &KeptCall) -> ModelCallPayload<'_> {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    ModelCallPayload {
        provider: &call.provider,
        model: call.model.as_deref(),
        status: call.status,
        end: call.end,
        first_byte_ms: call.first_byte.map(ms),
        duration_ms: ms(call.took),
        request: &call.request,
        answer: &call.answer,
        truncated: call.is_cut,
    }
}
