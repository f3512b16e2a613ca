//! One candidate of a tier: which agent, with which model.

use std::fmt;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TierCandidate {
    /// The name of its profile.
    pub profile: String,
    /// By the agent's own name.
    pub model: Option<String>,
    /// The level of thinking, by the agent's own name.
    pub thinking: Option<String>,
}

impl TierCandidate {
    /// Tells it from the others of its tier.
    pub fn key(&self) -> String {
        let parts = [Some(&self.profile), self.model.as_ref(), self.thinking.as_ref()];
        parts.map(|part| part.map_or("", String::as_str)).join("\n")
    }
}

impl fmt::Display for TierCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.profile)?;
        if let Some(model) = &self.model {
            write!(f, "/{model}")?;
        }
        match &self.thinking {
            Some(level) => write!(f, " ({level})"),
            None => Ok(()),
        }
    }
}
