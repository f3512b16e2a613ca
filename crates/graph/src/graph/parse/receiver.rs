//! The receiver of a call, read backwards from its name.

use crate::graph::facts::Receiver;

/// Bytes that are read; a longer chain is [`Receiver::Value`].
const FURTHEST: usize = 200;

/// `at`: the start of the call's name.
pub(super) fn receiver(text: &[u8], at: usize, own: &[&str], base: &str) -> Receiver {
    let before = text.get(at.saturating_sub(FURTHEST)..at).unwrap_or_default();
    // The end of the line before is left out: it may be a comment's full stop.
    let Some(mut rest) = before_separator(before.trim_ascii_end_of_line()) else {
        return Receiver::Nothing;
    };
    if is_base(rest, base) {
        return Receiver::Base;
    }
    let whole = rest;
    let mut names = Vec::new();
    loop {
        rest = without_generics(rest.trim_ascii_end());
        let name = last_name(rest);
        if name.is_empty() {
            return Receiver::Value;
        }
        names.push(name);
        rest = &rest[..rest.len() - name.len()];
        match before_separator(rest.trim_ascii_end_of_line()) {
            Some(before) => rest = before,
            None => break,
        }
    }
    if rest.is_empty() && at > FURTHEST {
        return Receiver::Value;
    }
    let is_within = before.trim_ascii_end().ends_with(b"::");
    let separator = if is_within { "::" } else { "." };
    let is =
        |own: &str, name| own.strip_suffix(separator).is_some_and(|own| own.as_bytes() == name);
    if let [name] = names[..]
        && own.iter().any(|own| is(own, name))
    {
        return Receiver::Own;
    }
    let mut path = String::with_capacity(whole.len() - rest.len());
    for name in names.iter().rev() {
        if !path.is_empty() {
            path.push_str(separator);
        }
        path.push_str(&String::from_utf8_lossy(name));
    }
    if is_within { Receiver::Within(path.into()) } else { Receiver::Named(path.into()) }
}

/// Whether a text ends with the base: `super`, `super()`, `super(Shop, self)`.
fn is_base(text: &[u8], base: &str) -> bool {
    let text = text.trim_ascii_end();
    let (name, before) = match base.strip_suffix("()") {
        None => (base, Some(text)),
        Some(name) => {
            let open = text.iter().rposition(|byte| *byte == b'(');
            (name, open.filter(|_| text.ends_with(b")")).map(|open| &text[..open]))
        }
    };
    let Some(before) = before.filter(|before| last_name(before) == name.as_bytes()) else {
        return false;
    };
    !name.is_empty() && before_separator(&before[..before.len() - name.len()]).is_none()
}

trait TrimEnd {
    fn trim_ascii_end_of_line(&self) -> &Self;
}

impl TrimEnd for [u8] {
    fn trim_ascii_end_of_line(&self) -> &Self {
        let spaces = self.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        &self[..self.len() - spaces]
    }
}

/// The text before a `.`, `?.` or `::` at the end.
fn before_separator(text: &[u8]) -> Option<&[u8]> {
    if let Some(before) = text.strip_suffix(b"::") {
        return Some(before);
    }
    let before = text.strip_suffix(b".")?;
    // A range, or something that is spread.
    if before.ends_with(b".") {
        return None;
    }
    let before = before.trim_ascii_end();
    Some(before.strip_suffix(b"?").or(before.strip_suffix(b"!")).unwrap_or(before))
}

/// Takes `::<T>` or `<T>` away from the end.
fn without_generics(text: &[u8]) -> &[u8] {
    if !text.ends_with(b">") {
        return text;
    }
    let mut depth = 0_usize;
    for (at, byte) in text.iter().enumerate().rev() {
        match byte {
            b'>' if at > 0 && matches!(text[at - 1], b'-' | b'=') => {}
            b'>' => depth += 1,
            b'<' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let before = &text[..at];
            return before.strip_suffix(b"::").unwrap_or(before);
        }
    }
    &[]
}

fn last_name(text: &[u8]) -> &[u8] {
    let of_name =
        |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#' | 0x80..);
    let length = text.iter().rev().take_while(of_name).count();
    &text[text.len() - length..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_a_call() {
        let named = |name: &str| Receiver::Named(name.into());
        let within = |name: &str| Receiver::Within(name.into());
        for (text, expected) in [
            ("open", Receiver::Nothing),
            ("return open", Receiver::Nothing),
            ("(open", Receiver::Nothing),
            ("self.open", Receiver::Own),
            ("this?.open", Receiver::Own),
            ("Self::open", Receiver::Own),
            ("this\n    .open", Receiver::Own),
            ("self::open", within("self")),
            ("await shop.open", named("shop")),
            ("let x = a.b.open", named("a.b")),
            ("a::shop::open", within("a::shop")),
            ("shop::open", within("shop")),
            ("self.till.open", named("self.till")),
            ("Vec::<u8>::open", within("Vec")),
            ("HashMap::<A, Box<dyn Fn() -> B>>::open", within("HashMap")),
            ("<T as Trait>::open", Receiver::Value),
            ("make().open", Receiver::Value),
            ("\"text\".open", Receiver::Value),
            ("items[0].open", Receiver::Value),
            ("0..open", Receiver::Nothing),
            ("[...open", Receiver::Nothing),
            ("// The end.\nopen", Receiver::Nothing),
            ("// The end.\n  shop.open", named("shop")),
            ("// The end.\nshop::open", within("shop")),
            ("town\n  .shop?.\topen", named("town.shop")),
            ("# Über.\n  open", Receiver::Nothing),
            ("größe.open", named("größe")),
        ] {
            let at = text.len() - "open".len();
            assert_eq!(
                receiver(text.as_bytes(), at, &["self.", "Self::", "this."], ""),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn what_stands_for_the_base() {
        let is_base =
            |text: &str, base| receiver(text.as_bytes(), text.len(), &[], base) == Receiver::Base;
        for (text, base, expected) in [
            ("super().", "super()", true),
            ("return super(Shop, self) .", "super()", true),
            ("super()\n    .", "super()", true),
            ("shop.super().", "super()", false),
            ("mysuper().", "super()", false),
            ("(super().open(), 1).", "super()", false),
            ("super.", "super", true),
            ("await super\n  .", "super", true),
            ("shop.super.", "super", false),
            ("super.till.", "super", false),
            ("().", "", false),
        ] {
            assert_eq!(is_base(text, base), expected, "{text}");
        }
    }

    #[test]
    fn a_chain_without_an_end_is_not_followed() {
        let text = format!("{}open", "a.".repeat(10_000));
        assert_eq!(receiver(text.as_bytes(), text.len() - 4, &[], ""), Receiver::Value);
    }
}
