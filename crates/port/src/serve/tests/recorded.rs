//! The methods that read the journal, over a journal of a few events.

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Port;
use crate::journal::{self, Journal, Keep, Settings};

const LINES: &str = r#"{"journal":{"format":1,"version":1}}
{"meta":{"key":"created","value":"1760000000000"}}
{"meta":{"key":"team","value":"shop"}}
{"session":{"id":"0199c0e8-0000-7000-8000-00000000000a","agent_id":"ui","wire_session_id":"s-ui","root_event_id":"0199c0e8-0000-7000-8000-000000000001","head_event_id":"0199c0e8-0000-7000-8000-000000000004","forked_from":null,"status":"ended","created":1760000000000,"updated":1760000000003}}
{"session":{"id":"0199c0e8-0000-7000-8000-00000000000b","agent_id":"api","wire_session_id":"s-api","root_event_id":"0199c0e8-0000-7000-8000-000000000005","head_event_id":"0199c0e8-0000-7000-8000-000000000005","forked_from":null,"status":"ended","created":1760000000004,"updated":1760000000004}}
{"session":{"id":"0199c0e8-0000-7000-8000-00000000000c","agent_id":"ui","wire_session_id":"s-ui-2","root_event_id":"0199c0e8-0000-7000-8000-000000000006","head_event_id":"0199c0e8-0000-7000-8000-000000000007","forked_from":"0199c0e8-0000-7000-8000-00000000000a","status":"ended","created":1760000000005,"updated":1760000000005}}
{"event":{"id":"0199c0e8-0000-7000-8000-000000000001","parent_id":null,"session_id":"0199c0e8-0000-7000-8000-00000000000a","agent_id":"ui","sequence":0,"depth":0,"type":"session.start","timestamp":1760000000000,"turn":0,"payload":{"session":"s-ui"},"text":null}}
{"event":{"id":"0199c0e8-0000-7000-8000-000000000002","parent_id":"0199c0e8-0000-7000-8000-000000000001","session_id":"0199c0e8-0000-7000-8000-00000000000a","agent_id":"ui","sequence":1,"depth":1,"type":"message.user","timestamp":1760000000001,"turn":0,"payload":{"bytes":12,"text":"Add a footer","started":1760000000001},"text":"Add a footer"}}
{"event":{"id":"0199c0e8-0000-7000-8000-000000000003","parent_id":"0199c0e8-0000-7000-8000-000000000002","session_id":"0199c0e8-0000-7000-8000-00000000000a","agent_id":"ui","sequence":2,"depth":2,"type":"message.assistant","timestamp":1760000000002,"turn":0,"payload":{"bytes":5,"text":"Done.","started":1760000000002},"text":"Done."}}
{"event":{"id":"0199c0e8-0000-7000-8000-000000000004","parent_id":"0199c0e8-0000-7000-8000-000000000003","session_id":"0199c0e8-0000-7000-8000-00000000000a","agent_id":"ui","sequence":3,"depth":3,"type":"turn.end","timestamp":1760000000003,"turn":0,"payload":{"stop_reason":"end_turn","reason":null},"text":null}}
{"event":{"id":"0199c0e8-0000-7000-8000-000000000005","parent_id":null,"session_id":"0199c0e8-0000-7000-8000-00000000000b","agent_id":"api","sequence":0,"depth":0,"type":"session.start","timestamp":1760000000004,"turn":0,"payload":{"session":"s-api"},"text":null}}
{"event":{"id":"0199c0e8-0000-7000-8000-000000000006","parent_id":"0199c0e8-0000-7000-8000-000000000004","session_id":"0199c0e8-0000-7000-8000-00000000000c","agent_id":"ui","sequence":0,"depth":4,"type":"session.fork","timestamp":1760000000005,"turn":0,"payload":{"from_session_id":"0199c0e8-0000-7000-8000-00000000000a","from_event_id":"0199c0e8-0000-7000-8000-000000000004","how":"forked"},"text":null}}
{"event":{"id":"0199c0e8-0000-7000-8000-000000000007","parent_id":"0199c0e8-0000-7000-8000-000000000006","session_id":"0199c0e8-0000-7000-8000-00000000000c","agent_id":"ui","sequence":1,"depth":5,"type":"file.create","timestamp":1760000000006,"turn":0,"payload":{"path":"src/ui/footer.ts","before":null,"after":{"hash":"HASH","size":7,"mode":420,"kind":"file","stored":true},"by":"client_host","cause":"agent","tool_call_id":null,"pid":null,"restorable":true},"text":null}}
{"content":{"hash":"HASH","created":1760000000006,"data":"Zm9vdGVyCg=="}}
"#;

/// A journal of three sessions, `ui/s-ui` with its fork `ui/s-ui-2`, and `api/s-api`.
pub(super) async fn journal() -> (TempDir, Journal) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("journal.db");
    let lines = LINES.replace("HASH", &journal::hash_of(b"footer\n"));
    journal::import(&mut lines.as_bytes(), &path, None).unwrap();
    let settings = Settings { team: "shop".to_owned(), path, keep: Keep::default(), quotas: None };
    (folder, journal::open(settings).await.unwrap())
}

const ID: &str = "0199c0e8-0000-7000-8000-00000000000";

fn id(last: u8) -> String {
    format!("{ID}{last:x}")
}

/// The last digits of the events' ids, and of `next`.
fn digits(answer: &Value) -> String {
    let last = |id: &Value| id.as_str().map_or("-".to_owned(), |id| id[id.len() - 1..].to_owned());
    let result = &answer["result"];
    let events = result["events"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let ids: Vec<_> = events.iter().map(|event| last(&event["id"])).collect();
    format!("{} next {}", ids.join(" "), last(&result["next"]))
}

#[tokio::test]
async fn events_are_listed_page_by_page() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    for (params, expected) in [
        (json!({}), "1 2 3 4 5 6 7 next -"),
        (json!({ "limit": 2 }), "1 2 next 2"),
        (json!({ "limit": 2, "after": id(2) }), "3 4 next 4"),
        (json!({ "limit": 2, "after": id(4) }), "5 6 next 6"),
        (json!({ "limit": 9_000, "after": id(7) }), " next -"),
        (json!({ "last": true }), "1 2 3 4 5 6 7 next -"),
        (json!({ "last": true, "limit": 3 }), "5 6 7 next 5"),
        (json!({ "last": true, "limit": 3, "before": id(5) }), "2 3 4 next 2"),
        (json!({ "last": true, "limit": 3, "before": id(2) }), "1 next -"),
        (json!({ "last": true, "before": id(1) }), " next -"),
        (json!({ "last": true, "limit": 2, "agent_id": "ui" }), "6 7 next 6"),
        (json!({ "last": true, "limit": 2, "agent_id": "ui", "before": id(6) }), "3 4 next 3"),
        (json!({ "last": true, "limit": 1, "types": ["message"] }), "3 next 3"),
        (json!({ "last": true, "session_id": "s-ui", "before": id(3) }), "1 2 next -"),
        (json!({ "last": true, "after": id(2), "before": id(6), "limit": 2 }), "4 5 next 4"),
        (json!({ "last": false, "before": id(3) }), "1 2 next -"),
        // An id that no event has stands for its place.
        (json!({ "last": true, "limit": 1, "before": id(15).replace("0f", "ff") }), "7 next 7"),
        (json!({ "types": ["message"] }), "2 3 next -"),
        (json!({ "types": ["message.user", "turn.end"] }), "2 4 next -"),
        (json!({ "types": [] }), "1 2 3 4 5 6 7 next -"),
        (json!({ "agent_id": "api" }), "5 next -"),
        (json!({ "agent_id": "" , "session_id": "" }), "1 2 3 4 5 6 7 next -"),
        (json!({ "agent_id": "nobody" }), " next -"),
        (json!({ "session_id": "s-api" }), "5 next -"),
        (json!({ "session_id": "ui/s-ui", "types": ["turn"] }), "4 next -"),
        (json!({ "session_id": format!("{ID}b") }), "5 next -"),
        (json!({ "session_id": &format!("{ID}b")[..36] }), "5 next -"),
    ] {
        let answer = client.ask("list_events", params.clone()).await;
        assert_eq!(digits(&answer), expected, "{params}");
    }
}

#[tokio::test]
async fn what_cannot_be_read_says_what_there_is() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    let mut check = async |method: &str, params: Value, expected: Expect| {
        let answer = client.ask(method, params).await;
        let error = &answer["error"];
        expected.assert_eq(&format!("{} {}", error["code"], error["message"]));
    };
    let list = "list_events";
    check(list, json!({ "session_id": "x" }), expect![[r#"404 "there is no session `x`; the last ones are: 0199c0e8-0000-7000-8000-00000000000c (ui/s-ui-2), 0199c0e8-0000-7000-8000-00000000000b (api/s-api), 0199c0e8-0000-7000-8000-00000000000a (ui/s-ui)""#]]).await;
    check(list, json!({ "session_id": "0199" }), expect![[r#"400 "`0199` may mean several sessions: 0199c0e8-0000-7000-8000-00000000000a (ui/s-ui), 0199c0e8-0000-7000-8000-00000000000b (api/s-api), 0199c0e8-0000-7000-8000-00000000000c (ui/s-ui-2)""#]]).await;
    check(list, json!({ "session_id": "s-ui", "agent_id": "api" }), expect![[r#"404 "there is no session `s-ui`; the last ones are: 0199c0e8-0000-7000-8000-00000000000b (api/s-api)""#]]).await;
    check(
        list,
        json!({ "after": "0199" }),
        expect![[r#"400 "`after` is the id of an event, as `next` is, not `0199`""#]],
    )
    .await;
    check(
        list,
        json!({ "before": "the end" }),
        expect![[r#"400 "`before` is the id of an event, as `next` is, not `the end`""#]],
    )
    .await;
    check(list, json!({ "limit": 0 }), expect![[r#"400 "`limit` is from 1 to 1000""#]]).await;
    check(
        list,
        json!({ "limit": -1 }),
        expect![[
            r#"400 "params.limit: invalid value: integer `-1`, expected u64 at line 1 column 11""#
        ]],
    )
    .await;
    let known = "there are session.start, session.end, session.fork";
    let answer = client.ask(list, json!({ "types": ["message.", "dance"] })).await;
    assert_eq!(answer["error"]["code"], 400);
    assert!(answer["error"]["message"].as_str().unwrap().contains(known), "{answer}");

    let mut check = async |method: &str, params: Value, expected: Expect| {
        let answer = client.ask(method, params).await;
        let error = &answer["error"];
        expected.assert_eq(&format!("{} {}", error["code"], error["message"]));
    };
    check("get_event", json!({ "id": "ffff" }), expect![[r#"404 "there is no event `ffff`""#]])
        .await;
    check("get_event", json!({ "id": "" }), expect![[r#"404 "there is no event ``""#]]).await;
    check("get_event", json!({ "id": "0199c0e8" }), expect![[r#"400 "several events begin with `0199c0e8`: 0199c0e8-0000-7000-8000-000000000001 (session.start), 0199c0e8-0000-7000-8000-000000000002 (message.user), 0199c0e8-0000-7000-8000-000000000003 (message.assistant), 0199c0e8-0000-7000-8000-000000000004 (turn.end), 0199c0e8-0000-7000-8000-000000000005 (session.start), and 2 more""#]]).await;
    check(
        "search_events",
        json!({ "query": " \"*\" " }),
        expect![[r#"400 "`query` has no word to search for""#]],
    )
    .await;
    check(
        "search_events",
        json!({ "query": "x".repeat(5_000) }),
        expect![[r#"400 "`query` may have at most 4096 bytes""#]],
    )
    .await;
    check(
        "search_events",
        json!({}),
        expect![[r#"400 "params: missing field `query` at line 1 column 2""#]],
    )
    .await;
}

#[tokio::test]
async fn a_search_finds_words_in_their_context() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    let found = client.ask("search_events", json!({ "query": "foot*" })).await;
    let events = found["result"]["events"].as_array().unwrap();
    assert_eq!((events.len(), &events[0]["id"]), (1, &json!(id(2))));
    assert_eq!(events[0]["snippet"], "Add a [footer]");
    let none = client.ask("search_events", json!({ "query": "nonsense" })).await;
    assert_eq!(none["result"], json!({ "events": [] }));
}

#[tokio::test]
async fn a_token_opens_its_own_sessions_only() {
    let port = Port::open().await;
    let requests = [
        ("list_events", json!({})),
        ("get_event", json!({ "id": id(2) })),
        ("search_events", json!({ "query": "footer" })),
    ];
    let mut stranger = port.join().await;
    for (method, params) in &requests {
        assert_eq!(stranger.ask(method, params.clone()).await["error"]["code"], 401, "{method}");
    }
    let mut lead = port.act("lead").await;
    assert_eq!(digits(&lead.ask("list_events", json!({})).await), "1 2 3 4 5 6 7 next -");
    assert_eq!(lead.ask("get_event", json!({ "id": id(2) })).await["result"]["id"], json!(id(2)));

    let mut api = port.act("api").await;
    assert_eq!(digits(&api.ask("list_events", json!({})).await), "5 next -");
    let found = api.ask("search_events", json!({ "query": "footer" })).await;
    assert_eq!(found["result"], json!({ "events": [] }));
    for (method, params) in [
        ("list_events", json!({ "agent_id": "ui" })),
        ("list_events", json!({ "session_id": "s-ui" })),
        ("get_event", json!({ "id": id(2) })),
    ] {
        let answer = api.ask(method, params.clone()).await;
        assert_eq!(answer["error"]["code"], 403, "{method} {params} {answer}");
    }
    let mut ui = port.act("ui").await;
    let found = ui.ask("search_events", json!({ "query": "footer" })).await;
    assert_eq!(digits(&found), "2 next -");
}

#[tokio::test]
async fn a_diff_has_what_an_agent_changed_and_blame_who_wrote_a_line() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    let diff = client.ask("get_diff", json!({ "session_id": "s-ui-2", "turn": 0 })).await;
    let patch = diff["result"]["diff"].as_str().unwrap();
    assert!(patch.ends_with("+++ b/src/ui/footer.ts\n@@ -0,0 +1 @@\n+footer\n"), "{patch}");
    for (params, code) in [
        (json!({ "agent_id": "nobody" }), 404),
        (json!({ "agent_id": "ui", "turn": 7 }), 404),
        (json!({ "turn": 0 }), 400),
        (json!({ "since": "ffff" }), 404),
        (json!({ "since": id(2), "agent_id": "ui", "turn": 0 }), 400),
    ] {
        let answer = client.ask("get_diff", params.clone()).await;
        assert_eq!(answer["error"]["code"], code, "{params} {answer}");
    }
    let none = client.ask("get_diff", json!({ "agent_id": "api" })).await;
    assert_eq!((&none["result"]["diff"], &none["result"]["files"]), (&json!(""), &json!([])));
    for (path, code) in [("src/ui/none.ts", 404), ("", 400), ("../x", 404), ("/etc/passwd", 404)] {
        let answer = client.ask("blame", json!({ "path": path })).await;
        assert_eq!(answer["error"]["code"], code, "{path} {answer}");
    }
}

#[tokio::test]
async fn a_token_opens_its_own_changes_only() {
    let port = Port::open().await;
    let path = json!({ "path": "src/ui/footer.ts" });
    let mut stranger = port.join().await;
    for (method, params) in [("get_diff", json!({})), ("blame", path.clone())] {
        assert_eq!(stranger.ask(method, params).await["error"]["code"], 401, "{method}");
    }
    let mut api = port.act("api").await;
    assert_eq!(api.ask("get_diff", json!({})).await["result"]["files"], json!([]));
    for params in [json!({ "agent_id": "ui" }), json!({ "session_id": "s-ui" })] {
        let code = api.ask("get_diff", params.clone()).await["error"]["code"].clone();
        assert!([json!(403), json!(404)].contains(&code), "{params} {code}");
    }
    let line = api.ask("blame", path.clone()).await["result"]["lines"][0].clone();
    assert_eq!((&line["agent_id"], &line["text"]), (&json!("ui"), &Value::Null));
    for agent in ["ui", "lead"] {
        let line = port.act(agent).await.ask("blame", path.clone()).await;
        assert_eq!(line["result"]["lines"][0]["text"], "footer", "{agent}");
    }
}
