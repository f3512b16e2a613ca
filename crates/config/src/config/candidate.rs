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
    /// The name of a provider, or `none`.
    pub provider: Option<String>,
}

impl TierCandidate {
    /// Tells it from the others of its tier.
    pub fn key(&self) -> String {
        let parts = [Some(&self.profile), self.model.as_ref(), self.thinking.as_ref()];
        let parts = parts.map(|part| part.map_or("", String::as_str)).join("\n");
        match &self.provider {
            // Keys that were kept before there were providers stay what they were.
            None => parts,
            Some(provider) => format!("{parts}\n{provider}"),
        }
    }
}

impl fmt::Display for TierCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.profile)?;
        if let Some(model) = &self.model {
            write!(f, "/{model}")?;
        }
        if let Some(level) = &self.thinking {
            write!(f, " ({level})")?;
        }
        match &self.provider {
            Some(provider) => write!(f, " by {provider}"),
            None => Ok(()),
        }
    }
}
