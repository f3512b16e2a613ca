#![allow(clippy::unwrap_used)]

use super::*;
use eisen_base::task;

#[tokio::test]
async fn the_sessions_of_an_editor_that_left_are_the_hosts() {
    let mut scene = team().await;
    let mut editor = Editor::initialized(&scene, all()).await;
    editor.open(&mut scene.agent, "e").await;
    let running = editor.prompt(&mut scene.agent, "e").await;
    scene.agent.request(1, "session/request_permission", json!({ "sessionId": "e" })).await;
    scene.agent.request(2, "fs/read_text_file", json!({ "sessionId": "e", "path": "/a" })).await;
    editor.expect("session/request_permission").await;
    editor.expect("fs/read_text_file").await;
    drop(editor);
    let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
    assert_eq!(scene.agent.answered(1).await, cancelled);
    let error = scene.agent.answered(2).await;
    assert_eq!(error["message"], "The editor that was asked has left");
    assert_eq!(scene.agent.expect("session/cancel").await["params"]["sessionId"], "e");
    // What the cancelled turn still asks, the host answers.
    let options = json!([{ "optionId": "yes", "kind": "allow_once" }]);
    let permission = json!({ "sessionId": "e", "options": options });
    let asked = scene.agent.ask(3, "session/request_permission", permission.clone()).await;
    assert_eq!(asked, cancelled);

    // Its next prompt waits for the end of the cancelled turn, and no editor gets it meanwhile.
    let host = scene.host.clone();
    let prompting = task::spawn(async move {
        let session = Some(SessionId::new("e"));
        host.prompt(session, Content::Now(vec![json!({})]), Urgency::Normal).await
    });
    let mut next = Editor::attach(&scene).await;
    let load = json!({ "sessionId": "e" });
    assert_eq!(next.ask("x", "session/load", load.clone()).await["error"]["code"], -32602);
    scene.agent.answer(&running, json!({ "stopReason": "cancelled" })).await;
    let prompt = scene.agent.expect("session/prompt").await;
    let allowed = json!({ "outcome": { "outcome": "selected", "optionId": "yes" } });
    assert_eq!(scene.agent.ask(4, "session/request_permission", permission).await, allowed);
    scene.agent.end_turn(&prompt).await;
    assert_eq!(prompting.await.unwrap().unwrap().stop_reason, "end_turn");

    // The next editor takes it up.
    next.request("load", "session/load", load).await;
    let request = scene.agent.expect("session/load").await;
    scene.agent.answer(&request, json!({})).await;
    next.answered("load").await;
    scene.agent.say("e", "hello").await;
    next.expect("session/update").await;
}

#[tokio::test]
async fn what_was_asked_before_the_end_is_answered() {
    let mut scene = team().await;
    let mut editor = Editor::attach(&scene).await;
    editor.open(&mut scene.agent, "e").await;
    let prompt = editor.prompt(&mut scene.agent, "e").await;
    editor.request("new", "session/new", json!({})).await;
    let opening = scene.agent.expect("session/new").await;
    editor.writer.shutdown().await.unwrap();
    scene.agent.expect("session/cancel").await;
    scene.agent.answer(&prompt, json!({ "stopReason": "cancelled" })).await;
    editor.answered("turn").await;
    scene.agent.answer(&opening, json!({ "sessionId": "late" })).await;
    editor.answered("new").await;
    editor.ended().await;
    // The host has that one too.
    scene.host.cancel(Some(SessionId::new("late"))).await.unwrap();
}

#[tokio::test]
async fn an_editor_that_vanishes_while_a_session_is_loaded_leaves_none_behind() {
    let mut scene = team().await;
    let mut editor = Editor::attach(&scene).await;
    editor.request("load", "session/load", json!({ "sessionId": "old" })).await;
    let load = scene.agent.expect("session/load").await;
    drop(editor);
    eventually("the session is no editor\'s", async || {
        !scene.agent.permits.is_editors(&SessionId::new("old"))
    })
    .await;
    let error = json!({ "code": 1, "message": "no" });
    scene.agent.send(json!({ "jsonrpc": "2.0", "id": load["id"], "error": error })).await;
    scene.agent.ask(1, "x", json!({})).await;
    let error = scene.host.cancel(Some(SessionId::new("old"))).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no session `old`");
}

#[tokio::test]
async fn the_agents_end_is_reported_to_every_editor() {
    let mut scene = team().await;
    let mut one = Editor::attach(&scene).await;
    let mut two = Editor::attach(&scene).await;
    one.open(&mut scene.agent, "one").await;
    one.prompt(&mut scene.agent, "one").await;
    one.request("b", "session/list", json!({})).await;
    scene.agent.expect("session/list").await;
    two.open(&mut scene.agent, "two").await;
    scene.agent.say("one", "last words").await;
    scene.host.died("exit status 1: no such model");
    drop(scene.agent);
    one.expect("session/update").await;
    for id in ["turn", "b"] {
        let error = one.answered(id).await["error"].take();
        assert_eq!(error["message"], "the agent ended: exit status 1: no such model");
        assert_eq!(error["code"], -32603);
    }
    one.ended().await;
    two.ended().await;
    scene.task.await.unwrap();
    assert!(scene.host.attach().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_does_not_read_does_not_hold_up_the_end() {
    let mut scene = team().await;
    let mut editor = Editor::attach(&scene).await;
    editor.open(&mut scene.agent, "e").await;
    for _ in 0..2 {
        scene.agent.say("e", &"x".repeat(1 << 20)).await;
    }
    scene.settle().await;
    drop(scene.agent);
    scene.task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn requests_to_an_agent_that_closed_its_input_fail_at_once() {
    let (near, _output) = tokio::io::duplex(4096);
    let (closed, other_end) = tokio::io::duplex(64);
    drop(other_end);
    let cancel = CancellationToken::new();
    let (host, run) = HostHandle::spawn_with(
        settings(),
        Arc::new(shells::Shells),
        Arc::default(),
        near,
        closed,
        cancel.clone(),
    );
    let task = task::spawn(run);
    let agent = Agent {
        reader: BufReader::new(split(tokio::io::duplex(1).0).0),
        writer: split(tokio::io::duplex(1).0).1,
        permits: Arc::default(),
    };
    let scene = Scene { host, agent, cancel, task, unsent: Arc::default() };
    let mut editor = Editor::attach(&scene).await;
    eventually("the host ends for the closed input", async || {
        // The first finds the input closed, and is answered at the end.
        editor.request("a", "x", json!({})).await;
        let error = editor.answered("a").await["error"].take();
        error["message"] == "the agent ended: it closed its input"
    })
    .await;
    scene.cancel.cancel();
}

#[tokio::test]
async fn an_editor_that_cancels_owes_the_agent_no_answer() {
    let mut scene = team().await;
    let mut editor = Editor::attach(&scene).await;
    editor.open(&mut scene.agent, "e").await;
    let prompt = editor.prompt(&mut scene.agent, "e").await;
    scene.agent.request(1, "session/request_permission", json!({ "sessionId": "e" })).await;
    let asked = editor.expect("session/request_permission").await;
    editor.send(json!({ "method": "session/cancel", "params": { "sessionId": "e" } })).await;
    scene.agent.expect("session/cancel").await;
    let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
    assert_eq!(scene.agent.answered(1).await, cancelled);
    let withdrawn = editor.expect("$/cancel_request").await;
    assert_eq!(withdrawn["params"], json!({ "requestId": asked["id"] }));
    // One that answers as well is not passed on a second time.
    editor.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": cancelled })).await;
    editor.request("list", "session/list", json!({})).await;
    scene.agent.expect("session/list").await;
    scene.agent.answer(&prompt, json!({ "stopReason": "cancelled" })).await;
    editor.answered("turn").await;
}
