//! Waits for decisions: permissions, blocked accesses, writes in conflict.

use std::num::NonZeroU32;

use expect_test::expect;

use super::{fold, fold_all, key, record, text, turn_end, update};
use crate::model::{
    AccessRule, AgentId, BlockedAccess, BlockedStatus, Conflict, ConflictId, ConflictKind,
    ConflictStatus, Decide, Decided, DecidedBy, Event, Record, SessionId, SessionKey,
};

fn access(id: &str, key: SessionKey, status: BlockedStatus) -> BlockedAccess {
    BlockedAccess {
        owners: vec![AgentId::new("api")],
        timestamp_ms: 2_100,
        ..eisen_testing::blocked_access(id, key, status)
    }
}

fn decided(access: BlockedAccess, by: DecidedBy, for_session: bool, at: u64) -> Event {
    let message = Some("ask api".to_owned());
    let access = BlockedAccess { decided_by: Some(by), ..access };
    let scope =
        if for_session { crate::model::GrantSpan::Session } else { crate::model::GrantSpan::Once };
    let decided = Decided { access, message, scope, ttl: None, pattern: None };
    record("ui", Record::Decided(Box::new(decided)), at)
}

#[test]
fn a_permission_is_below_its_call() {
    let call =
        r#"{"sessionUpdate":"tool_call","toolCallId":"c1","title":"npm test","kind":"execute"}"#;
    let asked = r#"{"sessionId":"ui-s1","toolCall":{"toolCallId":"c1","title":"npm test"},"options":[
        {"optionId":"a","name":"Yes","kind":"allow_once"},{"optionId":"r","name":"No","kind":"reject_once"}]}"#;
    let ask = |id: &str, at| {
        let (id, params) = (text(id), text(asked));
        (at, record("ui", Record::PermissionAsked { id, params }, at))
    };
    let answer = |id: &str, result: Option<&str>, at| {
        let (id, result) = (text(id), result.map(text));
        (at, record("ui", Record::PermissionAnswered { id, result }, at))
    };
    let spans = fold_all(
        &mut fold(false, None),
        &[
            (2_000, record("ui", Record::TurnBegan, 2_000)),
            (2_100, update("ui", call, 2_100)),
            ask("1", 2_200),
            answer("1", Some(r#"{"outcome":{"outcome":"selected","optionId":"a"}}"#), 2_300),
            ask("2", 2_400),
            answer("2", Some(r#"{"outcome":{"outcome":"selected","optionId":"r"}}"#), 2_500),
            ask("3", 2_600),
            answer("3", Some(r#"{"outcome":{"outcome":"cancelled"}}"#), 2_700),
            ask("4", 2_800),
            answer("4", None, 2_900),
            ask("5", 3_000),
            answer("6", None, 3_000),
            (3_100, turn_end("ui", "end_turn", None)),
        ],
    );
    let spans: String =
        spans.split_inclusive('\n').take_while(|it| !it.contains("workflow")).collect();
    expect![[r#"
        6/9 in 4 permission execute (internal, 2200-2300)
          eisen.decision.kind = permission
          gen_ai.agent.name = ui
          gen_ai.conversation.id = ui-s1
          gen_ai.tool.call.id = c1
          eisen.decision.outcome = allowed
          eisen.decision.option_kind = allow_once
        6/10 in 4 permission execute (internal, 2400-2500)
          eisen.decision.kind = permission
          gen_ai.agent.name = ui
          gen_ai.conversation.id = ui-s1
          gen_ai.tool.call.id = c1
          eisen.decision.outcome = denied
          eisen.decision.option_kind = reject_once
        6/11 in 4 permission execute (internal, 2600-2700)
          eisen.decision.kind = permission
          gen_ai.agent.name = ui
          gen_ai.conversation.id = ui-s1
          gen_ai.tool.call.id = c1
          eisen.decision.outcome = cancelled
        6/12 in 4 permission execute (internal, 2800-2900)
          eisen.decision.kind = permission
          gen_ai.agent.name = ui
          gen_ai.conversation.id = ui-s1
          gen_ai.tool.call.id = c1
          eisen.decision.outcome = failed
        6/4 in 8 execute_tool execute (internal, 2100-3100)
          gen_ai.operation.name = execute_tool
          gen_ai.tool.name = execute
          gen_ai.tool.call.id = c1
          gen_ai.agent.name = ui
          gen_ai.conversation.id = ui-s1
          eisen.tool.kind = execute
          eisen.incomplete = true
        6/13 in 4 permission execute (internal, 3000-3100)
          eisen.decision.kind = permission
          gen_ai.agent.name = ui
          gen_ai.conversation.id = ui-s1
          gen_ai.tool.call.id = c1
          eisen.incomplete = true
    "#]]
    .assert_eq(&spans);
}

#[test]
fn a_permission_of_a_call_that_was_not_reported_yet_has_its_name() {
    let asked = r#"{"toolCall":{"toolCallId":"c1","title":"npm test","kind":"execute"}}"#;
    let (id, params) = (text("1"), text(asked));
    let spans = fold_all(
        &mut fold(false, None),
        &[
            (2_000, record("ui", Record::TurnBegan, 2_000)),
            (2_100, record("ui", Record::PermissionAsked { id, params }, 2_100)),
            (2_200, turn_end("ui", "end_turn", None)),
        ],
    );
    assert!(spans.starts_with("5/8 in 7 permission execute (internal, 2100-2200)\n"), "{spans}");
    assert!(!spans.contains("npm test"), "{spans}");
}

#[test]
fn a_wait_whose_decision_was_missed_ends_with_its_turn() {
    let mut fold = fold(false, None);
    let pending =
        |id: &str, agent: &str| Event::Blocked(access(id, key(agent), BlockedStatus::Pending));
    let before = [
        (2_000, record("ui", Record::TurnBegan, 2_000)),
        (2_100, pending("b1", "ui")),
        (2_100, pending("b2", "api")),
    ];
    assert_eq!(fold_all(&mut fold, &before), "");
    fold.missed();
    let after = [
        // One that began later, and outlasts the turn.
        (2_200, pending("b3", "ui")),
        (2_300, turn_end("ui", "end_turn", None)),
        (2_400, Event::Blocked(access("b2", key("api"), BlockedStatus::Denied))),
        (2_500, Event::Blocked(access("b3", key("ui"), BlockedStatus::Denied))),
    ];
    let spans = fold_all(&mut fold, &after);
    let said = |id: &str| {
        let mut blocks = spans.split_inclusive('\n').fold(Vec::new(), |mut blocks, line| {
            if !line.starts_with("  ") {
                blocks.push(String::new());
            }
            blocks.last_mut().unwrap().push_str(line);
            blocks
        });
        blocks.retain(|block| block.contains(&format!("decision.id = {id}\n")));
        let [wait] = &blocks[..] else { panic!("{id}: {spans}") };
        let times = wait.split(['(', ')']).nth(1).unwrap().to_owned();
        (times, wait.contains("outcome"), wait.contains("eisen.incomplete"))
    };
    assert_eq!(said("b1"), ("internal, 2100-2300".to_owned(), false, true));
    assert_eq!(said("b2"), ("internal, 2100-2400".to_owned(), true, true));
    assert_eq!(said("b3"), ("internal, 2100-2500".to_owned(), true, false));
}

#[test]
fn an_access_that_waits_is_a_span_until_it_is_decided() {
    let ui = || key("ui");
    let mut by_rule = access("b2", ui(), BlockedStatus::Pending);
    let number = NonZeroU32::new(3).unwrap();
    by_rule.rule = Some(AccessRule { number, decide: Decide::Person });
    let allowed = access("b1", ui(), BlockedStatus::Allowed);
    let spans = fold_all(
        &mut fold(false, None),
        &[
            (2_000, record("ui", Record::TurnBegan, 2_000)),
            (2_110, Event::Blocked(access("b1", ui(), BlockedStatus::Pending))),
            (2_120, Event::Blocked(access("b1", ui(), BlockedStatus::Pending))),
            (2_130, Event::Blocked(by_rule)),
            // Denied at once: nothing waited.
            (2_140, Event::Blocked(access("b9", ui(), BlockedStatus::Denied))),
            (2_200, decided(allowed.clone(), DecidedBy::Person, true, 2_200)),
            (2_201, Event::Blocked(allowed)),
            (2_300, turn_end("ui", "end_turn", None)),
            (2_400, Event::Blocked(access("b2", ui(), BlockedStatus::Expired))),
        ],
    );
    let waits: Vec<_> = spans.split_inclusive('\n').collect();
    let mut is_wait = false;
    let waits: String = waits
        .into_iter()
        .filter(|line| {
            is_wait = if line.starts_with("  ") { is_wait } else { line.contains(" access ") };
            is_wait
        })
        .collect();
    expect![[r#"
        5/8 in 7 access read (internal, 2100-2200)
          eisen.decision.kind = access
          gen_ai.agent.name = ui
          gen_ai.conversation.id = ui-s1
          eisen.decision.id = b1
          eisen.decision.action = read
          eisen.decision.via = fs
          eisen.decision.outcome = allowed
          eisen.decision.by = person
          eisen.decision.scope = session
        5/9 in 7 access read (internal, 2100-2400)
          eisen.decision.kind = access
          gen_ai.agent.name = ui
          gen_ai.conversation.id = ui-s1
          eisen.decision.id = b2
          eisen.decision.action = read
          eisen.decision.via = fs
          eisen.decision.rule = 3
          eisen.decision.outcome = expired
    "#]]
    .assert_eq(&waits);
    assert!(!spans.contains("src/api"), "{spans}");
}

#[test]
fn what_waits_outside_of_a_turn_is_a_trace_of_its_own() {
    let nobody = SessionKey::new(AgentId::new("ui"), SessionId::new(""));
    let by = DecidedBy::Agent(AgentId::new("lead"));
    let spans = fold_all(
        &mut fold(true, None),
        &[
            (2_110, Event::Blocked(access("b1", nobody.clone(), BlockedStatus::Pending))),
            (2_200, decided(access("b1", nobody, BlockedStatus::Denied), by, false, 2_200)),
        ],
    );
    expect![[r#"
        5/6 access read (internal, 2100-2200)
          links 2/3
          eisen.decision.kind = access
          gen_ai.agent.name = ui
          eisen.decision.id = b1
          eisen.decision.action = read
          eisen.decision.via = fs
          eisen.decision.path = src/api/cart.rs
          eisen.decision.outcome = denied
          eisen.decision.by = agent
          eisen.decision.agent.id = lead
          eisen.decision.message = ask api
    "#]]
    .assert_eq(&spans);
}

#[test]
fn a_write_that_waits_for_a_lock_is_a_span() {
    let conflict = |status, timestamp_ms| {
        Event::Conflict(Conflict {
            id: ConflictId::new("c1"),
            path: text("src/cart.ts"),
            kind: ConflictKind::Held,
            status,
            agents: vec![AgentId::new("ui"), AgentId::new("api")],
            session: SessionId::new(""),
            message: text("api holds src/cart.ts"),
            decided_by: (status == ConflictStatus::Allowed).then_some(DecidedBy::Person),
            timestamp_ms,
        })
    };
    let spans = fold_all(
        &mut fold(false, None),
        &[
            (2_000, record("ui", Record::TurnBegan, 2_000)),
            (2_100, conflict(ConflictStatus::Pending, 2_100)),
            (2_300, conflict(ConflictStatus::Allowed, 2_300)),
        ],
    );
    expect![[r#"
        5/8 in 7 conflict held (internal, 2100-2300)
          eisen.decision.kind = conflict
          gen_ai.agent.name = ui
          eisen.decision.id = c1
          eisen.decision.action = write
          eisen.decision.outcome = allowed
          eisen.decision.by = person
    "#]]
    .assert_eq(&spans);
}
