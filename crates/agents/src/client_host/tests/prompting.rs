#![allow(clippy::unwrap_used)]

use super::*;
use eisen_base::task;

#[tokio::test]
async fn a_prompt_ends_with_what_the_agent_said() {
    let mut scene = open(settings()).await;
    let prompt = scene.prompt("hello", Urgency::Normal);
    let agent = &mut scene.agent;
    let request = agent.recv().await;
    let blocks = json!([{ "type": "text", "text": "hello" }]);
    let params = json!({ "sessionId": "s", "prompt": blocks });
    let whole = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params });
    assert_eq!(request, whole);
    agent.say("s", "one, ").await;
    agent.say("other", "not this, ").await;
    let thought = json!({ "sessionUpdate": "agent_thought_chunk", "content": { "type": "text", "text": "hm" } });
    let image = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "image", "data": "" } });
    for update in [thought, image, json!({ "sessionUpdate": "plan" }), json!(7)] {
        let params = json!({ "sessionId": "s", "update": update });
        agent.send(json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })).await;
    }
    agent.say("s", "twö").await;
    agent.answer(&request, json!({ "stopReason": "max_tokens", "usage": {} })).await;
    let outcome = prompt.await.unwrap().unwrap();
    assert_eq!(outcome.text, "one, \ntwö");
    assert_eq!(outcome.stop_reason, "max_tokens");
    assert_eq!(outcome.session.as_str(), "s");

    // The next turn starts from nothing.
    let prompt = scene.prompt("again", Urgency::Normal);
    let (request, _) = scene.agent.prompted().await;
    scene.agent.end_turn(&request).await;
    assert_eq!(prompt.await.unwrap().unwrap().text, "");
}

#[tokio::test]
async fn a_turn_may_end_in_an_error_and_the_next_goes_on() {
    let mut scene = open(settings()).await;
    let first = scene.prompt("first", Urgency::Normal);
    let (request, _) = scene.agent.prompted().await;
    let second = scene.prompt("second", Urgency::Normal);
    let error = json!({ "code": -32603, "message": "Internal error", "data": "overloaded" });
    scene.agent.send(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
    assert_eq!(
        first.await.unwrap().unwrap_err().to_string(),
        "the agent answered `session/prompt` with error -32603: Internal error: overloaded"
    );
    let (request, text) = scene.agent.prompted().await;
    assert_eq!(text, "second");
    scene.agent.answer(&request, json!({})).await;
    assert!(matches!(second.await.unwrap(), Err(HostError::Malformed { .. })));
}

#[tokio::test]
async fn prompts_wait_for_their_turn_and_briefings_go_first() {
    let mut scene = open(settings()).await;
    let mut prompts = vec![scene.prompt("running", Urgency::Normal)];
    let (mut request, _) = scene.agent.prompted().await;
    for (text, urgency) in
        [("a", Urgency::Normal), ("b", Urgency::Normal), ("x", Urgency::Briefing)]
    {
        let prompt = scene.prompt(text, urgency);
        scene.settle().await;
        prompts.push(prompt);
    }
    let mut order = Vec::new();
    for _ in 0..3 {
        scene.agent.end_turn(&request).await;
        let text;
        (request, text) = scene.agent.prompted().await;
        order.push(text);
    }
    scene.agent.end_turn(&request).await;
    for prompt in prompts {
        assert_eq!(prompt.await.unwrap().unwrap().stop_reason, "end_turn");
    }
    assert_eq!(order, ["x", "a", "b"]);
}

#[tokio::test]
async fn a_dropped_prompt_is_withdrawn_unless_it_runs() {
    let mut scene = open(settings()).await;
    let running = scene.prompt("running", Urgency::Normal);
    let (request, _) = scene.agent.prompted().await;
    let queued = scene.prompt("queued", Urgency::Normal);
    scene.settle().await;
    let last = scene.prompt("last", Urgency::Normal);
    scene.settle().await;
    for dropped in [running, queued] {
        dropped.abort();
        assert!(dropped.await.unwrap_err().is_cancelled());
    }
    scene.agent.end_turn(&request).await;
    // No `session/cancel` came for the running one, and nothing of the queued one.
    let (request, text) = scene.agent.prompted().await;
    assert_eq!(text, "last");
    scene.agent.end_turn(&request).await;
    last.await.unwrap().unwrap();
}

#[tokio::test]
async fn sessions_run_side_by_side_and_the_first_is_the_default() {
    let mut scene = start(settings());
    let error = scene.prompt("early", Urgency::Normal).await.unwrap().unwrap_err();
    assert!(matches!(error, HostError::NoSession), "{error}");
    open_session(&mut scene, "s").await;
    open_session(&mut scene, "t").await;
    let in_s = scene.prompt("in s", Urgency::Normal);
    let (to_s, _) = scene.agent.prompted().await;
    assert_eq!(to_s["params"]["sessionId"], "s");
    let host = scene.host.clone();
    let in_t = task::spawn(async move {
        let content = Content::Now(vec![json!({ "text": "in t" })]);
        host.prompt(Some(SessionId::new("t")), content, Urgency::Normal).await
    });
    let (to_t, _) = scene.agent.prompted().await;
    assert_eq!(to_t["params"]["sessionId"], "t");
    scene.agent.say("t", "T").await;
    scene.agent.say("s", "S").await;
    scene.agent.end_turn(&to_t).await;
    assert_eq!(in_t.await.unwrap().unwrap().text, "T");
    scene.agent.end_turn(&to_s).await;
    assert_eq!(in_s.await.unwrap().unwrap().text, "S");
    let nothing = Content::Now(Vec::new());
    let unknown = scene.host.prompt(Some(SessionId::new("u")), nothing, Urgency::Normal).await;
    assert!(matches!(unknown, Err(HostError::UnknownSession(_))));
}

/// A prompt whose content the test hands in.
fn prompt_later(
    scene: &Scene,
) -> (
    tokio::sync::oneshot::Sender<Option<&'static str>>,
    JoinHandle<Result<PromptOutcome, HostError>>,
) {
    let (hand_in, content) = tokio::sync::oneshot::channel::<Option<&'static str>>();
    let content = Content::later(async move {
        let text = content.await.unwrap()?;
        Some(vec![json!({ "type": "text", "text": text })])
    });
    (hand_in, scene.spawn_prompt(content, Urgency::Briefing))
}

#[tokio::test]
async fn a_content_is_made_when_its_turn_has_come() {
    let mut scene = open(settings()).await;
    let (hand_in, prompt) = prompt_later(&scene);
    scene.settle().await;
    let next = scene.prompt("next", Urgency::Normal);
    scene.settle().await;
    // What comes before the prompt was sent is not its answer.
    scene.agent.say("s", "late").await;
    scene.agent.ask(0, "x", Value::Null).await;
    hand_in.send(Some("made")).unwrap();
    let (request, text) = scene.agent.prompted().await;
    assert_eq!(text, "made");
    scene.agent.end_turn(&request).await;
    assert_eq!(prompt.await.unwrap().unwrap().text, "");
    let (request, text) = scene.agent.prompted().await;
    assert_eq!(text, "next");
    scene.agent.end_turn(&request).await;
    next.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_prompt_without_content_is_withdrawn_and_the_next_goes_on() {
    let mut scene = open(settings()).await;
    let (nothing, withdrawn) = prompt_later(&scene);
    scene.settle().await;
    let (panics, broken) = prompt_later(&scene);
    let (unwanted, dropped) = prompt_later(&scene);
    scene.settle().await;
    let last = scene.prompt("last", Urgency::Normal);
    nothing.send(None).unwrap();
    assert!(matches!(withdrawn.await.unwrap(), Err(HostError::Withdrawn)));
    drop(panics);
    assert!(matches!(broken.await.unwrap(), Err(HostError::Withdrawn)));
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    // It may be at it already, or never begin.
    let _ = unwanted.send(Some("unwanted"));
    let (request, text) = scene.agent.prompted().await;
    assert_eq!(text, "last");
    scene.agent.end_turn(&request).await;
    last.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_content_that_is_being_made_can_be_cancelled() {
    let mut scene = open(settings()).await;
    let (mut hand_in, prompt) = prompt_later(&scene);
    scene.settle().await;
    scene.host.cancel(None).await.unwrap();
    assert!(matches!(prompt.await.unwrap(), Err(HostError::Withdrawn)));
    hand_in.closed().await;
    let _next = scene.prompt("next", Urgency::Normal);
    assert_eq!(scene.agent.prompted().await.1, "next");
}

#[tokio::test]
async fn a_turn_is_read_along_from_its_beginning() {
    let mut scene = open(settings()).await;
    let first = scene.prompt("first", Urgency::Normal);
    let (running, _) = scene.agent.prompted().await;
    let (said, mut saying) = tokio::sync::watch::channel(Said::default());
    let content = Content::Now(vec![json!({ "type": "text", "text": "second" })]);
    let host = scene.host.clone();
    let second =
        task::spawn(
            async move { host.prompt_streaming(None, content, Urgency::Normal, said).await },
        );
    let mut loads = Vec::new();
    eventually("the second prompt is queued", async || {
        loads = scene.host.session_loads().await.unwrap();
        loads[0].queued == 1
    })
    .await;
    let session = SessionId::new("s");
    let load = SessionLoad {
        session: session.clone(),
        is_default: true,
        is_running: true,
        queued: 1,
        chosen: Chosen::default(),
    };
    assert_eq!(loads, [load]);
    scene.agent.say("s", "of the first").await;
    scene.agent.end_turn(&running).await;
    first.await.unwrap().unwrap();

    saying.wait_for(|said| said.session.as_ref() == Some(&session)).await.unwrap();
    assert_eq!(saying.borrow().text, "");
    let (running, _) = scene.agent.prompted().await;
    for (piece, all) in [("of ", "of "), ("the second", "of the second")] {
        scene.agent.say("s", piece).await;
        saying.wait_for(|said| said.text == all).await.unwrap();
    }
    scene.agent.end_turn(&running).await;
    assert_eq!(second.await.unwrap().unwrap().text, "of the second");
}

#[tokio::test]
async fn only_the_very_id_that_was_asked_with_is_answered() {
    let mut scene = open(settings()).await;
    let prompt = scene.prompt("hello", Urgency::Normal);
    let (request, _) = scene.agent.prompted().await;
    let text = json!({ "id": request["id"].to_string() });
    scene.agent.answer(&text, json!({ "stopReason": "refusal" })).await;
    scene.agent.end_turn(&request).await;
    assert_eq!(prompt.await.unwrap().unwrap().stop_reason, "end_turn");
}

#[tokio::test]
async fn the_announced_command_to_compress_comes_before_the_known_one() {
    let known = HostSettings { compress: Some("/shrink".to_owned()), ..settings() };
    let mut scene = open(known).await;
    for (commands, expected) in [
        (json!([]), "/shrink"),
        (json!([{ "name": "summarize" }, { "name": "compact", "input": null }]), "/compact"),
        (json!([{ "name": "/compress", "description": "d" }]), "/compress"),
        (json!([{ "name": "compact-all" }]), "/shrink"),
        (json!(7), "/shrink"),
    ] {
        let update = json!({
            "sessionUpdate": "available_commands_update", "availableCommands": commands,
        });
        let params = json!({ "sessionId": "s", "update": update });
        let update = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        scene.agent.send(update).await;
        // The host reads in order.
        let prompt = scene.prompt("hello", Urgency::Normal);
        let (request, _) = scene.agent.prompted().await;
        scene.agent.end_turn(&request).await;
        prompt.await.unwrap().unwrap();
        let found = scene.host.compress_prompt();
        assert_eq!(found.as_deref(), Some(expected), "{commands}");
    }
}
