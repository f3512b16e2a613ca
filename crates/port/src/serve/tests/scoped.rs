//! Tokens with a scope: what they open, for which agents, and how they end.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use expect_test::expect_file;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Client, Limits, Port, fake::Fake};
use crate::journal::{Filter, Store};
use crate::serve::rpc::METHODS;
use crate::serve::{Server, Sources, Team, Tokens};
use crate::tokens::{NewToken, TokenRight, Visitor};
use crate::wire::Limit;

const BEGIN: &str =
    "<!-- Printed from crates/wire/src/wire by a test; UPDATE_EXPECT=1 writes it anew. -->\n";
const END: &str = "<!-- Until here. -->\n";

/// The document says of each method what it takes.
#[test]
fn the_document_has_the_right_of_each_method() {
    let mut table = "| method | right | with `--agents` |\n| --- | --- | --- |\n".to_owned();
    for facts in METHODS.iter().map(|row| row.facts) {
        let (name, it) = (facts.name, facts.token);
        let limit = match it.limit {
            _ if it.right.is_none() => "—".to_owned(),
            Limit::Named(field) => format!("`{field}` is one of them"),
            Limit::Access => "the access is one of theirs".to_owned(),
            Limit::Token => "the page shows only them".to_owned(),
            Limit::Answer => "the answer has only them".to_owned(),
            Limit::Team => "403".to_owned(),
        };
        let right = it.right.map_or_else(
            || "none: the control token".to_owned(),
            |right| format!("`{}`", right.as_str()),
        );
        writeln!(table, "| `{name}` | {right} | {limit} |").unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tokens.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (before, rest) = document.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{BEGIN}{table}{END}{after}");
    expect_file!["../../../../../docs/tokens.md"].assert_eq(&wanted);
}

/// Makes a token over the port; returns it with its id.
async fn make(port: &Port, params: Value) -> (String, String) {
    let mut person = port.steer().await;
    let made = person.ask("token_create", params).await["result"].clone();
    let text = |key: &str| made[key].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    (text("token"), text("id"))
}

/// Joins with a token.
async fn holder(port: &Port, token: &str) -> Client {
    let mut client = port.join().await;
    client.say(&json!({ "type": "auth", "token": token })).await;
    assert_eq!(client.answer().await["result"]["authenticated"], true);
    client
}

async fn code(client: &mut Client, method: &str, params: Value) -> Value {
    client.ask(method, params).await["error"]["code"].clone()
}

#[tokio::test]
async fn a_token_opens_its_rights_and_no_other() {
    let port = Port::open().await;
    let all = ["read", "prompt", "decide", "control"];
    let params = json!({ "agent_id": "ui", "text": "x", "id": "b1", "decision": "allow" });
    for may in all {
        let (token, _) = make(&port, json!({ "owner": "ada", "may": [may] })).await;
        let mut client = holder(&port, &token).await;
        for (method, right) in [
            ("list_agents", "read"),
            ("prompt", "prompt"),
            ("resolve_blocked", "decide"),
            ("stop_agent", "control"),
        ] {
            let expected = if may == right { json!(null) } else { json!(403) };
            assert_eq!(code(&mut client, method, params.clone()).await, expected, "{may} {method}");
        }
        for method in ["token_list", "token_create", "web_token", "attach"] {
            assert_eq!(code(&mut client, method, params.clone()).await, 403, "{may} {method}");
        }
        let insist = json!({ "id": "b1", "decision": "allow", "even_denied": true });
        // What one reader can't read, another one could.
        let hidden = json!({ "id": "b1", "decision": "allow", "even_denied": true,
            "x": { "$serde_json::private::RawValue": "?" } });
        let hidden = code(&mut client, "resolve_blocked", hidden).await;
        assert!([400, 403].iter().any(|refused| hidden == *refused), "{hidden}");
        assert_eq!(code(&mut client, "resolve_blocked", insist).await, 403, "{may}");
    }
}

#[tokio::test]
async fn a_token_for_some_agents_is_held_to_them() {
    let port = Port::open().await;
    let all = ["read", "prompt", "decide", "control"];
    let made = json!({ "owner": "ada", "may": all, "agents": ["api"] });
    let (token, _) = make(&port, made).await;
    let mut client = holder(&port, &token).await;
    let shown = client.ask("list_agents", json!({})).await["result"].clone();
    let ids: Vec<_> = shown.as_array().unwrap().iter().map(|it| it["agent_id"].clone()).collect();
    assert_eq!(ids, ["api"]);
    assert_eq!(client.ask("list_blocked", json!({})).await["result"], json!([]));
    let asked = port.fake.asked.lock().unwrap().len();
    for (method, params) in [
        ("prompt", json!({ "agent_id": "ui", "text": "x" })),
        ("prompt", json!({ "text": "x" })),
        ("prompt", json!({ "agent_id": ["api"], "text": "x" })),
        ("cancel", json!({ "agent_id": "ui" })),
        ("resolve_blocked", json!({ "id": "b1", "decision": "allow" })),
        ("stop_agent", json!({ "agent_id": "ui" })),
        ("undo", json!({ "agent_id": "ui" })),
        ("list_events", json!({})),
        ("list_events", json!({ "agent_id": "ui" })),
        ("search_events", json!({ "query": "footer" })),
        ("reload", json!({})),
        ("add_agent", json!({ "config": { "id": "x", "command": ["sh"] } })),
        ("delegate_task", json!({ "agent": "ui", "task": "x" })),
    ] {
        assert_eq!(code(&mut client, method, params.clone()).await, 403, "{method} {params}");
    }
    assert_eq!(port.fake.asked.lock().unwrap().len(), asked);
    let prompt = json!({ "agent_id": "api", "text": "x" });
    assert_ne!(code(&mut client, "prompt", prompt).await, 403);
}

#[tokio::test]
async fn a_holder_gets_a_link_to_the_page_that_opens_no_more_than_the_token() {
    let port = Port::open().await;
    let code_of = async |made: Value, params: Value| {
        let (token, _) = make(&port, made).await;
        code(&mut holder(&port, &token).await, "web_link", params).await
    };
    let all = ["read", "prompt", "decide", "control"];
    for made in [
        json!({ "owner": "ada", "may": ["read"] }),
        json!({ "owner": "ada", "may": ["read"], "agents": ["ui"] }),
        json!({ "owner": "ada", "may": all }),
    ] {
        assert_eq!(code_of(made.clone(), json!({})).await, json!(null), "{made}");
        assert_eq!(code_of(made, json!({ "scope": "read" })).await, 403);
    }
    let blind = json!({ "owner": "bob", "may": ["prompt", "decide", "control"] });
    assert_eq!(code_of(blind, json!({})).await, 403);
    assert_eq!(*port.fake.asked.lock().unwrap(), ["link of ada"; 3]);
}

#[tokio::test]
async fn who_asks_through_a_hub_gets_no_link() {
    let fake = Fake::new(64);
    let (sources, team): (Arc<dyn Sources>, Arc<dyn Team>) = (fake.clone(), fake.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tokens = Tokens::generate(None).unwrap();
    let bus = fake.bus.clone();
    let server = Server::new(listener, bus, sources, team, tokens, Limits::default()).unwrap();
    let may = BTreeSet::from([TokenRight::Read, TokenRight::Control]);
    let visitor = Visitor { owner: "ada".to_owned(), may, agents: None, agent: None };
    let asked = server.gateway().call(visitor, "web_link", None).await;
    assert_eq!(asked.unwrap_err().code, 403);
    assert!(fake.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_stream_shows_a_token_for_some_agents_these_only() {
    // On a port for other machines nothing comes before a token.
    let port = Port::with(Fake::new(64), Limits::default(), "0.0.0.0:0").await;
    let mut person = port.connect().await;
    person.show(port.tokens.owner()).await;
    let made = |may: &str| json!({ "owner": "ada", "may": [may], "agents": ["ui"] });
    let mut tokens = Vec::new();
    for may in ["read", "prompt"] {
        let made = person.ask("token_create", made(may)).await["result"].clone();
        tokens.push(made["token"].as_str().unwrap().to_owned());
    }
    let mut reads = port.connect().await;
    reads.say(&json!({ "type": "auth", "token": tokens[0] })).await;
    assert_eq!(reads.answer().await["result"]["owner"], "ada");
    let mut agents = BTreeSet::new();
    loop {
        let line = reads.next().await;
        agents.insert(line["agent_id"].as_str().unwrap_or_default().to_owned());
        if line["type"] == "blocked" {
            break;
        }
    }
    assert_eq!(agents, BTreeSet::from(["ui".to_owned()]));
    let mut prompts = port.connect().await;
    prompts.say(&json!({ "type": "auth", "token": tokens[1] })).await;
    assert_eq!(prompts.next().await["result"]["may"], json!(["prompt"]));
    prompts.say(&json!({ "type": "request_snapshot" })).await;
    assert_eq!(prompts.next().await["error"]["code"], 403);
}

#[tokio::test]
async fn a_revoked_token_ends_its_connections_at_once() {
    let port = Port::open().await;
    let (token, id) = make(&port, json!({ "owner": "ada", "may": ["read"] })).await;
    let (other, _) = make(&port, json!({ "owner": "bob", "may": ["read"] })).await;
    let (mut client, mut stays) = (holder(&port, &token).await, holder(&port, &other).await);
    let mut person = port.steer().await;
    assert_eq!(person.ask("token_revoke", json!({ "id": id })).await["result"]["owner"], "ada");
    let last = client.answer().await;
    assert_eq!((&last["id"], &last["error"]["code"]), (&json!(null), &json!(401)), "{last}");
    client.assert_ended().await;
    assert_eq!(code(&mut stays, "list_agents", json!({})).await, json!(null));
    let mut again = port.join().await;
    again.say(&json!({ "type": "auth", "token": token })).await;
    assert_eq!(again.answer().await["error"]["code"], 401);
    assert_eq!(code(&mut person, "token_revoke", json!({ "id": id })).await, 404);
    let left = person.ask("token_list", json!({})).await["result"].clone();
    assert_eq!((left.as_array().unwrap().len(), &left[0]["owner"]), (1, &json!("bob")));
    assert!(!left.to_string().contains(&other));
}

#[tokio::test]
async fn an_expired_token_ends_its_connections_too() {
    let port = Port::open().await;
    let new = NewToken {
        owner: "ada".to_owned(),
        may: BTreeSet::from([TokenRight::Read]),
        agents: None,
        lasts: Some(Duration::from_secs(2)),
        is_of_browser: false,
    };
    let (token, _) = port.fake.scoped_tokens().unwrap().create(new).unwrap();
    let mut client = holder(&port, &token).await;
    assert_eq!(client.answer().await["error"]["code"], 401);
    client.assert_ended().await;
}

#[tokio::test]
async fn each_use_of_a_token_is_in_the_journal() {
    let port = Port::open().await;
    let journal = port.fake.recorded().await.unwrap();
    port.fake.keeps_journal.store(true, Ordering::SeqCst);
    let (token, id) = make(&port, json!({ "owner": "ada", "may": ["read", "prompt"] })).await;
    let mut client = holder(&port, &token).await;
    client.ask("prompt", json!({ "agent_id": "ui", "text": "secret words" })).await;
    client.ask("stop_agent", json!({ "agent_id": "ui" })).await;
    let store = Store::open(&journal.settings().path).unwrap();
    let types = ["token.create", "token.use"].map(str::to_owned).to_vec();
    let filter = Filter { types, limit: 10, bytes: 100_000, ..Filter::default() };
    let events = store.events(&filter).unwrap().events;
    let payloads: Vec<Value> =
        events.iter().map(|event| serde_json::from_str(event.payload.get()).unwrap()).collect();
    assert_eq!(payloads[0]["owner"], "ada");
    let uses: Vec<_> = payloads[1..]
        .iter()
        .map(|it| format!("{} {} {} {}", it["owner"], it["method"], it["agent_id"], it["refused"]))
        .collect();
    assert_eq!(
        uses,
        [
            r#""ada" "auth" null null"#,
            r#""ada" "prompt" "ui" null"#,
            r#""ada" "stop_agent" "ui" 403"#
        ]
    );
    assert!(payloads.iter().all(|it| it["token_id"] == id.as_str() || it["id"] == id.as_str()));
    let all = format!("{payloads:?}");
    assert!(!all.contains(&token) && !all.contains("secret words"), "{all}");
}

#[tokio::test]
async fn a_token_is_proved_without_being_shown() {
    let port = Port::open().await;
    let (token, _) = make(&port, json!({ "owner": "ada", "may": ["read"] })).await;
    let proving = crate::tokens::proving(&token);
    assert_ne!(proving, token);
    let mut client = port.join().await;
    for (secret, is_it) in [(&*proving, true), (&*token, false), ("eisen_", false)] {
        client.say(&json!({ "type": "auth_challenge" })).await;
        let challenge = client.answer().await["result"]["challenge"].clone();
        let proof = crate::serve::token::proof(secret, challenge.as_str().unwrap());
        client.say(&json!({ "type": "auth", "proof": proof })).await;
        let answer = client.answer().await;
        assert_eq!(answer["result"]["owner"] == "ada", is_it, "{answer}");
    }
}
