#![allow(clippy::unwrap_used)]

use super::*;
use eisen_base::task;

fn about(path: &Path) -> Value {
    json!({ "sessionId": "e", "path": path })
}

#[tokio::test]
async fn an_editor_serves_what_it_offers_and_the_host_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    std::fs::write(&file, "on disk").unwrap();
    let mut scene = team().await;
    let mut editor = Editor::initialized(&scene, json!({ "fs": { "readTextFile": true } })).await;
    editor.open(&mut scene.agent, "e").await;

    // With the id that the editor itself has under way.
    let prompt = editor.prompt(&mut scene.agent, "e").await;
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":"\u0061","method":"fs/read_text_file","params":{}}}"#,
        about(&file)
    );
    scene.agent.permits.leave(r#""\u0061""#, vec![permit(&file, Action::Read)]);
    scene.agent.send_raw(&line).await;
    let asked = editor.expect("fs/read_text_file").await;
    assert_eq!(asked["params"], about(&file));
    let answer =
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":"ed\u0069ted"}}}}"#, asked["id"]);
    editor.send_raw(&answer).await;
    let expected =
        "{\"jsonrpc\":\"2.0\",\"id\":\"\\u0061\",\"result\":{\"content\":\"ed\\u0069ted\"}}\n";
    assert_eq!(scene.agent.raw().await, expected);
    // The permit went with the request.
    assert!(scene.agent.permits.take(r#""\u0061""#).is_none());

    scene.agent.permit(7, &file, Action::Write);
    let params = json!({ "sessionId": "e", "path": file, "content": "by the host" });
    assert_eq!(scene.agent.ask(7, "fs/write_text_file", params).await, json!({}));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "by the host");
    // The team's own session is the host's to serve.
    scene.agent.permit(8, &file, Action::Read);
    let params = json!({ "sessionId": "s", "path": file });
    let read = scene.agent.ask(8, "fs/read_text_file", params).await;
    assert_eq!(read, json!({ "content": "by the host" }));

    scene.agent.end_turn(&prompt).await;
    editor.answered("turn").await;
}

#[tokio::test]
async fn an_editor_that_offers_nothing_is_asked_only_for_what_is_its_alone() {
    let mut scene = team().await;
    let mut editor = Editor::attach(&scene).await;
    editor.open(&mut scene.agent, "e").await;
    // Without a permit the host refuses these, which shows that the host got them.
    for (id, method) in
        [(1, "fs/read_text_file"), (2, "fs/write_text_file"), (3, "terminal/create")]
    {
        let params = json!({ "sessionId": "e", "path": "/a", "content": "", "command": "x" });
        assert_eq!(scene.agent.ask(id, method, params).await["code"], -32603, "{method}");
    }
    for method in ["session/request_permission", "elicitation/create", "_vendor/ask"] {
        scene.agent.request(5, method, json!({ "sessionId": "e", "x": 1 })).await;
        let asked = editor.expect(method).await;
        editor.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": null })).await;
        assert_eq!(scene.agent.answered(5).await, json!(null));
    }
    for method in ["session/update", "_vendor/notice"] {
        let params = json!({ "sessionId": "e", "x": [1.0] });
        scene.agent.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
        assert_eq!(editor.expect(method).await["params"], params);
    }
    // One that names neither a session nor a request of the editor's is the host's.
    let schema = json!({ "properties": {} });
    let question =
        json!({ "requestId": "mine", "message": "?", "mode": "form", "requestedSchema": schema });
    let answer = scene.agent.ask(8, "elicitation/create", question).await;
    assert_eq!(answer, json!({ "action": "accept", "content": {} }));
    // A request without a session is refused.
    assert_eq!(scene.agent.ask(6, "_vendor/ask", json!({})).await["code"], -32601);
}

#[tokio::test]
async fn the_gate_knows_which_sessions_are_an_editors() {
    let mut scene = team().await;
    let session = SessionId::new("e");
    let mut editor = Editor::attach(&scene).await;
    assert!(!scene.agent.permits.is_editors(&session));
    editor.open(&mut scene.agent, "e").await;
    assert!(scene.agent.permits.is_editors(&session));
    assert!(!scene.agent.permits.is_editors(&SessionId::new("s")));
    drop(editor);
    eventually("the session is no editor\'s", async || !scene.agent.permits.is_editors(&session))
        .await;
}

#[tokio::test]
async fn an_editor_that_does_not_read_is_cut_off_and_disturbs_nobody() {
    let mut scene = team().await;
    let mut deaf = Editor::attach(&scene).await;
    let mut other = Editor::attach(&scene).await;
    deaf.open(&mut scene.agent, "deaf").await;
    other.open(&mut scene.agent, "other").await;
    let prompt = deaf.prompt(&mut scene.agent, "deaf").await;
    scene.agent.request(1, "session/request_permission", json!({ "sessionId": "deaf" })).await;
    let text = "x".repeat(1 << 20);
    for _ in 0..70 {
        scene.agent.say("deaf", &text).await;
        scene.agent.say("other", "hello").await;
        other.expect("session/update").await;
    }
    let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
    assert_eq!(scene.agent.answered(1).await, cancelled);
    let cancel = scene.agent.expect("session/cancel").await;
    assert_eq!(cancel["params"]["sessionId"], "deaf");
    // Its session is the host's, once the turn has ended.
    scene.agent.end_turn(&prompt).await;
    let session = Some(SessionId::new("deaf"));
    let host = scene.host.clone();
    let prompting = task::spawn(async move {
        host.prompt(session, Content::Now(Vec::new()), Urgency::Normal).await
    });
    let prompt = scene.agent.expect("session/prompt").await;
    scene.agent.end_turn(&prompt).await;
    prompting.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_editor_whose_line_has_no_end_is_let_go() {
    let mut scene = team().await;
    let mut editor = Editor::attach(&scene).await;
    editor.open(&mut scene.agent, "e").await;
    let endless = vec![b'x'; 1 << 20];
    for _ in 0..64 {
        editor.writer.write_all(&endless).await.unwrap();
    }
    editor.writer.write_all(b"x").await.unwrap();
    let error = editor.recv().await["error"].take();
    let expected = "Invalid request: a line of more than 67108864 bytes";
    assert_eq!((&error["code"], &error["message"]), (&json!(-32600), &json!(expected)));
    editor.ended().await;
    scene.host.cancel(Some(SessionId::new("e"))).await.unwrap();
}

#[tokio::test]
async fn an_agent_that_does_not_read_slows_its_editor_and_not_the_host() {
    let mut scene = team().await;
    let mut editor = Editor::attach(&scene).await;
    let line = format!("{}\n", json!({ "method": "_fill", "params": ["x".repeat(1 << 20)] }));
    // More than what may wait: the editor waits, as for any pipe.
    let filling = task::spawn(async move {
        for _ in 0..30 {
            editor.writer.write_all(line.as_bytes()).await.unwrap();
        }
        editor
    });
    scene.settle().await;
    for _ in 0..30 {
        scene.agent.expect("_fill").await;
    }
    filling.await.unwrap();
}

#[tokio::test]
async fn what_is_about_a_request_goes_to_whose_request_it_is() {
    let mut scene = team().await;
    let mut one = Editor::attach(&scene).await;
    let mut two = Editor::attach(&scene).await;
    one.request("mine", "authenticate", json!({})).await;
    let request = scene.agent.expect("authenticate").await;
    let about = json!({ "mode": "url", "requestId": request["id"], "elicitationId": "e" });
    scene.agent.request(9, "elicitation/create", about).await;
    let asked = one.expect("elicitation/create").await;
    let about = json!({ "mode": "url", "requestId": "mine", "elicitationId": "e" });
    assert_eq!(asked["params"], about);
    let accepted = json!({ "action": "accept" });
    one.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": accepted })).await;
    assert_eq!(scene.agent.answered(9).await, accepted);
    // Nobody's, and a text that only looks like its id.
    for id in [json!(4000), json!(request["id"].to_string())] {
        let url = "https://example.org";
        let about = json!({ "mode": "url", "requestId": id, "elicitationId": "e", "message": "?", "url": url });
        scene.agent.request(10, "elicitation/create", about).await;
        assert_eq!(scene.agent.answered(10).await, json!({ "action": "decline" }));
    }
    // Who was not asked ignores that it is over.
    let over = json!({ "elicitationId": "e" });
    scene.agent.send(json!({ "method": "elicitation/complete", "params": over })).await;
    for editor in [&mut one, &mut two] {
        assert_eq!(editor.expect("elicitation/complete").await["params"], over);
    }
}

#[tokio::test]
async fn an_answer_under_another_id_answers_nothing() {
    let mut scene = team().await;
    let mut editor = Editor::initialized(&scene, all()).await;
    editor.open(&mut scene.agent, "e").await;
    scene.agent.request(9, "fs/read_text_file", json!({ "sessionId": "e", "path": "/a" })).await;
    let asked = editor.expect("fs/read_text_file").await;
    for (id, content) in [(json!(asked["id"].to_string()), "no"), (asked["id"].clone(), "yes")] {
        let result = json!({ "content": content });
        editor.send(json!({ "jsonrpc": "2.0", "id": id, "result": result })).await;
    }
    assert_eq!(scene.agent.answered(9).await["content"], "yes");
}
