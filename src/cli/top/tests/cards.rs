//! The display of a card in the inbox, and the decisions of its keys.

use super::*;
use crate::wire::ServerLine;

fn notice(screen: &Screen) -> &str {
    &screen.notice.as_ref().unwrap().text
}

fn line(line: &Value) -> ServerLine<'static> {
    ServerLine::read(line.to_string().as_bytes()).unwrap()
}

fn file() -> Value {
    json!({ "action": "read", "content": "fn auth() {}\n", "version": "v1" })
}

fn conflict(status: &str) -> Value {
    json!({
        "type": "conflict", "id": "c1", "path": "core/db.rs", "kind": "held",
        "agents": ["ui", "core"], "session_id": "s", "status": status,
        "message": "`core` has `core/db.rs` locked, and `ui` waits to write it",
        "timestamp_ms": NOW - 5000,
    })
}

fn budget(agent: Option<&str>, used: u64) -> Value {
    let state = if used < 40_000 { "open" } else { "exceeded" };
    json!({
        "type": "budget", "agent_id": agent, "state": state, "timestamp_ms": NOW - 3000,
        "tokens": { "used": used, "limit": 40_000, "reserved": 0, "largest": 0, "estimated": false, "unknown": 0 },
        "cost": { "used": 0.1, "limit": 5.0, "currency": "EUR", "reserved": 0.0, "largest": 0.0, "unknown": 0 },
        "turns": { "used": 1, "limit": null }, "minutes": { "used": 0.5, "limit": null },
        "running": 0, "window_s": null, "on_exceed": "deny",
        "reason": "40000 of 40000 tokens are used; prompts are refused until `raise_budget`",
    })
}

/// The team's answer to the decision that was asked for last.
fn answer(screen: &mut Screen, call: &TeamCall) {
    screen.answered(call, StatusLine::done(String::new()));
}

#[test]
fn a_key_decides_the_card_that_is_shown_and_not_one_that_just_came_up() {
    let mut screen = screen();
    show(&mut screen, &file(), Instant::now());
    assert_eq!(letters(&mut screen, "a", Instant::now()), None);
    assert!(notice(&screen).contains("b1 has just come up"));
    let now = later();
    let call = called(letters(&mut screen, "a", now));
    let wanted = json!({ "decision": "allow", "id": "b1", "version": "v1" });
    assert_eq!(
        (call.call.method, &sent(&call), &*call.what),
        ("resolve_blocked", &wanted, "b1: allowed")
    );
    answer(&mut screen, &call);
    let call = called(letters(&mut screen, "s", now));
    assert_eq!(
        (&sent(&call)["decision"], &sent(&call)["scope"]),
        (&json!("allow"), &json!("session"))
    );
    answer(&mut screen, &call);
    let call = called(letters(&mut screen, "d", now));
    assert_eq!((&sent(&call)["decision"], &sent(&call)["message"]), (&json!("deny"), &Value::Null));

    // It is decided: the next one comes up, and takes no key yet.
    let mut decided = access("b1", "core/auth.rs");
    decided["status"] = "denied".into();
    fold(&mut screen, &decided);
    screen.settle(now, Some(80));
    assert_eq!(screen.inbox.card, Some(access_id("b2")));
    show(&mut screen, &file(), now);
    assert_eq!(letters(&mut screen, "a", now), None);
    let call = called(letters(&mut screen, "a", now + Duration::from_millis(500)));
    assert_eq!(sent(&call)["id"], "b2");
    // A key that is held decides nothing, nor do two that are pressed for one card.
    assert_eq!(letters(&mut screen, "a", now + Duration::from_secs(1)), None);
    assert!(notice(&screen).contains("on its way"));
    answer(&mut screen, &call);
    // A control key is no letter, and a card that is not drawn takes none.
    let held = KeyEvent::new(KeyCode::Char('s'), KeyModifiers::CONTROL);
    assert_eq!(screen.key(held, now + Duration::from_secs(1)), None);
    let later = now + Duration::from_secs(9);
    screen.settle(later, None);
    assert_eq!(screen.key(KeyEvent::from(KeyCode::Char('a')), later), None);
    assert!(notice(&screen).contains("too small"));
    letters(&mut screen, "? ", later);
    assert_eq!(letters(&mut screen, "a", later), None);
    assert!(notice(&screen).contains("just come up"));
    // Nor does one take it that is hidden behind another pane.
    letters(&mut screen, "4i", now + Duration::from_secs(1));
    assert_eq!(letters(&mut screen, "a", now + Duration::from_secs(1)), None);
}

#[test]
fn the_diff_of_a_write_is_shown_and_scrolled() {
    let mut screen = screen();
    let added: String =
        (1..40).flat_map(|n| ["+let x".to_owned(), format!("{n} = {n};\n")]).collect();
    let diff =
        format!("--- a/core/auth.rs\n+++ b/core/auth.rs\n@@ -1 +1,39 @@\n-old\u{1b}[8m\n{added}");
    let now = later();
    let waits = text(&drawn(&screen, 80, 24));
    assert!(waits.contains("The file is on its way"), "{waits}");
    show(&mut screen, &json!({ "action": "write", "diff": diff, "version": "v1" }), now);
    let buffer = drawn(&screen, 80, 24);
    expect![[r#"
         shop  2 agents  2 wait for a decision 
          AGENT STATE   WAITS TASK        STEP                                 COST
        ▲ ui    working 2     No task yet waits for a decision                
        ● core  ready         No task yet                                      ~0.04 USD
         1 Team ui   2 Review   3 Map   4 Log   i Inbox 2 
           b1    12s ▲ ui read `core/auth.rs`
           b2    12s ▲ ui read `core/db.rs`
        ────────────────────────────────────────────────────────────────────────────────
        ui asks to read `core/auth.rs`, via fs
        owned by core; sent here by rule 2 of [[routing]]: person

        What it would change:
        --- a/core/auth.rs
        +++ b/core/auth.rs
        @@ -1 +1,39 @@
        -old [8m
        +let x1 = 1;
        +let x2 = 2;
        +let x3 = 3;
        +let x4 = 4;
        +let x5 = 5;
        … 34 more lines: PgDn

        a allow · d D deny · s session · m t pattern · r answer · PgDn file · q · ? help"#]]
    .assert_eq(&text(&buffer));
    let color = |y: u16| buffer[(0, y)].style().fg;
    assert_eq!([14, 15, 16].map(color), [Color::Cyan, Color::Red, Color::Green].map(Some));
    assert!(buffer[(0, 13)].style().add_modifier.contains(Modifier::BOLD));
    // It is asked for once.
    assert_eq!(screen.inbox.wanted(), None);
    press(&mut screen, KeyCode::PageDown, now);
    let below = text(&drawn(&screen, 80, 24));
    assert!(below.contains("+let x7 = 7;") && !below.contains("-old"), "{below}");
    letters(&mut screen, "j", now);
    assert_eq!(screen.inbox.card, Some(access_id("b2")));
    assert_eq!(screen.inbox.wanted(), Some(&access_id("b2")));
}

#[test]
fn nothing_is_allowed_before_it_is_shown() {
    let (mut screen, now) = (screen(), later());
    assert_eq!(letters(&mut screen, "a", now), None);
    assert!(notice(&screen).contains("the file of b1 is on its way"));
    // What was refused, or answers a card that is left, is no file of it.
    screen.inbox.asked(access_id("b1"));
    screen.inbox.take_file(&access_id("b2"), ShownFile::of_access(&shown_access(&file())), now);
    assert_eq!(letters(&mut screen, "s", now), None);
    // A denial needs no look at the file.
    let call = called(letters(&mut screen, "d", now));
    assert_eq!((&sent(&call)["decision"], &sent(&call)["version"]), (&json!("deny"), &Value::Null));
    answer(&mut screen, &call);
    screen.inbox.take_file(&access_id("b1"), ShownFile::refused("no such file"), now);
    // Its beginning comes up only now.
    assert_eq!(letters(&mut screen, "a", now), None);
    let frame = text(&drawn(&screen, 80, 24));
    assert!(frame.contains("Not shown: no such file"), "{frame}");
    let call = called(letters(&mut screen, "a", now + Duration::from_secs(1)));
    assert_eq!(sent(&call)["version"], Value::Null);
}

#[test]
fn what_changed_meanwhile_is_shown_anew_before_it_is_decided() {
    let (mut screen, now) = (screen(), later());
    show(&mut screen, &file(), Instant::now());
    let call = called(letters(&mut screen, "a", now));
    screen.answered(&call, StatusLine::error("b1 would be shown differently".to_owned()));
    assert_eq!(notice(&screen), "b1 would be shown differently");
    assert_eq!(screen.inbox.wanted(), Some(&access_id("b1")));
    assert_eq!(letters(&mut screen, "a", now), None);
    show(&mut screen, &json!({ "content": "fn other() {}\n", "version": "v2" }), now);
    assert_eq!(letters(&mut screen, "a", now), None);
    let call = called(letters(&mut screen, "a", now + Duration::from_secs(1)));
    assert_eq!(sent(&call)["version"], "v2");
}

#[test]
fn it_is_said_who_decided_instead() {
    let (mut screen, now) = (screen(), later());
    show(&mut screen, &file(), Instant::now());
    let mut decided = access("b1", "core/auth.rs");
    (decided["status"], decided["decided_by"]) = ("allowed".into(), "agent:core".into());
    screen.decided(&line(&decided));
    fold(&mut screen, &decided);
    assert_eq!(notice(&screen), "b1: allowed by core");
    letters(&mut screen, "4", now);
    let log = text(&drawn(&screen, 80, 24));
    assert!(log.contains("b1 allowed by core: read core/auth.rs"), "{log}");
    // One's own decision is said by its answer, and that of another card by the log.
    screen.notice = None;
    letters(&mut screen, "i", now);
    let call = called(letters(&mut screen, "d", now + Duration::from_secs(1)));
    assert_eq!(sent(&call)["id"], "b2");
    for id in ["b2", "b9"] {
        let mut decided = access(id, "core/db.rs");
        (decided["status"], decided["decided_by"]) = ("denied".into(), "person".into());
        screen.decided(&line(&decided));
        assert_eq!(screen.notice, None, "{id}");
    }
}

#[test]
fn conflicts_and_budgets_are_cards() {
    let (mut screen, now) = (screen(), later());
    for line in [conflict("pending"), budget(Some("core"), 41_200), budget(None, 40_000)] {
        fold(&mut screen, &line);
    }
    letters(&mut screen, "jj", Instant::now());
    expect![[r#"
         shop  2 agents  5 wait for a decision  budget exceeded
          AGENT STATE   WAITS TASK        STEP                                 COST
        ● core  ready   1     No task yet                                      ~0.04 USD
        ▲ ui    working 3     No task yet waits for a decision                
         1 Team ui   2 Review   3 Map   4 Log   i Inbox 5 
           b1    12s ▲ ui read `core/auth.rs`
           b2    12s ▲ ui read `core/db.rs`
           c1     5s ▲ ui write `core/db.rs` of core
        ────────────────────────────────────────────────────────────────────────────────
        ui waits to write `core/db.rs`
        `core` has `core/db.rs` locked, and `ui` waits to write it

        The file is on its way …







        a allow · d D deny · PgDn file · Tab agents · i back · q · ? help"#]]
    .assert_eq(&text(&drawn(&screen, 80, 21)));
    let card = CardId { kind: CardKind::Conflict, id: "c1".to_owned() };
    assert_eq!(screen.inbox.wanted(), Some(&card));
    // The same rules for keys.
    assert_eq!(letters(&mut screen, "a", now), None);
    assert_eq!(notice(&screen), "the file of c1 is on its way");
    let shown = json!({ "diff": "@@ -1 +1 @@\n-one\n+two\n", "version": "v1" });
    show(&mut screen, &shown, Instant::now());
    let frame = text(&drawn(&screen, 80, 21));
    assert!(frame.contains("+two"), "{frame}");
    assert_eq!(letters(&mut screen, "a", Instant::now()), None);
    assert!(notice(&screen).contains("c1 has just come up"));
    assert_eq!(letters(&mut screen, "s", now), None);
    assert!(notice(&screen).contains("c1 takes"));
    let call = called(letters(&mut screen, "a", now));
    let wanted = json!({ "decision": "allow", "id": "c1", "version": "v1" });
    assert_eq!((call.call.method, &sent(&call)), ("resolve_conflict", &wanted));
    answer(&mut screen, &call);
    letters(&mut screen, "Dlater", now);
    let call = called(press(&mut screen, KeyCode::Enter, now));
    let wanted = json!({
        "decision": "deny", "message": "later", "id": "c1", "version": "v1",
    });
    assert_eq!((call.call.method, &sent(&call)), ("resolve_conflict", &wanted));
    fold(&mut screen, &conflict("denied"));
    assert_eq!(screen.view.waiting().count(), 4);
}

#[test]
fn a_budget_asks_for_a_new_total() {
    let (mut screen, now) = (screen(), later());
    fold(&mut screen, &budget(Some("core"), 41_200));
    fold(&mut screen, &budget(None, 40_000));
    letters(&mut screen, "jj", Instant::now());
    let frame = text(&drawn(&screen, 80, 24));
    assert!(frame.contains("prompts are refused until `raise_budget`"), "{frame}");
    assert!(frame.contains("r new total"), "{frame}");
    assert_eq!(letters(&mut screen, "a", now), None);
    assert_eq!(notice(&screen), "the budget of core takes `r`: a new total");
    letters(&mut screen, "r80k", now);
    let frame = text(&drawn(&screen, 80, 24));
    assert!(frame.contains("new total of tokens, the budget of core: 80k"), "{frame}");
    assert_eq!(press(&mut screen, KeyCode::Enter, now), None);
    assert_eq!(notice(&screen), "`80k` is no total of tokens: type a number");
    letters(&mut screen, "r80000", now);
    let call = called(press(&mut screen, KeyCode::Enter, now));
    let wanted = json!({ "tokens": 80_000, "agent_id": "core" });
    assert_eq!((call.call.method, &sent(&call)), ("raise_budget", &wanted));
    assert_eq!(call.what, "the budget of core: tokens up to 80000");
    answer(&mut screen, &call);
    fold(&mut screen, &budget(Some("core"), 10));
    // The team's has no agent.
    letters(&mut screen, "jj", now);
    letters(&mut screen, "r90000", now + Duration::from_secs(1));
    let call = called(press(&mut screen, KeyCode::Enter, now));
    assert_eq!(sent(&call), json!({ "tokens": 90_000 }));
}

#[test]
fn what_is_missing_is_marked_and_what_is_unknown_is_said() {
    let (mut screen, now) = (screen(), later());
    let said = |text: &str| json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
    screen.update("ui", "s", &said("I read"), now);
    screen.missed("lines of the team were missed here");
    screen.update("ui", "s", &said("the rest.\n"), now);
    letters(&mut screen, "1", now);
    let frame = text(&drawn(&screen, 80, 12));
    let wanted = "I read\n── lines of the team were missed here ──\nthe rest.";
    assert!(frame.contains(wanted), "{frame}");
    screen.reconnected(&["b1: allowed".to_owned()]);
    screen.joined();
    let frame = text(&drawn(&screen, 120, 12));
    assert!(frame.contains("the connection was lost: lines may be missing here"), "{frame}");
    let unknown = "the connection was lost, and there is a new one; not known whether it was done: b1: allowed";
    assert!(frame.contains(unknown), "{frame}");
    letters(&mut screen, "4", now);
    let frame = text(&drawn(&screen, 120, 12));
    assert!(frame.contains(unknown), "{frame}");
}

#[test]
fn the_offered_pattern_is_shown_and_can_be_changed_before_it_is_allowed() {
    let mut screen = screen();
    let mut waits = access("b1", "core/auth.rs");
    waits["match"] = "core/**".into();
    waits["until_ms"] = (NOW + 245_000).into();
    fold(&mut screen, &waits);
    show(&mut screen, &file(), Instant::now());
    let shown = text(&drawn(&screen, 100, 24));
    assert!(shown.contains("; 4 min left") && shown.contains("`m` offers `core/**`"), "{shown}");
    let now = later();
    assert_eq!(letters(&mut screen, "m", now), None);
    let typing = text(&drawn(&screen, 100, 24));
    assert!(typing.contains("allow with b1 for the session: core/**"), "{typing}");
    press(&mut screen, KeyCode::Backspace, now);
    letters(&mut screen, "rs", now);
    let call = called(press(&mut screen, KeyCode::Enter, now));
    let wanted = json!({
        "decision": "allow", "id": "b1", "version": "v1", "scope": "session", "match": "core/*rs",
    });
    assert_eq!((sent(&call), &*call.what), (wanted, "b1: core/*rs allowed for the session"));
    answer(&mut screen, &call);
    letters(&mut screen, "t", now);
    let call = called(press(&mut screen, KeyCode::Enter, now));
    assert_eq!((&sent(&call)["scope"], &sent(&call)["match"]), (&json!("team"), &json!("core/**")));

    // Of what only the path itself opens, nothing is offered.
    let mut decided = access("b1", "core/auth.rs");
    decided["status"] = "allowed".into();
    fold(&mut screen, &decided);
    screen.settle(now, Some(80));
    show(&mut screen, &file(), now);
    let now = now + Duration::from_secs(1);
    assert_eq!(letters(&mut screen, "m", now), None);
    assert!(notice(&screen).contains("only the path itself"), "{}", notice(&screen));
    let call = called(letters(&mut screen, "t", now));
    assert_eq!((&sent(&call)["scope"], sent(&call).get("match")), (&json!("team"), None));
}
