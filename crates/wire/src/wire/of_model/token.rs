//! Owns how tokens and their rights become rows, and rights that are asked for the rights of a token.

use crate::model::now_ms;
use crate::tokens::{TokenRecord, TokenRight};
use crate::wire::{AskedRight, ShownToken};

impl From<AskedRight> for TokenRight {
    fn from(asked: AskedRight) -> Self {
        match asked {
            AskedRight::Read => Self::Read,
            AskedRight::Prompt => Self::Prompt,
            AskedRight::Decide => Self::Decide,
            AskedRight::Control => Self::Control,
        }
    }
}

impl From<&TokenRecord> for ShownToken {
    fn from(record: &TokenRecord) -> Self {
        let agents = record.agents.as_ref();
        Self {
            id: record.id().to_owned(),
            owner: record.owner.clone(),
            may: record.may.iter().map(|right| right.as_str().into()).collect(),
            agents: agents
                .map(|agents| agents.iter().map(|agent| agent.to_string().into()).collect()),
            created_ms: record.created_ms,
            expires_ms: record.expires_ms,
            expired: record.has_expired(now_ms()),
        }
    }
}
