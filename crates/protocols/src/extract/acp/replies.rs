//! The JSON-RPC lines sent to an agent in its client's place. Their shapes are a public contract.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::extract::{Ask, PermissionOption, Refusal, Target};
use crate::model::code::{INVALID_REQUEST, OUTSIDE_ZONE, REQUEST_CANCELLED};
use crate::model::{Action, SessionId, Via};

/// Returns the line that refuses `ask`; None for a notification. ACP has no field for the reason of
/// a refused permission: `with_reason` adds one to `_meta`.
pub(crate) fn refuse(ask: &Ask, refusal: &Refusal, with_reason: bool) -> Option<Bytes> {
    let id = ask.id.as_deref()?;
    let why = reason(refusal);
    if ask.via == Via::Permission {
        let mut result = match refusal {
            Refusal::Cancelled => cancelled(),
            Refusal::Outside { .. } | Refusal::Locked { .. } | Refusal::NoTerminals => {
                rejection(&ask.options)
            }
        };
        if with_reason {
            result["_meta"] = json!({"eisen/why": why});
        }
        return Some(self::result(id, &result));
    }
    Some(match refusal {
        Refusal::Outside { blocked, path, owners, .. } => {
            let owners: Vec<_> = owners.iter().map(crate::model::AgentId::as_str).collect();
            let data = json!({"blocked_id": blocked.as_str(), "path": path, "owners": owners});
            error(id, &json!({"code": OUTSIDE_ZONE, "message": why, "data": data}))
        }
        Refusal::Locked { conflict, path, holder, .. } => {
            let (conflict, holder) = (conflict.as_str(), holder.as_str());
            let data = json!({"conflict_id": conflict, "path": path, "holder": holder});
            error(id, &json!({"code": OUTSIDE_ZONE, "message": why, "data": data}))
        }
        Refusal::Cancelled => error(id, &json!({"code": REQUEST_CANCELLED, "message": why})),
        Refusal::NoTerminals => error(id, &json!({"code": OUTSIDE_ZONE, "message": why})),
    })
}

fn reason(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Outside { path, message, .. } => {
            let sentence = format!(
                "Outside agent zone: {path}. Request cross-region info through the orchestrator."
            );
            match message {
                Some(more) if !more.is_empty() => format!("{sentence} {more}"),
                _ => sentence,
            }
        }
        Refusal::Locked { message, .. } => format!("Locked by another agent: {message}"),
        Refusal::Cancelled => "Request cancelled".to_owned(),
        Refusal::NoTerminals => {
            "Outside agent zone: terminals are denied to this agent.".to_owned()
        }
    }
}

/// Returns the line that answers a read with `content`; None for anything else.
pub(crate) fn answer(ask: &Ask, content: &str) -> Option<Bytes> {
    let reads = ask.via == Via::Fs
        && ask.accesses.iter().all(|access| access.target == Target::File(Action::Read));
    let id = ask.id.as_deref().filter(|_| reads)?;
    Some(result(id, &json!({"content": content})))
}

/// Returns the error response to an ambiguous request.
pub(crate) fn invalid(id: &RawValue, why: &str) -> Bytes {
    let message = format!("Invalid request: {why}");
    error(id, &json!({"code": INVALID_REQUEST, "message": message}))
}

/// Returns the notification that cancels the session's turn.
pub(crate) fn cancel(session: &SessionId) -> Bytes {
    let params = json!({"sessionId": session.as_str()});
    line(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}))
}

/// Returns the notification that cancels a request.
pub(crate) fn cancel_request(id: &RawValue) -> Bytes {
    let params = format!(r#"{{"requestId":{id}}}"#);
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{params}}}\n").into()
}

/// Returns the response to a permission request of a cancelled turn.
pub(crate) fn cancelled_permission(id: &RawValue) -> Bytes {
    result(id, &cancelled())
}

fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

/// Selects an offered reject option, `reject_once` first.
fn rejection(options: &[PermissionOption]) -> Value {
    let offered = ["reject_once", "reject_always"]
        .iter()
        .find_map(|kind| options.iter().find(|option| option.kind == *kind));
    offered.map_or_else(
        cancelled,
        |option| json!({"outcome": {"outcome": "selected", "optionId": option.id}}),
    )
}

fn result(id: &RawValue, result: &Value) -> Bytes {
    line(&Response { jsonrpc: "2.0", id, result: Some(result), error: None })
}

fn error(id: &RawValue, error: &Value) -> Bytes {
    line(&Response { jsonrpc: "2.0", id, result: None, error: Some(error) })
}

/// The id is repeated as it came: it may be a number that no type holds.
#[derive(Serialize)]
struct Response<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Value>,
}

#[expect(clippy::expect_used, reason = "plain structs with string keys always serialise")]
fn line(message: &impl Serialize) -> Bytes {
    let mut line = serde_json::to_vec(message).expect("a message serialises");
    line.push(b'\n');
    line.into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use expect_test::{Expect, expect};

    use super::*;
    use crate::extract::Access;
    use crate::model::{AgentId, BlockedId, SessionId};

    fn ask(id: &str, via: Via, options: &[(&str, &str)]) -> Ask {
        Ask {
            id: Some(RawValue::from_string(id.to_owned()).unwrap()),
            session: SessionId::new("s"),
            via,
            accesses: vec![Access { path: "/w/a".into(), target: Target::File(Action::Read) }],
            options: options
                .iter()
                .map(|(id, kind)| PermissionOption { id: (*id).into(), kind: (*kind).into() })
                .collect(),
            is_team_tool: false,
        }
    }

    fn outside(message: Option<&str>) -> Refusal {
        Refusal::Outside {
            blocked: BlockedId::new("b7"),
            path: Arc::from("core/a\"b.rs"),
            owners: vec![AgentId::new("core"), AgentId::new("lead")],
            message: message.map(str::to_owned),
        }
    }

    fn check(line: Option<Bytes>, expected: &Expect) {
        expected.assert_eq(std::str::from_utf8(&line.unwrap()).unwrap());
    }

    #[test]
    fn a_denial_names_path_block_and_owners() {
        check(
            refuse(&ask("12345678901234567890123", Via::Fs, &[]), &outside(None), false),
            &expect![[r#"
                {"jsonrpc":"2.0","id":12345678901234567890123,"error":{"code":-32001,"message":"Outside agent zone: core/a\"b.rs. Request cross-region info through the orchestrator.","data":{"blocked_id":"b7","path":"core/a\"b.rs","owners":["core","lead"]}}}
            "#]],
        );
        check(
            refuse(&ask(r#""\u0061""#, Via::Terminal, &[]), &outside(Some("Ask core.")), false),
            &expect![[r#"
                {"jsonrpc":"2.0","id":"\u0061","error":{"code":-32001,"message":"Outside agent zone: core/a\"b.rs. Request cross-region info through the orchestrator. Ask core.","data":{"blocked_id":"b7","path":"core/a\"b.rs","owners":["core","lead"]}}}
            "#]],
        );
    }

    #[test]
    fn a_permission_is_rejected_with_what_was_offered() {
        let both = [("a", "allow_once"), ("n", "reject_always"), ("o", "reject_once")];
        let refused = |options: &[(&str, &str)], refusal: &Refusal| {
            let line = refuse(&ask("0", Via::Permission, options), refusal, false).unwrap();
            String::from_utf8(line.to_vec()).unwrap()
        };
        let selected = |id: &str| {
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{{\"outcome\":{{\"outcome\":\"selected\",\"optionId\":\"{id}\"}}}}}}\n"
            )
        };
        let cancelled =
            "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"outcome\":{\"outcome\":\"cancelled\"}}}\n";
        assert_eq!(refused(&both, &outside(None)), selected("o"));
        assert_eq!(refused(&both[..2], &outside(None)), selected("n"));
        assert_eq!(refused(&both[..1], &outside(None)), cancelled);
        assert_eq!(refused(&both, &Refusal::Cancelled), cancelled);
        check(
            refuse(&ask("0", Via::Permission, &both), &outside(Some("Ask core.")), true),
            &expect![[r#"
                {"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"o"},"_meta":{"eisen/why":"Outside agent zone: core/a\"b.rs. Request cross-region info through the orchestrator. Ask core."}}}
            "#]],
        );
    }

    #[test]
    fn other_answers_are_plain() {
        check(
            refuse(&ask("1.50", Via::Fs, &[]), &Refusal::Cancelled, false),
            &expect![[r#"
                {"jsonrpc":"2.0","id":1.50,"error":{"code":-32800,"message":"Request cancelled"}}
            "#]],
        );
        check(
            answer(&ask("1", Via::Fs, &[]), "a\nb"),
            &expect![[r#"
                {"jsonrpc":"2.0","id":1,"result":{"content":"a\nb"}}
            "#]],
        );
        check(
            Some(cancel(&SessionId::new("a\"b"))),
            &expect![[r#"
                {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"a\"b"}}
            "#]],
        );
        assert!(answer(&ask("1", Via::Terminal, &[]), "x").is_none());
        let mut nobody = ask("1", Via::Fs, &[]);
        nobody.id = None;
        assert!(refuse(&nobody, &outside(None), false).is_none());
    }
}
