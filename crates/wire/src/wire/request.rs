//! Owns the lines of clients, and parses them into [`Request`]. Decides nothing.

mod filter;

use std::collections::HashMap;
use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::model::{SessionId, SessionMode};

#[derive(Debug)]
pub enum Request {
    Rpc {
        /// A string or number, as the received JSON.
        id: Box<RawValue>,
        method: String,
        params: Option<Box<RawValue>>,
    },
    Auth {
        token: String,
    },
    /// Asks for a challenge for proving a token.
    Challenge,
    /// Proves a token without showing it.
    Prove {
        proof: String,
    },
    /// Proves a token for the tools; the connection then carries MCP.
    Tools {
        proof: String,
    },
    /// Asks for the snapshots of the sessions with that id; of all if None.
    Snapshot {
        session: Option<String>,
    },
    Filter(Filter),
    Subscribe {
        topics: Vec<String>,
    },
    /// A type of another version of this protocol.
    Unknown,
}

/// The part of the stream that a client chooses.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Filter {
    #[default]
    All,
    /// Sessions with that id, of any agent.
    Session(SessionId),
    Mode(SessionMode),
}

/// A line that is not a request.
#[derive(Debug)]
pub struct Malformed {
    /// The request's id, if it could be read.
    pub id: Option<Box<RawValue>>,
    pub message: String,
}

pub fn parse(line: &[u8]) -> Result<Request, Malformed> {
    let anonymous = |message: String| Malformed { id: None, message };
    let line =
        std::str::from_utf8(line).map_err(|error| anonymous(format!("not UTF-8: {error}")))?;
    let fields = RequestFields::parse(line).map_err(anonymous)?;
    match fields.required::<String>("type").map_err(anonymous)?.as_str() {
        "rpc" => {
            let id = fields.id().map_err(anonymous)?;
            match fields.required("method") {
                Ok(method) => {
                    let params = fields.raw("params").map(ToOwned::to_owned);
                    Ok(Request::Rpc { id, method, params })
                }
                Err(message) => Err(Malformed { id: Some(id), message }),
            }
        }
        "auth_challenge" => Ok(Request::Challenge),
        "auth" if fields.raw("proof").is_some() => {
            let proof = fields.required("proof").map_err(anonymous)?;
            Ok(Request::Prove { proof })
        }
        "auth" => {
            let token = fields.required("token").map_err(anonymous)?;
            Ok(Request::Auth { token })
        }
        "tools" => {
            let proof = fields.required("proof").map_err(anonymous)?;
            Ok(Request::Tools { proof })
        }
        "request_snapshot" => {
            let session = fields.name("session_id").map_err(anonymous)?;
            Ok(Request::Snapshot { session })
        }
        "set_stream_filter" => filter(&fields).map(Request::Filter).map_err(anonymous),
        "subscribe" => {
            let topics = fields.required("topics").map_err(anonymous)?;
            Ok(Request::Subscribe { topics })
        }
        _ => Ok(Request::Unknown),
    }
}

fn filter(fields: &RequestFields<'_>) -> Result<Filter, String> {
    // Both are read, so that a mistake in either is reported.
    let session = fields.name("session_id")?;
    let mode = fields.name("session_mode")?.as_deref().map(mode_named).transpose()?;
    Ok(match (session, mode) {
        (Some(session), _) => Filter::Session(SessionId::new(session)),
        (None, Some(mode)) => Filter::Mode(mode),
        (None, None) => Filter::All,
    })
}

fn mode_named(name: &str) -> Result<SessionMode, String> {
    let all = SessionMode::ALL;
    all.into_iter().find(|mode| mode.as_str() == name).ok_or_else(|| {
        let known = all.map(SessionMode::as_str).join("` or `");
        format!("`session_mode` is `{known}`, not `{name}`")
    })
}

/// A JSON object with raw values. Repeated keys are refused: readers would differ on their value.
#[derive(Debug, Default)]
pub struct RequestFields<'a>(HashMap<String, &'a RawValue>);

impl<'a> RequestFields<'a> {
    pub fn parse(json: &'a str) -> Result<Self, String> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let fields =
            deserializer.deserialize_map(FieldsVisitor).map_err(|error| error.to_string())?;
        deserializer.end().map_err(|error| error.to_string())?;
        Ok(fields)
    }

    /// Returns a field that is present and not null.
    pub fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.0.get(name).copied().filter(|value| value.get() != "null")
    }

    pub fn required<T: Expected>(&self, name: &str) -> Result<T, String> {
        self.optional(name)?.ok_or_else(|| format!("`{name}` is missing, and must be {}", T::WHAT))
    }

    pub fn optional<T: Expected>(&self, name: &str) -> Result<Option<T>, String> {
        self.raw(name)
            .map(|value| {
                serde_json::from_str(value.get()).map_err(|error| match error.classify() {
                    serde_json::error::Category::Data => format!("`{name}` must be {}", T::WHAT),
                    // Such as half of a surrogate pair.
                    _ => format!("`{name}`: {error}"),
                })
            })
            .transpose()
    }

    /// Returns an optional name; an empty one counts as missing.
    pub fn name(&self, name: &str) -> Result<Option<String>, String> {
        Ok(self.optional(name)?.filter(|name: &String| !name.is_empty()))
    }

    fn id(&self) -> Result<Box<RawValue>, String> {
        match self.raw("id") {
            Some(id)
                if id.get().starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) =>
            {
                Ok(id.to_owned())
            }
            _ => Err("`id` must be a string or a number".to_owned()),
        }
    }
}

/// A field's type, with its description for errors.
pub trait Expected: DeserializeOwned {
    const WHAT: &'static str;
}

impl Expected for String {
    const WHAT: &'static str = "a string";
}

impl Expected for Vec<String> {
    const WHAT: &'static str = "an array of strings";
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = RequestFields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RequestFields<'de>, A::Error> {
        let mut fields = HashMap::new();
        while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
            if fields.contains_key(&key) {
                return Err(A::Error::custom(format_args!("duplicate key `{key}`")));
            }
            fields.insert(key, value);
        }
        Ok(RequestFields(fields))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(line: impl AsRef<[u8]>, expect: &Expect) {
        expect.assert_eq(&match parse(line.as_ref()) {
            Ok(Request::Rpc { id, method, params }) => {
                format!(
                    "rpc {id} {method} {}",
                    params.map_or_else(String::new, |p| p.get().to_owned())
                )
            }
            Ok(other) => format!("{other:?}"),
            Err(Malformed { id, message }) => {
                format!(
                    "{}: {message}",
                    id.map_or_else(|| "null".to_owned(), |id| id.get().to_owned())
                )
            }
        });
    }

    #[test]
    fn requests_are_understood() {
        check(
            r#"{"type":"rpc","id":1,"method":"m","params":{"a":1}}"#,
            &expect![[r#"rpc 1 m {"a":1}"#]],
        );
        check(
            r#" { "method" : "m", "id" : 123456789012345678901234567890.5e400, "type" : "\u0072pc" } "#,
            &expect!["rpc 123456789012345678901234567890.5e400 m "],
        );
        check(
            r#"{"type":"rpc","id":"\ud800","method":"m","params":null}"#,
            &expect![[r#"rpc "\ud800" m "#]],
        );
        check(r#"{"type":"auth","token":"t"}"#, &expect![[r#"Auth { token: "t" }"#]]);
        check(r#"{"type":"auth","proof":"p"}"#, &expect![[r#"Prove { proof: "p" }"#]]);
        check(r#"{"type":"auth_challenge"}"#, &expect!["Challenge"]);
        check(r#"{"type":"request_snapshot"}"#, &expect!["Snapshot { session: None }"]);
        check(
            r#"{"type":"request_snapshot","session_id":"s"}"#,
            &expect![[r#"Snapshot { session: Some("s") }"#]],
        );
        check(
            r#"{"type":"request_snapshot","session_id":""}"#,
            &expect!["Snapshot { session: None }"],
        );
        check(r#"{"type":"from_the_future","id":{}}"#, &expect!["Unknown"]);
        for (filter, expect) in [
            ("", expect!["Filter(All)"]),
            (r#","session_id":"","session_mode":null"#, expect!["Filter(All)"]),
            (
                r#","session_id":"s","session_mode":"orchestrator""#,
                expect![[r#"Filter(Session(SessionId("s")))"#]],
            ),
            (
                r#","session_id":"","session_mode":"orchestrator""#,
                expect!["Filter(Mode(Orchestrator))"],
            ),
        ] {
            check(format!(r#"{{"type":"set_stream_filter"{filter}}}"#), &expect);
        }
        check(
            r#"{"type":"subscribe","topics":["session_update","weather"]}"#,
            &expect![[r#"Subscribe { topics: ["session_update", "weather"] }"#]],
        );
    }

    #[test]
    fn what_is_no_request_is_said_to_be_none() {
        check("nonsense", &expect!["null: expected ident at line 1 column 2"]);
        check("{", &expect!["null: EOF while parsing an object at line 1 column 1"]);
        check(
            "[\"rpc\",1,\"m\"]",
            &expect!["null: invalid type: sequence, expected an object at line 1 column 0"],
        );
        check("{} {}", &expect!["null: trailing characters at line 1 column 4"]);
        check("{}", &expect!["null: `type` is missing, and must be a string"]);
        check(
            b"{\"type\":\"\xff\"}",
            &expect!["null: not UTF-8: invalid utf-8 sequence of 1 bytes from index 9"],
        );
        check(r#"{"type":7}"#, &expect!["null: `type` must be a string"]);
        check(
            r#"{"type":"rpc","type":"auth"}"#,
            &expect!["null: duplicate key `type` at line 1 column 28"],
        );
        check(
            r#"{"type":"rpc","method":"m"}"#,
            &expect!["null: `id` must be a string or a number"],
        );
        check(
            r#"{"type":"rpc","id":null,"method":"m"}"#,
            &expect!["null: `id` must be a string or a number"],
        );
        check(
            r#"{"type":"rpc","id":{"a":1},"method":"m"}"#,
            &expect!["null: `id` must be a string or a number"],
        );
        check(
            r#"{"type":"rpc","id":true,"method":"m"}"#,
            &expect!["null: `id` must be a string or a number"],
        );
        check(r#"{"type":"rpc","id":5}"#, &expect!["5: `method` is missing, and must be a string"]);
        check(r#"{"type":"rpc","id":5,"method":[]}"#, &expect!["5: `method` must be a string"]);
        check(r#"{"type":"auth"}"#, &expect!["null: `token` is missing, and must be a string"]);
        check(
            r#"{"type":"request_snapshot","session_id":4}"#,
            &expect!["null: `session_id` must be a string"],
        );
        check(
            r#"{"type":"set_stream_filter","session_id":["s"]}"#,
            &expect!["null: `session_id` must be a string"],
        );
        check(
            r#"{"type":"set_stream_filter","session_id":"s","session_mode":"solo"}"#,
            &expect!["null: `session_mode` is `single_agent` or `orchestrator`, not `solo`"],
        );
        check(
            r#"{"type":"subscribe","topics":"session_update"}"#,
            &expect!["null: `topics` must be an array of strings"],
        );
        check(
            r#"{"type":"subscribe"}"#,
            &expect!["null: `topics` is missing, and must be an array of strings"],
        );
    }

    proptest! {
        #[test]
        fn any_bytes_get_an_answer(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&line);
        }

        #[test]
        fn ids_are_kept_as_they_came(id in "\"[a-z\\\\]{0,0}[ -!#-\\[\\]-~é]{0,20}\"|-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,9})?([eE][+-]?[0-9]{1,4})?") {
            let line = format!(r#"{{"type":"rpc","id":{id},"method":"m"}}"#);
            match parse(line.as_bytes()) {
                Ok(Request::Rpc { id: kept, .. }) => prop_assert_eq!(kept.get(), id),
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }
}
