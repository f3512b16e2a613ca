//! Owns the record of a token, and the rights of its holder.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;
use tokio_util::sync::CancellationToken;

use crate::model::{AgentId, TimestampMs, named, now_ms};

/// Hexadecimal digits of a token's id.
const ID_DIGITS: usize = 8;

/// Stands for the id of a token in the journal of a team that was asked through a hub.
const VISITOR: &str = "hub";

named! {
    /// A right that a token gives. No right contains another.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum TokenRight {
        /// See what the team did and does.
        Read = "read",
        /// Give agents work, and cancel it.
        Prompt = "prompt",
        /// Decide what waits for a person.
        Decide = "decide",
        /// Steer the team: all that is left of what a person may, but for tokens.
        Control = "control",
    }
}

/// A token to make.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// The person or group that acts by it.
    pub owner: String,
    pub may: BTreeSet<TokenRight>,
    /// None: all agents.
    pub agents: Option<BTreeSet<AgentId>>,
    /// None: it never expires.
    pub lasts: Option<Duration>,
    /// The token ends with the first browser of it that ends its access.
    pub is_of_browser: bool,
}

/// A token as it is kept: its hash, and its rights.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRecord {
    hash: String,
    pub owner: String,
    #[serde(with = "rights")]
    pub may: BTreeSet<TokenRight>,
    /// None: all agents.
    #[serde(default, with = "agents", skip_serializing_if = "Option::is_none")]
    pub agents: Option<BTreeSet<AgentId>>,
    pub created_ms: TimestampMs,
    /// None: it never expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<TimestampMs>,
    /// No browser outlasts the team, so this is not kept.
    #[serde(skip)]
    pub(super) is_of_browser: bool,
}

impl TokenRecord {
    pub(super) fn new(token: &str, new: NewToken, now: TimestampMs) -> Self {
        let NewToken { owner, may, agents, lasts, is_of_browser } = new;
        let lasts = lasts.map(|lasts| u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX));
        let expires_ms = lasts.map(|lasts| now.saturating_add(lasts));
        let (hash, created_ms) = (hash(token), now);
        Self { hash, owner, may, agents, created_ms, expires_ms, is_of_browser }
    }

    /// Names the token, and opens nothing.
    pub fn id(&self) -> &str {
        self.hash.get(..ID_DIGITS).unwrap_or(&self.hash)
    }

    pub fn has_expired(&self, now: TimestampMs) -> bool {
        self.expires_ms.is_some_and(|expires| expires <= now)
    }

    pub(super) fn is_of(&self, hash: &str) -> bool {
        hash.as_bytes().ct_eq(self.hash.as_bytes()).into()
    }

    pub(super) fn proves(&self, proves: impl Fn(&str) -> bool) -> bool {
        proves(&self.hash)
    }

    /// Whether its hash is one: no other is compared.
    pub(super) fn is_whole(&self) -> bool {
        blake3::Hash::from_hex(&self.hash).is_ok()
    }
}

pub(super) fn hash(token: &str) -> String {
    let hash = blake3::derive_key("eisen-core 2026-11 token with a scope", token.as_bytes());
    blake3::Hash::from_bytes(hash).to_hex().to_string()
}

/// The holder of a token that was shown, and its rights.
#[derive(Clone, Debug)]
pub struct TokenHolder {
    /// The token's id.
    pub id: String,
    pub owner: String,
    may: BTreeSet<TokenRight>,
    agents: Option<BTreeSet<AgentId>>,
    /// The agent that asks from a team elsewhere.
    agent: Option<AgentId>,
    expires_ms: Option<TimestampMs>,
    revoked: CancellationToken,
    is_of_browser: bool,
}

/// A caller who asks through a hub, which holds them to their rights there.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Visitor {
    pub owner: String,
    #[serde(with = "rights")]
    pub may: BTreeSet<TokenRight>,
    /// None: all agents.
    #[serde(default, with = "agents", skip_serializing_if = "Option::is_none")]
    pub agents: Option<BTreeSet<AgentId>>,
    /// The orchestrator agent of a team elsewhere, `HOST/AGENT`, that asks; None: a person or a program.
    #[serde(default, with = "name", skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
}

impl PartialEq for TokenHolder {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for TokenHolder {}

impl TokenHolder {
    pub(super) fn new(record: &TokenRecord, revoked: CancellationToken) -> Self {
        Self {
            id: record.id().to_owned(),
            owner: record.owner.clone(),
            may: record.may.clone(),
            agents: record.agents.clone(),
            agent: None,
            expires_ms: record.expires_ms,
            revoked,
            is_of_browser: record.is_of_browser,
        }
    }

    /// The holder that a visitor is for the time of a request.
    pub fn of_visitor(visitor: Visitor) -> Self {
        let Visitor { owner, may, agents, agent } = visitor;
        let (id, expires_ms, revoked) = (VISITOR.to_owned(), None, CancellationToken::new());
        Self { id, owner, may, agents, agent, expires_ms, revoked, is_of_browser: false }
    }

    /// The visitor that its holder is at a team elsewhere.
    pub fn visitor(&self) -> Visitor {
        Visitor {
            owner: self.owner.clone(),
            may: self.may.clone(),
            agents: self.agents.clone(),
            agent: self.agent.clone(),
        }
    }

    pub fn may(&self, right: TokenRight) -> bool {
        self.may.contains(&right)
    }

    /// The rights by name.
    pub fn rights(&self) -> Vec<&'static str> {
        self.may.iter().map(|right| right.as_str()).collect()
    }

    /// Whether it asks through a hub, or from another host.
    pub fn is_visitor(&self) -> bool {
        self.id == VISITOR
    }

    /// The agent of a team elsewhere that asks; None: a person or a program.
    pub fn agent_elsewhere(&self) -> Option<&AgentId> {
        self.agent.as_ref()
    }

    /// Whether the token is for some agents only.
    pub fn is_limited(&self) -> bool {
        self.agents.is_some()
    }

    /// Whether the token is for an agent.
    pub fn covers(&self, agent: &AgentId) -> bool {
        self.agents.as_ref().is_none_or(|agents| agents.contains(agent))
    }

    /// The agents that it is for, as they are named in errors.
    pub fn agents(&self) -> String {
        let names = self.agents.iter().flatten().map(AgentId::as_str);
        names.collect::<Vec<_>>().join(", ")
    }

    /// Whether the token ends with the first browser of it that ends its access.
    pub fn is_of_browser(&self) -> bool {
        self.is_of_browser
    }

    /// Cancelled when the token is revoked, not when it expires.
    pub fn revoked(&self) -> &CancellationToken {
        &self.revoked
    }

    /// Whether the token is still good.
    pub fn is_good(&self) -> bool {
        !self.revoked.is_cancelled() && self.expires_ms.is_none_or(|expires| expires > now_ms())
    }

    /// Waits until the token is revoked, or expires.
    pub async fn ended(&self) {
        /// The clock of the wall may be set meanwhile.
        const LOOK: Duration = Duration::from_secs(60);
        while self.is_good() {
            let left = self.expires_ms.map(|expires| expires.saturating_sub(now_ms()));
            let wait = left.map_or(LOOK, |left| Duration::from_millis(left.max(1)).min(LOOK));
            let _ = tokio::time::timeout(wait, self.revoked.cancelled()).await;
        }
    }
}

mod rights {
    use std::collections::BTreeSet;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::TokenRight;

    pub(super) fn serialize<S: Serializer>(
        rights: &BTreeSet<TokenRight>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(rights.iter().map(|right| right.as_str()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeSet<TokenRight>, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        let known = |name: &String| {
            let found = TokenRight::ALL.into_iter().find(|right| right.as_str() == *name);
            found.ok_or_else(|| D::Error::custom(format!("there is no right `{name}`")))
        };
        names.iter().map(known).collect()
    }
}

mod agents {
    use std::collections::BTreeSet;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::AgentId;

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(
        agents: &Option<BTreeSet<AgentId>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(agents.iter().flatten().map(AgentId::as_str))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<BTreeSet<AgentId>>, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        Ok(Some(names.into_iter().map(AgentId::new).collect()))
    }
}

mod name {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::AgentId;

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(
        agent: &Option<AgentId>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match agent {
            Some(agent) => serializer.serialize_some(agent.as_str()),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<AgentId>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(AgentId::new))
    }
}
