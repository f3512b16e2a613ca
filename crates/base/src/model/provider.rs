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
