//! The acts of a team are in its journal.

use eisen_base::task;
use serde_json::json;
use tempfile::TempDir;

use super::{all, following, key, payload, record, settings, update};
use crate::journal::{Event, Keep, Settings, Store, start};
use crate::model::{
    self, AgentId, AgentReport, AgentState, AgentStatus, BlockedAccess, BlockedStatus, Charge,
    Cost, Decided, DecidedBy, Figure, Record, SessionMode, Spending, Spent, TeamUpdate,
    TerminalExit, Tokens, TurnEnd, Usage, Via,
};

fn types(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

fn chunk(kind: &str, text: &str) -> model::Event {
    let content = json!({ "type": "text", "text": text });
    update("a/s", &json!({ "sessionUpdate": kind, "content": content }))
}

fn turn_end(turn: u64, stop_reason: &str, reason: Option<&str>) -> model::Event {
    model::Event::Turn(TurnEnd {
        key: key("a/s"),
        mode: SessionMode::SingleAgent,
        turn,
        stop_reason: stop_reason.into(),
        reason: reason.map(Into::into),
        spent: Spent::default(),
    })
}

/// Publishes events with a journal, and returns what it has after its orderly end.
async fn journal(keep: Keep, events: Vec<model::Event>) -> Vec<Event> {
    let folder = TempDir::new().unwrap();
    let settings = Settings { keep, ..settings(folder.path()) };
    let path = settings.path.clone();
    let (bus, journal, ended) = following(settings);
    for event in events {
        bus.publish(event);
    }
    drop(bus);
    ended.await.unwrap();
    assert_eq!(journal.trouble(), None);
    let events = all(&path);
    let mut session: Vec<_> = events.iter().filter_map(|event| event.sequence).collect();
    session.sort_unstable();
    assert_eq!(session, (0..session.len() as u64).collect::<Vec<_>>(), "no holes");
    events
}

fn a_turn() -> Vec<model::Event> {
    let prompt = json!([{ "type": "text", "text": "do it" }, { "type": "resource_link", "uri": "file:///x" }]);
    let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Write x",
        "kind": "edit", "status": "pending" });
    let input = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c",
        "rawInput": { "path": "x", "env": { "API_KEY": "sk-1" } }, "status": "in_progress" });
    let done = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed",
        "content": [{ "type": "content", "content": { "type": "text", "text": "no such file" } }] });
    vec![
        record("a/s", Record::Opened { is_new: true }),
        record("a/s", Record::TurnBegan),
        record("a/s", Record::Prompt(prompt.to_string().into())),
        chunk("agent_thought_chunk", "hm"),
        chunk("agent_message_chunk", "I will "),
        chunk("agent_message_chunk", "write."),
        update("a/s", &call),
        update("a/s", &input),
        update("a/s", &done),
        record("a/s", Record::Usage(Usage { used: 5, size: 10, cost: None })),
        record("a/s", Record::Usage(Usage { used: 5, size: 10, cost: None })),
        update("a/s", &json!({ "sessionUpdate": "plan", "entries": [{ "content": "a" }] })),
        update("a/s", &json!({ "sessionUpdate": "from_the_future", "token": "t", "x": [1] })),
        chunk("agent_message_chunk", "done"),
        turn_end(0, "end_turn", None),
        turn_end(1, "error", Some("the model is away")),
    ]
}

#[tokio::test]
async fn a_result_has_what_the_terminals_of_its_call_printed_and_a_turn_what_it_took() {
    let shows = |status: &str| {
        let content = json!([{ "type": "terminal", "terminalId": "term_1" }]);
        update(
            "a/s",
            &json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c",
            "title": "make", "status": status, "content": content }),
        )
    };
    let printed = |output: &str, exit| {
        let printed = TeamUpdate::terminal("term_1", output, false, exit).to_json();
        record("a/s", Record::Update(printed))
    };
    let exit = TerminalExit { exit_code: Some(2), signal: None };
    let mut end = turn_end(0, "end_turn", None);
    if let model::Event::Turn(end) = &mut end {
        let dollars = Cost { amount: 0.04, currency: "USD".into() };
        let tokens = Tokens::of(|_| Figure::Measured(7));
        let cost = Some(Charge::Measured(dollars));
        end.spent.add(&Spending { model: None, tokens: Some(tokens), cost });
    }
    let prompt = record("a/s", Record::Update(TeamUpdate::prompt("do it").to_json()));
    let all = || {
        let (half, whole) = (printed("half", None), printed("half and half", Some(exit.clone())));
        let begun = record("a/s", Record::TurnBegan);
        vec![begun, prompt.clone(), half, shows("in_progress"), whole, shows("failed"), end.clone()]
    };
    let events = journal(Keep::default(), all()).await;
    assert_eq!(types(&events), ["tool.call", "tool.result", "turn.end"]);
    let at = |kind: &str| payload(events.iter().find(|it| it.kind.as_str() == kind).unwrap());
    let result = at("tool.result");
    assert_eq!(
        result["content"],
        json!([{ "type": "terminal", "terminalId": "term_1", "output": "half and half",
            "truncated": false, "exitStatus": { "exitCode": 2 } }])
    );
    let spent = &at("turn.end")["spent"];
    assert_eq!((&spent["total"], &spent["cost"][0]["amount"]), (&json!(7), &json!(0.04)));

    let keep = Keep { texts: false, ..Keep::default() };
    let events = journal(keep, all()).await;
    assert!(events.iter().all(|event| !event.payload.get().contains("half")));
}

#[tokio::test]
async fn a_call_that_the_kernel_stops_parts_no_message() {
    let access = BlockedAccess {
        via: Via::Kernel,
        ..eisen_testing::blocked_access("b1", key("a/s"), BlockedStatus::Pending)
    };
    let events = vec![
        record("a/s", Record::Opened { is_new: true }),
        chunk("agent_message_chunk", "the key is hunter2"),
        model::Event::Blocked(access),
        chunk("agent_message_chunk", "SECRET."),
    ];
    let events = journal(Keep::default(), events).await;
    let kinds = ["session.start", "blocked", "message.assistant", "session.end"];
    assert_eq!(types(&events), kinds);
    assert_eq!(payload(&events[2])["text"], "the key is hunter2SECRET.");
}

#[tokio::test]
async fn a_prompt_begins_with_the_words_of_its_person() {
    let hint = json!({ "type": "text", "text": "The tools are …", "annotations": { "audience": ["assistant"] } });
    let prompt = json!([hint, { "type": "text", "text": "do it" }]).to_string();
    let events =
        vec![record("a/s", Record::TurnBegan), record("a/s", Record::Prompt(prompt.into()))];
    let events = journal(Keep::default(), events).await;
    let prompt = events.iter().find(|event| event.kind.as_str() == "message.user").unwrap();
    assert_eq!(payload(prompt)["text"], "do it\nThe tools are …");
}

#[tokio::test]
async fn a_turn_is_kept_message_by_message() {
    let events = journal(Keep::default(), a_turn()).await;
    let expected = [
        "session.start",
        "message.user",
        "message.thought",
        "message.assistant",
        "tool.call",
        "tool.result",
        "usage",
        "plan",
        "update",
        "message.assistant",
        "turn.end",
        "turn.failed",
        "session.end",
    ];
    assert_eq!(types(&events), expected);
    let text = |place: usize| payload(&events[place])["text"].clone();
    assert_eq!([text(1), text(2), text(3)], ["do it", "hm", "I will write."]);
    assert_eq!(payload(&events[1])["blocks"][0]["uri"], "file:///x");
    let call = payload(&events[4]);
    assert_eq!((&call["title"], &call["input"]["path"]), (&json!("Write x"), &json!("x")));
    assert_eq!(call["input"]["env"]["API_KEY"], "***");
    let result = payload(&events[5]);
    assert_eq!((&result["tool_call_id"], &result["status"]), (&json!("c"), &json!("failed")));
    assert!(result["error"].as_str().unwrap().contains("no such file"));
    assert!(result["duration_ms"].is_u64());
    let future = payload(&events[8]);
    assert_eq!(future["update"]["x"], json!([1]));
    assert_eq!(future["update"]["token"], "***");
    assert_eq!(payload(&events[11])["reason"], "the model is away");
    assert!(events[1..11].iter().all(|event| event.turn == Some(0)));
    assert_eq!(events[11].turn, Some(1));
}

#[tokio::test]
async fn no_search_finds_a_secret_in_a_result() {
    let done = json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "status": "failed",
        "content": [{ "type": "from_the_future", "api_key": "sk-1234", "text": "visible" }] });
    let folder = TempDir::new().unwrap();
    let settings = settings(folder.path());
    let path = settings.path.clone();
    let (bus, _journal, ended) = following(settings);
    bus.publish(update("a/s", &done));
    drop(bus);
    ended.await.unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(store.search("visible", 9).unwrap().len(), 1);
    assert!(store.search("1234", 9).unwrap().is_empty());
    assert!(!all(&path).iter().any(|event| event.payload.get().contains("1234")));
}

#[tokio::test]
async fn metadata_has_no_texts() {
    let events = journal(Keep { texts: false, ..Keep::default() }, a_turn()).await;
    assert_eq!(events.len(), 13);
    let all: String = events.iter().map(|event| event.payload.get()).collect();
    for text in ["do it", "I will", "hm\"", "Write x", "no such file", "sk-1", "\"x\""] {
        assert!(!all.contains(text), "{text} in {all}");
    }
    assert_eq!(payload(&events[3])["bytes"], 13);
}

#[tokio::test]
async fn what_a_loaded_session_repeats_is_not_kept_again() {
    let events = journal(
        Keep::default(),
        vec![
            record("a/s", Record::Replays(true)),
            chunk("agent_message_chunk", "old"),
            record("a/s", Record::Replays(false)),
            record("a/s", Record::Opened { is_new: true }),
            chunk("agent_message_chunk", "new"),
        ],
    )
    .await;
    assert_eq!(types(&events), ["session.start", "message.assistant", "session.end"]);
    assert_eq!(payload(&events[1])["text"], "new");
}

#[tokio::test]
async fn huge_and_torn_updates_are_bounded_and_marked() {
    let huge = "x".repeat(5 << 20);
    let mut deep = json!("x");
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let mut sent = vec![
        record("a/s", Record::Opened { is_new: true }),
        chunk("agent_message_chunk", &huge),
        chunk("agent_message_chunk", "more"),
        update(
            "a/s",
            &json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "rawInput": [&huge], "status": "completed" }),
        ),
        update(
            "a/s",
            &json!({ "sessionUpdate": "tool_call", "toolCallId": huge, "rawInput": [1] }),
        ),
        update("a/s", &json!({ "sessionUpdate": "plan", "entries": [huge] })),
        update("a/s", &json!({ "sessionUpdate": "new", "x": huge, "deep": deep })),
        update("a/s", &json!({ "sessionUpdate": 7 })),
        update("a/s", &json!({ "sessionUpdate": "agent_message_chunk", "content": 7 })),
        update("a/s", &json!([1])),
        record("a/s", Record::Update("{\"sessionUpdate\":\"\\u0000\\ud800\"".into())),
        record("a/s", Record::Prompt("no json".into())),
        record("a/s", Record::PermissionAnswered { id: "1".into(), result: None }),
        record("b/t", Record::Closed),
    ];
    for number in 0..2_000 {
        let call = json!({ "sessionUpdate": "tool_call", "toolCallId": number.to_string() });
        sent.push(update("a/s", &call));
    }
    let events = journal(Keep::default(), sent).await;
    assert!(events.iter().all(|event| event.payload.get().len() < 2 << 20));
    let message = events.iter().find(|event| event.kind == "message.assistant").unwrap();
    let message = payload(message);
    assert_eq!((&message["truncated"], &message["bytes"]), (&json!(true), &json!((5 << 20) + 4)));
    let calls = events.iter().filter(|event| event.kind == "tool.result").count();
    assert_eq!(calls, 2_001);
}

#[tokio::test]
async fn decisions_name_who_decided_and_what_was_granted() {
    let access = |status| BlockedAccess {
        path: "src/x.rs".into(),
        owners: vec![AgentId::new("b")],
        decided_by: (status == BlockedStatus::Allowed).then_some(DecidedBy::Person),
        timestamp_ms: 1,
        ..eisen_testing::blocked_access("b1", key("a/s"), status)
    };
    let decided = Decided {
        access: access(BlockedStatus::Allowed),
        message: None,
        scope: crate::model::GrantSpan::Session,
        pattern: None,
        ttl: None,
    };
    let events = journal(
        Keep::default(),
        vec![
            model::Event::Blocked(access(BlockedStatus::Pending)),
            record("a/s", Record::Decided(Box::new(decided))),
            model::Event::Blocked(access(BlockedStatus::Allowed)),
            model::Event::Blocked(access(BlockedStatus::Expired)),
        ],
    )
    .await;
    assert_eq!(types(&events), ["blocked", "blocked", "grant", "blocked"]);
    let by: Vec<_> = events.iter().map(|event| payload(event)["decided_by"].clone()).collect();
    assert_eq!(by, [json!(null), json!("person"), json!("person"), json!(null)]);
    assert_eq!(payload(&events[2])["scope"], "session");
}

#[tokio::test]
async fn permissions_have_their_outcome() {
    let params = json!({ "toolCall": { "toolCallId": "c", "title": "Run" },
        "options": [{ "optionId": "y", "kind": "allow_once", "name": "Yes" }] });
    let result = json!({ "outcome": { "outcome": "selected", "optionId": "y" } });
    let id = || "\"1\"".into();
    let events = journal(
        Keep::default(),
        vec![
            record("a/s", Record::PermissionAsked { id: id(), params: params.to_string().into() }),
            record(
                "a/s",
                Record::PermissionAnswered { id: id(), result: Some(result.to_string().into()) },
            ),
        ],
    )
    .await;
    let permission = payload(&events[0]);
    assert_eq!(
        (&permission["outcome"], &permission["option_kind"]),
        (&json!("selected"), &json!("allow_once"))
    );
    assert_eq!(permission["tool_call_id"], "c");
}

#[tokio::test]
async fn an_agent_that_stops_ends_its_sessions() {
    let status = AgentStatus {
        agent: AgentId::new("a"),
        state: AgentState::Restarting,
        pid: None,
        reason: Some("exited".to_owned()),
        restarts: 1,
        candidate: None,
        timestamp_ms: 1,
    };
    let sent = vec![
        record("a/s", Record::Opened { is_new: true }),
        model::Event::Agent(status),
        record("a/s", Record::Opened { is_new: false }),
    ];
    let events = journal(Keep::default(), sent).await;
    let expected = ["session.start", "session.end", "agent.state", "session.start", "session.end"];
    assert_eq!(types(&events), expected);
    assert_eq!(events[0].session_id, events[3].session_id);
}

#[tokio::test]
async fn what_an_agent_reports_is_kept_unless_texts_are_not() {
    let report = || AgentReport { agent: AgentId::new("a"), text: "Half".into(), timestamp_ms: 1 };
    for (keep, text) in [(Keep::default(), "Half"), (Keep { texts: false, ..Keep::default() }, "")]
    {
        let events = journal(keep, vec![model::Event::Report(report())]).await;
        assert_eq!(types(&events), ["report"]);
        assert_eq!(payload(&events[0]), json!({ "text": text, "bytes": 4 }));
    }
}

#[tokio::test]
async fn what_settles_is_committed_while_a_message_grows() {
    let folder = TempDir::new().unwrap();
    let settings = settings(folder.path());
    let path = settings.path.clone();
    let (bus, journal, _ended) = following(settings);
    bus.publish(record("a/s", Record::Opened { is_new: true }));
    bus.publish(chunk("agent_message_chunk", "half of"));
    journal.settled(bus.position()).await.unwrap();
    assert_eq!(types(&all(&path)), ["session.start"]);
    bus.publish(chunk("agent_message_chunk", " it"));
    bus.publish(turn_end(0, "end_turn", None));
    journal.settled(bus.position()).await.unwrap();
    let events = all(&path);
    assert_eq!(types(&events), ["session.start", "message.assistant", "turn.end"]);
    assert_eq!(payload(&events[1])["text"], "half of it");
    let store = Store::open(&path).unwrap();
    assert_eq!(store.search("\"half of it\"", 5).unwrap().len(), 1);
}

#[tokio::test]
async fn it_knows_how_far_it_is_behind_and_what_it_lost() {
    let folder = TempDir::new().unwrap();
    let bus = crate::bus::Bus::new(crate::bus::Backlog::of(4));
    let (journal, following) = start(settings(folder.path()), bus.subscribe());
    for _ in 0..10 {
        bus.publish(record("a/s", Record::Compacted));
    }
    let before = journal.progress();
    assert_eq!((before.read, before.gaps, before.lost), (0, 0, 0));
    let following = task::spawn(following);
    journal.settled(bus.position()).await.unwrap();
    let after = journal.progress();
    assert_eq!((after.read, after.gaps), (10, 1));
    let events = all(&journal.settings().path);
    let gap = events.iter().find(|event| event.kind == "gap").unwrap();
    assert_eq!(payload(gap)["events"], after.lost);
    drop(bus);
    following.await.unwrap();
}
