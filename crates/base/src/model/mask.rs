//! Masks secrets by the names of their fields: keys, tokens and passwords in environments, headers.

use serde_json::Value;

/// The text that replaces a secret.
const MASKED: &str = "***";

/// Words that make a field a secret wherever it is.
const SECRETS: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "authorization",
    "credential",
    "cookie",
    "private_key",
    "privatekey",
    "access_key",
];

/// Headers of HTTP whose values are secrets in what a program prints.
const HEADERS: [&str; 5] =
    ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"];

/// How keys of well-known services begin, and how many letters, digits, `-` and `_` follow at least, a digit among them.
const KEY_MARKS: [(&str, usize); 20] = [
    ("sk-", 16),
    ("sk_live_", 16),
    ("rk_live_", 16),
    ("AIza", 30),
    ("AKIA", 16),
    ("ASIA", 16),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghu_", 30),
    ("ghs_", 30),
    ("github_pat_", 30),
    ("glpat-", 16),
    ("gsk_", 30),
    ("hf_", 30),
    ("npm_", 30),
    ("pypi-", 30),
    ("xai-", 30),
    ("xoxb-", 16),
    ("xoxp-", 16),
    // A part of a signed token.
    ("eyJ", 24),
];

/// Bytes of a known secret; a shorter one would be found in every text.
const SHORTEST_SECRET: usize = 4;

/// Depth to which values are read; deeper ones are left out.
const DEEPEST: usize = 64;

/// The kind of object around a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Anything,
    /// Names that contain `key` count too.
    Env,
    /// Every value is a secret.
    Headers,
}

/// Masks the secrets of a JSON value.
pub fn mask(value: &mut Value) {
    mask_within(value, Within::Anything, 0);
}

fn mask_within(value: &mut Value, within: Within, depth: usize) {
    if depth > DEEPEST {
        *value = Value::Null;
        return;
    }
    match value {
        Value::Array(all) => all.iter_mut().for_each(|one| mask_within(one, within, depth + 1)),
        Value::Object(fields) => {
            // `{"name": "API_KEY", "value": "…"}`, as ACP writes variables and headers.
            let name = fields.get("name").and_then(Value::as_str);
            let is_secret_pair = name.is_some_and(|name| is_secret(name, within));
            for (name, value) in fields.iter_mut() {
                let is_named = is_secret(name, within) && name != "name" && name != "value";
                if is_named || (is_secret_pair && name == "value") {
                    hide(value);
                }
                let inside = match name.to_ascii_lowercase().as_str() {
                    "env" | "environment" => Within::Env,
                    "headers" | "http_headers" => Within::Headers,
                    _ => within,
                };
                mask_within(value, inside, depth + 1);
            }
        }
        _ => {}
    }
}

/// Masks the secrets of the command lines among the arguments of a tool call.
pub fn mask_commands(input: &mut Value) {
    let Value::Object(fields) = input else { return };
    for (_, value) in fields.iter_mut().filter(|(name, _)| ["command", "cmd"].contains(&&***name)) {
        if let Value::String(line) = value {
            *line = masked_line(line);
        }
    }
}

/// Masks the secrets of a command line, by the names before them: `--token X`, `API_KEY=X`, `Authorization: Bearer X`,
/// `https://user:X@host`.
pub fn masked_line(line: &str) -> String {
    let mut masked = String::with_capacity(line.len());
    // Words that a name before them makes secrets.
    let mut secrets = 0;
    for part in line.split_inclusive(char::is_whitespace) {
        let word = part.trim_end();
        let space = &part[word.len()..];
        let bare = word.trim_matches(['"', '\'', '`', ';', ',']);
        if bare.is_empty() {
            masked.push_str(part);
            continue;
        }
        let is_scheme = ["bearer", "basic", "token"].contains(&bare.to_ascii_lowercase().as_str());
        if secrets > 0 && !bare.starts_with('-') && !(is_scheme && secrets > 1) {
            secrets = 0;
            masked.push_str(MASKED);
            // A quote that ends there still does.
            masked.push_str(&word[word.trim_end_matches(['"', '\'', '`', ';', ',']).len()..]);
        } else if let Some((name, value)) = named_secret(word) {
            masked.push_str(name);
            secrets = if value.is_empty() { 2 } else { 0 };
            masked.push_str(if value.is_empty() { "" } else { MASKED });
        } else {
            let is_option = bare.starts_with('-') && is_secret(bare, Within::Env);
            secrets = if is_scheme && secrets > 1 { 1 } else { u8::from(is_option) };
            masked.push_str(&without_password(word));
        }
        masked.push_str(space);
    }
    masked
}

/// Masks the secrets of what a program printed: the values of variables that are secrets by their names, in
/// capitals (`API_KEY=X`), the rest of a line behind the name of a header (`Cookie: X`), and the
/// passwords of addresses. Other words are as likely to be no secrets, and stay.
pub fn masked_output(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (said, end) = line.strip_suffix('\n').map_or((line, ""), |said| (said, "\n"));
        let (said, mark) = secret_from(said).map_or((said, ""), |at| (&said[..at], MASKED));
        for word in said.split_inclusive(char::is_whitespace) {
            masked.push_str(&without_password(word));
        }
        masked.push_str(mark);
        masked.push_str(end);
    }
    masked
}

/// Masks those secrets that are `known`, and words that begin as the keys of well-known services do.
pub fn masked_keys(text: &str, known: &[&str]) -> String {
    let mut text = text.to_owned();
    for secret in known.iter().filter(|secret| secret.len() >= SHORTEST_SECRET) {
        if text.contains(secret) {
            text = text.replace(secret, MASKED);
        }
    }
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let mut masked = String::with_capacity(text.len());
    let mut rest = &*text;
    while !rest.is_empty() {
        let word = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(word);
        // In a text of JSON within a text, a key may stand behind `\n`.
        let escape = if masked.ends_with('\\') { escape(word) } else { 0 };
        let key = [0, escape].into_iter().find(|at| is_key(&word[*at..]));
        masked.push_str(&word[..key.unwrap_or(word.len())]);
        masked.push_str(key.map_or("", |_| MASKED));
        let next = behind.find(is_of_word).unwrap_or(behind.len());
        masked.push_str(&behind[..next]);
        rest = &behind[next..];
    }
    masked
}

/// How many letters and digits of a word are an escape of JSON, behind its backslash.
fn escape(word: &str) -> usize {
    let is_code = |code: &str| code.bytes().all(|it| it.is_ascii_hexdigit());
    match word.as_bytes().first() {
        Some(b'n' | b't' | b'r' | b'b' | b'f') => 1,
        Some(b'u') if word.get(1..5).is_some_and(is_code) => 5,
        _ => 0,
    }
}

fn is_key(word: &str) -> bool {
    KEY_MARKS.iter().any(|(mark, least)| {
        let rest = word.strip_prefix(mark);
        rest.is_some_and(|rest| rest.len() >= *least && rest.bytes().any(|it| it.is_ascii_digit()))
    })
}

/// Masks the texts of a JSON value as the output of a program, and in them and the names of members those secrets that are
/// `known`. For a value that [`mask`] has cut.
pub fn mask_texts(value: &mut Value, known: &[&str]) {
    match value {
        Value::String(text) => *text = masked_keys(&masked_output(text), known),
        Value::Array(all) => all.iter_mut().for_each(|one| mask_texts(one, known)),
        Value::Object(fields) => {
            let masked = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                mask_texts(&mut value, known);
                (masked_keys(&name, known), value)
            });
            *fields = masked.collect();
        }
        _ => {}
    }
}

/// The place in a line from which on it is a secret.
fn secret_from(line: &str) -> Option<usize> {
    let variable = |(at, _): (usize, &str)| {
        let name = line[..at].rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
        let is_variable = !name.is_empty() && !name.contains(|c: char| c.is_ascii_lowercase());
        (is_variable && is_secret(name, Within::Env)).then_some(at + 1)
    };
    let header = |(at, _): (usize, &str)| {
        let name = line[..at].rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '-').next()?;
        HEADERS.iter().any(|header| header.eq_ignore_ascii_case(name)).then_some(at + 1)
    };
    let of_variable = line.match_indices('=').find_map(variable);
    // An empty value is none.
    let of_variable = of_variable.filter(|at| line[*at..].trim() != "");
    let of_header = line.match_indices(": ").find_map(header).map(|at| at + 1);
    of_variable.into_iter().chain(of_header).min()
}

/// A word such as `--token=X` or `Authorization:`, cut behind the mark.
fn named_secret(word: &str) -> Option<(&str, &str)> {
    let at = word.find(['=', ':'])?;
    let (name, value) = word.split_at(at + 1);
    (is_secret(name, Within::Env) && !value.starts_with("//")).then_some((name, value))
}

/// An address without the password in it.
fn without_password(word: &str) -> std::borrow::Cow<'_, str> {
    let masked = || {
        let start = word.find("://")? + 3;
        let end = start + word[start..].find('/').unwrap_or(word.len() - start);
        let host = start + word[start..end].rfind('@')?;
        Some(format!("{}{MASKED}{}", &word[..start], &word[host..]))
    };
    masked().map_or(word.into(), Into::into)
}

fn hide(value: &mut Value) {
    match value {
        Value::String(text) if !text.is_empty() => MASKED.clone_into(text),
        Value::Array(all) => all.iter_mut().for_each(hide),
        _ => {}
    }
}

fn is_secret(name: &str, within: Within) -> bool {
    let name = name.to_ascii_lowercase();
    match within {
        Within::Headers => true,
        Within::Env if name.contains("key") || name.contains("auth") => true,
        _ => SECRETS.iter().any(|secret| name.contains(secret)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_masked_by_name() {
        for (value, masked) in [
            (json!({"password": "x", "user": "u"}), json!({"password": "***", "user": "u"})),
            (json!({"env": {"KEY": "x", "A": "b"}}), json!({"env": {"KEY": "***", "A": "b"}})),
            (
                json!({"env": [{"name": "OPENAI_API_KEY", "value": "x"}, {"name": "A", "value": "b"}]}),
                json!({"env": [{"name": "OPENAI_API_KEY", "value": "***"}, {"name": "A", "value": "b"}]}),
            ),
            (
                json!({"headers": [{"name": "X-Any", "value": "x"}]}),
                json!({"headers": [{"name": "X-Any", "value": "***"}]}),
            ),
            (json!({"headers": {"Any": "x"}}), json!({"headers": {"Any": "***"}})),
            (json!({"key": "Enter", "tokens": 7}), json!({"key": "Enter", "tokens": 7})),
            (json!({"a": [{"githubToken": "x"}]}), json!({"a": [{"githubToken": "***"}]})),
        ] {
            let mut it = value;
            mask(&mut it);
            assert_eq!(it, masked);
        }
    }

    #[test]
    fn a_deep_value_is_cut() {
        let mut value = json!({"token": "x"});
        for _ in 0..100 {
            value = json!([value]);
        }
        mask(&mut value);
        assert!(!value.to_string().contains('x'));
    }

    #[test]
    fn secrets_of_command_lines_are_masked_by_the_names_before_them() {
        for (line, masked) in [
            ("npm test", "npm test"),
            ("deploy --token abc --to prod", "deploy --token *** --to prod"),
            ("deploy --token=abc -v", "deploy --token=*** -v"),
            ("API_KEY=abc make  all", "API_KEY=*** make  all"),
            ("curl -H 'Authorization: Bearer abc' x", "curl -H 'Authorization: Bearer ***' x"),
            ("curl -H \"X-Api-Key: abc\"", "curl -H \"X-Api-Key: ***\""),
            ("git clone https://me:abc@host/a.git", "git clone https://***@host/a.git"),
            ("psql postgres://me:a@b@host", "psql postgres://***@host"),
            ("mysql --password -u me", "mysql --password -u me"),
            ("cat src/token.rs http://a/b", "cat src/token.rs http://a/b"),
            ("", ""),
        ] {
            assert_eq!(masked_line(line), masked);
        }
    }

    #[test]
    fn known_secrets_and_what_looks_like_a_key_are_masked_anywhere() {
        for (text, masked) in [
            ("my key is s3cret!, not s3cre", "my key is ***, not s3cre"),
            ("k=sk-ant-api03-abcdefghijklmnop\n", "k=***\n"),
            ("(ghp_0123456789abcdefghij0123456789)", "(***)"),
            ("AIzaSyA0123456789abcdefghijklmnopqrstu.", "***."),
            (
                "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2ln",
                "***.***.c2ln",
            ),
            // A text of JSON within a text.
            (r#"{"k":"a\nsk-ant-api03-abcdefghijklmnop\n\""}"#, r#"{"k":"a\n***\n\""}"#),
            (r"\\tghp_0123456789abcdefghij0123456789\\", r"\\t***\\"),
            (r"\u000ask-0123456789abcdef0 \u00", r"\u000a*** \u00"),
            (r"C:\nsk-learn n\sk-0123456789abcdef0", r"C:\nsk-learn n\***"),
            ("nsk-ant-api03-abcdefghijklmnop", "nsk-ant-api03-abcdefghijklmnop"),
            ("task-sk-0123456789abcdef0 is-no key", "task-sk-0123456789abcdef0 is-no key"),
            ("sk-learn-pipeline-with-steps ä sk-1", "sk-learn-pipeline-with-steps ä sk-1"),
        ] {
            assert_eq!(masked_keys(text, &["s3cret!", "k", ""]), masked);
        }
        let mut value =
            json!({"a": ["s3cret! x", {"b": "s3cret!"}], "n": 1, "of s3cret!": "A_KEY=x"});
        mask_texts(&mut value, &["s3cret!"]);
        let masked = json!({"a": ["*** x", {"b": "***"}], "n": 1, "of ***": "A_KEY=***"});
        assert_eq!(value, masked);
    }

    #[test]
    fn secrets_of_outputs_are_masked_and_other_words_stay() {
        for (output, masked) in [
            (
                "ok\n\nPATH=/bin\nOPENAI_API_KEY=sk a\nlast",
                "ok\n\nPATH=/bin\nOPENAI_API_KEY=***\nlast",
            ),
            ("export GITHUB_TOKEN=\"x y\"\r\n", "export GITHUB_TOKEN=***\n"),
            ("> Authorization: Bearer abc\n", "> Authorization: ***\n"),
            ("origin https://me:abc@host/a.git (fetch)", "origin https://***@host/a.git (fetch)"),
            (
                "+ curl https://me:abc@host -H 'Authorization: Bearer x'",
                "+ curl https://***@host -H 'Authorization: ***",
            ),
            (
                "token=7 tokens: 12, key = 3; const KEY = 4;",
                "token=7 tokens: 12, key = 3; const KEY = 4;",
            ),
            ("MY_SECRET=\nA == B\n", "MY_SECRET=\nA == B\n"),
        ] {
            assert_eq!(masked_output(output), masked);
        }
    }
}
