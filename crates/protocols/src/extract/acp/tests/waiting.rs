//! Whether the agent waits for its client.

use super::{acp, observe};
use crate::extract::Extractor;

#[test]
fn an_agent_waits_for_what_it_asked_and_for_terminals_that_run() {
    let mut acp = acp();
    for (line, awaits) in [
        (r#">{"id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#, false),
        (r#"{"method":"session/update","params":{"sessionId":"s","update":{}}}"#, false),
        (r#"{"id":1,"method":"session/request_permission","params":{"sessionId":"s"}}"#, true),
        (r#"{"id":"x","method":"some/future","params":{}}"#, true),
        (r#">{"id":1,"result":{"outcome":{"outcome":"cancelled"}}}"#, true),
        (r#">{"id":"x","error":{"code":1,"message":"no"}}"#, false),
        (
            r#"{"id":2,"method":"terminal/create","params":{"sessionId":"s","command":"make"}}"#,
            true,
        ),
        (r#">{"id":2,"result":{"terminalId":"t"}}"#, true),
        (
            r#"{"id":3,"method":"terminal/output","params":{"sessionId":"s","terminalId":"t"}}"#,
            true,
        ),
        (r#">{"id":3,"result":{"output":"","truncated":false,"exitStatus":null}}"#, true),
        (
            r#"{"id":4,"method":"terminal/wait_for_exit","params":{"sessionId":"s","terminalId":"t"}}"#,
            true,
        ),
        (r#">{"id":4,"result":{"exitCode":0}}"#, false),
        (
            r#"{"id":5,"method":"terminal/create","params":{"sessionId":"s","command":"serve"}}"#,
            true,
        ),
        (r#">{"id":5,"result":{"terminalId":"u"}}"#, true),
        (
            r#"{"id":6,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/w/README.md"}}"#,
            true,
        ),
        // What a turn left open is waited for by no later one.
        (r#"{"id":1,"result":{"stopReason":"end_turn"}}"#, false),
    ] {
        observe(&mut acp, &[line]);
        assert_eq!(acp.awaits(), awaits, "{line}");
    }
}

#[test]
fn what_is_left_open_in_one_session_is_no_others() {
    let mut acp = acp();
    observe(
        &mut acp,
        &[
            r#">{"id":1,"method":"session/prompt","params":{"sessionId":"a","prompt":[]}}"#,
            r#">{"id":2,"method":"session/prompt","params":{"sessionId":"b","prompt":[]}}"#,
            r#"{"id":1,"method":"session/request_permission","params":{"sessionId":"a"}}"#,
            r#"{"id":2,"result":{"stopReason":"end_turn"}}"#,
        ],
    );
    assert!(acp.awaits());
    let mut observed = Vec::new();
    acp.end("gone", &mut observed);
    assert!(!acp.awaits());
}
