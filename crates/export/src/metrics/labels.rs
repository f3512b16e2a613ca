//! The values of labels: closed lists, and names of which only the first few are kept.

use std::borrow::Cow;
use std::collections::BTreeSet;

/// The label of all values that have none of their own.
pub(super) const OTHER: &str = "other";

/// The agent that stands for all helpers together. No agent can have this id.
pub(super) const HELPERS: &str = "(helpers)";

/// The kinds of tool calls of the protocol.
pub(super) const TOOL_KINDS: [&str; 10] =
    ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", OTHER];

/// The protocol's, and `error`, by which this program ends a turn.
pub(super) const STOP_REASONS: [&str; 6] =
    ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "error"];

/// The outcomes of an access that waited, or that somebody decided.
pub(super) const OUTCOMES: [&str; 5] = ["allowed", "denied", "answered", "expired", "timed_out"];

/// Models with a label of their own, from the first on.
const MOST_MODELS: usize = 32;

const MOST_CURRENCIES: usize = 8;

/// Bytes of a model's name.
const LONGEST_MODEL: usize = 64;

pub(super) fn tool_kind(kind: &str) -> &'static str {
    one_of(&TOOL_KINDS, kind)
}

pub(super) fn stop_reason(reason: &str) -> &'static str {
    one_of(&STOP_REASONS, reason)
}

fn one_of(list: &[&'static str], value: &str) -> &'static str {
    list.iter().find(|known| **known == value).copied().unwrap_or(OTHER)
}

/// The names that agents made known.
#[derive(Default, Debug)]
pub(super) struct Names {
    models: BTreeSet<String>,
    currencies: BTreeSet<String>,
}

impl Names {
    pub(super) fn model(&mut self, name: Option<&str>) -> Cow<'static, str> {
        let name = name.filter(|name| is_model(name));
        kept(&mut self.models, name, MOST_MODELS)
    }

    pub(super) fn currency(&mut self, code: &str) -> Cow<'static, str> {
        let is_code = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_uppercase());
        kept(&mut self.currencies, is_code.then_some(code), MOST_CURRENCIES)
    }
}

/// Names of models have parts, of makers and variants, but are no paths.
fn is_model(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/@[]".contains(&byte);
    name.len() <= LONGEST_MODEL
        && name.starts_with(|char: char| char.is_ascii_alphanumeric())
        && name.bytes().all(is_plain)
        && !name.contains("..")
}

fn kept(names: &mut BTreeSet<String>, name: Option<&str>, most: usize) -> Cow<'static, str> {
    let Some(name) = name else { return OTHER.into() };
    if !names.contains(name) {
        if names.len() >= most {
            return OTHER.into();
        }
        names.insert(name.to_owned());
    }
    name.to_owned().into()
}
