//! Requests and their answers.

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::{Client, Port};

/// Asks for one thing and compares what comes back.
async fn check(client: &mut Client, method: &str, params: Value, expect: Expect) {
    let mut answer = client.ask(method, params).await;
    let outcome = answer.as_object_mut().unwrap();
    let body = outcome.remove("result").or_else(|| outcome.remove("error")).unwrap();
    expect.assert_eq(&body.to_string());
}

#[tokio::test]
async fn every_method_answers() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    let mut check = async |method: &str, params: Value, expect: Expect| {
        check(&mut client, method, params, expect).await;
    };
    check("list_agents", json!(null), expect![[r#"[{"agent_id":"ui","state":"ready","pid":4711,"reason":null,"restarts":0,"timestamp_ms":1760000000000,"name":"OpenCode","version":"1.2.3","owner":"ada","zone":"kernel","zone_missing":[],"allowed":["src/ui/**"],"sessions":[{"session_id":"s-ui","session_mode":"single_agent","open":true,"default":true,"running":false,"queued":1,"chosen":{"mode":"plan","model":"large"},"used":12000,"size":200000,"cost":{"amount":0.042,"currency":"USD"},"spent":{"input":4000,"cached_read":36000,"cached_write":null,"output":1200,"reasoning":300,"total":41200,"cost":[{"amount":0.042,"currency":"USD"}],"estimated":[],"incomplete":["cached_write"]}}],"memory_bytes":104857600,"cpu_ms":5230,"peak_memory_bytes":209715200,"peak_processes":7,"tools":{"connected":false,"listed":false,"calls":0}},{"agent_id":"api","state":"error","pid":null,"reason":"exit status 1: no such model","restarts":5,"timestamp_ms":1760000000000,"name":null,"version":null,"owner":null,"zone":"kernel","zone_missing":[],"allowed":[],"sessions":[],"memory_bytes":null,"cpu_ms":null,"peak_memory_bytes":209715200,"peak_processes":7,"tools":{"connected":false,"listed":false,"calls":0}}]"#]]).await;
    check("list_blocked", json!({ "status": "denied" }), expect![[r#"[{"agent_id":"ui","session_id":"s-ui","session_mode":"single_agent","path":"src/api/routes.ts","action":"read","timestamp_ms":1760000000000,"id":"b0","status":"denied","owners":["api"],"orchestrator":{"agent_id":"lead","session_id":"s-lead"},"via":"fs"}]"#]]).await;
    check(
        "new_session",
        json!({ "agent_id": "ui", "future": 1 }),
        expect![[r#"{"session_id":"s-ui-2"}"#]],
    )
    .await;
    check("start_agent", json!({ "agent_id": "ui" }), expect![[r#"{"agent_id":"ui","state":"connecting","pid":4711,"reason":null,"restarts":0,"timestamp_ms":1760000000000}"#]]).await;
    check("stop_agent", json!({ "agent_id": "ui" }), expect![[r#"{"agent_id":"ui","state":"stopped","pid":4711,"reason":null,"restarts":0,"timestamp_ms":1760000000000}"#]]).await;
    check("restart_agent", json!({ "agent_id": "ui" }), expect![[r#"{"agent_id":"ui","state":"restarting","pid":4711,"reason":null,"restarts":0,"timestamp_ms":1760000000000}"#]]).await;
    check(
        "prompt",
        json!({ "agent_id": "ui", "text": "x", "session_id": "s" }),
        expect![[r#"{"session_id":"s","stop_reason":"end_turn","text":"Done."}"#]],
    )
    .await;
    check("resolve_blocked", json!({ "id": "b1", "decision": "allow" }), expect![[r#"{"agent_id":"ui","session_id":"s-ui","session_mode":"single_agent","path":"src/api/routes.ts","action":"read","timestamp_ms":1760000000000,"id":"b1","status":"allowed","owners":["api"],"orchestrator":{"agent_id":"lead","session_id":"s-lead"},"via":"fs","decided_by":"person"}"#]]).await;
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "it is a table")]
async fn what_is_wrong_with_a_request_is_reported() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    let mut check = async |method: &str, params: Value, expect: Expect| {
        check(&mut client, method, params, expect).await;
    };
    check("list_blocked", json!({ "status": "weird" }), expect![[r#"{"code":400,"message":"params.status: unknown variant `weird`, expected one of `denied`, `pending`, `allowed`, `answered`, `expired`, `observed` at line 1 column 17"}"#]]).await;
    for method in ["list_agents", "reload"] {
        let expect = expect![[r#"{"code":400,"message":"params: must be an object"}"#]];
        check(method, json!(["ui"]), expect).await;
    }
    check(
        "cancel",
        json!({ "agent_id": "nobody" }),
        expect![[r#"{"code":404,"message":"there is no agent `nobody`; there are ui, api"}"#]],
    )
    .await;
    check(
        "cancel",
        json!({ "agent_id": 7 }),
        expect![[r#"{"code":400,"message":"params.agent_id: invalid type: integer `7`, expected a string at line 1 column 13"}"#]],
    )
    .await;
    check(
        "cancel",
        json!({ "session_id": "s" }),
        expect![[
            r#"{"code":400,"message":"params: missing field `agent_id` at line 1 column 18"}"#
        ]],
    )
    .await;
    check(
        "cancel",
        json!(["ui"]),
        expect![[r#"{"code":400,"message":"params: must be an object"}"#]],
    )
    .await;
    check(
        "prompt",
        json!({ "agent_id": "ui" }),
        expect![[
            r#"{"code":400,"message":"either `text` or `blocks`, not empty, must be given"}"#
        ]],
    )
    .await;
    check(
        "prompt",
        json!({ "agent_id": "ui", "text": "x", "blocks": [{}] }),
        expect![[
            r#"{"code":400,"message":"either `text` or `blocks`, not empty, must be given"}"#
        ]],
    )
    .await;
    check(
        "prompt",
        json!({ "agent_id": "ui", "blocks": [] }),
        expect![[
            r#"{"code":400,"message":"either `text` or `blocks`, not empty, must be given"}"#
        ]],
    )
    .await;
    check(
        "prompt",
        json!({ "agent_id": "ui", "blocks": ["x"] }),
        expect![[r#"{"code":400,"message":"params.blocks[0]: invalid type: string \"x\", expected a map at line 1 column 30"}"#]],
    )
    .await;
    check(
        "prompt",
        json!({ "agent_id": "broken", "text": "x" }),
        expect![[r#"{"code":500,"message":"the request failed; see the log"}"#]],
    )
    .await;
    check("dance", json!({}), expect![[r#"{"code":404,"message":"there is no method `dance`; there are list_sessions, create_session, close_session, set_active_session, get_session_state, set_orchestrator_providers, add_context_items, list_agents, team_status, agent_status, list_blocked, list_budgets, get_graph, get_layout, get_journal, list_events, get_event, search_events, get_diff, blame, replay_session, prompt, cancel, list_prompts, edit_prompt, withdraw_prompt, list_session_options, set_session_option, new_session, fork_session, rewind_session, attach, show_blocked, resolve_blocked, list_grants, revoke_grant, raise_budget, hot_files, overlaps, who_calls, highlight, delegate_task, check_tasks, wait_for_tasks, task_result, cancel_task, request_access, ask_owner, whose, report, list_conflicts, show_conflict, resolve_conflict, claim, release, start_helper, start_run, wait_for_runs, end_runs, add_member, remove_member, start_agent, stop_agent, restart_agent, add_agent, remove_agent, reload, list_branches, merge_branch, check_branch, open_pull_request, get_review, review_hunk, comment, undo, redo, list_streams, attach_stream, detach_stream, replay_to_stream, web_link, web_token, web_revoke, token_create, token_list, token_revoke"}"#]]).await;
    check(
        "highlight",
        json!({ "language": "js", "text": "x".repeat((64 << 10) + 1) }),
        expect![[r#"{"code":400,"message":"params.text: has 65537 bytes, and may have 65536"}"#]],
    )
    .await;
    let stale = json!({ "id": "b1", "decision": "allow", "version": "old" });
    check(
        "resolve_blocked",
        stale,
        expect![[
            r#"{"code":409,"message":"what was shown of b1 has changed since: look at it again"}"#
        ]],
    )
    .await;
    for params in [
        json!({ "id": "b1" }),
        json!({ "decision": "allow" }),
        json!({ "id": "b1", "decision": "maybe" }),
        json!({ "id": "b1", "decision": "allow", "scope": "forever" }),
        json!({ "id": "b1", "decision": "allow", "ttl_s": -1 }),
        json!({ "id": "b1", "decision": "allow", "ttl_s": 1e300 }),
        json!({ "id": "b1", "decision": "answer" }),
        json!({ "id": "b2", "decision": "answer", "content": "" }),
    ] {
        let error = client.ask("resolve_blocked", params.clone()).await["error"].clone();
        assert_eq!(error["code"], 400, "{params}");
    }
    for (method, id, code) in [
        ("resolve_blocked", "b3", 409),
        ("resolve_blocked", "b99", 404),
        ("resolve_conflict", "c2", 409),
        ("resolve_conflict", "c99", 404),
        ("show_conflict", "c99", 404),
    ] {
        let error = client.ask(method, json!({ "id": id, "decision": "deny" })).await;
        assert_eq!(error["error"]["code"], code, "{method} {id}");
    }
    let stale = json!({ "id": "c1", "decision": "deny", "version": "old" });
    let error = client.ask("resolve_conflict", stale).await;
    assert_eq!(error["error"]["code"], 409);
}

#[tokio::test]
async fn requests_arrive_as_they_were_meant() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    for (method, params) in [
        ("prompt", json!({ "agent_id": "ui", "text": "x", "session_id": "" })),
        ("prompt", json!({ "agent_id": "ui", "blocks": [{ "type": "text", "text": "y" }] })),
        ("cancel", json!({ "agent_id": "ui", "session_id": "s" })),
        ("cancel", json!({ "agent_id": "ui", "queued": false })),
        ("resolve_blocked", json!({ "id": "b1", "decision": "allow" })),
        (
            "resolve_blocked",
            json!({ "id": "b1", "decision": "allow", "scope": "session", "ttl_s": 1.5 }),
        ),
        ("resolve_blocked", json!({ "id": "b1", "decision": "deny", "message": "no" })),
        ("resolve_blocked", json!({ "id": "b1", "decision": "answer", "content": "c" })),
        (
            "resolve_blocked",
            json!({ "id": "b1", "decision": "deny", "version": super::samples::VERSION }),
        ),
        ("show_blocked", json!({ "id": "b1" })),
        ("resolve_conflict", json!({ "id": "c1", "decision": "allow" })),
        (
            "resolve_conflict",
            json!({ "id": "c1", "decision": "deny", "message": "no", "version": super::samples::VERSION }),
        ),
    ] {
        assert_eq!(client.ask(method, params).await["type"], "rpc_result", "{method}");
    }
    expect![[r#"
        prompt ui None [Object {"type": String("text"), "text": String("x")}] by_orchestrator: false
        prompt ui None [Object {"type": String("text"), "text": String("y")}] by_orchestrator: false
        cancel ui Some(SessionId("s")) queued: true
        cancel ui None queued: false
        b1 Allow { scope: Once, ttl: None, pattern: None } Person
        b1 Allow { scope: Session, ttl: Some(1.5s), pattern: None } Person
        b1 Deny { message: Some("no") } Person
        b1 Answer { content: "c" } Person
        b1 Deny { message: None } Person
        show b1 None
        c1 Allow Person
        c1 Deny { message: Some("no") } Person"#]]
    .assert_eq(&port.fake.asked.lock().unwrap().join("\n"));
}

#[tokio::test]
async fn ids_come_back_as_they_were_sent() {
    let port = Port::open().await;
    let mut client = port.join().await;
    for id in
        ["1", "-0.0", "123456789012345678901234567890", "1e400", r#""a\u0062\ud800""#, r#""""#]
    {
        client.send(format!(r#"{{"type":"rpc","id":{id},"method":"list_blocked","params":{{"status":"answered"}}}}"#)).await;
        client.send("\r\n").await;
        let line = client.line().await;
        assert_eq!(line, format!("{{\"type\":\"rpc_result\",\"id\":{id},\"result\":[]}}\n"));
    }
}

#[tokio::test]
async fn a_turn_is_reported_before_its_prompt_is_answered() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    for n in 0..20 {
        let prompt = json!({ "agent_id": "ui", "text": "x" });
        client.say(&json!({ "type": "rpc", "id": n, "method": "prompt", "params": prompt })).await;
    }
    let (mut turns, mut answers) = (0, 0);
    while answers < 20 {
        match client.next().await["type"].as_str().unwrap() {
            "turn" => turns += 1,
            "rpc_result" => {
                answers += 1;
                assert!(turns >= answers, "answer {answers} came after {turns} turns");
            }
            _ => {}
        }
    }
}

/// Asks for a prompt that lasts, and waits until it is under way.
async fn prompt_slowly(port: &Port, client: &mut Client, text: &str) {
    let prompt = json!({ "agent_id": "slow", "text": text });
    client.say(&json!({ "type": "rpc", "id": text, "method": "prompt", "params": prompt })).await;
    assert_eq!(port.fake.heard().await, "began");
}

#[tokio::test]
async fn a_long_request_holds_up_no_other() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    prompt_slowly(&port, &mut client, "long").await;
    assert_eq!(client.ask("list_agents", json!({})).await["id"], 1);
    port.fake.release.notify_one();
    let answer = client.answer().await;
    assert_eq!((&answer["id"], &answer["result"]["text"]), (&json!("long"), &json!("Done.")));
}

#[tokio::test]
async fn prompts_are_handed_on_in_their_order() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    let mut lines = String::new();
    for n in 0..100 {
        lines += &json!({ "type": "rpc", "id": n, "method": "prompt",
            "params": { "agent_id": "ui", "text": n.to_string() } })
        .to_string();
        lines.push('\n');
    }
    client.send(lines).await;
    for _ in 0..100 {
        client.answer().await;
    }
    let asked = port.fake.asked.lock().unwrap();
    for (n, asked) in asked.iter().enumerate() {
        assert!(asked.contains(&format!("String(\"{n}\")")), "{n}: {asked}");
    }
}

#[tokio::test]
async fn prompts_of_a_client_that_is_gone_are_withdrawn() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    prompt_slowly(&port, &mut client, "x").await;
    drop(client);
    assert_eq!(port.fake.heard().await, "dropped");
}

#[tokio::test]
async fn prompts_of_a_client_that_only_ended_its_side_are_answered() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    prompt_slowly(&port, &mut client, "x").await;
    client.write.shutdown().await.unwrap();
    // The server makes sure that somebody is there.
    assert_eq!(client.next().await["type"], "agent");
    port.fake.release.notify_one();
    assert_eq!(client.answer().await["result"]["text"], "Done.");
}

#[tokio::test]
async fn one_client_has_so_many_requests_under_way() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    for n in 0..256 {
        prompt_slowly(&port, &mut client, &n.to_string()).await;
    }
    assert_eq!(client.ask("list_agents", json!({})).await["error"]["code"], 409);
    port.fake.release.notify_one();
    assert_eq!(client.answer().await["type"], "rpc_result");
    assert_eq!(client.ask("list_agents", json!({})).await["type"], "rpc_result");
}

#[tokio::test]
async fn what_clients_keep_in_the_registry_comes_back_as_it_was_sent() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    let odd = r#"{"n":12345678901234567890.50,"huge":1e999,"torn":"\ud83d","twice":1,"twice":2}"#;
    client
        .send(format!(
            "{}\n",
            r#"{"type":"rpc","id":1,"method":"create_session","params":{"agent_id":"ui","session_id":"s","mode":"single_agent","context":[ODD],"history":[DEEP]}}"#
                .replace("ODD", odd)
                .replace("DEEP", &format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)))
        ))
        .await;
    let line = client.line().await;
    assert!(line.contains("rpc_result") && line.contains(odd), "{line}");
    client.send(r#"{"type":"rpc","id":2,"method":"get_session_state","params":{"agent_id":"ui","session_id":"s"}}"#).await;
    client.send("\n").await;
    let line = client.line().await;
    assert!(line.contains("rpc_result") && line.contains(odd), "{line}");
}

#[tokio::test]
async fn what_is_wrong_with_a_request_to_the_registry_is_reported() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    let full = json!({ "agent_id": "ui", "session_id": "s", "mode": "single_agent" });
    for (key, value) in [
        ("mode", json!("swarm")),
        ("mode", json!(null)),
        ("agent_id", json!("")),
        ("session_id", json!("")),
        ("session_id", json!(7)),
        ("model", json!("gpt")),
        ("model", json!({ "name": "x" })),
        ("summary", json!(["x"])),
        ("history", json!({})),
        ("context", json!("x")),
        ("providers", json!([{ "agent_id": "ui" }])),
        ("providers", json!([{ "agent_id": "ui", "session_id": "" }])),
    ] {
        let mut params = full.clone();
        params[key] = value;
        let answer = client.ask("create_session", params.clone()).await;
        assert_eq!(answer["error"]["code"], 400, "{params}: {answer}");
    }
    for method in ["close_session", "set_active_session", "get_session_state", "add_context_items"]
    {
        let answer = client.ask(method, json!({ "agent_id": "ui" })).await;
        assert_eq!(answer["error"]["code"], 400, "{method}: {answer}");
    }
    assert!(port.fake.registry.lock().unwrap().active().is_none());
    assert_eq!(client.ask("list_sessions", json!({ "agent_id": "ui" })).await["result"], json!([]));
    // A model needs no name.
    for model in [json!({ "model_id": "m", "name": null }), json!({ "model_id": "m" })] {
        let mut params = full.clone();
        params["model"] = model;
        let answer = client.ask("create_session", params).await;
        assert_eq!(answer["result"]["model"], json!({ "model_id": "m", "name": null }));
    }
    client.ask("close_session", full.clone()).await;
    // Null stays what it was, like what is left out.
    let nulls = json!({ "agent_id": "ui", "session_id": "s", "mode": "single_agent",
        "model": null, "summary": null, "history": null, "context": null, "providers": null });
    assert_eq!(client.ask("create_session", nulls).await["type"], "rpc_result");
}

#[tokio::test]
async fn a_layout_goes_on_from_an_earlier_one() {
    let port = Port::open().await;
    let mut client = port.join().await;
    let whole = client.ask("get_layout", json!({})).await["result"].clone();
    assert_eq!(whole["whole"], true);
    let since = json!({ "since": whole["seq"] });
    let same = client.ask("get_layout", since.clone()).await["result"].clone();
    let (none, no) = (json!([]), json!(false));
    assert_eq!((&same["whole"], &same["files"], &same["folders"]), (&no, &none, &none));
    if let Some(graph) = &mut *port.fake.graph.lock().unwrap() {
        let at = graph.nodes.iter().position(|(id, _)| **id == *"src/main.rs").unwrap();
        let file = graph.nodes[at].1.clone();
        graph.nodes.push(("src/new.rs".into(), file));
        graph.seq += 1;
    }
    let next = client.ask("get_layout", since).await["result"].clone();
    assert_eq!((&next["whole"], &next["files"][1]), (&json!(false), &json!(null)), "{next}");
    assert_eq!(next["files"][0]["path"], "src/new.rs");
    // A number of which nothing is known, as of another run.
    let other = client.ask("get_layout", json!({ "since": 1_000 })).await["result"].clone();
    assert_eq!((&other["whole"], other["files"].as_array().unwrap().len()), (&json!(true), 2));
}
