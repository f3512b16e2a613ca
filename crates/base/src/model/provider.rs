//! The kinds of providers of models.

use serde::{Deserialize, Serialize};

use super::named;

named! {
    /// The interface that a provider of models has.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Debug)]
    #[serde(rename_all = "lowercase")]
    pub enum ProviderKind {
        Anthropic = "anthropic",
        OpenAi = "openai",
        Gemini = "gemini",
    }
}

impl ProviderKind {
    /// The vendor's own address, in the form that its libraries take.
    pub fn vendor_url(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com",
        }
    }

    /// The variable in which the vendor's libraries look for a key.
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAi => "OPENAI_API_KEY",
            Self::Gemini => "GEMINI_API_KEY",
        }
    }
}

/// The calls of models that run at a time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct OpenCalls {
    /// Their number.
    pub calls: u64,
    /// Tokens that those can take at most whose requests bound what is written.
    pub most: u64,
    /// Calls whose requests do not.
    pub unbounded: u64,
}

impl OpenCalls {
    /// Adds a call, which takes so many tokens at most.
    pub fn begin(&mut self, most: Option<u64>) {
        self.calls += 1;
        self.most = self.most.saturating_add(most.unwrap_or(0));
        self.unbounded += u64::from(most.is_none());
    }

    /// Takes away a call that was added with the same bound.
    pub fn end(&mut self, most: Option<u64>) {
        self.calls = self.calls.saturating_sub(1);
        self.most = self.most.saturating_sub(most.unwrap_or(0));
        self.unbounded = self.unbounded.saturating_sub(u64::from(most.is_none()));
    }
}
