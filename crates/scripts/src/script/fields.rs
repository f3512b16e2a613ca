//! Typed access to the tables of a script: errors have their line, and unknown keys are rejected.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An error in a script, with its position; lines and columns count from 1.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct Invalid {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The mistake, and what helps.
    pub message: String,
}

impl Invalid {
    /// An error at a byte of the script's text.
    pub fn new(text: &str, at: usize, message: impl Into<String>) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        }
    }
}

/// A value with its place.
pub type Item<'a> = &'a Spanned<DeValue<'a>>;

/// The entries of one table.
pub struct Fields<'a> {
    text: &'a str,
    at: usize,
    name: &'a str,
    keys: BTreeMap<&'a str, Range<usize>>,
    values: BTreeMap<&'a str, Item<'a>>,
}

impl<'a> Fields<'a> {
    /// `name` is the name of the table in errors.
    pub fn new(text: &'a str, at: usize, name: &'a str, table: &'a DeTable<'a>) -> Self {
        Self {
            text,
            at,
            name,
            keys: table.keys().map(|key| (key.get_ref().as_ref(), key.span())).collect(),
            values: table.iter().map(|(key, value)| (key.get_ref().as_ref(), value)).collect(),
        }
    }

    /// The entries of a value that has to be a table.
    pub fn of(text: &'a str, name: &'a str, item: Item<'a>) -> Result<Self, Invalid> {
        let DeValue::Table(table) = item.get_ref() else {
            let message = format!("{name} is a table, not {}", kind(item));
            return Err(Invalid::new(text, item.span().start, message));
        };
        Ok(Self::new(text, item.span().start, name, table))
    }

    /// The text of the script that the table is in.
    pub fn script(&self) -> &'a str {
        self.text
    }

    /// Whether the table has a key.
    pub fn has(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }

    /// Rejects the first unknown key, with a suggestion.
    pub fn only(&self, known: &[&str]) -> Result<(), Invalid> {
        let unknown = self.keys.iter().find(|(key, _)| !known.contains(key));
        let Some((key, span)) = unknown else { return Ok(()) };
        let near = known.iter().max_by(|a, b| closeness(key, a).total_cmp(&closeness(key, b)));
        let hint = match near {
            Some(near) if closeness(key, near) > 0.5 => format!("; did you mean `{near}`?"),
            _ if known.is_empty() => String::new(),
            _ => format!("; it takes `{}`", known.join("`, `")),
        };
        let message = format!("{} has no key `{key}`{hint}", self.name);
        Err(Invalid::new(self.text, span.start, message))
    }

    /// An error at `key`, or at the table if it lacks the key.
    pub fn error(&self, key: &str, message: impl Into<String>) -> Invalid {
        let at = self.keys.get(key).map_or(self.at, |span| span.start);
        Invalid::new(self.text, at, message)
    }

    /// The value of a key.
    pub fn item(&self, key: &str) -> Option<Item<'a>> {
        self.values.get(key).copied()
    }

    /// A string.
    pub fn text(&self, key: &str) -> Result<Option<String>, Invalid> {
        self.typed(key, "a string", string)
    }

    /// A list of strings.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<String>>, Invalid> {
        let Some(items) = self.items(key)? else { return Ok(None) };
        let mistyped = |item| self.mistyped(key, "a list of strings", item);
        let strings = items.iter().map(|item| string(item.get_ref()).ok_or_else(|| mistyped(item)));
        strings.collect::<Result<_, _>>().map(Some)
    }

    /// A list.
    pub fn items(&self, key: &str) -> Result<Option<&'a [Spanned<DeValue<'a>>]>, Invalid> {
        self.typed(key, "a list", |value| match value {
            DeValue::Array(items) => Some(&**items),
            _ => None,
        })
    }

    /// A whole number from 0 to `max`.
    pub fn count(&self, key: &str, max: u64) -> Result<Option<u64>, Invalid> {
        let Some(number) = self.typed(key, "a whole number", DeValue::as_integer)? else {
            return Ok(None);
        };
        let number = u64::from_str_radix(number.as_str(), number.radix()).ok();
        let within = number.filter(|number| *number <= max);
        let refused = || self.error(key, format!("`{key}` is a number from 0 to {max}"));
        within.ok_or_else(refused).map(Some)
    }

    /// A finite number.
    pub fn number(&self, key: &str) -> Result<Option<f64>, Invalid> {
        let digits = self.typed(key, "a number", |value| match value {
            DeValue::Integer(number) => Some(number.as_str()),
            DeValue::Float(number) => Some(number.as_str()),
            _ => None,
        })?;
        let Some(digits) = digits else { return Ok(None) };
        let finite = digits.parse().ok().filter(|number: &f64| number.is_finite());
        let refused = || self.error(key, format!("`{key}` is a finite decimal number"));
        finite.ok_or_else(refused).map(Some)
    }

    /// True or false.
    pub fn flag(&self, key: &str) -> Result<Option<bool>, Invalid> {
        self.typed(key, "true or false", DeValue::as_bool)
    }

    /// The value of `key` as `typed` reads it; an error names the `wanted` type.
    fn typed<T>(
        &self,
        key: &str,
        wanted: &str,
        typed: impl Fn(&'a DeValue<'a>) -> Option<T>,
    ) -> Result<Option<T>, Invalid> {
        let Some(item) = self.item(key) else { return Ok(None) };
        typed(item.get_ref()).ok_or_else(|| self.mistyped(key, wanted, item)).map(Some)
    }

    /// An error for a key that the table lacks.
    pub fn missing(&self, key: &str) -> Invalid {
        self.error("", format!("{} needs `{key}`", self.name))
    }

    fn mistyped(&self, key: &str, wanted: &str, item: Item<'a>) -> Invalid {
        let message = format!("`{key}` is {wanted}, not {}", kind(item));
        Invalid::new(self.text, item.span().start, message)
    }
}

fn string(value: &DeValue<'_>) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn kind(item: Item<'_>) -> &'static str {
    match item.get_ref() {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn closeness(a: &str, b: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(a, b)
}
