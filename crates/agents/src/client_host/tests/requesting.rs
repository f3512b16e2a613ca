#![allow(clippy::unwrap_used)]

use expect_test::{Expect, expect};

use super::*;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn about(path: &Path) -> Value {
    json!({ "sessionId": "s", "path": path })
}

#[tokio::test]
async fn files_are_read_and_written_by_permit() {
    let folder = folder();
    let file = folder.path().join("sub/a.txt");
    let mut agent = start(settings()).agent;

    agent.permit(0, &file, Action::Write);
    let params = json!({ "sessionId": "s", "path": "/elsewhere", "content": "one\ntwö\nthree" });
    assert_eq!(agent.ask(0, "fs/write_text_file", params).await, json!({}));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\ntwö\nthree");

    // What is opened is what the permit says, whatever the path is.
    agent.permit(1, &file, Action::Read);
    let read = agent.ask(1, "fs/read_text_file", about(Path::new("/etc/passwd"))).await;
    assert_eq!(read, json!({ "content": "one\ntwö\nthree" }));
    agent.permit(2, &file, Action::Read);
    let params = json!({ "sessionId": "s", "path": file, "line": 2, "limit": 1 });
    let read = agent.ask(2, "fs/read_text_file", params).await;
    assert_eq!(read, json!({ "content": "twö\n" }));
}

#[tokio::test]
async fn without_the_right_permit_nothing_is_opened() {
    let folder = folder();
    let file = folder.path().join("a");
    std::fs::write(&file, "secret").unwrap();
    let mut agent = start(settings()).agent;
    let mut id = 0;
    for permits in [None, Some(Action::Write)] {
        if let Some(action) = permits {
            agent.permit(id, &file, action);
        }
        let read = agent.ask(id, "fs/read_text_file", about(&file)).await;
        assert_eq!(read["code"], -32603, "{read}");
        id += 1;
    }
    agent.permit(id, &file, Action::Read);
    let params = json!({ "sessionId": "s", "path": file, "content": "" });
    assert_eq!(agent.ask(id, "fs/write_text_file", params).await["code"], -32603);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "secret");
    let created =
        agent.ask(9, "terminal/create", json!({ "sessionId": "s", "command": "x" })).await;
    assert_eq!(created["code"], -32603);

    // A permit is good for the request it was left for, and not for a later one of the same id.
    agent.permit(7, &file, Action::Read);
    agent.ask(7, "session/nonsense", json!({})).await;
    assert_eq!(agent.ask(7, "fs/read_text_file", about(&file)).await["code"], -32603);
}

#[tokio::test]
async fn what_cannot_be_done_is_said() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("latin1"), b"caf\xe9").unwrap();
    let mut agent = start(HostSettings { terminals: false, ..settings() }).agent;
    let mut check = async |method: &str, params: Value, expected: Expect| {
        agent.permit(5, Path::new(params["path"].as_str().unwrap_or("/")), Action::Read);
        let error = agent.ask(5, method, params).await.to_string();
        expected.assert_eq(&error.replace(folder.path().to_str().unwrap(), "DIR"));
    };
    check("fs/read_text_file", about(&path("missing")), expect![[r#"{"code":-32002,"message":"Resource not found: DIR/missing","data":{"uri":"DIR/missing"}}"#]]).await;
    check(
        "fs/read_text_file",
        about(folder.path()),
        expect![[r#"{"code":-32603,"message":"Cannot read DIR: is a folder"}"#]],
    )
    .await;
    check(
        "fs/read_text_file",
        about(&path("latin1")),
        expect![[r#"{"code":-32603,"message":"Cannot read DIR/latin1: it is not UTF-8 text"}"#]],
    )
    .await;
    check(
        "fs/read_text_file",
        about(&path("latin1/x")),
        expect![[r#"{"code":-32603,"message":"Cannot read DIR/latin1/x: not a directory"}"#]],
    )
    .await;
    check("fs/read_text_file", json!({ "path": 5 }), expect![[r#"{"code":-32602,"message":"Invalid params: invalid type: integer `5`, expected path string at line 1 column 9"}"#]]).await;
    check("fs/read_text_file", json!(null), expect![[r#"{"code":-32602,"message":"Invalid params: invalid type: null, expected struct ReadTextFileRequest at line 1 column 4"}"#]]).await;
    check("session/request_permission", json!({}), expect![[r#"{"code":-32602,"message":"Invalid params: missing field `sessionId` at line 1 column 2"}"#]]).await;
    check(
        "elicitation/create",
        json!({}),
        expect![[
            r#"{"code":-32602,"message":"Invalid params: missing field `mode` at line 1 column 2"}"#
        ]],
    )
    .await;
    check(
        "elicitation/create",
        json!({ "sessionId": "s", "message": "?", "mode": "form", "requestedSchema": 7 }),
        expect![[r#"{"code":-32602,"message":"Invalid params: invalid type: integer `7`, expected struct ElicitationSchema at line 1 column 1"}"#]],
    )
    .await;
    // Not offered, so it is not there.
    check(
        "terminal/create",
        json!({ "command": "ls" }),
        expect![[r#"{"code":-32601,"message":"Method not found: terminal/create"}"#]],
    )
    .await;
}

#[tokio::test]
async fn ids_come_back_as_they_came() {
    let mut agent = start(settings()).agent;
    for id in [r#""\u00e9""#, "12345678901234567890123", "1.50", "-0", "null", r#"{"a": 1}"#] {
        agent.send_raw(&format!(r#"{{"jsonrpc":"2.0","id": {id} ,"method":"x"}}"#)).await;
        let mut line = String::new();
        agent.reader.read_line(&mut line).await.unwrap();
        assert!(line.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#)), "{line}");
    }
}

#[tokio::test]
async fn nonsense_is_ignored() {
    let mut agent = start(settings()).agent;
    for line in [
        "",
        "  ",
        "npm WARN deprecated",
        "{",
        "[]",
        r#"[{"jsonrpc":"2.0","id":1,"method":"x"}]"#,
        "{}",
        "7",
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"unknown/notification"}"#,
        r#"{"jsonrpc":"2.0","method":"fs/read_text_file","params":{"path":"/etc/passwd"}}"#,
        r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"nowhere"}}"#,
    ] {
        agent.send_raw(line).await;
    }
    agent.writer.write_all(b"\xff\xfe\n").await.unwrap();
    assert_eq!(agent.ask(0, "x", json!({})).await["message"], "Method not found: x");
}

#[tokio::test]
async fn an_agent_may_ask_while_it_is_asked() {
    let folder = folder();
    let file = folder.path().join("a");
    std::fs::write(&file, "x".repeat(100_000)).unwrap();
    let mut scene = open(settings()).await;
    let prompt = scene.prompt(&"long ".repeat(50_000), Urgency::Normal);
    // Nobody reads the prompt, which is longer than the pipe, and the host still reads, though
    // its answers have to wait: more lines than the pipe holds.
    for id in 0..100 {
        scene.agent.permit(id, &file, Action::Read);
        scene.agent.request(id, "fs/read_text_file", about(&file)).await;
    }
    let (request, _) = scene.agent.prompted().await;
    let mut ids: Vec<_> = Vec::new();
    for _ in 0..100 {
        let answer = scene.agent.recv().await;
        assert_eq!(answer["result"]["content"].as_str().unwrap().len(), 100_000);
        ids.push(answer["id"].as_u64().unwrap());
    }
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..100));
    scene.agent.end_turn(&request).await;
    prompt.await.unwrap().unwrap();
}
