//! Property tests that any sequence of requests has the result of a simple model, also after a
//! round trip through the file.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// The expected state of one session.
#[derive(Clone, PartialEq, Default, Debug)]
struct Expected {
    mode: &'static str,
    summary: Option<String>,
    context: Vec<String>,
    providers: Vec<SessionKey>,
    owner: Option<String>,
    created: u64,
    updated: u64,
}

#[derive(Default)]
struct Model {
    active: Option<SessionKey>,
    sessions: BTreeMap<SessionKey, Expected>,
}

impl Model {
    fn apply(&mut self, request: &RegistryRequest, now: u64) {
        match request {
            RegistryRequest::List { .. } | RegistryRequest::Get(_) => {}
            RegistryRequest::Upsert(upsert) => {
                let is_new = !self.sessions.contains_key(&upsert.key);
                let session = self.sessions.entry(upsert.key.clone()).or_default();
                session.mode = upsert.mode.as_str();
                if let Some(summary) = &upsert.summary {
                    session.summary = Some(summary.clone());
                }
                if let Some(context) = &upsert.context {
                    session.context = context.iter().map(|item| item.get().to_owned()).collect();
                }
                if let Some(providers) = &upsert.providers {
                    session.providers.clone_from(providers);
                }
                if session.owner.is_none() {
                    session.owner.clone_from(&upsert.owner);
                }
                if is_new {
                    (session.created, session.updated) = (now, now);
                } else {
                    session.updated = now.max(session.updated + 1);
                }
                if !session.providers.is_empty() {
                    session.mode = "orchestrator";
                }
            }
            RegistryRequest::Close(key) => {
                self.sessions.remove(key);
                self.active.take_if(|active| active == key);
            }
            RegistryRequest::Activate(key) => {
                if self.sessions.contains_key(key) {
                    self.active = Some(key.clone());
                }
            }
            RegistryRequest::SetProviders { key, providers } => {
                if let Some(session) = self.sessions.get_mut(key) {
                    session.providers.clone_from(providers);
                    session.updated = now.max(session.updated + 1);
                    session.mode = "orchestrator";
                }
            }
            RegistryRequest::AddContext { key, items } => {
                if let Some(session) = self.sessions.get_mut(key) {
                    session.context.extend(items.iter().map(|item| item.get().to_owned()));
                    session.updated = now.max(session.updated + 1);
                }
            }
            RegistryRequest::SetOwner { key, owner } => {
                if let Some(session) = self.sessions.get_mut(key) {
                    session.owner = Some(owner.clone());
                    session.updated = now.max(session.updated + 1);
                }
            }
        }
    }
}

fn some_key() -> impl Strategy<Value = SessionKey> {
    ("[ab]", "[st\u{e9}\"\\\\\n]").prop_map(|(agent, session)| key(&agent, &session))
}

fn some_items() -> impl Strategy<Value = Vec<Raw>> {
    let item = prop_oneof![Just("1.50"), Just("null"), Just(r#"{"a":"\u0061\ud83d"}"#)];
    proptest::collection::vec(item.prop_map(raw), 0..3)
}

fn some_providers() -> impl Strategy<Value = Vec<SessionKey>> {
    proptest::collection::vec(some_key(), 0..3)
}

fn some_upsert() -> impl Strategy<Value = RegistryRequest> {
    use proptest::option::of;
    let mode = prop_oneof![Just(SessionMode::SingleAgent), Just(SessionMode::Orchestrator)];
    let some = (of("[x\"\n]{0,2}"), of(some_items()), of(some_providers()), of("[uv]"));
    (some_key(), mode, some).prop_map(|(key, mode, (summary, context, providers, owner))| {
        RegistryRequest::Upsert(Upsert {
            summary,
            context,
            providers,
            owner,
            ..Upsert::new(key, mode)
        })
    })
}

fn some_request() -> impl Strategy<Value = RegistryRequest> {
    prop_oneof![
        4 => some_upsert(),
        1 => some_key().prop_map(RegistryRequest::Close),
        1 => some_key().prop_map(RegistryRequest::Activate),
        1 => some_key().prop_map(RegistryRequest::Get),
        1 => (some_key(), some_providers())
            .prop_map(|(key, providers)| RegistryRequest::SetProviders { key, providers }),
        1 => (some_key(), some_items()).prop_map(|(key, items)| RegistryRequest::AddContext { key, items }),
        1 => (some_key(), "[uv]").prop_map(|(key, owner)| RegistryRequest::SetOwner { key, owner }),
    ]
}

fn session_of(value: &Value) -> (SessionKey, Expected) {
    let text = |field: &Value| field.as_str().unwrap().to_owned();
    let key_of = |value: &Value| key(&text(&value["agent_id"]), &text(&value["session_id"]));
    let mode = if value["mode"] == "orchestrator" { "orchestrator" } else { "single_agent" };
    let expected = Expected {
        mode,
        summary: value["summary"].as_str().map(str::to_owned),
        context: Vec::new(),
        providers: value["providers"].as_array().unwrap().iter().map(key_of).collect(),
        owner: value["owner"].as_str().map(str::to_owned),
        created: value["created_at_ms"].as_u64().unwrap(),
        updated: value["updated_at_ms"].as_u64().unwrap(),
    };
    (key_of(value), expected)
}

proptest! {
    #[test]
    fn any_requests_come_to_what_a_simple_model_says(
        requests in proptest::collection::vec((some_request(), 0_u64..4), 0..40),
    ) {
        let mut registry = Registry::default();
        let mut model = Model::default();
        let mut now = 100;
        for (request, passed) in requests {
            now += passed;
            model.apply(&request, now);
            let _ = registry.answer(request, now);
            // As if another process read it and went on.
            let text = format::text(&registry);
            prop_assert_eq!(text.iter().position(|&byte| byte == b'\n'), Some(text.len() - 1));
            registry = format::parse(&text).unwrap();

            prop_assert_eq!(registry.active(), model.active.as_ref());
            let mut sessions = BTreeMap::new();
            for session in &registry.sessions {
                // What no reader of Unicode would take.
                let stripped = Session { context: Vec::new(), ..session.clone() };
                let (key, mut found) = session_of(&serde_json::to_value(&stripped).unwrap());
                found.context = session.context.iter().map(|item| item.get().to_owned()).collect();
                sessions.insert(key, found);
            }
            prop_assert_eq!(sessions.len(), registry.sessions.len());
            prop_assert_eq!(&sessions, &model.sessions);
        }
    }

    #[test]
    fn any_bytes_are_a_registry_or_said_to_be_none(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = format::parse(&text);
    }
}
