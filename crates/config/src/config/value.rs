//! The types of values: strings, numbers, choices, paths.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use super::errors::{code, quoted};
use super::fault::Fault;
use super::read::{Table, Text, unknown_value};
use crate::model::Variants;

impl Table<'_> {
    /// Reads a string with its variables expanded.
    pub(super) fn text(&self, key: &'static str) -> Option<Text> {
        self.text_of(&code(key), self.get(key)?)
    }

    /// Like [`Self::text`], with a help of its own for a value of another type.
    pub(super) fn text_or(&self, key: &'static str, help: impl FnOnce() -> String) -> Option<Text> {
        let item = self.get(key)?;
        if item.get_ref().is_str() {
            return self.text_of(&code(key), item);
        }
        self.wrong(&code(key), item, "a string", &help());
        None
    }

    /// Reads a string that may not be empty, with its variables expanded.
    pub(super) fn word(&self, key: &'static str) -> Option<Text> {
        let text = self.text(key)?;
        if text.value.is_empty() {
            let fault = Fault::new(text.span, format!("{} is empty", code(key)));
            self.fault(fault.help("give it a value, or leave the key out"));
            return None;
        }
        Some(text)
    }

    /// Reads a string as it is written.
    pub(super) fn verbatim(&self, key: &'static str) -> Option<Text> {
        let item = self.get(key)?;
        let DeValue::String(value) = item.get_ref() else {
            self.wrong(&code(key), item, "a string", "write it in quotes");
            return None;
        };
        Some(Text { value: value.to_string(), span: item.span() })
    }

    /// Reads an array of strings with their variables expanded; other elements are left out.
    pub(super) fn texts(&self, key: &'static str) -> Option<Vec<Text>> {
        let item = self.get(key)?;
        let DeValue::Array(array) = item.get_ref() else {
            let help = match item.get_ref() {
                DeValue::String(one) => format!("write `{key} = [{}]`", quoted(one)),
                _ => format!("write `{key} = [\"…\"]`"),
            };
            self.wrong(&code(key), item, "an array of strings", &help);
            return None;
        };
        let each = |item| self.text_of(&format!("each of {}", code(key)), item);
        Some(array.iter().filter_map(each).collect())
    }

    /// Reads a value that must be a string; `what` names it.
    pub(super) fn text_of(&self, what: &str, item: &Spanned<DeValue<'_>>) -> Option<Text> {
        let DeValue::String(raw) = item.get_ref() else {
            self.wrong(what, item, "a string", "write it in quotes");
            return None;
        };
        self.expanded(raw, item.span())
    }

    pub(super) fn flag(&self, key: &'static str, default: bool) -> bool {
        let Some(item) = self.get(key) else { return default };
        item.get_ref().as_bool().unwrap_or_else(|| {
            self.wrong(&code(key), item, "a boolean", "write `true` or `false`, without quotes");
            default
        })
    }

    /// Reads a whole number within `range`.
    pub(super) fn count<T>(&self, key: &'static str, range: RangeInclusive<T>, default: T) -> T
    where
        T: Copy + PartialOrd + Display + TryFrom<u64>,
    {
        let Some(item) = self.get(key) else { return default };
        let help = format!("leave it out for {default}");
        self.whole(key, item, &range, &help).unwrap_or(default)
    }

    /// Reads a whole number within `range` that has no default.
    pub(super) fn count_if_set<T>(&self, key: &'static str, range: RangeInclusive<T>) -> Option<T>
    where
        T: Copy + PartialOrd + Display + TryFrom<u64>,
    {
        self.whole(key, self.get(key)?, &range, "leave it out for no limit")
    }

    /// Reads one whole number from any value.
    pub(super) fn whole<T>(
        &self,
        key: &str,
        item: &Spanned<DeValue<'_>>,
        range: &RangeInclusive<T>,
        help: &str,
    ) -> Option<T>
    where
        T: Copy + PartialOrd + Display + TryFrom<u64>,
    {
        let wanted = format!("a whole number from {} to {}", range.start(), range.end());
        let DeValue::Integer(integer) = item.get_ref() else {
            let help = match item.get_ref() {
                DeValue::String(text) if text.parse::<u64>().is_ok() => "write it without quotes",
                DeValue::String(_) => "write the number alone, without quotes and without a unit",
                _ => help,
            };
            self.wrong(&code(key), item, &wanted, help);
            return None;
        };
        // A number past 64 bits is out of every range.
        let number = u64::from_str_radix(integer.as_str(), integer.radix())
            .ok()
            .and_then(|number| T::try_from(number).ok())
            .filter(|number| range.contains(number));
        if number.is_none() {
            let message = format!("{} must be {wanted}", code(key));
            self.fault(Fault::new(item.span(), message).help(help));
        }
        number
    }

    /// Reads a number that `valid` accepts; `wanted` describes those.
    pub(super) fn number(
        &self,
        key: &'static str,
        valid: impl Fn(f64) -> bool,
        wanted: &str,
        default: f64,
    ) -> f64 {
        let Some(item) = self.get(key) else { return default };
        let number = match item.get_ref() {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok(),
            _ => {
                let help = format!("write a number, {wanted}, without quotes");
                self.wrong(&code(key), item, "a number", &help);
                return default;
            }
        };
        number.filter(|number| valid(*number)).unwrap_or_else(|| {
            let message = format!("{} must be {wanted}", code(key));
            self.fault(
                Fault::new(item.span(), message).help(format!("leave it out for {default}")),
            );
            default
        })
    }

    pub(super) fn seconds(
        &self,
        key: &'static str,
        range: RangeInclusive<u64>,
        default: u64,
    ) -> Duration {
        Duration::from_secs(self.count(key, range, default))
    }

    /// Reads the name of a variant; the first variant is the default.
    pub(super) fn choice<T: Variants>(&self, key: &'static str) -> T {
        let default = T::all()[0];
        let names: Vec<&str> = T::all().iter().map(|known| known.name()).collect();
        let help = || format!("it can be \"{}\"", names.join("\", \""));
        let Some(text) = self.text_or(key, help) else { return default };
        T::all().iter().copied().find(|known| known.name() == text.value).unwrap_or_else(|| {
            self.fault(unknown_value(key, &text, &names));
            default
        })
    }
}

pub use crate::model::is_name;

/// Converts any text to a name; None if no character can be kept.
pub fn to_name(text: &str) -> Option<String> {
    let keep = |char: char| match char {
        '.' | '_' => char,
        _ if char.is_ascii_alphanumeric() => char,
        _ => '-',
    };
    let name: String =
        text.chars().map(keep).skip_while(|char| !char.is_ascii_alphanumeric()).take(64).collect();
    (!name.is_empty()).then_some(name)
}

/// Returns the fault of a malformed name; `what` it names.
pub(super) fn bad_name(what: &str, text: &Text) -> Fault {
    let message = format!("{what} can't be {}", quoted(&text.value));
    let fault = Fault::new(text.span.clone(), message);
    let form = "up to 64 letters, digits, `.`, `_`, `-`, with a letter or digit first";
    match to_name(&text.value) {
        Some(name) => fault.help(format!("write {}: {form}", quoted(&name))),
        None => fault.help(format!("write {form}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_form() {
        for (name, valid) in [
            ("a", true),
            ("0", true),
            ("web.shop_2-x", true),
            ("", false),
            (".a", false),
            ("-a", false),
            ("a b", false),
            ("ä", false),
            ("a/b", false),
        ] {
            assert_eq!(is_name(name), valid, "{name}");
        }
        assert!(is_name(&"a".repeat(64)));
        assert!(!is_name(&"a".repeat(65)));
    }

    #[test]
    fn any_folder_gives_a_name() {
        for (folder, name) in [
            ("shop", Some("shop")),
            ("My Shop (new)", Some("My-Shop--new-")),
            (".hidden", Some("hidden")),
            ("ünder", Some("nder")),
            ("..", None),
            ("", None),
        ] {
            assert_eq!(to_name(folder).as_deref(), name, "{folder}");
            assert!(to_name(folder).is_none_or(|name| is_name(&name)));
        }
    }
}
