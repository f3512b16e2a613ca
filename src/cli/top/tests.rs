#![allow(clippy::unwrap_used)]

mod cards;
mod team;

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use expect_test::expect;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::file::ShownFile;
use super::screen::{Pane, Screen};
use super::wish::{AgentOrder, Asking, StatusLine, TeamCall, Wish};
use super::{frame, paint};
use crate::view::{CardId, CardKind};
use crate::wire::ShownBlocked;

const NOW: u64 = 1_000_000;

fn fold(screen: &mut Screen, line: &Value) {
    screen.view.line(line["type"].as_str().unwrap(), line.to_string().as_bytes());
}

fn access(id: &str, path: &str) -> Value {
    json!({
        "type": "blocked", "id": id, "agent_id": "ui", "session_id": "s", "action": "read",
        "path": path, "status": "pending", "via": "fs", "owners": ["core"], "rule": 2,
        "decide": "person", "reason": null, "timestamp_ms": NOW - 12_000,
    })
}

/// A team with two agents and two accesses that wait.
fn screen() -> Screen {
    let mut screen = Screen::new("shop");
    screen.view.set_agents(&json!([
        {
            "agent_id": "core", "state": "ready", "zone": "kernel", "memory_bytes": 104_857_600,
            "sessions": [{ "session_id": "s", "open": true, "running": false, "used": 12_000, "size": 200_000,
                "spent": { "total": 41_200, "cost": [{ "amount": 0.042, "currency": "USD" }],
                    "estimated": ["cost"], "incomplete": [] } }],
        },
        { "agent_id": "ui", "state": "ready", "zone": "protocol",
          "sessions": [{ "session_id": "s", "open": true, "running": true }] },
    ]));
    fold(&mut screen, &access("b1", "core/auth.rs"));
    fold(&mut screen, &access("b2", "core/db.rs"));
    let node = |path: &str, heat: f32, action: &str| {
        json!({ "path": path, "heat": heat, "in_context": heat > 0.5, "last_action": action,
                "timestamp_ms": 1 })
    };
    let map = json!({
        "type": "snapshot", "agent_id": "ui", "session_id": "s", "session_mode": "single_agent",
        "seq": 1, "nodes": { "a": node("ui/app.ts", 1.0, "write"), "b": node("ui/a/b.ts", 0.4, "read") },
    });
    fold(&mut screen, &map);
    screen.settle(Instant::now(), Some(80));
    screen
}

fn drawn(screen: &Screen, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| frame::draw(screen, frame, NOW)).unwrap();
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let lines = paint::printed_lines(buffer).join("\n");
    anstream::adapter::strip_str(&lines).to_string()
}

fn press(screen: &mut Screen, code: KeyCode, now: Instant) -> Option<Wish> {
    let wish = screen.key(KeyEvent::new(code, KeyModifiers::NONE), now);
    screen.settle(now, Some(80));
    wish
}

fn letters(screen: &mut Screen, keys: &str, now: Instant) -> Option<Wish> {
    keys.chars().filter_map(|key| press(screen, KeyCode::Char(key), now)).last()
}

fn later() -> Instant {
    Instant::now() + Duration::from_secs(1)
}

fn called(wish: Option<Wish>) -> TeamCall {
    match wish {
        Some(Wish::Call(call)) => call,
        other => panic!("{other:?}"),
    }
}

/// The params of a call, but for those that are left out or off.
fn sent(call: &TeamCall) -> Value {
    let mut params = call.call.params.clone();
    params.as_object_mut().unwrap().retain(|_, it| !it.is_null() && *it != json!(false));
    params
}

fn access_id(id: &str) -> CardId {
    CardId { kind: CardKind::Access, id: id.to_owned() }
}

/// An answer of `show_blocked` with these parts.
pub(super) fn shown_access(parts: &Value) -> ShownBlocked {
    let mut shown = json!({
        "id": "b1", "agent_id": "ui", "session_id": "s", "path": "a.js", "action": "read", "content": null,
        "diff": null, "truncated": false, "binary": false, "exists": true, "rule": null, "decide": null,
        "version": "v1",
    });
    let parts = parts.as_object().unwrap().clone();
    shown.as_object_mut().unwrap().extend(parts);
    serde_json::from_value(shown).unwrap()
}

/// The team shows the file of the selected access.
fn show(screen: &mut Screen, shown: &Value, now: Instant) {
    let card = screen.inbox.wanted().unwrap().clone();
    screen.inbox.asked(card.clone());
    screen.inbox.take_file(&card, ShownFile::of_access(&shown_access(shown)), now);
    screen.settle(now, Some(80));
}

#[test]
fn each_pane_fits_a_small_terminal() {
    let mut screen = screen();
    let file =
        json!({ "action": "read", "content": "fn auth() {\n\ttodo!()\n}\n", "version": "v1" });
    show(&mut screen, &file, Instant::now());
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

        The file as it is:
        fn auth() {
            todo!()
        }








        a allow · d D deny · s session · m t pattern · r answer · PgDn file · q · ? help"#]]
    .assert_eq(&text(&drawn(&screen, 80, 24)));
    screen.pane = Pane::Map;
    expect![[r#"
         shop  2 agents  2 wait for a decision 
          AGENT STATE   WAITS TASK        STEP                                 COST
        ▲ ui    working 2     No task yet waits for a decision                
        ● core  ready         No task yet                                      ~0.04 USD
         1 Team ui   2 Review   3 Map   4 Log   i Inbox 2
        ████████ ▲ write      ui/app.ts
        ████░░░░ ▲ read       ui/a/b.ts


        1-4 panes · Tab agents · i inbox · q · ? help"#]]
    .assert_eq(&text(&drawn(&screen, 80, 10)));
    screen.pane = Pane::Log;
    expect![[r#"
         shop  2 agents  2 wait for a decision 
          AGENT STATE   WAITS TASK        STEP                                 COST
        ▲ ui    working 2     No task yet waits for a decision                
        ● core  ready         No task yet                                      ~0.04 USD
         1 Team ui   2 Review   3 Map   4 Log   i Inbox 2
           12s ui b1 pending: read core/auth.rs
           12s ui b2 pending: read core/db.rs


        ↑↓ scroll · o all · 1-4 panes · Tab agents · i inbox · q · ? help"#]]
    .assert_eq(&text(&drawn(&screen, 80, 10)));
    screen.pane = Pane::Team;
    for said in ["Let me read it.\n", "It has **markup** and \u{1b}[31mcolours\u{7}.\n"] {
        let update = json!({ "sessionUpdate": "agent_message_chunk",
                             "content": { "type": "text", "text": said } });
        screen.update("ui", "s", &update, Instant::now());
    }
    expect![[r#"
         shop  2 agents  2 wait for a decision 
          AGENT STATE   WAITS TASK                         COST
        ▲ ui    working 2     No task yet                 
        ● core  ready         No task yet                  ~0.04 USD
         1 Team ui   2 Review   3 Map   4 Log   i Inbox 2
        Let me read it.
        It has **markup** and colours.


        Tab agents · 1-4 panes · i inbox · ↑↓ scroll · q · ? help"#]]
    .assert_eq(&text(&drawn(&screen, 60, 10)));
}

#[test]
fn help_stands_above_the_panes_and_no_size_is_too_small() {
    let mut screen = screen();
    press(&mut screen, KeyCode::Char('?'), later());
    expect![[r#"
         shop  2 agents  2 wait for a decision 
        1 2 3 4    Team, Review, Map, Log
        i          the inbox: open it, close it
        Tab        agents / pane
        ↑ ↓ k j    select, or scroll; PgUp PgDn ten at once; End follows again
        f          figures of the agents: context, spent, memory, zone
        q Ctrl-C   leave; the team goes on, prompts that have not begun are withdrawn
        Inbox
        a          allow it for this tool call
        s          an access only: allow it until the session ends
        m t        an access only: allow a pattern; for the session, or for the team
        d D        deny it; with a message to the agent
        r          an access: your text stands in place of the file; a budget: a new
                   total
        PgUp PgDn  scroll its file, or the diff
        Agents
        Enter      its transcript
        p          prompt it
        c          cancel its turn
        S x R      start, stop, restart
        Panes
        l          Review: its last turn only, or all turns
        o          Log: all of it
        A card that has just come up takes no key for half a second."#]]
    .assert_eq(&text(&drawn(&screen, 80, 24)));
    // No size is too small.
    for (width, height) in [(0, 0), (1, 1), (5, 3), (20, 8), (300, 2)] {
        for (_, pane, _) in Pane::ALL {
            screen.pane = pane;
            drawn(&screen, width, height);
        }
    }
}

#[test]
fn states_and_agents_are_told_by_words_and_marks_besides_colours() {
    let screen = screen();
    let buffer = drawn(&screen, 80, 24);
    let cell = |x: u16, y: u16| (buffer[(x, y)].symbol().to_owned(), buffer[(x, y)].style());
    let (mark, style) = cell(0, 2);
    assert_eq!((mark.as_str(), style.fg), ("▲", Some(Color::Green)));
    // The card that is selected is where the focus is.
    let (_, style) = cell(4, 5);
    assert!(style.add_modifier.contains(Modifier::REVERSED), "{style:?}");
    let (_, style) = cell(4, 6);
    assert!(!style.add_modifier.contains(Modifier::REVERSED), "{style:?}");
}

#[test]
fn answers_prompts_and_messages_are_typed() {
    let (mut screen, now) = (screen(), later());
    let answered = |screen: &mut Screen, call: &TeamCall| {
        screen.answered(call, StatusLine::done(String::new()));
    };
    assert_eq!(letters(&mut screen, "rqa1", now), None);
    assert_eq!(screen.input.as_ref().unwrap().text, "qa1");
    press(&mut screen, KeyCode::Backspace, now);
    let call = called(press(&mut screen, KeyCode::Enter, now));
    let params = &sent(&call);
    assert_eq!((&params["decision"], &params["content"]), (&json!("answer"), &json!("qa")));
    answered(&mut screen, &call);
    letters(&mut screen, "Dno", now);
    let call = called(press(&mut screen, KeyCode::Enter, now));
    let params = &sent(&call);
    assert_eq!((&params["decision"], &params["message"]), (&json!("deny"), &json!("no")));
    answered(&mut screen, &call);
    // What is pasted is text, and never keys.
    screen.pasted("a");
    letters(&mut screen, "r", now);
    screen.pasted("two\nlines");
    let call = called(press(&mut screen, KeyCode::Enter, now));
    assert_eq!(sent(&call)["content"], "two\nlines");
    answered(&mut screen, &call);
    // Nothing is asked for without a text, or after Esc.
    letters(&mut screen, "r", now);
    assert_eq!(press(&mut screen, KeyCode::Enter, now), None);
    letters(&mut screen, "rx", now);
    assert_eq!((press(&mut screen, KeyCode::Esc, now), &screen.input), (None, &None));

    press(&mut screen, KeyCode::Tab, now);
    letters(&mut screen, "phello", now);
    let call = called(press(&mut screen, KeyCode::Enter, now));
    assert_eq!(call.call.method, "prompt");
    assert_eq!(sent(&call), json!({ "agent_id": "ui", "text": "hello" }));
    press(&mut screen, KeyCode::Down, now);
    letters(&mut screen, "R", now);
    assert_eq!(
        screen.input.as_ref().unwrap().asking,
        Asking::Sure(AgentOrder::Restart, "core".into())
    );
    let call = called(letters(&mut screen, "y", now));
    assert_eq!((call.call.method, sent(&call)), ("restart_agent", json!({ "agent_id": "core" })));
    letters(&mut screen, "x", now);
    assert_eq!(letters(&mut screen, "n", now), None);
    assert_eq!(letters(&mut screen, "q", now), Some(Wish::Quit));
}

#[test]
fn what_is_scrolled_back_stays_where_it_is() {
    let (mut screen, now) = (screen(), later());
    let report = |text: &str| json!({ "type": "report", "agent_id": "ui", "text": text });
    for n in 0..50 {
        fold(&mut screen, &report(&format!("line {n}")));
    }
    letters(&mut screen, "4", now);
    assert!(text(&drawn(&screen, 60, 12)).contains("line 49"));
    press(&mut screen, KeyCode::PageUp, now);
    let before = text(&drawn(&screen, 60, 12));
    assert!(before.contains("line 39") && !before.contains("line 40"), "{before}");
    for n in 50..60 {
        fold(&mut screen, &report(&format!("line {n}")));
    }
    assert_eq!(text(&drawn(&screen, 60, 12)), before);
    press(&mut screen, KeyCode::End, now);
    assert!(text(&drawn(&screen, 60, 12)).contains("line 59"));
}
