//! Prompt patterns, and variables in braces in a script's strings.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

/// A pattern for the text of a prompt, or for a name.
#[derive(Clone, Debug)]
pub struct PromptPattern(Regex);

impl PromptPattern {
    /// With `*` or `?`, a glob for the whole text, whose `*` also matches newlines; otherwise a
    /// substring.
    pub fn glob(glob: &str) -> Result<Self, String> {
        let is_part = !glob.contains(['*', '?']);
        Self::regex(&if is_part { regex::escape(glob) } else { anchored(glob) })
    }

    /// A glob for the whole text, whose `*` also matches newlines; letters may be small or capital.
    pub fn name(glob: &str) -> Result<Self, String> {
        Self::regex(&format!("(?i){}", anchored(glob)))
    }

    /// A regular expression, which may match anywhere.
    pub fn regex(pattern: &str) -> Result<Self, String> {
        Regex::new(pattern).map(Self).map_err(|error| {
            // The crate prints the pattern first; the error is on the last line.
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.trim_start_matches("error: ").to_owned()
        })
    }

    /// The named groups of the first match.
    pub fn first(&self, text: &str) -> Option<Captures> {
        self.0.captures(text).map(|captures| self.named(&captures))
    }

    /// The named groups of every match, in order.
    pub fn all(&self, text: &str) -> Vec<Captures> {
        self.0.captures_iter(text).map(|captures| self.named(&captures)).collect()
    }

    fn named(&self, captures: &regex::Captures<'_>) -> Captures {
        let named = self.0.capture_names().flatten();
        named
            .filter_map(|name| Some((name.to_owned(), captures.name(name)?.as_str().to_owned())))
            .collect()
    }
}

fn anchored(glob: &str) -> String {
    let mut pattern = String::from("(?s)^");
    for c in glob.chars() {
        match c {
            '*' => pattern.push_str(".*"),
            '?' => pattern.push('.'),
            other => pattern.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    pattern.push('$');
    pattern
}

/// Named groups with their texts.
pub type Captures = Vec<(String, String)>;

/// Named values for `{name}` in a script's strings.
#[derive(Clone, Default, Debug)]
pub struct Vars(BTreeMap<String, String>);

impl Vars {
    /// Gives a name its value.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// Gives names their values.
    pub fn extend(&mut self, captures: Captures) {
        self.0.extend(captures);
    }

    /// Replaces each known `{name}`. Others are left unchanged, since source code is full of
    /// braces. Replacements are not expanded again.
    pub fn expand(&self, template: &str) -> String {
        let mut expanded = String::with_capacity(template.len());
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            expanded.push_str(&rest[..open]);
            let inner = &rest[open + 1..];
            let known = inner
                .find('}')
                .and_then(|close| Some((self.0.get(&inner[..close])?, &inner[close + 1..])));
            rest = if let Some((value, after)) = known {
                expanded.push_str(value);
                after
            } else {
                expanded.push('{');
                inner
            };
        }
        expanded.push_str(rest);
        expanded
    }

    /// Expands the strings inside a JSON value, except keys.
    pub fn expand_json(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.expand(text)),
            Value::Array(items) => items.iter().map(|item| self.expand_json(item)).collect(),
            Value::Object(map) => Value::Object(
                map.iter().map(|(key, item)| (key.clone(), self.expand_json(item))).collect(),
            ),
            other => other.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_pattern_is_a_substring_or_a_glob_over_the_whole_text() {
        let matches = |glob, text| PromptPattern::glob(glob).unwrap().first(text).is_some();
        assert!(matches("header", "change the header now"));
        assert!(!matches("Header", "change the header now"));
        assert!(matches("a.b", "xa.by") && !matches("a.b", "xaxby"));
        assert!(matches("*header*", "one\nheader\ntwo"));
        assert!(!matches("header*", "the header"));
        assert!(matches("h?t", "hat") && !matches("h?t", "heat"));
        assert!(matches("", "anything"));
        let is_name = |glob, text| PromptPattern::name(glob).unwrap().first(text).is_some();
        assert!(is_name("edit", "Edit") && !is_name("edit", "edit_file"));
        assert!(is_name("*__edit", "mcp__acp__Edit"));
    }

    #[test]
    fn known_names_in_braces_are_replaced_once() {
        let mut vars = Vars::default();
        vars.set("last", "{id}");
        vars.set("id", "b1");
        for (template, expected) in [
            ("resolve {id} allow", "resolve b1 allow"),
            ("{last}", "{id}"),
            ("{{id}}", "{b1}"),
            ("<b>{total}</b>", "<b>{total}</b>"),
            ("{ {id", "{ {id"),
            ("é{id}é", "éb1é"),
        ] {
            assert_eq!(vars.expand(template), expected, "{template}");
        }
    }
}
