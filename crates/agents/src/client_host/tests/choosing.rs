#![allow(clippy::unwrap_used)]

use super::*;
use eisen_base::task;

/// A session whose agent offers two modes and two models, with `code` and `large` chosen.
async fn open_choices() -> Scene {
    let mut scene = start(settings());
    let opening = task::spawn({
        let host = scene.host.clone();
        async move { host.new_session().await }
    });
    let request = scene.agent.expect("session/new").await;
    let answer = json!({
        "sessionId": "s",
        "modes": { "currentModeId": "code", "availableModes": [{ "id": "code", "name": "Code" }, { "id": "plan", "name": "Plan" }] },
        "configOptions": [{ "id": "llm", "category": "model", "currentValue": "large",
            "options": [{ "value": "large" }, { "value": "small" }] }],
    });
    scene.agent.answer(&request, answer).await;
    opening.await.unwrap().unwrap();
    scene
}

fn choose(
    scene: &Scene,
    option: &str,
    value: &str,
) -> JoinHandle<Result<SessionChoices, HostError>> {
    let (host, option, value) = (scene.host.clone(), option.to_owned(), value.to_owned());
    task::spawn(async move { host.set_session_option(None, &option, &value).await })
}

async fn chosen(scene: &Scene) -> String {
    let loads = scene.host.session_loads().await.unwrap();
    loads[0]
        .chosen
        .iter()
        .map(|(option, value)| format!("{option}={value}"))
        .collect::<Vec<_>>()
        .join(" ")
}

#[tokio::test]
async fn a_choice_goes_to_the_agent_in_its_own_form() {
    let mut scene = open_choices().await;
    assert_eq!(chosen(&scene).await, "llm=large mode=code");

    // By what it is about, and by name.
    let choosing = choose(&scene, "mode", "Plan");
    let request = scene.agent.expect("session/set_mode").await;
    assert_eq!(request["params"], json!({ "sessionId": "s", "modeId": "plan" }));
    scene.agent.answer(&request, json!(null)).await;
    let choices = choosing.await.unwrap().unwrap();
    assert_eq!(choices.options[0].current.as_deref(), Some("plan"));

    let choosing = choose(&scene, "model", "small");
    let request = scene.agent.expect("session/set_config_option").await;
    assert_eq!(request["params"], json!({ "sessionId": "s", "configId": "llm", "value": "small" }));
    scene.agent.answer(&request, json!({})).await;
    choosing.await.unwrap().unwrap();
    assert_eq!(chosen(&scene).await, "llm=small mode=plan");
    let told = scene.host.newly_chosen().await;
    assert_eq!(told[&SessionId::new("s")].len(), 2, "{told:?}");
}

#[tokio::test]
async fn a_choice_that_fails_leaves_what_is_chosen() {
    let mut scene = open_choices().await;
    for (option, value, error) in [
        ("colour", "red", "the agent offers no option `colour`; it offers `mode`, `llm`"),
        ("mode", "yolo", "the agent offers no value `yolo`; it offers `code`, `plan`"),
    ] {
        let failed = choose(&scene, option, value).await.unwrap().unwrap_err();
        assert_eq!(failed.to_string(), error);
    }
    let choosing = choose(&scene, "mode", "plan");
    let request = scene.agent.expect("session/set_mode").await;
    let error = json!({ "code": -32602, "message": "not now" });
    scene.agent.send(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
    assert_eq!(
        choosing.await.unwrap().unwrap_err().to_string(),
        "the agent answered `session/set_mode` with error -32602: not now"
    );
    assert_eq!(chosen(&scene).await, "llm=large mode=code");
    let nowhere = Some(SessionId::new("nowhere"));
    assert!(matches!(scene.host.session_options(nowhere).await, Err(HostError::UnknownSession(_))));
}

#[tokio::test]
async fn an_agent_that_changes_its_mode_itself_is_heard() {
    let mut scene = open_choices().await;
    let update = json!({ "sessionUpdate": "current_mode_update", "currentModeId": "plan" });
    let params = json!({ "sessionId": "s", "update": update });
    scene
        .agent
        .send(json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
        .await;
    let told = scene.host.newly_chosen().await;
    assert_eq!(told[&SessionId::new("s")]["mode"], "plan");
    assert_eq!(chosen(&scene).await, "llm=large mode=plan");
}

/// Queues a prompt that can be changed.
async fn draft(
    scene: &Scene,
    text: &str,
) -> (PromptDraft, JoinHandle<Result<PromptOutcome, HostError>>) {
    let draft = PromptDraft::new(vec![json!({ "type": "text", "text": text })], None);
    let words = draft.clone();
    let content = Content::later(async move { Some(words.blocks()) }).of_draft(draft.clone());
    let prompt = scene.spawn_prompt(content, Urgency::Normal);
    scene.settle().await;
    (draft, prompt)
}

#[tokio::test]
async fn a_prompt_that_waits_can_be_changed_and_taken_back() {
    let mut scene = open(settings()).await;
    let (begun, running) = draft(&scene, "running").await;
    let (request, _) = scene.agent.prompted().await;
    let (first, edited) = draft(&scene, "first").await;
    let (second, withdrawn) = draft(&scene, "second").await;
    let (_, gone) = draft(&scene, "gone").await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    let waiting = scene.host.waiting(None).await.unwrap();
    let texts: Vec<_> = waiting.iter().map(|it| it.draft.text().0).collect();
    assert_eq!(texts, ["first", "second"]);

    scene.host.edit(first.id().to_owned(), "other".to_owned()).await.unwrap();
    scene.host.withdraw(second.id().to_owned()).await.unwrap();
    assert!(matches!(withdrawn.await.unwrap(), Err(HostError::Withdrawn)));
    for late in [begun.id(), second.id(), "no such"] {
        let edited = scene.host.edit(late.to_owned(), "too late".to_owned()).await;
        assert!(matches!(edited, Err(HostError::NotWaiting(_))), "{edited:?}");
        let withdrawn = scene.host.withdraw(late.to_owned()).await;
        assert!(matches!(withdrawn, Err(HostError::NotWaiting(_))), "{withdrawn:?}");
    }
    scene.agent.end_turn(&request).await;
    running.await.unwrap().unwrap();
    let (request, text) = scene.agent.prompted().await;
    assert_eq!(text, "other");
    scene.agent.end_turn(&request).await;
    edited.await.unwrap().unwrap();
    assert!(scene.host.waiting(None).await.unwrap().is_empty());
}
