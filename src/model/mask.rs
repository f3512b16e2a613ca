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
}
