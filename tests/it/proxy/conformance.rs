//! The conformance kit: a client and an agent, both made of the protocol's own library, with the
//! program between them. Each message arrives, whatever its method and direction.

mod disconnects;
mod ends;
mod methods;
mod numbered;
mod scene;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{AgentRequest, ClientRequest};
use serde_json::{Value, json};

use ends::answer;
use methods::{Method, Notice};
use scene::{Middle, Scene};

/// Runs a test between each pair of ends.
macro_rules! through {
    ($($test:ident),* $(,)?) => {$(
        mod $test {
            use super::Middle::{Attach, Observe, Zoned};

            #[tokio::test(flavor = "multi_thread")]
            async fn observe() {
                super::$test(Observe).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn observe_with_a_zone() {
                super::$test(Zoned).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn attach() {
                super::$test(Attach).await;
            }
        }
    )*};
}

through![
    every_method_arrives_as_it_is,
    requests_cross_under_the_same_ids,
    sessions_go_on_side_by_side,
    a_replay_comes_before_the_answer_to_its_load,
    requests_are_cancelled_hop_by_hop,
    a_cancelled_turn_ends_when_its_agent_says_so,
    what_an_agent_asks_about_a_request_reaches_who_made_it,
];

async fn every_method_arrives_as_it_is(middle: Middle) {
    let mut scene = Scene::opened(middle).await;
    let shop = scene.rest.shop.clone();
    for method in methods::asked_of_clients(&shop) {
        scene.agent_asks(&method).await;
    }
    for notice in methods::notices_to_clients() {
        scene.agent_notifies(&notice).await;
    }
    for notice in methods::notices_to_agents() {
        scene.client_notifies(&notice).await;
    }
    for method in methods::asked_of_agents(&shop) {
        scene.client_asks(&method).await;
    }
    scene.client.vanish().await;
    assert_eq!(scene.rest.ends().await, 0);
}

/// Many both ways at once, answered last first.
async fn requests_cross_under_the_same_ids(middle: Middle) {
    let Scene { mut client, mut agent, rest } = Scene::opened(middle).await;
    let asks = |n: usize| json!({"sessionId": "s", "n": n});
    let name = "_kit.example/ask";
    let sent: Vec<_> = (0..100)
        .map(|n| {
            (client.ask::<ClientRequest>(name, &asks(n)), agent.ask::<AgentRequest>(name, &asks(n)))
        })
        .collect();
    let (mut of_client, mut of_agent) = (Vec::new(), Vec::new());
    for n in 0..sent.len() {
        of_client.push(agent.asked(name, &asks(n)).await);
        of_agent.push(client.asked(name, &asks(n)).await);
    }
    let ids = |asked: &[agent_client_protocol::v1::Responder]| -> Vec<_> {
        asked.iter().map(|asked| asked.raw_id().clone()).collect()
    };
    assert!(ids(&of_client).iter().any(|id| ids(&of_agent).contains(id)));
    for (n, asked) in of_client.into_iter().enumerate().rev() {
        asked.respond(json!({"from": "agent", "n": n})).unwrap();
    }
    for (n, asked) in of_agent.into_iter().enumerate().rev() {
        asked.respond(json!({"from": "client", "n": n})).unwrap();
    }
    for (n, (of_client, of_agent)) in sent.into_iter().enumerate() {
        assert_eq!(answer(of_client).await.unwrap(), json!({"from": "agent", "n": n}));
        assert_eq!(answer(of_agent).await.unwrap(), json!({"from": "client", "n": n}));
    }
    drop(rest);
}

async fn sessions_go_on_side_by_side(middle: Middle) {
    let mut scene = Scene::opened(middle).await;
    let second = Method { result: json!({"sessionId": "s2"}), ..new_session(&scene.rest.shop) };
    scene.client_asks(&second).await;
    let turns = [begin(&mut scene, "s").await, begin(&mut scene, "s2").await];
    for n in 0..10 {
        for session in ["s", "s2"] {
            scene.agent_notifies(&says(session, &n.to_string())).await;
        }
    }
    for (reason, (sent, prompt)) in ["end_turn", "refusal"].into_iter().zip(turns).rev() {
        prompt.respond(json!({"stopReason": reason})).unwrap();
        assert_eq!(answer(sent).await.unwrap()["stopReason"], reason);
    }
}

async fn a_replay_comes_before_the_answer_to_its_load(middle: Middle) {
    let mut scene = Scene::opened(middle).await;
    let load = methods::asked_of_agents(&scene.rest.shop).remove(1);
    assert_eq!(load.name, "session/load");
    let (sent, loading) = scene.client_begins(&load).await;
    let replay: Vec<_> = methods::updates()
        .into_iter()
        .map(|update| json!({"sessionId": "old", "update": update}))
        .collect();
    for params in replay.clone() {
        scene.agent.notify::<agent_client_protocol::v1::schema::AgentNotification>(&Notice {
            name: "session/update",
            params,
        });
    }
    loading.respond(load.result.clone()).unwrap();
    assert_eq!(answer(sent).await.unwrap(), load.result);
    let notified: Vec<_> =
        scene.client.notified_by_now().into_iter().map(|(_, params)| params).collect();
    assert_eq!(notified, replay);
}

async fn requests_are_cancelled_hop_by_hop(middle: Middle) {
    let mut scene = Scene::opened(middle).await;
    let shop = scene.rest.shop.clone();
    for method in methods::asked_of_agents(&shop) {
        let (sent, request) = scene.client_begins(&method).await;
        sent.cancel().unwrap();
        ends::soon(request.cancellation().cancelled()).await;
        request.respond_with_error(Error::request_cancelled()).unwrap();
        assert_eq!(answer(sent).await.unwrap_err(), Error::request_cancelled());
    }
    for method in methods::asked_of_clients(&shop) {
        let (sent, request) = scene.agent_begins(&method).await;
        sent.cancel().unwrap();
        ends::soon(request.cancellation().cancelled()).await;
        request.respond_with_error(Error::request_cancelled()).unwrap();
        assert_eq!(answer(sent).await.unwrap_err(), Error::request_cancelled());
    }
}

async fn a_cancelled_turn_ends_when_its_agent_says_so(middle: Middle) {
    let mut scene = Scene::opened(middle).await;
    let (sent, prompt) = begin(&mut scene, "s").await;
    let permission = methods::asked_of_clients(&scene.rest.shop).remove(2);
    assert_eq!(permission.name, "session/request_permission");
    let (asking, asked) = scene.agent_begins(&permission).await;
    scene.client_notifies(&methods::notices_to_agents()[0]).await;
    // As the protocol demands of clients.
    let cancelled = json!({"outcome": {"outcome": "cancelled"}});
    asked.respond(cancelled.clone()).unwrap();
    assert_eq!(answer(asking).await.unwrap(), cancelled);
    scene.agent_notifies(&says("s", "last words")).await;
    prompt.respond(json!({"stopReason": "cancelled"})).unwrap();
    assert_eq!(answer(sent).await.unwrap(), json!({"stopReason": "cancelled"}));
}

/// Before a session is open there is only the request to name.
async fn what_an_agent_asks_about_a_request_reaches_who_made_it(middle: Middle) {
    let mut scene = Scene::opened(middle).await;
    let new = new_session(&scene.rest.shop);
    let (sent, opening) = scene.client_begins(&new).await;
    let asks = |id: Value| json!({"mode": "form", "requestId": id, "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}});
    let elicitation = |id| serde_json::to_value(id).unwrap();
    let asking =
        scene.agent.ask::<AgentRequest>("elicitation/create", &asks(elicitation(opening.raw_id())));
    let asked = scene.client.asked("elicitation/create", &asks(elicitation(sent.raw_id()))).await;
    asked.respond(json!({"action": "accept", "content": {}})).unwrap();
    assert_eq!(answer(asking).await.unwrap()["action"], "accept");
    opening.respond(json!({"sessionId": "s3"})).unwrap();
    assert_eq!(answer(sent).await.unwrap()["sessionId"], "s3");
}

fn new_session(shop: &str) -> Method {
    methods::opening(shop).pop().unwrap()
}

async fn begin(
    scene: &mut Scene,
    session: &str,
) -> (scene::Sent, agent_client_protocol::v1::Responder) {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    scene.client_begins(&Method { name: "session/prompt", params, result: Value::Null }).await
}

fn says(session: &str, text: &str) -> Notice {
    let content = json!({"type": "text", "text": text});
    let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
    Notice { name: "session/update", params: json!({"sessionId": session, "update": update}) }
}
