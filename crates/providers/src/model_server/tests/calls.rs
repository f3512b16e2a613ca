//! Answers: texts, calls of tools, usage, and the count of it.

use std::io::Write as _;

use super::*;

const USAGE: &str =
    "{ input = 100, cache_read = 2000, cache_write = 300, output = 40, reasoning = 5 }";

#[tokio::test]
async fn without_a_script_each_api_says_done_with_fixed_usage() {
    let server = Running::start(ModelServerSettings::default()).await;
    for api in ModelApi::ALL {
        for stream in [true, false] {
            let got = send(&server, api, "hello", stream).await;
            assert_eq!(got.status, 200);
            assert!(got.is_whole && got.body.contains("done"), "{api:?}: {}", got.body);
        }
    }
    let count = server.stop().await;
    assert_eq!(count.calls, 8);
    assert_eq!(count.usage, ModelTokens { input: 8000, output: 80, ..ModelTokens::default() });
}

#[tokio::test]
async fn usage_is_exact_in_each_form_and_counted_call_by_call() {
    let script =
        format!("[[on]]\nprompt = \"count\"\nusage = {USAGE}\nsteps = [{{ say = \"x\" }}]\n");
    let server = Running::play(&script).await;
    let tokens = ModelTokens {
        input: 100,
        cache_read: 2000,
        cache_write: 300,
        cache_write_1h: 0,
        output: 40,
        reasoning: 5,
    };
    let mut n = 0;
    for api in ModelApi::ALL {
        let expected = match api {
            ModelApi::Anthropic => tokens.anthropic(),
            ModelApi::OpenAiChat => tokens.chat(),
            ModelApi::OpenAiResponses => tokens.responses(),
            ModelApi::Gemini => tokens.gemini(),
        };
        for stream in [true, false] {
            n += 1;
            let got = send(&server, api, "count this", stream).await;
            assert_eq!(usage_of(api, &got), expected, "{api:?} {stream}");
            let call = server.count().await["list"][n - 1].clone();
            assert_eq!(
                call,
                json!({
                    "n": n, "api": api, "model": "some-model", "stream": stream, "rule": 1,
                    "status": 200, "end": "whole", "usage": tokens,
                })
            );
        }
    }
    let count = server.stop().await;
    assert_eq!(count.models.len(), 4);
    for sum in count.models {
        assert_eq!((sum.calls, sum.usage), (2, tokens.plus(tokens)));
    }
}

#[tokio::test]
async fn calls_take_the_names_that_the_agent_offers_and_end_after_their_result() {
    let server = Running::play(
        r#"
        [[on]]
        regex = 'read (?<path>\S+)'
        answers = [
          [{ say = "I read." }, { call = ["view", "read*"], args = { "path|file_path" = "{path}" } }],
          [{ say = "It says: {result}" }],
        ]
        "#,
    )
    .await;
    let schema = json!({ "type": "object", "properties": { "file_path": { "type": "string" } } });
    let tools =
        json!([{ "name": "Bash", "input_schema": {} }, { "name": "Read", "input_schema": schema }]);
    let mut messages = json!([{ "role": "user", "content": "please read a.txt" }]);
    let body = json!({ "model": "m", "messages": messages, "tools": tools });
    let first = server.post("/v1/messages", &body).await.json();
    assert_eq!(first["stop_reason"], "tool_use");
    let call = first["content"][1].clone();
    assert_eq!(
        call,
        json!({ "type": "tool_use", "id": "call_000001_0", "name": "Read", "input": { "file_path": "a.txt" } })
    );
    let result = json!({ "type": "tool_result", "tool_use_id": call["id"], "content": "hi there" });
    let more = [
        json!({ "role": "assistant", "content": first["content"] }),
        json!({ "role": "user", "content": [result] }),
    ];
    messages.as_array_mut().unwrap().extend(more);
    let body = json!({ "model": "m", "messages": messages, "tools": tools });
    let second = server.post("/v1/messages", &body).await.json();
    assert_eq!(second["content"], json!([{ "type": "text", "text": "It says: hi there" }]));
    assert_eq!(second["stop_reason"], "end_turn");

    // A helper of the agent, which offers no tools, gets a title.
    let title =
        json!({ "model": "m", "messages": [{ "role": "user", "content": "please read a.txt" }] });
    let title = server.post("/v1/messages", &title).await.json();
    assert_eq!(title["content"][0]["text"], "done");
}

#[tokio::test]
async fn a_call_of_a_tool_that_is_not_offered_is_an_error_that_says_so() {
    let server = Running::play("[[on]]\nsteps = [{ call = [\"edit\", \"patch\"] }]\n").await;
    let body =
        json!({ "messages": [], "tools": [{ "type": "function", "function": { "name": "ls" } }] });
    let got = server.post("/v1/chat/completions", &body).await;
    assert_eq!(got.status, 400);
    assert_eq!(
        got.json()["error"]["message"],
        "model server: the script calls one of `edit`, `patch`, and the request offers `ls`"
    );
}

#[tokio::test]
async fn rules_are_told_apart_by_api_model_and_number() {
    let server = Running::play(
        r#"
        [[on]]
        call = 2
        steps = [{ say = "second" }]

        [[on]]
        api = "gemini"
        steps = [{ say = "to gemini" }]

        [[on]]
        model = "SOME-*"
        times = 1
        steps = [{ say = "once {n} {model}" }]

        [[on]]
        tools = true
        steps = [{ say = "never" }]
        "#,
    )
    .await;
    let said = async |api| send(&server, api, "x", false).await.body;
    assert!(said(ModelApi::Gemini).await.contains("to gemini"));
    assert!(said(ModelApi::Gemini).await.contains("second"));
    assert!(said(ModelApi::OpenAiChat).await.contains("once 3 some-model"));
    assert!(said(ModelApi::OpenAiChat).await.contains("\"done\""));
}

#[tokio::test]
async fn a_request_for_json_gets_json_and_a_forced_call_is_made() {
    let server = Running::play("[[on]]\nsteps = [{ say = \"plain\" }]\n").await;
    let schema = json!({
        "type": "object", "required": ["title"], "properties": { "title": { "type": "string" } },
    });
    let format = json!({ "type": "json_schema", "json_schema": { "name": "x", "schema": schema } });
    let messages = json!([{ "role": "user", "content": "a title" }]);
    let body = json!({ "messages": messages, "response_format": format });
    let got = server.post("/v1/chat/completions", &body).await.json();
    assert_eq!(got["choices"][0]["message"]["content"], "{\"title\":\"done\"}");
    server.stop().await;

    let server = Running::start(ModelServerSettings::default()).await;
    let choice = json!({ "type": "tool", "name": "answer" });
    let tools = json!([{ "name": "answer", "input_schema": schema }]);
    let body = json!({ "messages": messages, "tools": tools, "tool_choice": choice });
    let got = server.post("/v1/messages", &body).await.json();
    assert_eq!(got["content"][0]["input"], json!({ "title": "done" }));
}

#[tokio::test]
async fn the_same_requests_get_the_same_bytes() {
    let script = r#"
        [[on]]
        prompt = "tour"
        steps = [{ think = "hm" }, { say = ["a", "b"], delay_ms = 1 }, { ping = true }]
        [[on]]
        prompt = "fail"
        steps = [{ error = "rate_limit", retry_after_s = 3 }]
    "#;
    let mut runs = Vec::new();
    for _ in 0..2 {
        let server = Running::play(script).await;
        let mut raw = Vec::new();
        for api in ModelApi::ALL {
            for (text, stream) in [("tour", true), ("tour", false), ("fail", true), ("x", true)] {
                raw.push(String::from_utf8(send(&server, api, text, stream).await.raw).unwrap());
            }
        }
        raw.push(server.count().await.to_string());
        runs.push(raw);
    }
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test]
async fn a_packed_request_is_unpacked() {
    let server = Running::play("[[on]]\nprompt = \"hello\"\nsteps = [{ say = \"hi\" }]\n").await;
    let (path, body) = ask(ModelApi::OpenAiChat, "hello", false);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(body.to_string().as_bytes()).unwrap();
    let gzip = packer.finish().unwrap();
    let zstd = zstd::encode_all(body.to_string().as_bytes(), 1).unwrap();
    for (encoding, packed) in [("gzip", gzip), ("zstd", zstd)] {
        let headers = format!("content-encoding: {encoding}\r\n");
        let got = server.send("POST", &path, &headers, &packed).await;
        assert!(got.body.contains("\"hi\""), "{encoding}: {}", got.body);
    }
    let got = server.send("POST", &path, "content-encoding: br\r\n", b"x").await;
    assert_eq!(got.status, 400);
}

#[tokio::test]
async fn other_requests_of_agents_are_answered() {
    let server = Running::play("[server]\nmodels = [\"one\", \"two\"]\n").await;
    let list = server.get("/v1/models").await.json();
    assert_eq!(list["data"][1]["id"], "two");
    let list = server.get("/v1beta/models").await.json();
    assert_eq!(list["models"][0]["name"], "models/one");
    assert_eq!(server.get("/v1/models/one").await.json()["id"], "one");
    let empty = json!({});
    let tokens = server.post("/v1/messages/count_tokens?beta=true", &empty).await.json();
    assert_eq!(tokens["input_tokens"], 1000);
    let tokens = server.post("/v1beta/models/one:countTokens", &empty).await.json();
    assert_eq!(tokens["totalTokens"], 1000);
    let vector = server.post("/v1/embeddings", &json!({ "input": "x" })).await.json();
    assert_eq!(vector["data"][0]["embedding"], json!([0.0, 0.0, 1.0]));
    assert_eq!(server.send("HEAD", "/", "", b"").await.status, 200);
    let missing = server.post("/api/event_logging/batch", &empty).await;
    assert_eq!(missing.status, 404);
    assert_eq!(
        missing.json()["error"]["message"],
        "model server: there is no POST /api/event_logging/batch"
    );
    let count = server.count().await;
    assert_eq!(
        (count["calls"].clone(), count["others"]["GET /v1/models"].clone()),
        (json!(0), json!(1))
    );
}

#[tokio::test]
async fn the_log_has_each_request_and_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.jsonl");
    let settings = ModelServerSettings {
        log: Some(log.clone()),
        key: Some(ExpectedKey::new("sk-right")),
        ..ModelServerSettings::default()
    };
    let server = Running::start(settings).await;
    let (path, body) = ask(ModelApi::Anthropic, "hello", false);
    let body = body.to_string();
    for (headers, status) in [
        ("x-api-key: sk-right\r\nuser-agent: an-agent/1\r\n", 200),
        ("authorization: Bearer sk-wrong\r\n", 401),
        ("", 401),
    ] {
        let got = server.send("POST", &path, headers, body.as_bytes()).await;
        assert_eq!(got.status, status, "{headers}");
        if status == 401 {
            assert_eq!(got.json()["error"]["type"], "authentication_error");
        }
    }
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.contains("sk-"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    let first = &lines[0];
    assert_eq!(
        (&first["n"], &first["api"], &first["path"]),
        (&json!(1), &json!("anthropic"), &json!("/v1/messages"))
    );
    assert_eq!(
        (&first["model"], &first["user_agent"]),
        (&json!("some-model"), &json!("an-agent/1"))
    );
    assert_eq!(first["messages"], json!([{ "role": "user", "content": "hello" }]));
    assert_eq!(first["key"]["by"], "x-api-key");
    assert_eq!(first["key"]["fingerprint"].as_str().unwrap().len(), 8);
    assert_ne!(first["key"]["fingerprint"], lines[1]["key"]["fingerprint"]);
    assert_eq!((&lines[2]["key"], &lines[2]["error"]), (&Value::Null, &json!("no key")));
    assert_eq!(server.stop().await.calls, 1);
}
