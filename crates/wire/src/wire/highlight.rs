//! Owns the method that tells the tokens of code apart.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NameOf;
use super::method::method;
use crate::model::CodeTokenKind;

method! {
    Highlight = "highlight": HighlightParams => CodeTokens<'a>;
    port: Reader, web: Read, token: Read(Team), waits: false, lasts: false, hub: Port
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HighlightParams {
    /// A name of a language, as after the fence of a block of code in Markdown.
    #[serde(default)]
    pub language: Option<String>,
    /// A path, by whose extension the language is known where `language` is left out or unknown. Nothing is read from there.
    #[serde(default)]
    pub path: Option<String>,
    /// The code; 64 KiB at most.
    pub text: String,
}

/// The tokens of a piece of code.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Highlighted")]
pub struct CodeTokens<'a> {
    /// Null: no language of that name is known.
    pub language: Option<Cow<'a, str>>,
    /// Start, end and kind of each, ordered and apart from one another; 20,000 at most. Places are counted in UTF-16 code
    /// units. A `name` is that of a function.
    pub tokens: Vec<(u32, u32, NameOf<CodeTokenKind>)>,
}
