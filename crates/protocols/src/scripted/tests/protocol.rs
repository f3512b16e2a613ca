//! The agent's side of the protocol: methods, several sessions at once, cancellation, the end.

use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use eisen_base::task;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::{Client, PlayEnd, ScriptError};

fn typed<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

#[tokio::test]
async fn the_agent_says_who_it_is_and_opens_sessions() {
    let mut client = Client::new(
        r#"
        [agent]
        name = "test"
        version = "2"
        auth_methods = ["key"]
        modes = ["ask", "code"]
        models = ["small", "big"]
        "#,
    );
    let answer = client.ask(1, "initialize", json!({"protocolVersion": 7})).await;
    let answer: acp::InitializeResponse = typed(&answer);
    assert_eq!(answer.protocol_version, 1.into());
    assert_eq!(answer.agent_info.unwrap().version, "2");
    assert!(!answer.agent_capabilities.load_session);
    assert_eq!(answer.auth_methods.len(), 1);

    let new = json!({"cwd": "/w", "mcpServers": []});
    assert_eq!(client.ask(2, "session/new", new.clone()).await["code"], -32000);
    assert_eq!(client.ask(3, "authenticate", json!({"methodId": "x"})).await["code"], -32602);
    assert_eq!(client.ask(4, "authenticate", json!({"methodId": "key"})).await, json!({}));
    let first = client.ask(5, "session/new", new.clone()).await;
    let first: acp::NewSessionResponse = typed(&first);
    assert_eq!(&*first.session_id.0, "test-s1");
    assert_eq!(&*first.modes.unwrap().current_mode_id.0, "ask");
    assert_eq!(first.config_options.unwrap().len(), 1);
    assert_eq!(client.ask(6, "session/new", new).await["sessionId"], "test-s2");

    let session = |more: Value| {
        let mut params = json!({"sessionId": "test-s1"});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    for (method, params, expected) in [
        ("session/set_mode", session(json!({"modeId": "code"})), json!({})),
        ("session/set_mode", session(json!({"modeId": "x"})), json!(-32602)),
        (
            "session/set_config_option",
            session(json!({"configId": "model", "value": "x"})),
            json!(-32602),
        ),
        ("session/load", session(json!({"cwd": "/w", "mcpServers": []})), json!(-32601)),
        ("session/new", json!({"cwd": "w"}), json!(-32602)),
        ("session/prompt", session(json!({"prompt": "x"})), json!(-32602)),
        ("session/prompt", json!({"sessionId": "x", "prompt": []}), json!(-32002)),
        ("session/close", session(json!({})), json!({})),
        ("session/close", session(json!({})), json!(-32002)),
        ("session/list", json!({}), json!({"sessions": [{"sessionId": "test-s2", "cwd": "/w"}]})),
        ("session/list", json!({"cwd": "/x"}), json!({"sessions": []})),
        ("no/such", json!({}), json!(-32601)),
    ] {
        let answer = client.ask(7, method, params.clone()).await;
        let code = answer.get("code").cloned().unwrap_or(answer);
        assert_eq!(code, expected, "{method} {params}");
    }
    let set = json!({"sessionId": "test-s2", "configId": "model", "value": "big"});
    let set = client.ask(8, "session/set_config_option", set).await;
    let options: acp::SetSessionConfigOptionResponse = typed(&set);
    assert_eq!(options.config_options.len(), 1);
    assert_eq!(set["configOptions"][0]["currentValue"], "big");
}

#[tokio::test]
async fn the_first_rule_that_matches_is_played_as_often_as_it_may() {
    let mut client = Client::new(
        r#"
        agent.name = "test"
        [[on]]
        prompt = "*header*"
        times = 1
        steps = [{ stop = "first" }]
        [[on]]
        regex = 'the (?<what>\w+)'
        steps = [{ stop = "second" }]
        "#,
    );
    for session in ["test-s1", "test-s2"] {
        client.ask(0, "session/new", json!({"cwd": "/w"})).await;
        for (prompt, reason) in
            [("the header", "first"), ("the header", "second"), ("a", "end_turn")]
        {
            client.prompt(1, session, prompt).await;
            let mut message = client.next().await;
            if reason == "end_turn" {
                let text = message["params"]["update"]["content"]["text"].clone();
                assert_eq!(text, "I am test, and my script has nothing for this prompt.");
                message = client.next().await;
            }
            assert_eq!(message["result"]["stopReason"], reason);
        }
    }
}

#[tokio::test]
async fn noise_is_answered_and_survived() {
    let mut client = Client::new("");
    for (line, code) in [
        ("zzz", -32700),
        ("[]", -32600),
        (r#"[null,"initialize",{},null,null]"#, -32600),
        (r#"{"id":1,"method":7}"#, -32600),
        (r#"{"id":1,"id":2,"method":"initialize"}"#, -32600),
    ] {
        client.send_raw(line).await;
        let answer = client.next().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&Value::Null, &json!(code)),
            "{line}"
        );
    }
    for quiet in ["", "  ", r#"{"jsonrpc":"2.0","id":99,"result":{}}"#, r#"{"method":"x/y"}"#, "{}"]
    {
        client.send_raw(quiet).await;
    }
    for id in ["1.50", "123456789012345678901234567890", r#""a\u0062""#] {
        client.send_raw(&format!(r#"{{"id":{id},"method":"session/list"}}"#)).await;
        assert!(client.next_raw().await.unwrap().contains(&format!(r#""id":{id},"#)));
    }
    assert_eq!(client.hang_up().await, PlayEnd::Exit(0));
}

#[tokio::test]
async fn cancelling_ends_the_turn_and_lets_its_requests_go() {
    let mut client = Client::in_session(r#"{ run = "sleep 1000" }, { say = "never" }"#).await;
    client.prompt(1, "test-s1", "").await;
    assert_eq!(client.next().await["params"]["update"]["toolCallId"], "t1");
    let create = client.next().await;
    client.send(&json!({"id": create["id"], "result": {"terminalId": "x"}})).await;
    client.next().await;
    let wait = client.next().await;
    assert_eq!(wait["method"], "terminal/wait_for_exit");
    client.notify("session/cancel", json!({"sessionId": "other"})).await;
    client.notify("session/cancel", json!({"sessionId": "test-s1"})).await;
    assert_eq!(client.next().await["method"], "terminal/release");
    let update = client.next().await["params"]["update"].clone();
    assert_eq!((&update["toolCallId"], &update["status"]), (&json!("t1"), &json!("failed")));
    assert_eq!(client.next().await["result"]["stopReason"], "cancelled");
    // The late answer is dropped, and the session is free again.
    client.send(&json!({"id": wait["id"], "result": {"exitCode": 0}})).await;
    client.prompt(2, "test-s1", "").await;
    assert_eq!(client.next().await["params"]["update"]["toolCallId"], "t2");
    client.notify("$/cancel_request", json!({"requestId": 2})).await;
    assert_eq!(client.next().await["method"], "terminal/create");
    assert_eq!(client.next().await["params"]["update"]["status"], "failed");
    assert_eq!(client.next().await["result"]["stopReason"], "cancelled");
}

#[tokio::test]
async fn a_rule_may_ignore_the_cancel() {
    let mut client = Client::new(
        r#"
        agent.name = "test"
        [[on]]
        ignore_cancel = true
        steps = [{ say = "a" }, { wait = "cancel" }, { say = "still here" }]
        "#,
    );
    client.ask(0, "session/new", json!({"cwd": "/w"})).await;
    client.prompt(1, "test-s1", "").await;
    client.next().await;
    client.notify("session/cancel", json!({"sessionId": "test-s1"})).await;
    assert_eq!(client.next().await["params"]["update"]["content"]["text"], "still here");
    assert_eq!(client.next().await["result"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn sessions_play_side_by_side_and_requests_cross() {
    let mut client = Client::in_session(r#"{ request = "a/b", params = "{}" }"#).await;
    client.ask(0, "session/new", json!({"cwd": "/w"})).await;
    client.prompt(1, "test-s1", "").await;
    let first = client.next().await;
    client.prompt(2, "test-s2", "").await;
    let second = client.next().await;
    assert_ne!(first["id"], second["id"]);
    client.prompt(3, "test-s1", "").await;
    assert_eq!(client.next().await["error"]["message"], "a turn is running in this session");
    assert_eq!(client.ask(4, "session/list", json!({})).await["sessions"][1]["cwd"], "/w");
    client.send(&json!({"id": second["id"], "result": null})).await;
    assert_eq!(client.next().await["id"], 2);
    client.ask(5, "session/close", json!({"sessionId": "test-s1"})).await;
    let answer = client.next().await;
    assert_eq!((&answer["id"], &answer["result"]["stopReason"]), (&json!(1), &json!("cancelled")));
}

#[tokio::test]
async fn start_and_load_are_played_before_their_answers() {
    let mut client = Client::new(
        r#"
        [agent]
        name = "test"
        start = [{ raw = "banner" }]
        load = [{ update = '{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"hi"}}' }, { say = "hello" }]
        "#,
    );
    client.request(1, "initialize", json!({"protocolVersion": 1})).await;
    assert_eq!(client.next_raw().await.unwrap(), "banner");
    assert_eq!(client.next().await["result"]["agentCapabilities"]["loadSession"], true);
    client.request(2, "session/load", json!({"sessionId": "old", "cwd": "/w"})).await;
    for kind in ["user_message_chunk", "agent_message_chunk"] {
        let update = client.next().await;
        assert_eq!(update["params"]["sessionId"], "old");
        assert_eq!(update["params"]["update"]["sessionUpdate"], kind);
    }
    assert_eq!(client.next().await["id"], 2);
    client.prompt(3, "old", "").await;
    client.next().await;
    assert_eq!(client.next().await["result"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn a_start_can_fail() {
    let mut client = Client::new(r#"agent.start = [{ fail = "no licence" }]"#);
    let answer = client.ask(1, "initialize", json!({})).await;
    assert_eq!((&answer["code"], &answer["message"]), (&json!(-32603), &json!("no licence")));
}

#[tokio::test]
async fn the_end_of_the_input_ends_the_program_in_the_midst_of_a_turn() {
    let mut client = Client::in_session(r#"{ say = "a" }, { wait_ms = 3600000 }"#).await;
    client.prompt(1, "test-s1", "").await;
    client.next().await;
    assert_eq!(client.hang_up().await, PlayEnd::Exit(0));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_no_more_does_not_keep_the_agent() {
    let steps = r#"{ repeat = 100000, steps = [{ say = "0123456789" }] }"#;
    let mut client = Client::in_session(steps).await;
    client.prompt(1, "test-s1", "").await;
    client.next().await;
    assert_eq!(client.hang_up().await, PlayEnd::Exit(0));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_hangs_or_ignores_the_end_stays() {
    for (steps, says_more) in [
        (r#"{ say = "a" }, { hang = true }"#, false),
        (r#"{ ignore_eof = true }, { say = "a" }, { wait_ms = 60000 }, { say = "b" }"#, true),
    ] {
        let mut client = Client::in_session(steps).await;
        client.prompt(1, "test-s1", "").await;
        client.next().await;
        client.to_agent = None;
        if says_more {
            assert_eq!(client.next().await["params"]["update"]["content"]["text"], "b");
        }
        let hour = Duration::from_hours(1);
        assert!(tokio::time::timeout(hour, client.playing).await.is_err(), "{steps}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_is_the_end() {
    let mut client = Client::in_session(r#"{ wait_ms = 1 }, { say = "a" }"#).await;
    client.prompt(1, "test-s1", "").await;
    drop(client.from_agent);
    assert_eq!(client.playing.await.unwrap().unwrap(), PlayEnd::Exit(0));
}

#[tokio::test]
async fn a_line_past_all_bounds_is_an_error() {
    let mut client = Client::new("");
    let mut to_agent = client.to_agent.take().unwrap();
    let part = vec![b' '; 1 << 20];
    let sending = task::spawn(async move {
        for _ in 0..66 {
            // The agent may hang up before the last byte.
            let _ = to_agent.write_all(&part).await;
        }
    });
    assert!(matches!(client.playing.await.unwrap(), Err(ScriptError::LongLine)));
    sending.await.unwrap();
}
