//! The text of a line for whoever reads it: what is no Unicode becomes U+FFFD. Relays forward the line
//! as it came.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

/// The escape of U+FFFD, as long as that of half a pair.
const REPLACED_ESCAPE: &[u8; 6] = b"\\ufffd";

/// U+FFFD, as long as half a pair that was encoded by itself.
const REPLACED: &[u8; 3] = b"\xef\xbf\xbd";

/// The largest number that every reader of JSON knows exactly.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

/// Replaces each half of a surrogate pair that stands alone, escaped (`\ud83d`) or encoded, by U+FFFD.
/// Texts that were cut in the middle of an emoji have one. Every other byte stays in its place.
pub fn readable(line: &[u8]) -> Cow<'_, [u8]> {
    let mut mended = Cow::Borrowed(line);
    // All escapes are walked over from the first one: a backslash may itself be escaped.
    if memchr::memmem::find(line, b"\\ud").or_else(|| memchr::memmem::find(line, b"\\uD")).is_some()
    {
        let mut at = 0;
        while let Some(next) = memchr::memchr(b'\\', &line[at..]) {
            at += next;
            at += match (half(&line[at..]), line.get(at + 6..).and_then(half)) {
                (Some(Half::High), Some(Half::Low)) => 12,
                (Some(_), _) => {
                    mended.to_mut()[at..at + 6].copy_from_slice(REPLACED_ESCAPE);
                    6
                }
                (None, _) => 2.min(line.len() - at),
            };
        }
    }
    for at in memchr::memchr_iter(0xed, line) {
        if let [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] = line[at..] {
            mended.to_mut()[at..at + 3].copy_from_slice(REPLACED);
        }
    }
    mended
}

/// The text of a line: as [`readable`], and other bytes that are no UTF-8 become U+FFFD, too.
pub fn text(line: &[u8]) -> Cow<'_, str> {
    match readable(line) {
        Cow::Borrowed(line) => String::from_utf8_lossy(line),
        Cow::Owned(line) => Cow::Owned(
            String::from_utf8(line)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        ),
    }
}

/// Reads JSON as its sender means it: text as by [`text`]; and `1.0` is an integer where one is wanted.
pub fn read<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    let json = text(json);
    serde_json::from_str(&json).or_else(|error| match with_integers(&json) {
        Some(json) => serde_json::from_str(&json).map_err(|_| error),
        None => Err(error),
    })
}

/// A number that stands for an integer, however it is written.
pub fn integer(number: &str) -> Option<i64> {
    number.parse().ok().or_else(|| {
        let number: f64 = number.parse().ok()?;
        let is_exact = number.fract() == 0.0 && number.abs() <= MOST_EXACT;
        #[expect(clippy::cast_possible_truncation, reason = "it is an integer below 2^53")]
        is_exact.then_some(number as i64)
    })
}

/// JSON with its integers written as such; None if they all are.
fn with_integers(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let (mut written, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b'-' | b'0'..=b'9' => {
                let is_more =
                    |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                let end = at + bytes[at..].iter().take_while(|byte| is_more(byte)).count();
                let number = &json[at..end];
                if number.contains(['.', 'e', 'E'])
                    && let Some(integer) = integer(number)
                {
                    written.push_str(&json[copied..at]);
                    written.push_str(&integer.to_string());
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    written.push_str(&json[copied..]);
    (copied > 0).then_some(written)
}

/// The index behind the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(next) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += next;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

#[derive(Clone, Copy)]
enum Half {
    High,
    Low,
}

/// The half of a surrogate pair whose escape the text begins with.
fn half(text: &[u8]) -> Option<Half> {
    let [b'\\', b'u', b'd' | b'D', third, digits @ ..] = text.first_chunk::<6>()? else {
        return None;
    };
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    match third.to_ascii_lowercase() {
        b'8'..=b'9' | b'a'..=b'b' => Some(Half::High),
        b'c'..=b'f' => Some(Half::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn half_a_pair_is_replaced_and_all_else_stays() {
        for (line, readable_as) in [
            (r#"{"a":"42 \ud83d"}"#, r#"{"a":"42 \ufffd"}"#),
            (r#"{"a":"\uDE00 and"}"#, r#"{"a":"\ufffd and"}"#),
            (r#""\ud83d\ude00\ude00""#, r#""\ud83d\ude00\ufffd""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\ud83d\n\udbff""#, r#""\ufffd\n\ufffd""#),
            (r#""\uD7FF\uE000\ud""#, r#""\uD7FF\uE000\ud""#),
            // The backslash is escaped: this is text about escapes.
            (r#""\\ud83d \\\ud83d""#, r#""\\ud83d \\\ufffd""#),
            (r#""\"#, r#""\"#),
        ] {
            assert_eq!(text(line.as_bytes()), readable_as, "{line}");
        }
        // Encoded by itself, as by a program that takes UTF-16 for characters.
        assert_eq!(text(b"a\xed\xa0\xbd\xed\xb8\x80b"), "a\u{fffd}\u{fffd}b");
        assert_eq!(text("\u{d7ff}".as_bytes()), "\u{d7ff}");
        assert_eq!(text(b"caf\xe9"), "caf\u{fffd}");
        assert!(matches!(readable("plain \\u00e9".as_bytes()), Cow::Borrowed(_)));
    }

    #[test]
    fn an_integer_may_be_written_with_a_point() {
        #[derive(serde::Deserialize, PartialEq, Debug)]
        struct Two {
            count: u32,
            share: f64,
            said: String,
        }
        let read = |json: &str| read::<Two>(json.as_bytes()).map_err(|error| error.to_string());
        let two = |said: &str| Two { count: 7, share: 1.0, said: said.to_owned() };
        assert_eq!(read(r#"{"count":7.0,"share":1.0,"said":"7.0\" 1.0"}"#), Ok(two("7.0\" 1.0")));
        assert_eq!(read(r#"{"count":0.7e1,"share":1,"said":"\ud800"}"#), Ok(two("\u{fffd}")));
        assert!(read(r#"{"count":7.5,"share":1.0,"said":""}"#).is_err());
        assert!(read(r#"{"count":-7.0,"share":1.0,"said":""}"#).is_err());
        // A number that may be any stays as it is.
        assert_eq!(super::read::<Value>(b"[1.0,2]").unwrap(), json!([1.0, 2]));
        assert_eq!(
            (integer("12"), integer("12.0"), integer("1.2e1")),
            (Some(12), Some(12), Some(12))
        );
        assert_eq!(
            (integer("1.5"), integer("1e99"), integer("x"), integer("null")),
            (None, None, None, None)
        );
    }

    proptest! {
        #[test]
        fn whatever_comes_can_be_read_and_keeps_its_length(
            line in prop::collection::vec(prop_oneof![
                Just(b"\\ud83d".to_vec()), Just(b"\\ude00".to_vec()), Just(b"\\\\".to_vec()),
                Just(b"\xed\xa0\xbd".to_vec()), Just(b"x".to_vec()), Just(b"\\u00e9".to_vec()),
            ], 0..12)
        ) {
            let line = [b"\"".as_slice(), &line.concat(), b"\""].concat();
            prop_assert_eq!(readable(&line).len(), line.len());
            let said: String = read(&line).unwrap();
            // What is Unicode already is what it was.
            if let Ok(exact) = serde_json::from_slice::<String>(&line) {
                prop_assert_eq!(said, exact);
            }
        }

        #[test]
        fn what_is_no_json_does_no_harm(text in r#"[-0-9.eE"\\{}, ]{0,16}"#) {
            with_integers(&text);
        }
    }
}
