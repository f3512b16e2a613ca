//! Who may steer the team: two secrets, made anew for each run. Knows no sockets.

use std::fmt::{self, Write as _};

use subtle::ConstantTimeEq as _;

const BYTES: usize = 32;

/// The control tokens of one run: 64 hexadecimal digits each.
#[derive(Clone)]
pub struct Tokens {
    owner: String,
    orchestrator: String,
}

/// Whose token a connection showed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caller {
    /// Whoever may read the run file.
    Owner,
    /// The orchestrator agent, which finds its own in `EISEN_TOKEN`.
    Orchestrator,
}

#[derive(Debug, thiserror::Error)]
#[error("the system has no random numbers for a control token: {0}")]
pub struct TokenError(getrandom::Error);

impl Tokens {
    pub fn generate() -> Result<Self, TokenError> {
        Ok(Self { owner: random()?, orchestrator: random()? })
    }

    pub fn owner(&self) -> &str {
        &self.owner
    }

    pub fn orchestrator(&self) -> &str {
        &self.orchestrator
    }

    /// Tells whose token was presented, in a time that does not depend on how much of it is right.
    pub fn caller(&self, presented: &str) -> Option<Caller> {
        let is = |token: &str| bool::from(token.as_bytes().ct_eq(presented.as_bytes()));
        match (is(&self.owner), is(&self.orchestrator)) {
            (true, _) => Some(Caller::Owner),
            (false, true) => Some(Caller::Orchestrator),
            (false, false) => None,
        }
    }
}

/// Keeps the secrets out of logs.
impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(…)")
    }
}

fn random() -> Result<String, TokenError> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(TokenError)?;
    Ok(bytes.iter().fold(String::with_capacity(2 * BYTES), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tokens_tell_who_calls_and_nothing_else_does() {
        let tokens = Tokens::generate().unwrap();
        assert_eq!(tokens.caller(tokens.owner()), Some(Caller::Owner));
        assert_eq!(tokens.caller(tokens.orchestrator()), Some(Caller::Orchestrator));
        assert_eq!(tokens.owner().len(), 64);
        assert_ne!(tokens.owner(), Tokens::generate().unwrap().owner());
        for wrong in ["", "x", &tokens.owner()[1..], &format!("{} ", tokens.owner())] {
            assert_eq!(tokens.caller(wrong), None, "{wrong:?}");
        }
        assert!(!format!("{tokens:?}").contains(tokens.owner()));
    }
}
