//! The messages that each kind of step makes the agent send.

use expect_test::{Expect, expect};
use serde_json::json;

use super::{Client, PlayEnd};

async fn check(steps: &str, expected: Expect) {
    expected.assert_eq(&Client::in_session(steps).await.turn("please").await);
}

#[tokio::test]
async fn words_plans_and_usage_are_session_updates() {
    check(
        r#"
        { say = "You said {prompt}." },
        { think = "Hm, {unknown}." },
        { plan = ["read", "write", "test"], done = 1 },
        { usage = { used = 12_000, size = 0x10000, cost = 0.5, currency = "EUR" } },
        { usage = { used = 1, size = 2 } },
        { answer = '{"usage":{"inputTokens":3}}' },
        { update = '{"sessionUpdate":"current_mode_update","currentModeId":"{prompt}"}' },
        "#,
        expect![[r#"
            {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"You said please."}}
            {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Hm, {unknown}."}}
            {"sessionUpdate":"plan","entries":[{"content":"read","priority":"medium","status":"completed"},{"content":"write","priority":"medium","status":"in_progress"},{"content":"test","priority":"medium","status":"pending"}]}
            {"sessionUpdate":"usage_update","used":12000,"size":65536,"cost":{"amount":0.5,"currency":"EUR"}}
            {"sessionUpdate":"usage_update","used":1,"size":2}
            {"sessionUpdate":"current_mode_update","currentModeId":"please"}
            = {"stopReason":"end_turn","usage":{"inputTokens":3}}
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_read_is_a_tool_call_around_the_clients_answer() {
    check(
        r#"
        { read = "a.rs", line = 1, limit = 5 },
        { say = "{last}" },
        { read = "../b.rs" },
        { say = "{error}" },
        "#,
        expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"t1","title":"Read a.rs","kind":"read","status":"in_progress","locations":[{"path":"/w/a.rs","line":1}]}
            fs/read_text_file {"path":"/w/a.rs","line":1,"limit":5}
            {"sessionUpdate":"tool_call_update","toolCallId":"t1","content":[{"type":"content","content":{"type":"text","text":"fn a() {}\n"}}],"status":"completed"}
            {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"fn a() {}\n"}}
            {"sessionUpdate":"tool_call","toolCallId":"t2","title":"Read ../b.rs","kind":"read","status":"in_progress","locations":[{"path":"/w/../b.rs"}]}
            fs/read_text_file {"path":"/w/../b.rs"}
            {"sessionUpdate":"tool_call_update","toolCallId":"t2","status":"failed","content":[{"type":"content","content":{"type":"text","text":"no /w/../b.rs"}}]}
            {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"no /w/../b.rs"}}
            = {"stopReason":"end_turn"}
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_write_goes_through_the_client() {
    check(
        r#"
        { write = "new.rs", content = "// {prompt}" },
        { write = "a.rs", replace = ["fn a", "fn b"] },
        { write = "a.rs", replace = ["nothing", "x"] },
        "#,
        expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"t1","title":"Write new.rs","kind":"edit","status":"in_progress","locations":[{"path":"/w/new.rs"}]}
            fs/write_text_file {"path":"/w/new.rs","content":"// please"}
            {"sessionUpdate":"tool_call_update","toolCallId":"t1","content":[{"type":"diff","path":"/w/new.rs","oldText":null,"newText":"// please"}],"status":"completed"}
            {"sessionUpdate":"tool_call","toolCallId":"t2","title":"Write a.rs","kind":"edit","status":"in_progress","locations":[{"path":"/w/a.rs"}]}
            fs/read_text_file {"path":"/w/a.rs"}
            fs/write_text_file {"path":"/w/a.rs","content":"fn b() {}\n"}
            {"sessionUpdate":"tool_call_update","toolCallId":"t2","content":[{"type":"diff","path":"/w/a.rs","oldText":"fn a() {}\n","newText":"fn b() {}\n"}],"status":"completed"}
            {"sessionUpdate":"tool_call","toolCallId":"t3","title":"Write a.rs","kind":"edit","status":"in_progress","locations":[{"path":"/w/a.rs"}]}
            fs/read_text_file {"path":"/w/a.rs"}
            {"sessionUpdate":"tool_call_update","toolCallId":"t3","status":"failed","content":[{"type":"content","content":{"type":"text","text":"`nothing` is not in /w/a.rs"}}]}
            = {"stopReason":"end_turn"}
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_run_takes_a_terminal_from_its_creation_to_its_release() {
    check(
        r#"
        { run = "grep -n a {prompt}", cwd = "sub", output_limit = 100 },
        { run = ["ls", "-l"] },
        { say = "{last}" },
        "#,
        expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"t1","title":"grep -n a please","kind":"execute","status":"in_progress","locations":[]}
            terminal/create {"command":"grep -n a please","cwd":"/w/sub","outputByteLimit":100}
            {"sessionUpdate":"tool_call_update","toolCallId":"t1","content":[{"type":"terminal","terminalId":"term-1"}]}
            terminal/wait_for_exit {"terminalId":"term-1"}
            terminal/output {"terminalId":"term-1"}
            terminal/release {"terminalId":"term-1"}
            {"sessionUpdate":"tool_call_update","toolCallId":"t1","content":[{"type":"terminal","terminalId":"term-1"}],"rawOutput":{"exitCode":0,"signal":null},"status":"completed"}
            {"sessionUpdate":"tool_call","toolCallId":"t2","title":"ls -l","kind":"execute","status":"in_progress","locations":[]}
            terminal/create {"command":"ls","args":["-l"]}
            {"sessionUpdate":"tool_call_update","toolCallId":"t2","content":[{"type":"terminal","terminalId":"term-1"}]}
            terminal/wait_for_exit {"terminalId":"term-1"}
            terminal/output {"terminalId":"term-1"}
            terminal/release {"terminalId":"term-1"}
            {"sessionUpdate":"tool_call_update","toolCallId":"t2","content":[{"type":"terminal","terminalId":"term-1"}],"rawOutput":{"exitCode":0,"signal":null},"status":"completed"}
            {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a.rs:1\n"}}
            = {"stopReason":"end_turn"}
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_command_that_fails_is_a_step_that_fails() {
    let steps = r#"{ run = "false", on_error = [{ say = "{error}" }] }"#;
    for (exit, said) in [
        (json!({"exitCode": 3}), "`false` exited with code 3"),
        (json!({"exitCode": null, "signal": "KILL"}), "`false` ended by signal KILL"),
    ] {
        let mut client = Client::in_session(steps).await;
        client.exit = exit;
        let transcript = client.turn("please").await;
        assert!(transcript.contains(&json!({"type": "text", "text": said}).to_string()));
        assert!(transcript.contains(r#""status":"failed""#), "{transcript}");
    }
}

#[tokio::test]
async fn a_permission_is_allowed_refused_or_cancelled() {
    let steps = r#"
        { ask = "edit", path = "a.rs", on_ok = [{ say = "yes" }], on_error = [{ say = "{error}" }] },
        { ask = "execute", command = "rm -r {prompt}", title = "Clean up", options = ["reject_once"] },
    "#;
    check(steps, expect![[r#"
        {"sessionUpdate":"tool_call","toolCallId":"t1","title":"edit a.rs","kind":"edit","status":"in_progress","locations":[{"path":"/w/a.rs"}]}
        session/request_permission {"toolCall":{"toolCallId":"t1","title":"edit a.rs","kind":"edit","status":"pending","locations":[{"path":"/w/a.rs"}]},"options":[{"optionId":"allow_once","name":"allow_once","kind":"allow_once"},{"optionId":"allow_always","name":"allow_always","kind":"allow_always"},{"optionId":"reject_once","name":"reject_once","kind":"reject_once"},{"optionId":"reject_always","name":"reject_always","kind":"reject_always"}]}
        {"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}
        {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"yes"}}
        {"sessionUpdate":"tool_call","toolCallId":"t2","title":"Clean up","kind":"execute","status":"in_progress","locations":[]}
        session/request_permission {"toolCall":{"toolCallId":"t2","title":"Clean up","kind":"execute","status":"pending","locations":[],"rawInput":{"command":"rm -r please"}},"options":[{"optionId":"reject_once","name":"reject_once","kind":"reject_once"}]}
        {"sessionUpdate":"tool_call_update","toolCallId":"t2","status":"completed"}
        = {"stopReason":"end_turn"}
    "#]]).await;
    for (permission, said) in
        [(Some("reject_once"), "refused with reject_once"), (None, "the permission was cancelled")]
    {
        let mut client = Client::in_session(steps).await;
        client.permission = permission;
        let transcript = client.turn("please").await;
        assert!(transcript.contains(said), "{transcript}");
        assert!(!transcript.contains("yes"), "{transcript}");
    }
}

#[tokio::test]
async fn an_agent_reacts_to_a_denial() {
    check(
        r#"
        { read = "b.rs", on_ok = [{ say = "never" }], on_error = [
            { say = "I ask for it." },
            { write = "b.rs", content = "granted" },
            { read = "b.rs", on_ok = [{ say = "{last}" }] },
        ] },
        { request = "x/y", params = '{"a":["{prompt}"]}', required = true },
        { say = "never" },
        "#,
        expect![[r#"
            {"sessionUpdate":"tool_call","toolCallId":"t1","title":"Read b.rs","kind":"read","status":"in_progress","locations":[{"path":"/w/b.rs"}]}
            fs/read_text_file {"path":"/w/b.rs"}
            {"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"failed","content":[{"type":"content","content":{"type":"text","text":"no /w/b.rs"}}]}
            {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I ask for it."}}
            {"sessionUpdate":"tool_call","toolCallId":"t2","title":"Write b.rs","kind":"edit","status":"in_progress","locations":[{"path":"/w/b.rs"}]}
            fs/write_text_file {"path":"/w/b.rs","content":"granted"}
            {"sessionUpdate":"tool_call_update","toolCallId":"t2","content":[{"type":"diff","path":"/w/b.rs","oldText":null,"newText":"granted"}],"status":"completed"}
            {"sessionUpdate":"tool_call","toolCallId":"t3","title":"Read b.rs","kind":"read","status":"in_progress","locations":[{"path":"/w/b.rs"}]}
            fs/read_text_file {"path":"/w/b.rs"}
            {"sessionUpdate":"tool_call_update","toolCallId":"t3","content":[{"type":"content","content":{"type":"text","text":"granted"}}],"status":"completed"}
            {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"granted"}}
            x/y {"a":["please"]}
            = {"stopReason":"end_turn"}
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_briefing_is_taken_apart_line_by_line() {
    let mut client = Client::in_session(
        r#"
        { for_each = '- (?<id>b\d+): agent `(?<agent>[^`]+)` wants to read `(?<path>[^`]+)`', steps = [
            { say = "{agent} may read {path}: {id}" },
        ] },
        { for_each = '- (?<id>b\d+): agent .* wants to write', steps = [{ say = "not {id}" }] },
        { repeat = 2, steps = [{ say = "{n}" }] },
        { for_each = 'b', text = "abba", steps = [{ say = "b" }, { stop = "refusal" }] },
        "#,
    )
    .await;
    let briefing = "Blocked:\n- b1: agent `ui` wants to read `src/api/cart.rs` (owned by: api)\n  \
        decide: eisen-core inbox allow b1\n- b2: agent `api` wants to write `src/ui/a.tsx`\n\
        - b3: agent `api` wants to read `x`";
    let transcript = client.turn(briefing).await;
    let said: Vec<_> = transcript.lines().map(|line| line.rsplit('"').nth(1).unwrap()).collect();
    let expected = [
        "ui may read src/api/cart.rs: b1",
        "api may read x: b3",
        "not b2",
        "1",
        "2",
        "b",
        "refusal",
    ];
    assert_eq!(said, expected);
}

#[tokio::test]
async fn disk_and_search_go_past_the_client() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::new(
        r#"
        agent.name = "test"
        [[on]]
        steps = [
            { disk_write = "src/b.rs", content = "let price = 1;\n// the price\n" },
            { disk_write = "src/a.rs", content = "price" },
            { search = "price", in = "src" },
            { say = "{last}" },
            { disk_read = "src/a.rs" },
            { say = "{last}" },
            { disk_read = "none" },
            { search = "price", in = "none" },
        ]
        "#,
    );
    client.ask(0, "session/new", json!({"cwd": dir.path(), "mcpServers": []})).await;
    let transcript = client.turn("please").await.replace(dir.path().to_str().unwrap(), "/w");
    expect![[r#"
        {"sessionUpdate":"tool_call","toolCallId":"t1","title":"Write src/b.rs","kind":"edit","status":"in_progress","locations":[{"path":"/w/src/b.rs"}]}
        {"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}
        {"sessionUpdate":"tool_call","toolCallId":"t2","title":"Write src/a.rs","kind":"edit","status":"in_progress","locations":[{"path":"/w/src/a.rs"}]}
        {"sessionUpdate":"tool_call_update","toolCallId":"t2","status":"completed"}
        {"sessionUpdate":"tool_call","toolCallId":"t3","title":"Search `price` in src","kind":"search","status":"in_progress","locations":[]}
        {"sessionUpdate":"tool_call_update","toolCallId":"t3","content":[{"type":"content","content":{"type":"text","text":"src/a.rs:1: price\nsrc/b.rs:1: let price = 1;\nsrc/b.rs:2: // the price"}}],"locations":[{"path":"/w/src/a.rs","line":1},{"path":"/w/src/b.rs","line":1},{"path":"/w/src/b.rs","line":2}],"status":"completed"}
        {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"src/a.rs:1: price\nsrc/b.rs:1: let price = 1;\nsrc/b.rs:2: // the price"}}
        {"sessionUpdate":"tool_call","toolCallId":"t4","title":"Read src/a.rs","kind":"read","status":"in_progress","locations":[{"path":"/w/src/a.rs"}]}
        {"sessionUpdate":"tool_call_update","toolCallId":"t4","content":[{"type":"content","content":{"type":"text","text":"price"}}],"status":"completed"}
        {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"price"}}
        {"sessionUpdate":"tool_call","toolCallId":"t5","title":"Read none","kind":"read","status":"in_progress","locations":[{"path":"/w/none"}]}
        {"sessionUpdate":"tool_call_update","toolCallId":"t5","status":"failed","content":[{"type":"content","content":{"type":"text","text":"No such file or directory (os error 2)"}}]}
        {"sessionUpdate":"tool_call","toolCallId":"t6","title":"Search `price` in none","kind":"search","status":"in_progress","locations":[]}
        {"sessionUpdate":"tool_call_update","toolCallId":"t6","status":"failed","content":[{"type":"content","content":{"type":"text","text":"No such file or directory (os error 2)"}}]}
        = {"stopReason":"end_turn"}
    "#]].assert_eq(&transcript);
    assert_eq!(std::fs::read_to_string(dir.path().join("src/a.rs")).unwrap(), "price");
}

#[tokio::test]
async fn a_raw_line_goes_out_as_it_stands() {
    let mut client = Client::in_session(
        r#"{ raw = '{"a":1,"a":' , newline = false }, { raw = ' "{session}"}' }"#,
    )
    .await;
    client.prompt(1, "test-s1", "").await;
    assert_eq!(client.next_raw().await.unwrap(), r#"{"a":1,"a": "test-s1"}"#);
}

#[tokio::test]
async fn a_turn_can_fail() {
    check(
        r#"{ fail = "no {prompt}" }, { say = "never" }"#,
        expect![[r#"
            = {"code":-32603,"message":"no please"}
        "#]],
    )
    .await;
}

#[tokio::test]
async fn the_script_can_end_the_program() {
    for (step, ended) in [("exit = 3", PlayEnd::Exit(3)), ("crash = true", PlayEnd::Crash)] {
        let steps = format!("{{ say = \"bye\" }}, {{ {step} }}, {{ say = \"never\" }}");
        let mut client = Client::in_session(&steps).await;
        client.prompt(1, "test-s1", "").await;
        assert_eq!(client.next().await["params"]["update"]["content"]["text"], "bye");
        assert_eq!(client.next_raw().await, None);
        assert_eq!(client.playing.await.unwrap().unwrap(), ended);
    }
}

#[tokio::test]
async fn a_child_outlives_its_step() {
    let mut client = Client::in_session(
        r#"{ spawn_child = "exec sleep 1000", detach = true }, { say = "{last}" }"#,
    )
    .await;
    let transcript = client.turn("please").await;
    let pid = transcript.lines().next().unwrap().rsplit('"').nth(1).unwrap().parse().unwrap();
    let pid = nix::unistd::Pid::from_raw(pid);
    assert_eq!(nix::unistd::getpgid(Some(pid)), Ok(pid));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
}
