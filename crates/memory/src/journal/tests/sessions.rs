//! Sessions of the wire in several runs: which go on, which are others, and their turns.

use serde_json::json;

use super::{all, following, key, record, settings};
use crate::journal::{EventType, Journal, Store};
use crate::model::{self, Event, Record, SessionMode, Spent, TurnEnd};

/// A run with these events.
async fn run(folder: &std::path::Path, events: Vec<Event>) {
    let (bus, journal, following) = following(settings(folder));
    for event in events {
        bus.publish(event);
    }
    drop(bus);
    following.await.unwrap();
    drop::<Journal>(journal);
}

fn in_turn(turn: u64, of: Record) -> Event {
    let Event::Record { key, record, timestamp_ms, .. } = record("a/s", of) else { unreachable!() };
    Event::Record { key, record, turn: Some(turn), timestamp_ms }
}

fn opens(is_new: bool, turn: u64) -> Event {
    in_turn(turn, Record::Opened { is_new })
}

fn prompt(turn: u64) -> Vec<Event> {
    let text = json!([{ "type": "text", "text": "hi" }]).to_string();
    let ended = TurnEnd {
        key: key("a/s"),
        mode: SessionMode::SingleAgent,
        turn,
        stop_reason: "end_turn".into(),
        reason: None,
        spent: Spent::default(),
    };
    vec![
        in_turn(turn, Record::TurnBegan),
        in_turn(turn, Record::Prompt(text.into())),
        Event::Turn(ended),
    ]
}

fn path(folder: &std::path::Path) -> std::path::PathBuf {
    settings(folder).path
}

#[tokio::test]
async fn a_session_goes_on_in_a_later_run_only_if_it_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    run(root, [vec![opens(true, 0)], prompt(0), prompt(1)].concat()).await;
    let turns = Store::open(&path(root)).unwrap().turns_of_sessions().unwrap();
    assert_eq!(turns[&key("a/s")], 2);
    // It is loaded: its history is not written again, and its turns go on.
    let history = super::update(
        "a/s",
        &json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "x" } }),
    );
    let loaded =
        [vec![in_turn(2, Record::Replays(true)), history.clone(), opens(false, 2), history]]
            .concat();
    let went_on = [loaded, vec![in_turn(2, Record::Replays(false))], prompt(2)].concat();
    run(root, went_on).await;
    let events = all(&path(root));
    let sessions: Vec<_> = events.iter().filter_map(|event| event.session_id.clone()).collect();
    assert!(sessions.windows(2).all(|two| two[0] == two[1]), "{sessions:?}");
    assert!(events.iter().all(|event| event.kind != EventType::MESSAGE_ASSISTANT.as_str()));
    let asked = events.iter().filter(|event| event.kind == EventType::MESSAGE_USER.as_str());
    assert_eq!(asked.map(|event| event.turn).collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
    assert_eq!(Store::open(&path(root)).unwrap().turns_of_sessions().unwrap()[&key("a/s")], 3);

    // A new one of the same id is another, also if something of it comes before it is opened.
    let (early, new) = (super::update("a/s", &json!({ "sessionUpdate": "x" })), opens(true, 0));
    run(root, [vec![early, new.clone()], prompt(0), vec![new], prompt(0)].concat()).await;
    let store = Store::open(&path(root)).unwrap();
    let of_prompts: Vec<_> = all(&path(root))
        .into_iter()
        .filter(|event| event.kind == EventType::MESSAGE_USER.as_str())
        .filter_map(|event| event.session_id)
        .collect();
    assert_ne!(of_prompts[2], of_prompts[3]);
    assert_ne!(of_prompts[3], of_prompts[4], "its agent used an id twice");
    assert_eq!(store.turns_of_sessions().unwrap()[&key("a/s")], 1);
    // The first of this run.
    assert_eq!(store.first_session(Some("a")).unwrap().unwrap().id, {
        let early = all(&path(root)).into_iter().find(|event| event.kind == "update").unwrap();
        early.session_id.unwrap()
    });
    assert_eq!(store.first_session(Some("nobody")).unwrap(), None);
}

#[tokio::test]
async fn a_fork_is_one_session_with_its_opening() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    run(root, [vec![opens(true, 0)], prompt(0)].concat()).await;
    let from = all(&path(root)).pop().unwrap();
    let fork = model::Fork {
        session: from.session_id.unwrap().into(),
        event: from.id.into(),
        how: model::How::Primed,
    };
    let began =
        [record("a/f", Record::Forked(fork)), record("a/f", Record::Opened { is_new: true })];
    run(root, began.into()).await;
    let events = all(&path(root));
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds[4..], ["session.fork", "session.end"]);
    assert_eq!(events[4].session_id, events[5].session_id);
}
