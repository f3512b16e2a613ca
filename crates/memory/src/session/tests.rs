#![allow(clippy::unwrap_used)]

mod disk;
mod properties;

use expect_test::{Expect, expect};
use serde_json::json;

use super::registry::FileKey;
use super::*;
use crate::model::{AgentId, SessionId, SessionMode};

fn key(agent: &str, session: &str) -> SessionKey {
    SessionKey::new(AgentId::new(agent), SessionId::new(session))
}

fn raw(text: &str) -> Raw {
    Raw::from(serde_json::value::RawValue::from_string(text.to_owned()).unwrap())
}

fn upsert(agent: &str, session: &str) -> Upsert {
    Upsert::new(key(agent, session), SessionMode::SingleAgent)
}

fn text(registry: &Registry) -> String {
    String::from_utf8(format::text(registry)).unwrap()
}

/// Sends requests at times 10, 20, …, and returns the answers and the final file.
fn check(requests: impl IntoIterator<Item = RegistryRequest>, expected: &Expect) {
    let mut registry = Registry::default();
    let mut log = Vec::new();
    for (now, request) in (10..).step_by(10).zip(requests) {
        log.push(match registry.answer(request, now) {
            Ok(Answer::Session(session)) => serde_json::to_string(&session).unwrap(),
            Ok(Answer::List(list)) => {
                let listed = list.iter().map(|listed| {
                    let active = if listed.is_active { " active" } else { "" };
                    json!([FileKey::from(&listed.key), listed.mode, listed.updated_at_ms])
                        .to_string()
                        + active
                });
                listed.collect::<Vec<_>>().join("\n")
            }
            Ok(Answer::Closed(closed)) => format!("closed: {closed}"),
            Ok(Answer::Active) => "active".to_owned(),
            Err(error) => error.to_string(),
        });
    }
    log.push(text(&registry));
    expected.assert_eq(&log.join("\n"));
}

#[test]
fn an_upsert_changes_what_it_names() {
    let full = Upsert {
        model: Some(raw(r#"{"model_id":"m","name":"M"}"#)),
        summary: Some("once \"upon\"".to_owned()),
        history: Some(vec![raw("1e999"), raw(r#""\ud800""#)]),
        context: Some(vec![raw("{}")]),
        ..upsert("ui", "s")
    };
    let emptied = Upsert { history: Some(Vec::new()), ..upsert("ui", "s") };
    check(
        [
            RegistryRequest::Upsert(full),
            RegistryRequest::Upsert(upsert("ui", "s")),
            RegistryRequest::Upsert(emptied),
        ],
        &expect![[r#"
            {"agent_id":"ui","session_id":"s","mode":"single_agent","model":{"model_id":"m","name":"M"},"history":[1e999,"\ud800"],"summary":"once \"upon\"","context":[{}],"providers":[],"created_at_ms":10,"updated_at_ms":10}
            {"agent_id":"ui","session_id":"s","mode":"single_agent","model":{"model_id":"m","name":"M"},"history":[1e999,"\ud800"],"summary":"once \"upon\"","context":[{}],"providers":[],"created_at_ms":10,"updated_at_ms":20}
            {"agent_id":"ui","session_id":"s","mode":"single_agent","model":{"model_id":"m","name":"M"},"history":[],"summary":"once \"upon\"","context":[{}],"providers":[],"created_at_ms":10,"updated_at_ms":30}
            {"active":null,"sessions":[{"agent_id":"ui","session_id":"s","mode":"single_agent","model":{"model_id":"m","name":"M"},"history":[],"summary":"once \"upon\"","context":[{}],"providers":[],"created_at_ms":10,"updated_at_ms":30}]}
        "#]],
    );
}

#[test]
fn providers_make_an_orchestrator() {
    let providers = |keys: &[SessionKey]| RegistryRequest::SetProviders {
        key: key("lead", "s"),
        providers: keys.to_vec(),
    };
    let created = Upsert { providers: Some(vec![key("ui", "t")]), ..upsert("lead", "s") };
    check(
        [
            RegistryRequest::Upsert(created),
            // They stay, and so does what they make of it.
            RegistryRequest::Upsert(upsert("lead", "s")),
            providers(&[]),
            RegistryRequest::Upsert(upsert("lead", "s")),
            // Who sets them means an orchestrator, though it have none yet.
            providers(&[]),
            providers(&[key("ui", "t"), key("api", "u")]),
        ],
        &expect![[r#"
            {"agent_id":"lead","session_id":"s","mode":"orchestrator","model":null,"history":[],"summary":null,"context":[],"providers":[{"agent_id":"ui","session_id":"t"}],"created_at_ms":10,"updated_at_ms":10}
            {"agent_id":"lead","session_id":"s","mode":"orchestrator","model":null,"history":[],"summary":null,"context":[],"providers":[{"agent_id":"ui","session_id":"t"}],"created_at_ms":10,"updated_at_ms":20}
            {"agent_id":"lead","session_id":"s","mode":"orchestrator","model":null,"history":[],"summary":null,"context":[],"providers":[],"created_at_ms":10,"updated_at_ms":30}
            {"agent_id":"lead","session_id":"s","mode":"single_agent","model":null,"history":[],"summary":null,"context":[],"providers":[],"created_at_ms":10,"updated_at_ms":40}
            {"agent_id":"lead","session_id":"s","mode":"orchestrator","model":null,"history":[],"summary":null,"context":[],"providers":[],"created_at_ms":10,"updated_at_ms":50}
            {"agent_id":"lead","session_id":"s","mode":"orchestrator","model":null,"history":[],"summary":null,"context":[],"providers":[{"agent_id":"ui","session_id":"t"},{"agent_id":"api","session_id":"u"}],"created_at_ms":10,"updated_at_ms":60}
            {"active":null,"sessions":[{"agent_id":"lead","session_id":"s","mode":"orchestrator","model":null,"history":[],"summary":null,"context":[],"providers":[{"agent_id":"ui","session_id":"t"},{"agent_id":"api","session_id":"u"}],"created_at_ms":10,"updated_at_ms":60}]}
        "#]],
    );
}

#[test]
fn an_owner_stays_until_it_is_set_anew() {
    let owned = |owner: &str| Upsert { owner: Some(owner.to_owned()), ..upsert("ui", "s") };
    check(
        [
            RegistryRequest::Upsert(owned("ada")),
            RegistryRequest::Upsert(owned("bob")),
            RegistryRequest::SetOwner { key: key("ui", "s"), owner: "eve".to_owned() },
            RegistryRequest::Upsert(upsert("ui", "s")),
        ],
        &expect![[r#"
            {"agent_id":"ui","session_id":"s","mode":"single_agent","model":null,"history":[],"summary":null,"context":[],"providers":[],"owner":"ada","created_at_ms":10,"updated_at_ms":10}
            {"agent_id":"ui","session_id":"s","mode":"single_agent","model":null,"history":[],"summary":null,"context":[],"providers":[],"owner":"ada","created_at_ms":10,"updated_at_ms":20}
            {"agent_id":"ui","session_id":"s","mode":"single_agent","model":null,"history":[],"summary":null,"context":[],"providers":[],"owner":"eve","created_at_ms":10,"updated_at_ms":30}
            {"agent_id":"ui","session_id":"s","mode":"single_agent","model":null,"history":[],"summary":null,"context":[],"providers":[],"owner":"eve","created_at_ms":10,"updated_at_ms":40}
            {"active":null,"sessions":[{"agent_id":"ui","session_id":"s","mode":"single_agent","model":null,"history":[],"summary":null,"context":[],"providers":[],"owner":"eve","created_at_ms":10,"updated_at_ms":40}]}
        "#]],
    );
}

#[test]
fn closing_the_active_session_leaves_none_active() {
    let (s, t) = (key("ui", "s"), key("ui", "t"));
    check(
        [
            RegistryRequest::Upsert(upsert("ui", "s")),
            RegistryRequest::Upsert(upsert("ui", "t")),
            RegistryRequest::Activate(s.clone()),
            RegistryRequest::List { agent: None },
            RegistryRequest::Close(t.clone()),
            RegistryRequest::Close(t),
            RegistryRequest::List { agent: Some(AgentId::new("ui")) },
            RegistryRequest::List { agent: Some(AgentId::new("api")) },
            RegistryRequest::Close(s),
        ],
        &expect![[r#"
            {"agent_id":"ui","session_id":"s","mode":"single_agent","model":null,"history":[],"summary":null,"context":[],"providers":[],"created_at_ms":10,"updated_at_ms":10}
            {"agent_id":"ui","session_id":"t","mode":"single_agent","model":null,"history":[],"summary":null,"context":[],"providers":[],"created_at_ms":20,"updated_at_ms":20}
            active
            [{"agent_id":"ui","session_id":"t"},"single_agent",20]
            [{"agent_id":"ui","session_id":"s"},"single_agent",10] active
            closed: true
            closed: false
            [{"agent_id":"ui","session_id":"s"},"single_agent",10] active

            closed: true
            {"active":null,"sessions":[]}
        "#]],
    );
}

#[test]
fn what_is_not_there_is_said_to_be_unknown() {
    let nobody = || key("ui", "ghost");
    for request in [
        RegistryRequest::Get(nobody()),
        RegistryRequest::Activate(nobody()),
        RegistryRequest::SetProviders { key: nobody(), providers: Vec::new() },
        RegistryRequest::AddContext { key: nobody(), items: vec![raw("1")] },
        RegistryRequest::SetOwner { key: nobody(), owner: "ada".to_owned() },
    ] {
        check(
            [request],
            &expect![[r#"
                the registry has no session `ghost` of agent `ui`
                {"active":null,"sessions":[]}
            "#]],
        );
    }
}

#[test]
fn each_change_is_later_than_the_one_before() {
    let mut registry = Registry::default();
    let mut create = |session: &str, now| {
        let Ok(Answer::Session(session)) =
            registry.answer(RegistryRequest::Upsert(upsert("ui", session)), now)
        else {
            panic!("no session");
        };
        session.updated_at_ms
    };
    assert_eq!(
        [create("s", 10), create("t", 10), create("s", 10), create("s", 5)],
        [10, 10, 11, 12]
    );
    // Of one millisecond, the later change is the newer.
    assert_eq!([create("u", 12), create("v", 12)], [12, 12]);
    let Ok(Answer::List(list)) = registry.answer(RegistryRequest::List { agent: None }, 0) else {
        panic!("no list");
    };
    let ids: Vec<_> = list.iter().map(|listed| listed.key.session.as_str()).collect();
    assert_eq!(ids, ["v", "u", "s", "t"]);
}

#[test]
fn a_session_too_large_stays_as_it_was() {
    let mut registry = Registry::default();
    registry.answer(RegistryRequest::Upsert(upsert("ui", "s")), 1).unwrap();
    let before = text(&registry);
    let large = || raw(&format!("\"{}\"", "x".repeat(9 << 20)));
    let add = |items| RegistryRequest::AddContext { key: key("ui", "s"), items };
    let error = registry.answer(add(vec![large(), large()]), 2).unwrap_err();
    assert!(matches!(error, RegistryError::TooLarge { .. }), "{error}");
    assert_eq!(text(&registry), before);
    registry.answer(add(vec![large()]), 2).unwrap();
    assert!(registry.answer(add(vec![large()]), 3).is_err());
}

#[test]
fn the_oldest_session_makes_room_but_never_the_active_one() {
    let entry = |n| json!({"agent_id": "ui", "session_id": format!("s{n}"), "updated_at_ms": n});
    let sessions: Vec<_> = (0..10_000).rev().map(entry).collect();
    let active = json!({"agent_id": "ui", "session_id": "s0"});
    let full = json!({"active": active, "sessions": sessions}).to_string();
    let mut registry = format::parse(full.as_bytes()).unwrap();
    registry.answer(RegistryRequest::Upsert(upsert("ui", "new")), 10_000).unwrap();
    registry.answer(RegistryRequest::Upsert(upsert("ui", "new")), 10_001).unwrap();
    let Ok(Answer::List(list)) = registry.answer(RegistryRequest::List { agent: None }, 0) else {
        panic!("no list");
    };
    assert_eq!((list.len(), &list[0].key), (10_000, &key("ui", "new")));
    assert_eq!((&list[9_999].key, &list[9_998].key), (&key("ui", "s0"), &key("ui", "s2")));
}

#[test]
fn what_another_version_wrote_is_kept() {
    let check = |written: &str, expected: Expect| {
        let mut registry = format::parse(written.as_bytes()).unwrap();
        registry.answer(RegistryRequest::Upsert(upsert("ui", "new")), 7).unwrap();
        expected.assert_eq(&text(&registry));
    };
    check(
        r#"{"version":2,"active":{"agent_id":"ui","session_id":"s","since":1},
            "sessions":[{"agent_id":"ui","session_id":"s","mode":"swarm","tags":[1,
              2.50],"created_at_ms":1760000000000.75,"model":{"model_id":"m"},"updated_at_ms":-1,"history":null}]}"#,
        expect![[r#"
            {"active":{"agent_id":"ui","session_id":"s"},"sessions":[{"agent_id":"ui","session_id":"s","mode":"swarm","model":{"model_id":"m"},"history":[],"summary":null,"context":[],"providers":[],"created_at_ms":1760000000000,"updated_at_ms":0,"tags":[1,               2.50]},{"agent_id":"ui","session_id":"new","mode":"single_agent","model":null,"history":[],"summary":null,"context":[],"providers":[],"created_at_ms":7,"updated_at_ms":7}],"version":2}
        "#]],
    );
    check(
        "{}",
        expect![[r#"
            {"active":null,"sessions":[{"agent_id":"ui","session_id":"new","mode":"single_agent","model":null,"history":[],"summary":null,"context":[],"providers":[],"created_at_ms":7,"updated_at_ms":7}]}
        "#]],
    );
}

#[test]
fn a_corrupt_registry_is_reported() {
    let check = |written: &[u8], expected: Expect| {
        expected.assert_eq(&format::parse(written).unwrap_err());
    };
    check(b"", expect!["EOF while parsing a value at line 1 column 0"]);
    check(b"{\"sessions\":[", expect!["EOF while parsing a list at line 1 column 13"]);
    check(b"[]", expect!["invalid type: sequence, expected a map at line 1 column 0"]);
    check(b"\xff\xfe", expect!["invalid utf-8 sequence of 1 bytes from index 0"]);
    check(
        br#"{"sessions":{}}"#,
        expect!["`sessions`: invalid type: map, expected a sequence at line 1 column 0"],
    );
    check(
        br#"{"sessions":[{"agent_id":"ui"}]}"#,
        expect!["`sessions[0]`: `session_id` is missing"],
    );
    check(
        br#"{"sessions":[{"agent_id":"ui","session_id":7}]}"#,
        expect![
            "`sessions[0]`: `session_id`: invalid type: integer `7`, expected a string at line 1 column 1"
        ],
    );
    check(
        br#"{"active":"ui"}"#,
        expect![[r#"`active`: invalid type: string "ui", expected a map at line 1 column 4"#]],
    );
}
