//! Breaks: errors, cuts, half calls, waits and hangs.

use super::*;

#[tokio::test]
async fn a_limit_is_hit_once_in_the_words_of_each_vendor() {
    for api in ModelApi::ALL {
        let script = "[[on]]\ntimes = 1\nsteps = [{ error = \"rate_limit\", retry_after_s = 7 }]\n";
        let server = Running::play(script).await;
        let got = send(&server, api, "x", true).await;
        assert_eq!(got.status, 429);
        let error = got.json()["error"].clone();
        match api {
            ModelApi::Anthropic => assert_eq!(error["type"], "rate_limit_error"),
            ModelApi::Gemini => {
                assert_eq!(error["status"], "RESOURCE_EXHAUSTED");
                assert_eq!(error["details"][0]["retryDelay"], "7s");
            }
            _ => assert_eq!(error["code"], "rate_limit_exceeded"),
        }
        assert_eq!(got.head.contains("retry-after: 7"), api != ModelApi::Gemini);
        assert_eq!(send(&server, api, "x", true).await.status, 200);
        let list = server.stop().await.list;
        assert_eq!((list[0].status, list[0].end, list[0].usage), (429, PlayedEnd::Refused, None));
        assert_eq!((list[1].status, list[1].end), (200, PlayedEnd::Whole));
    }
}

#[tokio::test]
async fn each_error_has_the_status_of_its_vendor() {
    let kinds = [
        ("overloaded", [529, 503, 503, 503]),
        ("server", [500; 4]),
        ("credit", [400, 429, 429, 429]),
        ("auth", [401; 4]),
        ("forbidden", [403; 4]),
        ("not_found", [404; 4]),
        ("too_long", [400; 4]),
        ("invalid", [400; 4]),
    ];
    for (kind, statuses) in kinds {
        let script = format!("[[on]]\nsteps = [{{ error = \"{kind}\" }}]\n");
        let server = Running::play(&script).await;
        for (api, status) in ModelApi::ALL.into_iter().zip(statuses) {
            let got = send(&server, api, "x", false).await;
            assert_eq!(got.status, status, "{kind} {api:?}");
            assert!(got.json()["error"]["message"].as_str().is_some_and(|it| !it.is_empty()));
        }
    }
    let own = "[[on]]\nsteps = [{ error = \"server\", status = 502, message = \"on {model}\" }]\n";
    let got = send(&Running::play(own).await, ModelApi::Anthropic, "x", false).await;
    assert_eq!((got.status, got.json()["error"]["message"].clone()), (502, json!("on some-model")));
}

#[tokio::test]
async fn a_stream_is_cut_at_a_byte_and_reports_no_more_than_it_sent() {
    for api in ModelApi::ALL {
        let whole = send(&Running::play("").await, api, "x", true).await;
        for bytes in [0, 1, 20, whole.body.len() - 1] {
            let server = Running::play(&format!(
                "[[on]]\nsteps = [{{ cut_after = {bytes} }}, {{ say = \"done\" }}]\n"
            ))
            .await;
            let got = send(&server, api, "x", true).await;
            assert_eq!(got.body, whole.body[..bytes], "{api:?}");
            assert!(!got.is_whole);
            let call = server.stop().await.list[0].clone();
            assert_eq!(call.end, PlayedEnd::Cut);
            let answered = call.usage.map_or(0, ModelTokens::answer);
            // The last byte of these two is behind the event that reports: they are told all.
            let is_told = bytes > 20 && [ModelApi::Anthropic, ModelApi::OpenAiChat].contains(&api);
            assert_eq!(answered, if is_told { 10 } else { 0 }, "{api:?} {bytes}");
        }
    }
}

#[tokio::test]
async fn a_stream_is_cut_at_an_event_and_a_whole_answer_in_its_middle() {
    let script = "[[on]]\nsteps = [{ say = \"said\" }, { cut = true }]\n";
    for api in ModelApi::ALL {
        let server = Running::play(script).await;
        let streamed = send(&server, api, "x", true).await;
        assert!(streamed.body.contains("said") && !streamed.is_whole, "{}", streamed.body);
        assert!(streamed.body.ends_with("\n\n") && streamed.status == 200);
        let whole = send(&server, api, "x", false).await;
        assert!(!whole.is_whole && serde_json::from_str::<Value>(&whole.body).is_err());
        let list = server.stop().await.list;
        assert!(list.iter().all(|call| call.end == PlayedEnd::Cut), "{list:?}");
        assert_eq!(list[1].usage, None);
    }
}

#[tokio::test]
async fn half_a_call_is_no_json() {
    let script = "[[on]]\nsteps = [{ call = \"edit\", args = { path = \"a.txt\" }, half = true }, { cut = true }]\n";
    let server = Running::play(script).await;
    let tools = json!([{ "type": "function", "function": { "name": "edit" } }]);
    let body = json!({ "model": "m", "stream": true, "messages": [], "tools": tools });
    let got = server.post("/v1/chat/completions", &body).await;
    let arguments: String = got
        .events()
        .iter()
        .filter_map(|event| {
            let call = &event["choices"][0]["delta"]["tool_calls"][0];
            call["function"]["arguments"].as_str().map(str::to_owned)
        })
        .collect();
    assert_eq!(arguments, "{\"path\":");
    assert!(!got.is_whole && !got.body.contains("finish_reason\":\"tool_calls"));
}

#[tokio::test]
async fn a_hang_lasts_until_the_client_leaves() {
    let script = "[[on]]\nprompt = \"head\"\nsteps = [{ hang = true }]\n\
                  [[on]]\nsteps = [{ say = \"x\" }, { hang = true }]\n";
    let server = Running::play(script).await;
    for text in ["head", "body"] {
        let (path, body) = ask(ModelApi::Anthropic, text, true);
        let stream = server.connect("POST", &path, "", body.to_string().as_bytes()).await;
        server
            .until(|count| {
                count["list"].as_array().unwrap().last().is_some_and(|it| it["end"] == "open")
            })
            .await;
        drop(stream);
        server
            .until(|count| count["list"].as_array().unwrap().last().unwrap()["end"] == "left")
            .await;
    }
    let list = server.stop().await.list;
    assert_eq!(list[0].usage, None);
    // The beginning of the stream has reported the prompt.
    assert_eq!(list[1].usage.unwrap().input, 1000);
}

#[tokio::test(start_paused = true)]
async fn waits_come_before_the_head_or_between_pieces() {
    let script =
        "[[on]]\nsteps = [{ wait_ms = 5000 }, { say = [\"a\", \"b\"], delay_ms = 1000 }]\n";
    let server = Running::play(script).await;
    for stream in [true, false] {
        let begun = tokio::time::Instant::now();
        send(&server, ModelApi::OpenAiChat, "x", stream).await;
        let least = if stream { 7 } else { 5 };
        assert!(begun.elapsed().as_secs() >= least, "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn raw_bytes_and_errors_stand_in_the_middle_of_a_stream() {
    let script = "[[on]]\nsteps = [{ say = \"a\" }, { raw = \"data: {broken\\n\\n\" }, { error = \"overloaded\" }]\n";
    let server = Running::play(script).await;
    let got = send(&server, ModelApi::Anthropic, "x", true).await;
    assert_eq!(got.status, 200);
    assert!(got.body.contains("data: {broken\n\n"));
    let last = got.events().pop().unwrap();
    assert_eq!(last["error"]["type"], "overloaded_error");
    assert!(got.is_whole && !got.body.contains("message_stop"));
    // An answer that is not streamed is the error.
    assert_eq!(send(&server, ModelApi::Anthropic, "x", false).await.status, 529);
}
