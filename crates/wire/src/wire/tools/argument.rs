//! Owns what a tool says of an argument, which stands in the schema of the params as `x-tool`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The description of an argument, and its bounds.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(in crate::wire) struct Argument {
    pub(super) about: Cow<'static, str>,
    /// The name that the tool has for it, if not the field's.
    pub(super) name: Option<Cow<'static, str>>,
    /// Its place among the arguments, if not the field's.
    pub(super) at: Option<usize>,
    pub(super) least: Option<u64>,
    /// Bytes of a text, the largest number, or the texts of a list.
    pub(super) most: Option<u64>,
    /// The names to choose from, if not those of the schema in their order.
    pub(super) choices: Option<Vec<Cow<'static, str>>>,
}

/// Makes a field of params an argument of the method's tool.
pub(in crate::wire) fn tool(about: &'static str) -> Argument {
    Argument { about: about.into(), ..Argument::default() }
}

impl Argument {
    pub(in crate::wire) fn named(self, name: &'static str) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    pub(in crate::wire) fn at(self, at: usize) -> Self {
        Self { at: Some(at), ..self }
    }

    pub(in crate::wire) fn most(self, most: u64) -> Self {
        Self { most: Some(most), ..self }
    }

    pub(in crate::wire) fn range(self, least: u64, most: u64) -> Self {
        Self { least: Some(least), ..self }.most(most)
    }

    pub(in crate::wire) fn choices(self, choices: &[&'static str]) -> Self {
        Self { choices: Some(choices.iter().map(|name| (*name).into()).collect()), ..self }
    }
}
