//! Owns what several lines have: a session, an error, the id of a request.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NameOf;
use super::names::AgentName;
use crate::model::SessionMode;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionHeader<'a> {
    pub agent_id: AgentName<'a>,
    pub session_id: Cow<'a, str>,
    #[serde(default)]
    pub session_mode: NameOf<SessionMode>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Target<'a> {
    pub agent_id: AgentName<'a>,
    pub session_id: Cow<'a, str>,
}

/// An error as the client gets it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RpcError {
    /// 400, 401, 403, 404, 409 or 500.
    pub code: u16,
    pub message: String,
}

/// The id by which a request is known.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Id {
    Text(String),
    Number(f64),
}

impl RpcError {
    pub fn new(code: u16, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Params without fields.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}
