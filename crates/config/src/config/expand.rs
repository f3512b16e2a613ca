//! `${VAR}`, `${VAR:-default}` and `$$` in strings.

use std::ops::Range;

/// Why a string could not be expanded; `at` is the range in the string.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct ExpandError {
    pub(super) at: Range<usize>,
    pub(super) message: String,
    pub(super) help: String,
}

/// Replaces every reference to a variable by its value. As in a shell, the default also replaces an
/// empty variable; values are not expanded again.
pub(super) fn expand(
    text: &str,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<String, ExpandError> {
    let mut expanded = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(found) = text[at..].find('$') {
        let dollar = at + found;
        expanded.push_str(&text[at..dollar]);
        let rest = &text[dollar + 1..];
        if rest.starts_with('$') {
            expanded.push('$');
            at = dollar + 2;
        } else if let Some(inner) = rest.strip_prefix('{') {
            let Some(close) = inner.find('}') else {
                return Err(error(dollar..text.len(), "`${` without its `}`"));
            };
            at = dollar + 2 + close + 1;
            expanded.push_str(&variable(&inner[..close], dollar..at, &lookup)?);
        } else {
            // A lone `$` stands for itself; regular expressions are full of them.
            expanded.push('$');
            at = dollar + 1;
        }
    }
    expanded.push_str(&text[at..]);
    Ok(expanded)
}

fn variable(
    inner: &str,
    at: Range<usize>,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<String, ExpandError> {
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    let valid = !name.starts_with(|char: char| char.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    if !valid {
        return Err(error(at, "this is not the name of a variable"));
    }
    if default.is_some_and(|default| default.replace("$$", "").contains("${")) {
        return Err(error(at, "a default can't refer to another variable"));
    }
    match (lookup(name), default) {
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.replace("$$", "$")),
        (None, None) => Err(ExpandError {
            at,
            message: format!("the environment has no variable `{name}`"),
            help: format!("set it, or give a default: `${{{name}:-…}}`"),
        }),
    }
}

fn error(at: Range<usize>, message: &str) -> ExpandError {
    ExpandError {
        at,
        message: message.to_owned(),
        help: "write `${NAME}` or `${NAME:-default}`; a `$` itself is `$$`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, String> {
        let lookup = |name: &str| match name {
            "HOME" => Some("/h".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${HOME}".to_owned()),
            _ => None,
        };
        expand(text, lookup).map_err(|error| format!("{:?} {}", error.at, error.message))
    }

    #[test]
    fn variables_are_replaced() {
        for (text, wanted) in [
            ("", ""),
            ("plain", "plain"),
            ("${HOME}", "/h"),
            ("a${HOME}b${HOME}", "a/hb/h"),
            ("${HOME:-x}", "/h"),
            ("${EMPTY}", ""),
            ("${EMPTY:-x}", "x"),
            ("${UNSET:-}", ""),
            ("${UNSET:-a:-b}", "a:-b"),
            ("${UNSET:-$$}", "$"),
            ("$$", "$"),
            ("$${HOME}", "${HOME}"),
            ("$$$${HOME}", "$${HOME}"),
            ("$$${HOME}", "$/h"),
            ("^a$", "^a$"),
            ("$HOME", "$HOME"),
            ("ä${HOME}ö", "ä/hö"),
            ("${NESTED}", "${HOME}"),
        ] {
            assert_eq!(expanded(text).as_deref(), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_replaced_is_an_error_with_its_place() {
        for (text, wanted) in [
            ("a ${UNSET} b", "2..10 the environment has no variable `UNSET`"),
            ("${", "0..2 `${` without its `}`"),
            ("x${HOME", "1..7 `${` without its `}`"),
            ("${}", "0..3 this is not the name of a variable"),
            ("${a b}", "0..6 this is not the name of a variable"),
            ("${1A}", "0..5 this is not the name of a variable"),
            ("${HÖME}", "0..8 this is not the name of a variable"),
            ("${HOME-x}", "0..9 this is not the name of a variable"),
            ("${UNSET:-${HOME}}", "0..16 a default can't refer to another variable"),
        ] {
            assert_eq!(expanded(text), Err(wanted.to_owned()), "{text}");
        }
    }
}
