//! One side ends in the middle of a step: the other side notices, nothing waits forever, and the
//! program ends in an orderly way.

use agent_client_protocol::Error;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::AgentRequest;
use serde_json::json;

use super::begin;
use super::ends::answer;
use super::methods::{asked_of_agents, asked_of_clients, opening};
use super::scene::Middle::{Attach, Observe, Zoned};
use super::scene::{DIED, Middle, Scene, Sent};

/// The unanswered requests of client and agent.
const STEPS: [(&str, &str); 9] = [
    ("", ""),
    ("initialize", ""),
    ("authenticate", ""),
    ("session/new", ""),
    ("session/load", ""),
    ("session/prompt", ""),
    ("session/prompt", "session/request_permission"),
    ("session/prompt", "terminal/create"),
    ("session/prompt", "elicitation/create"),
];

/// Requests that wait, as both sides have them.
type Waiting = Vec<(Sent, Responder)>;

async fn until(middle: Middle, (client, agent): (&str, &str)) -> (Scene, Waiting, Waiting) {
    let mut scene = Scene::new(middle).await;
    if client != "initialize" {
        scene.open().await;
    }
    let shop = scene.rest.shop.clone();
    let (mut of_client, mut of_agent) = (Vec::new(), Vec::new());
    let mut methods = opening(&shop).into_iter().chain(asked_of_agents(&shop));
    if let Some(method) = methods.find(|method| method.name == client) {
        of_client.push(scene.client_begins(&method).await);
    }
    let mut methods = asked_of_clients(&shop).into_iter();
    if let Some(method) = methods.find(|method| method.name == agent) {
        of_agent.push(scene.agent_begins(&method).await);
    }
    (scene, of_client, of_agent)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_that_goes_ends_its_agent() {
    for middle in [Observe, Zoned] {
        for step in STEPS {
            let (Scene { client, agent, rest }, _of_client, of_agent) = until(middle, step).await;
            client.vanish().await;
            agent.hears_the_end().await;
            for (sent, _) in of_agent {
                assert!(answer(sent).await.is_err(), "{step:?}");
            }
            assert_eq!(rest.ends().await, 0, "{step:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_dies_ends_its_editors_wait() {
    for middle in [Observe, Zoned, Attach] {
        for step in STEPS.into_iter().filter(|step| middle != Attach || step.0 != "initialize") {
            let (Scene { client, agent, rest }, of_client, _of_agent) = until(middle, step).await;
            agent.vanish().await;
            client.hears_the_end().await;
            for (sent, _) in of_client {
                let error = answer(sent).await.unwrap_err();
                if middle == Attach {
                    let why = format!("the agent ended: was killed by signal {}", DIED - 128);
                    assert!(error.message.starts_with(&why), "{step:?}: {}", error.message);
                }
            }
            let code = if middle == Attach { 1 } else { DIED };
            assert_eq!(rest.ends().await, code, "{middle:?} {step:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attached_editor_that_goes_leaves_the_agent_to_its_team() {
    for step in STEPS.into_iter().filter(|(client, _)| *client != "initialize") {
        let (mut scene, of_client, of_agent) = until(Attach, step).await;
        scene.client.vanish().await;
        for (sent, _) in of_agent {
            let answer = answer(sent).await;
            if step.1 == "session/request_permission" {
                assert_eq!(answer.unwrap(), json!({"outcome": {"outcome": "cancelled"}}));
            } else {
                assert_eq!(answer.unwrap_err().message, "The editor that was asked has left");
            }
        }
        if step.0 == "session/prompt" {
            let cancel = ("session/cancel".to_owned(), json!({"sessionId": "s"}));
            assert_eq!(scene.agent.notified().await, cancel);
        }
        for (_, request) in of_client {
            request.respond(json!({"stopReason": "cancelled"})).unwrap();
        }
        // Once it was answered, as far as it can hear that.
        assert_eq!(scene.rest.ends().await, 0, "{step:?}");
    }
}

/// The agent's access is held for a decision.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_ends_with_either_side() {
    let held = async || {
        let mut scene = Scene::with(Attach, "[orchestrator]\non_block = \"hold\"").await;
        scene.open().await;
        let turn = begin(&mut scene, "s").await;
        let params = json!({"sessionId": "s", "path": "/outside/of/all"});
        let access = scene.agent.ask::<AgentRequest>("fs/read_text_file", &params);
        scene.rest.port().blocked("pending");
        (scene, turn, access)
    };
    let (mut scene, (_, prompt), access) = held().await;
    scene.client.vanish().await;
    assert_eq!(answer(access).await.unwrap_err(), Error::request_cancelled());
    assert_eq!(scene.rest.port().blocked("expired")["session_id"], "s");
    prompt.respond(json!({"stopReason": "cancelled"})).unwrap();
    assert_eq!(scene.rest.ends().await, 0);

    let (mut scene, (turn, _), _) = held().await;
    scene.agent.vanish().await;
    assert!(answer(turn).await.is_err());
    assert_eq!(scene.rest.port().blocked("expired")["session_id"], "s");
    assert_eq!(scene.rest.ends().await, 1);
}
