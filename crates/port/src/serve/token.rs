//! Owns the secrets of a run, and finds the caller by its token.

use std::fmt::{self, Write as _};

use subtle::ConstantTimeEq as _;

use crate::model::{AgentId, WebScope};
use crate::tokens::TokenHolder;

const BYTES: usize = 32;

/// The tokens of one run: its owner's, and one for each agent.
#[derive(Clone)]
pub struct Tokens {
    /// The control token: 64 hexadecimal digits.
    owner: String,
    /// Agents' tokens are derived from it, and not stored.
    secret: [u8; BYTES],
    /// The orchestrator agent.
    lead: Option<AgentId>,
}

/// The identity that a connection's token shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Caller {
    /// A person or a person's program, which can read the run file.
    Person,
    /// The orchestrator agent.
    Lead(AgentId),
    /// Another agent of the team.
    Member(AgentId),
    /// The holder of a token with a scope.
    Holder(TokenHolder),
    /// A client of the web, by a credential that a person made.
    Web(WebScope),
}

impl Caller {
    /// The agent whose token it is.
    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Person | Self::Holder(_) | Self::Web(_) => None,
            Self::Lead(agent) | Self::Member(agent) => Some(agent),
        }
    }

    /// Whether it may do whatever a person may.
    pub(super) fn is_person(&self) -> bool {
        matches!(self, Self::Person | Self::Web(WebScope::Control))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the system has no random numbers for a control token: {0}")]
pub struct TokenError(getrandom::Error);

impl Tokens {
    /// Makes the tokens of a team; `lead` is its orchestrator agent, if there is one.
    pub fn generate(lead: Option<AgentId>) -> Result<Self, TokenError> {
        Ok(Self { owner: challenge()?, secret: random()?, lead })
    }

    /// The control token.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// An agent's token: 64 hexadecimal digits, and its id.
    pub fn of(&self, agent: &AgentId) -> String {
        let hash = blake3::keyed_hash(&self.secret, agent.as_str().as_bytes());
        format!("{}.{agent}", hash.to_hex())
    }

    /// An agent's token for the tools of the team only, made like its token of the port.
    pub fn of_tools(&self, agent: &AgentId) -> String {
        let secret = blake3::derive_key("eisen-core 2026-11 secret of tool tokens", &self.secret);
        format!("{}.{agent}", blake3::keyed_hash(&secret, agent.as_str().as_bytes()).to_hex())
    }

    /// Returns the caller that may use the tools by this answer to a challenge: an agent by its
    /// token for them, or a holder of the control token.
    pub(super) fn tool_user(&self, presented: &str, challenge: &str) -> Option<Caller> {
        let is = |token: &str| is_proof(presented, token, challenge);
        if is(&self.owner) {
            return Some(Caller::Person);
        }
        let agent = AgentId::new(presented.split_once('.')?.1);
        is(&self.of_tools(&agent)).then(|| self.named(agent))
    }

    /// Returns the agent of its token for the tools.
    pub(super) fn tool_bearer(&self, presented: &str) -> Option<Caller> {
        let agent = AgentId::new(presented.split_once('.')?.1);
        let wanted = self.of_tools(&agent);
        let is_its = bool::from(wanted.as_bytes().ct_eq(presented.as_bytes()));
        is_its.then(|| self.named(agent))
    }

    /// Returns the caller of a token, in constant time for any wrong token.
    pub fn caller(&self, presented: &str) -> Option<Caller> {
        self.find(presented, str::to_owned)
    }

    /// Returns the caller whose token this answer to a challenge proves.
    pub(super) fn prover(&self, presented: &str, challenge: &str) -> Option<Caller> {
        self.find(presented, |token| proof(token, challenge))
    }

    /// Returns the caller with a token for which `shown` gives the presented value.
    fn find(&self, presented: &str, shown: impl Fn(&str) -> String) -> Option<Caller> {
        let is = |token: &str| bool::from(shown(token).as_bytes().ct_eq(presented.as_bytes()));
        if is(&self.owner) {
            return Some(Caller::Person);
        }
        let agent = AgentId::new(presented.split_once('.')?.1);
        if !is(&self.of(&agent)) {
            return None;
        }
        Some(self.named(agent))
    }

    fn named(&self, agent: AgentId) -> Caller {
        let leads = self.lead.as_ref() == Some(&agent);
        if leads { Caller::Lead(agent) } else { Caller::Member(agent) }
    }
}

/// Makes 64 random hexadecimal digits.
pub(super) fn challenge() -> Result<String, TokenError> {
    Ok(random()?.iter().fold(String::with_capacity(2 * BYTES), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    }))
}

/// Computes the proof of a token for a challenge. It is useless to an eavesdropper, since each
/// challenge is valid once.
pub(super) fn proof(token: &str, challenge: &str) -> String {
    let key = blake3::derive_key("eisen-core 2026-11 proof of a token", token.as_bytes());
    let hash = blake3::keyed_hash(&key, challenge.as_bytes()).to_hex();
    match token.split_once('.') {
        Some((_, agent)) => format!("{hash}.{agent}"),
        None => hash.to_string(),
    }
}

/// Whether a client has shown the proof of a token.
pub(super) fn is_proof(presented: &str, token: &str, challenge: &str) -> bool {
    proof(token, challenge).as_bytes().ct_eq(presented.as_bytes()).into()
}

/// Keeps the secrets out of logs.
impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(…)")
    }
}

fn random() -> Result<[u8; BYTES], TokenError> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(TokenError)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_tokens_identify_callers() {
        let [lead, ui] = ["lead", "u.i"].map(AgentId::new);
        let tokens = Tokens::generate(Some(lead.clone())).unwrap();
        assert_eq!(tokens.caller(tokens.owner()), Some(Caller::Person));
        assert_eq!(tokens.caller(&tokens.of(&lead)), Some(Caller::Lead(lead.clone())));
        assert_eq!(tokens.caller(&tokens.of(&ui)), Some(Caller::Member(ui.clone())));
        assert_eq!(tokens.owner().len(), 64);
        let others = Tokens::generate(Some(lead.clone())).unwrap();
        assert_ne!(others.owner(), tokens.owner());
        let renamed = tokens.of(&ui).replace("u.i", "lead");
        for wrong in ["", "x", ".", &tokens.owner()[1..], &renamed, &others.of(&lead)] {
            assert_eq!(tokens.caller(wrong), None, "{wrong:?}");
        }
        assert_eq!(tokens.caller(&format!("{} ", tokens.owner())), None);
        let by = |token: &str| tokens.prover(&proof(token, "c"), "c");
        assert_eq!(by(tokens.owner()), Some(Caller::Person));
        assert_eq!(by(&tokens.of(&lead)), Some(Caller::Lead(lead.clone())));
        assert_eq!(by(&tokens.of(&ui)), Some(Caller::Member(ui.clone())));
        assert_eq!(by("x"), None);
        assert_eq!(tokens.prover(&proof(tokens.owner(), "another"), "c"), None);
        assert_eq!(tokens.prover(tokens.owner(), "c"), None);
        let uses = |token: &str| tokens.tool_user(&proof(token, "c"), "c");
        assert_eq!(uses(tokens.owner()), Some(Caller::Person));
        assert_eq!(uses(&tokens.of_tools(&lead)), Some(Caller::Lead(lead.clone())));
        assert_eq!(uses(&tokens.of_tools(&ui)), Some(Caller::Member(ui.clone())));
        let renamed = tokens.of_tools(&ui).replace("u.i", "lead");
        for wrong in [&tokens.of(&ui), &renamed, &others.of_tools(&ui)] {
            assert_eq!(uses(wrong), None, "{wrong:?}");
        }
        // A token for the tools is none on the port.
        assert_eq!(tokens.tool_bearer(&tokens.of_tools(&ui)), Some(Caller::Member(ui.clone())));
        for wrong in [&tokens.of(&ui), &renamed, tokens.owner(), "", ".ui"] {
            assert_eq!(tokens.tool_bearer(wrong), None);
        }
        assert_eq!(tokens.caller(&tokens.of_tools(&ui)), None);
        assert_eq!(by(&tokens.of_tools(&ui)), None);
        assert!(!format!("{tokens:?}").contains(tokens.owner()));
    }
}
