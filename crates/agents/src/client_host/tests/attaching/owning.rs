#![allow(clippy::unwrap_used)]

use super::*;

fn in_session(session: &str) -> Value {
    json!({ "sessionId": session, "prompt": [] })
}

#[tokio::test]
async fn nobody_uses_a_session_of_another() {
    let mut scene = team().await;
    let mut one = Editor::attach(&scene).await;
    let mut two = Editor::attach(&scene).await;
    one.open(&mut scene.agent, "one").await;
    two.open(&mut scene.agent, "two").await;
    for (session, owner) in [("s", "the team"), ("two", "another editor")] {
        for method in [
            "session/prompt",
            "session/load",
            "session/resume",
            "session/set_mode",
            "session/delete",
        ] {
            let answer = one.ask("x", method, in_session(session)).await;
            let expected =
                format!("Session `{session}` is in use by {owner}: open one of your own");
            let error = &answer["error"];
            assert_eq!((&error["code"], &error["message"]), (&json!(-32602), &json!(expected)));
        }
        one.send(json!({ "method": "session/cancel", "params": in_session(session) })).await;
    }
    let error = scene
        .host
        .prompt(Some(SessionId::new("one")), Content::Now(Vec::new()), Urgency::Normal)
        .await
        .unwrap_err();
    let expected = "the session `one` belongs to an editor that is attached to the agent";
    assert_eq!(error.to_string(), expected);
    // None of it reached the agent.
    one.prompt(&mut scene.agent, "one").await;
    // A request on an unknown session is forwarded.
    two.request("y", "session/prompt", in_session("unknown")).await;
    scene.agent.expect("session/prompt").await;
}

#[tokio::test]
async fn a_session_that_the_agent_gives_out_twice_stays_whose_it_is() {
    let mut scene = team().await;
    let mut editor = Editor::attach(&scene).await;
    editor.request("open", "session/new", json!({})).await;
    let request = scene.agent.expect("session/new").await;
    scene.agent.answer(&request, json!({ "sessionId": "s" })).await;
    let answer = editor.answered("open").await;
    let expected = "The agent opened session `s`, which is another's";
    assert_eq!(answer["error"]["message"], expected);
    let prompt = scene.prompt("hello", Urgency::Normal);
    let (request, _) = scene.agent.prompted().await;
    scene.agent.say("s", "hi").await;
    scene.agent.end_turn(&request).await;
    assert_eq!(prompt.await.unwrap().unwrap().text, "hi");
}

#[tokio::test]
async fn a_loaded_session_is_replayed_to_whoever_loads_it() {
    let mut scene = team().await;
    let mut editor = Editor::attach(&scene).await;
    let mut other = Editor::attach(&scene).await;
    editor.request("load", "session/load", in_session("old")).await;
    let request = scene.agent.expect("session/load").await;
    scene.agent.say("old", "once").await;
    editor.expect("session/update").await;
    assert_eq!(other.ask("x", "session/load", in_session("old")).await["error"]["code"], -32602);
    let error = json!({ "code": -32002, "message": "gone" });
    scene.agent.send(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
    assert_eq!(editor.answered("load").await["error"], error);
    // It was not loaded, so no editor owns it.
    other.request("load", "session/resume", in_session("old")).await;
    let request = scene.agent.expect("session/resume").await;
    scene.agent.answer(&request, json!({})).await;
    other.answered("load").await;
    scene.agent.say("old", "again").await;
    other.expect("session/update").await;
}

#[tokio::test]
async fn a_session_that_was_loaded_at_the_second_try_is_the_editors() {
    let mut scene = team().await;
    let mut editor = Editor::attach(&scene).await;
    for id in ["first", "second"] {
        editor.request(id, "session/load", in_session("old")).await;
    }
    let first = scene.agent.expect("session/load").await;
    let second = scene.agent.expect("session/load").await;
    let error = json!({ "code": -32603, "message": "busy" });
    scene.agent.send(json!({ "jsonrpc": "2.0", "id": first["id"], "error": error })).await;
    scene.agent.answer(&second, json!({})).await;
    editor.answered("first").await;
    editor.answered("second").await;
    scene.agent.say("old", "hello").await;
    editor.expect("session/update").await;
}

#[tokio::test]
async fn an_editors_session_is_reported_as_open() {
    let mut scene = team().await;
    let mut editor = Editor::attach(&scene).await;
    editor.open(&mut scene.agent, "e").await;
    editor.prompt(&mut scene.agent, "e").await;
    let load = |session: &str, is_default, is_running| SessionLoad {
        session: SessionId::new(session),
        is_default,
        is_running,
        queued: 0,
        chosen: Chosen::default(),
    };
    let expected = [load("s", true, false), load("e", false, true)];
    assert_eq!(scene.host.session_loads().await.unwrap(), expected);
}

#[tokio::test]
async fn a_fork_is_a_session_of_ones_own_and_a_closed_one_is_nobodys() {
    let mut scene = team().await;
    let mut editor = Editor::attach(&scene).await;
    let mut other = Editor::attach(&scene).await;
    editor.open(&mut scene.agent, "e").await;
    editor.request("fork", "session/fork", in_session("e")).await;
    let request = scene.agent.expect("session/fork").await;
    scene.agent.answer(&request, json!({ "sessionId": "f" })).await;
    editor.answered("fork").await;
    assert_eq!(other.ask("x", "session/close", in_session("f")).await["error"]["code"], -32602);
    editor.request("close", "session/close", in_session("f")).await;
    let request = scene.agent.expect("session/close").await;
    scene.agent.answer(&request, json!({})).await;
    editor.answered("close").await;
    other.request("load", "session/load", in_session("f")).await;
    scene.agent.expect("session/load").await;
}

#[tokio::test]
async fn the_team_can_cancel_an_editors_turn() {
    let mut scene = team().await;
    let mut editor = Editor::attach(&scene).await;
    editor.open(&mut scene.agent, "e").await;
    // Nothing runs, so there is nothing to cancel.
    scene.host.cancel(Some(SessionId::new("e"))).await.unwrap();
    for session in [Some(SessionId::new("e")), None] {
        let prompt = editor.prompt(&mut scene.agent, "e").await;
        scene.agent.request(1, "session/request_permission", json!({ "sessionId": "e" })).await;
        let asked = editor.expect("session/request_permission").await;
        scene.host.cancel(session).await.unwrap();
        assert_eq!(scene.agent.expect("session/cancel").await["params"]["sessionId"], "e");
        let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
        assert_eq!(scene.agent.answered(1).await, cancelled);
        let cancel = editor.expect("$/cancel_request").await;
        assert_eq!(cancel["params"]["requestId"], asked["id"]);
        scene.agent.answer(&prompt, json!({ "stopReason": "cancelled" })).await;
        editor.answered("turn").await;
    }
}
