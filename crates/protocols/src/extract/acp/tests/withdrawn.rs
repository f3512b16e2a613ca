//! Tests of permission requests that are answered on the client's behalf.

use bytes::Bytes;

use super::{Acp, acp, observe};
use crate::extract::Extractor;
use crate::model::SessionId;

fn ask(id: &str, method: &str, session: &str) -> String {
    format!(r#"{{"id":{id},"method":"{method}","params":{{"sessionId":"{session}"}}}}"#)
}

fn withdraw(acp: &mut Acp) -> [String; 2] {
    let withdrawn = acp.withdraw(&SessionId::new("s"));
    [withdrawn.to_agent, withdrawn.to_client].map(|lines| String::from_utf8(lines.into()).unwrap())
}

fn passed(acp: &mut Acp, lines: &str) -> String {
    let passed = acp.without_late(Bytes::copy_from_slice(lines.as_bytes()));
    String::from_utf8(passed.into()).unwrap()
}

#[test]
fn an_open_permission_is_answered_and_taken_back_once() {
    for (id, back) in [
        ("7", "7"),
        ("1.0", "1.0"),
        ("-3", "-3"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        (r#""7""#, r#""7""#),
        (r#""\u00e9/""#, r#""é\/""#),
    ] {
        let mut acp = acp();
        observe(&mut acp, &[&ask(id, "session/request_permission", "s")]);
        let [to_agent, to_client] = withdraw(&mut acp);
        assert_eq!(
            to_agent,
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"outcome\":{{\"outcome\":\"cancelled\"}}}}}}\n"
            )
        );
        assert_eq!(
            to_client,
            format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{{\"requestId\":{id}}}}}\n"
            )
        );
        assert!(!acp.awaits(), "{id}");
        assert_eq!(withdraw(&mut acp), ["", ""], "{id}");
        // The client asks under the same id, answers others, and then this one.
        let own = ask(back, "session/prompt", "s");
        let answer = format!(r#"{{"id":{back},"result":{{"outcome":{{}}}}}}"#);
        let other = r#"{"id":99,"result":null}"#;
        let said = format!("{own}\n\n{other}\r\n\u{feff}{answer}\nno JSON\n{{\"torn");
        let without = format!("{own}\n\n{other}\r\nno JSON\n{{\"torn");
        assert_eq!(passed(&mut acp, &said), without, "{id}");
        // Of a later request with that id, the answer is wanted.
        assert_eq!(passed(&mut acp, &answer), answer, "{id}");
    }
}

#[test]
fn all_else_that_is_open_stays() {
    let mut acp = acp();
    observe(
        &mut acp,
        &[
            &ask("1", "session/request_permission", "other"),
            &ask("2", "elicitation/create", "s"),
            &ask("3", "terminal/create", "s"),
            &ask("4", "session/request_permission", "s"),
            r#">{"id":4,"result":{"outcome":{"outcome":"cancelled"}}}"#,
        ],
    );
    assert_eq!(withdraw(&mut acp), ["", ""]);
    assert!(acp.awaits());
}
