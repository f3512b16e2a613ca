#![allow(clippy::unwrap_used)]

use super::*;

fn permission() -> Value {
    let options = json!([
        { "optionId": "always", "name": "", "kind": "allow_always" },
        { "optionId": "once", "name": "", "kind": "allow_once" },
        { "optionId": "no", "name": "", "kind": "reject_once" },
    ]);
    json!({ "sessionId": "s", "toolCall": { "toolCallId": "c" }, "options": options })
}

fn question() -> Value {
    let schema = json!({ "properties": { "x": { "type": "string", "default": "y" } } });
    json!({ "sessionId": "s", "message": "?", "mode": "form", "requestedSchema": schema })
}

#[tokio::test]
async fn a_cancelled_turn_ends_by_the_agents_own_answer() {
    let mut scene = open(settings()).await;
    let running = scene.prompt("running", Urgency::Normal);
    let (request, _) = scene.agent.prompted().await;
    let queued = scene.prompt("queued", Urgency::Normal);
    scene.settle().await;
    let asked = scene.agent.ask(0, "session/request_permission", permission()).await;
    assert_eq!(asked["outcome"]["optionId"], "once");

    scene.host.cancel(None).await.unwrap();
    assert!(matches!(queued.await.unwrap(), Err(HostError::Withdrawn)));
    let cancel = scene.agent.expect("session/cancel").await;
    assert_eq!(cancel["params"], json!({ "sessionId": "s" }));
    assert_eq!(cancel.get("id"), None);
    assert!(!running.is_finished());
    let asked = scene.agent.ask(1, "session/request_permission", permission()).await;
    assert_eq!(asked, json!({ "outcome": { "outcome": "cancelled" } }));
    let asked = scene.agent.ask(3, "elicitation/create", question()).await;
    assert_eq!(asked, json!({ "action": "cancel" }));
    scene.agent.answer(&request, json!({ "stopReason": "cancelled" })).await;
    assert_eq!(running.await.unwrap().unwrap().stop_reason, "cancelled");

    // The next turn is its own.
    let next = scene.prompt("next", Urgency::Normal);
    let (request, _) = scene.agent.prompted().await;
    let asked = scene.agent.ask(2, "session/request_permission", permission()).await;
    assert_eq!(asked["outcome"]["optionId"], "once");
    let asked = scene.agent.ask(4, "elicitation/create", question()).await;
    assert_eq!(asked, json!({ "action": "accept", "content": { "x": "y" } }));
    scene.host.set_permissions(PermissionPolicy::Deny);
    let asked = scene.agent.ask(5, "elicitation/create", question()).await;
    assert_eq!(asked, json!({ "action": "decline" }));
    scene.agent.end_turn(&request).await;
    next.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_turn_is_cancelled_without_those_behind_it() {
    let mut scene = open(settings()).await;
    let running = scene.prompt("running", Urgency::Normal);
    let (request, _) = scene.agent.prompted().await;
    let queued = scene.prompt("queued", Urgency::Normal);
    scene.settle().await;
    let cancelled = scene.host.cancel_turn(None).await.unwrap();
    assert_eq!(cancelled, Cancelled { turns: 1, prompts: 0 });
    scene.agent.expect("session/cancel").await;
    scene.agent.answer(&request, json!({ "stopReason": "cancelled" })).await;
    assert_eq!(running.await.unwrap().unwrap().stop_reason, "cancelled");
    let (request, _) = scene.agent.prompted().await;
    scene.agent.end_turn(&request).await;
    queued.await.unwrap().unwrap();
}

#[tokio::test]
async fn cancelling_nothing_sends_nothing() {
    let mut scene = open(settings()).await;
    scene.host.cancel(None).await.unwrap();
    scene.host.cancel(Some(SessionId::new("s"))).await.unwrap();
    let unknown = scene.host.cancel(Some(SessionId::new("t"))).await;
    assert!(matches!(unknown, Err(HostError::UnknownSession(_))));
    let _running = scene.prompt("p", Urgency::Normal);
    scene.agent.prompted().await;
}

#[tokio::test]
async fn one_session_is_cancelled_without_the_other() {
    let mut scene = open(settings()).await;
    open_session(&mut scene, "t").await;
    let _in_s = scene.prompt("in s", Urgency::Normal);
    scene.agent.prompted().await;
    scene.host.cancel(Some(SessionId::new("t"))).await.unwrap();
    let asked = scene.agent.ask(1, "session/request_permission", permission()).await;
    assert_eq!(asked["outcome"]["optionId"], "once");
}
