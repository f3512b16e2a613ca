//! The wishes of a request, as far as it matters before it is sent: the model, and how much it may write.

use std::borrow::Cow;
use std::fmt;

use http::Method;
use percent_encoding::percent_decode_str;
use serde::de::{self, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::provider::ProviderKind;

/// Bytes of the name of a model.
const LONGEST_MODEL: usize = 200;

/// A kind of request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// A model is called.
    Call,
    /// A model may be called: there is a body, and the path is not known.
    Other,
    /// No model is called: it reads, or counts tokens.
    Free,
}

impl Purpose {
    /// The purpose of a path below the provider's.
    pub(super) fn of(kind: ProviderKind, method: &Method, path: &str, has_body: bool) -> Self {
        let decoded = percent_decode_str(path).decode_utf8_lossy();
        let path = decoded.trim_end_matches('/');
        let ends = |ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
        let (is_free, is_call) = match kind {
            ProviderKind::OpenAi => (
                ends(&["/responses/input_tokens"]),
                ends(&["/chat/completions", "/completions", "/responses", "/embeddings"]),
            ),
            ProviderKind::Anthropic => {
                (ends(&["/messages/count_tokens"]), ends(&["/messages", "/complete"]))
            }
            ProviderKind::Gemini => (
                ends(&[":countTokens"]),
                ends(&[":generateContent", ":streamGenerateContent", ":embedContent"]),
            ),
        };
        if is_free || (method.is_safe() && !has_body) {
            Self::Free
        } else if is_call {
            Self::Call
        } else {
            Self::Other
        }
    }
}

/// The body of a call, as far as it matters.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct AskedBody {
    pub(super) model: Option<String>,
    /// Where the value of `model` stands in the body, with its quotes.
    pub(super) model_at: Option<std::ops::Range<usize>>,
    /// Tokens of all answers together.
    pub(super) most_output: Option<u64>,
}

impl AskedBody {
    /// Reads a body. An error says what is wrong with it.
    pub(super) fn of(body: &[u8]) -> Result<Self, &'static str> {
        let members: Members<'_> = serde_json::from_slice(body).map_err(|error| {
            if error.to_string().starts_with(TWICE) { TWICE } else { NO_OBJECT }
        })?;
        let mut asked = Self::default();
        if let Some(raw) = members.model {
            let name: Option<String> = serde_json::from_str(raw.get()).ok();
            if let Some(name) = name.filter(|name| (1..=LONGEST_MODEL).contains(&name.len())) {
                let start = raw.get().as_ptr() as usize - body.as_ptr() as usize;
                asked.model_at = Some(start..start + raw.get().len());
                asked.model = Some(name);
            }
        }
        asked.most_output = members.most_output.map(|most| most.saturating_mul(members.answers));
        Ok(asked)
    }

    /// Reads the model of Gemini, which stands in the path.
    pub(super) fn model_of_path(path: &str) -> Option<(&str, std::ops::Range<usize>)> {
        let colon = path.rfind(':')?;
        let start = path[..colon].rfind('/')? + 1;
        let name = &path[start..colon];
        (1..=LONGEST_MODEL).contains(&name.len()).then_some((name, start..colon))
    }
}

const NO_OBJECT: &str = "eisen-core: the body of a call is one JSON object";
const TWICE: &str =
    "eisen-core: the body has `model`, `stream` or a bound of tokens twice, or by another spelling";

/// The members of a body that matter.
#[derive(Default)]
struct Members<'a> {
    model: Option<&'a RawValue>,
    /// The largest bound of one answer.
    most_output: Option<u64>,
    /// Answers that are asked for.
    answers: u64,
}

/// Names of members that servers may read in one spelling or another. Two of one group would be read differently by
/// different servers, so there is at most one.
const NAMES: [&[&str]; 8] = [
    &["model"],
    &["stream"],
    &["max_tokens"],
    &["max_completion_tokens"],
    &["max_output_tokens", "maxOutputTokens"],
    &["n", "candidate_count", "candidateCount"],
    &["best_of"],
    &["generation_config", "generationConfig"],
];

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Members { answers: 1, ..Members::default() };
        let mut seen = [false; NAMES.len()];
        while let Some(Name(name)) = map.next_key()? {
            let is_like = |names: &&[&str]| names.iter().any(|it| it.eq_ignore_ascii_case(&name));
            let Some(group) = NAMES.iter().position(is_like) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let is_exact = NAMES[group].contains(&&*name);
            if !is_exact || std::mem::replace(&mut seen[group], true) {
                return Err(de::Error::custom(TWICE));
            }
            let raw: &RawValue = map.next_value()?;
            let number = || raw.get().parse::<u64>().ok();
            match NAMES[group][0] {
                "model" => members.model = Some(raw),
                "n" | "best_of" => members.answers = members.answers.max(number().unwrap_or(1)),
                "generation_config" => {
                    if let Ok(inner) = serde_json::from_str::<Members<'_>>(raw.get()) {
                        members.most_output = members.most_output.max(inner.most_output);
                        members.answers = members.answers.max(inner.answers);
                    } else if raw.get().starts_with('{') {
                        return Err(de::Error::custom(TWICE));
                    }
                }
                "stream" => {}
                _ => members.most_output = members.most_output.max(number()),
            }
        }
        Ok(members)
    }
}

/// The name of a member, borrowed where it has no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }
            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(name)))
            }
            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_model_and_its_bound_are_read_wherever_they_stand() {
        let body = br#"{"messages":[{"model":"no","max_tokens":1}],"m\u006fdel":"g\"1","max_tokens":20,"n":3}"#;
        let asked = AskedBody::of(body).unwrap();
        assert_eq!(asked.model.as_deref(), Some("g\"1"));
        assert_eq!(&body[asked.model_at.unwrap()], br#""g\"1""#);
        assert_eq!(asked.most_output, Some(60));
        for (body, most) in [
            (r#"{"max_completion_tokens":5,"max_tokens":9}"#, Some(9)),
            (r#"{"max_output_tokens":7}"#, Some(7)),
            (r#"{"generationConfig":{"maxOutputTokens":8,"candidateCount":2}}"#, Some(16)),
            (r#"{"generation_config":{"max_output_tokens":8}}"#, Some(8)),
            (r#"{"max_tokens":null,"model":3}"#, None),
            (r#"{"max_tokens":-1}"#, None),
            ("{}", None),
        ] {
            assert_eq!(AskedBody::of(body.as_bytes()).unwrap().most_output, most, "{body}");
        }
    }

    #[test]
    fn a_body_that_servers_could_read_differently_is_refused() {
        for body in [
            r#"{"max_tokens":1,"max_tokens":2}"#,
            r#"{"max_tokens":1,"MAX_TOKENS":2}"#,
            r#"{"model":"a","m\u006fdel":"b"}"#,
            r#"{"generationConfig":{},"generation_config":{}}"#,
            r#"{"generationConfig":{"maxOutputTokens":1,"max_output_tokens":2}}"#,
        ] {
            assert_eq!(AskedBody::of(body.as_bytes()), Err(TWICE), "{body}");
        }
        for body in ["", "[]", "{", "{} {}", "nul"] {
            assert_eq!(AskedBody::of(body.as_bytes()), Err(NO_OBJECT), "{body}");
        }
    }

    #[test]
    fn purposes_are_known_by_their_paths() {
        use ProviderKind::{Anthropic, Gemini, OpenAi};
        for (kind, path, purpose) in [
            (OpenAi, "/chat/completions", Purpose::Call),
            (OpenAi, "/chat/c%6fmpletions/", Purpose::Call),
            (OpenAi, "/responses", Purpose::Call),
            (OpenAi, "/files", Purpose::Other),
            (Anthropic, "/v1/messages", Purpose::Call),
            (Anthropic, "/v1/messages/count_tokens", Purpose::Free),
            (Anthropic, "/v1/messages/batches", Purpose::Other),
            (Gemini, "/v1beta/models/g:streamGenerateContent", Purpose::Call),
            (Gemini, "/v1beta/models/g:countTokens", Purpose::Free),
        ] {
            assert_eq!(Purpose::of(kind, &Method::POST, path, true), purpose, "{path}");
        }
        assert_eq!(Purpose::of(OpenAi, &Method::GET, "/models", false), Purpose::Free);
        assert_eq!(Purpose::of(OpenAi, &Method::GET, "/responses", true), Purpose::Call);
        assert_eq!(
            AskedBody::model_of_path("/v1beta/models/g-2.5:generateContent"),
            Some(("g-2.5", 15..20))
        );
    }
}
