//! The agents with their tasks and steps, from the stream and from the journal, and the review of their changes.

use unicode_width::UnicodeWidthStr as _;

use super::*;
use crate::cli::top::keys;
use crate::wire::{Diff, Events, ServerLine};

fn update(screen: &mut Screen, agent: &str, update: &Value) {
    screen.update(agent, "s", update, Instant::now());
}

fn call(screen: &mut Screen, status: &str) {
    let call = json!({
        "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Edit core/\u{1b}[2Jauth.rs", "kind": "edit",
        "status": status,
    });
    update(screen, "ui", &call);
}

fn ended(screen: &mut Screen, agent: &str, stop: &str, reason: Option<&str>) {
    let line = json!({
        "type": "turn", "agent_id": agent, "session_id": "s", "turn": 0, "stop_reason": stop, "reason": reason,
    });
    let line = line.to_string();
    let Ok(ServerLine::Turn(turn)) = ServerLine::read(line.as_bytes()) else { panic!("{line}") };
    screen.turn(&turn);
}

fn event(kind: &str, id: &str, turn: u64, payload: &Value) -> Value {
    json!({
        "id": id, "parent_id": null, "session_id": "j", "agent_id": "ui", "sequence": 0, "depth": 0,
        "type": kind, "timestamp": NOW - 42_000, "turn": turn, "payload": payload,
    })
}

fn page(events: &[Value]) -> Events<'static> {
    serde_json::from_value(json!({ "events": events, "next": null })).unwrap()
}

fn prompt(id: &str, turn: u64, text: &str) -> Value {
    event("message.user", id, turn, &json!({ "text": text }))
}

fn words(screen: &Screen) -> (String, String) {
    let frame = text(&drawn(screen, 100, 24));
    let row = frame.lines().find(|line| line.contains("▲ ui")).unwrap();
    let step = screen.activity.of("ui").unwrap().step().map(|(step, _)| step.to_owned());
    (row.to_owned(), step.unwrap_or_default())
}

/// A team of which nothing waits, opened in the middle of a turn of `ui`.
fn late() -> Screen {
    let mut screen = screen();
    for id in ["b1", "b2"] {
        let mut decided = access(id, "core/auth.rs");
        decided["status"] = "allowed".into();
        fold(&mut screen, &decided);
    }
    screen.pane = Pane::Team;
    assert!(screen.wanted_prompt(NOW).is_none(), "the last page comes first");
    assert!(screen.wanted_past().is_some());
    let call = json!({ "tool_call_id": "c", "title": "Edit core/auth.rs", "kind": "edit" });
    let events = [
        prompt(
            "e1",
            3,
            "\nRound the totals of the cart once, and not in each of its lines\nPlease.",
        ),
        event("message.assistant", "e2", 3, &json!({ "text": "I look." })),
        event("tool.call", "e3", 3, &call),
    ];
    screen.take_past(Some(page(&events)));
    screen
}

#[test]
fn a_team_that_is_looked_at_late_has_its_tasks_and_steps() {
    let mut screen = late();
    expect![[r#"
         shop  2 agents
          AGENT STATE   WAITS TASK                                     STEP                        COST
        ● core  ready         No task yet                                                          ~0.04 USD
        ▲ ui    working       Round the totals of the cart once, and…  Edit core/auth.rs, 0:42
         1 Team ui   2 Review   3 Map   4 Log   i Inbox
        Edit core/auth.rs, 0:42 · zone protocol
        >
        > Round the totals of the cart once, and not in each of its lines
        > Please.
        I look.
        > Edit core/auth.rs
        Tab agents · 1-4 panes · i inbox · ↑↓ scroll · f figures · q · ? help"#]].assert_eq(&text(&drawn(&screen, 100, 12)));
    // The other agent is asked for by itself, and then no more.
    let (agent, asked) = screen.wanted_prompt(NOW).unwrap();
    assert_eq!((&*agent, asked.last), ("core", true));
    screen.take_prompt("core", Some(page(&[])));
    assert!(screen.wanted_prompt(NOW + 60_000).is_none());
    let (agent, asked) = screen.wanted_changes(NOW).unwrap();
    assert_eq!((&*agent, asked.session_id.as_deref(), asked.turn), ("ui", Some("j"), Some(3)));
    assert!(screen.wanted_changes(NOW).is_none());
    screen.activity.take_changes("ui", Some(3), &diff());
    ended(&mut screen, "ui", "error", Some("no such\nmodel"));
    screen.view.set_agents(&json!([{ "agent_id": "ui", "state": "ready", "sessions": [] }]));
    expect![[r#"
         shop  1 agent
          AGENT STATE  WAITS TASK                                        STEP                          + −
        ● ui    failed       Round the totals of the cart once, and not… no such                       +3 −1
         1 Team ui   2 Review   3 Map   4 Log   i Inbox
        Tab agents · 1-4 panes · i inbox · ↑↓ scroll · f figures · q · ? help"#]].assert_eq(&text(&drawn(&screen, 100, 5)));
}

#[test]
fn a_prompt_of_others_is_read_from_the_journal_once_its_turn_is_seen() {
    let mut screen = late();
    screen.take_prompt("core", Some(page(&[])));
    call(&mut screen, "in_progress");
    let (row, step) = words(&screen);
    assert!(row.contains("Round the totals"), "{row}");
    assert_eq!(step, "Edit core/ [2Jauth.rs");
    call(&mut screen, "completed");
    assert_eq!(words(&screen).1, "thinks");
    ended(&mut screen, "ui", "end_turn", None);
    // The next turn begins, and the journal does not have its prompt yet.
    let chunk = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "Yes.\n" } });
    update(&mut screen, "ui", &chunk);
    assert_eq!(words(&screen).1, "writes");
    let (agent, _) = screen.wanted_prompt(NOW).unwrap();
    let before = [
        prompt("e1", 3, "Round"),
        event("turn.end", "e4", 3, &json!({ "stop_reason": "end_turn" })),
    ];
    screen.take_prompt(&agent, Some(page(&before)));
    assert_eq!(words(&screen).1, "writes");
    assert_ne!(screen.wanted_prompt(NOW).map(|(agent, _)| agent).as_deref(), Some("ui"));
    let (agent, _) = screen.wanted_prompt(NOW + 60_000).unwrap();
    assert_eq!(agent, "ui");
    screen.take_prompt("ui", Some(page(&[prompt("e5", 4, "Test it")])));
    let (row, step) = words(&screen);
    assert!(row.contains("Test it") && step == "writes", "{row}");
    // It stands in the transcript before the answer.
    let frame = text(&drawn(&screen, 100, 24));
    assert!(frame.contains("> Test it\nYes."), "{frame}");
}

#[test]
fn a_turn_that_says_nothing_is_known_by_its_prompt() {
    let mut screen = late();
    ended(&mut screen, "ui", "cancelled", None);
    // The list says that a turn runs again.
    screen.take_prompt("ui", Some(page(&[prompt("e1", 3, "Round")])));
    assert!(screen.activity.of("ui").unwrap().outcome.is_some(), "it is the same turn");
    screen.take_prompt("ui", Some(page(&[prompt("e5", 4, "Test it")])));
    let turn = screen.activity.of("ui").unwrap();
    assert_eq!((&*turn.task, turn.step().map(|it| it.0)), ("Test it", Some("thinks")));
}

fn diff() -> Diff {
    let patch = "worktree /w/tree\n\
                 diff --git a/w/tree/a.js b/w/tree/a.js\nindex 1..2 100644\n--- a/w/tree/a.js\n+++ b/w/tree/a.js\n\
                 @@ -1 +1,2 @@\n-one\u{1b}[8m\n+two\n+--- three\n\
                 diff --git a/b.js b/b.js\nnew file mode 100644\n--- /dev/null\n+++ b/b.js\n@@ -0,0 +1 @@\n+x\n";
    let file = |path: &str, added: u64, removed: u64| json!({ "path": path, "added": added, "removed": removed, "binary": false });
    serde_json::from_value(json!({
        "diff": patch, "files": [file("/w/tree/a.js", 2, 1), file("b.js", 1, 0)], "left_out": [],
        "more_left_out": 2, "ignored": 0, "undone": 0, "unread": 0,
    }))
    .unwrap()
}

#[test]
fn the_changes_of_an_agent_are_asked_for_where_somebody_looks_at_them() {
    let (mut screen, now) = (late(), later());
    assert!(screen.wanted_review(NOW).is_none());
    letters(&mut screen, "2", now);
    let (of, asked) = screen.wanted_review(NOW).unwrap();
    assert_eq!((asked.agent_id.as_deref(), asked.turn), (Some("ui"), None));
    assert!(screen.wanted_review(NOW).is_none(), "once");
    screen.review.fit(60);
    screen.review.take(&of, Ok(&diff()));
    let buffer = drawn(&screen, 60, 20);
    expect![[r#"
         shop  2 agents
          AGENT STATE   WAITS TASK                         COST
        ● core  ready         No task yet                  ~0.04 USD
        ▲ ui    working       Round the totals of the…
         1 Team ui   2 Review   3 Map   4 Log   i Inbox
        ui, all turns: 2 files, +3 −1 · 2 changes not shown as a…
        a.js  +2 −1
        @@ -1 +1,2 @@
        -one [8m
        +two
        +--- three
        b.js  +1 −0
        @@ -0,0 +1 @@
        +x





        ↑↓ scroll · l last turn / all · 1-4 panes · i inbox · ? help"#]]
    .assert_eq(&text(&buffer));
    assert_eq!([8, 9].map(|y| buffer[(0, y)].style().fg), [Color::Red, Color::Green].map(Some));
    press(&mut screen, KeyCode::Down, now);
    assert!(!text(&drawn(&screen, 60, 20)).contains("a.js"));
    // What ends meanwhile is asked for again after a while, and the place stays.
    call(&mut screen, "completed");
    assert!(screen.wanted_review(NOW).is_none());
    let (of, _) = screen.wanted_review(NOW + 3000).unwrap();
    screen.review.take(&of, Ok(&diff()));
    assert!(!text(&drawn(&screen, 60, 20)).contains("a.js"));
    letters(&mut screen, "l", now);
    let (of, asked) = screen.wanted_review(NOW + 3000).unwrap();
    assert_eq!((asked.session_id.as_deref(), asked.turn), (Some("j"), Some(3)));
    screen.review.take(&of, Err("no such turn"));
    let frame = text(&drawn(&screen, 60, 20));
    assert!(frame.contains("ui, its last turn: Not shown: no such turn"), "{frame}");
}

#[test]
fn below_60_columns_there_is_one_column_of_whole_words() {
    let mut screen = late();
    fold(&mut screen, &access("b3", "core/auth.rs"));
    screen.settle(Instant::now(), Some(40));
    expect![[r#"
         shop  2 agents  1 waits for a decision
        ▲ ui working 1 waits
          Round the totals of the cart once,…
        ● core ready ~0.04 USD
          No task yet
        1 Team 2 Review 3 Map 4 Log i Inbox 1
        b3 12s ▲ ui read `core/auth.rs`
        ────────────────────────────────────────
        ui asks to read `core/auth.rs`, via fs
        owned by core; sent here by rule 2 of
        [[routing]]: person
        The file is on its way …



        a allow · d D deny · s session · ? help"#]]
    .assert_eq(&text(&drawn(&screen, 40, 16)));
    letters(&mut screen, "1f", later());
    expect![[r#"
         shop  2 agents  1 waits for a decision
          AGENT CONTEXT      SPENT COST     
        ▲ ui    -            -     -         
        ● core  12.0k/200.0k 41.2k ~0.04 USD

        1 Team 2 Review 3 Map 4 Log i Inbox 1
        waits for a decision · zone protocol
        not in each of its lines
        > Please.
        I look.
        > Edit core/auth.rs
        Tab agents · 1-4 panes · q · ? help"#]]
    .assert_eq(&text(&drawn(&screen, 40, 12)));
}

#[test]
fn the_inbox_comes_up_by_itself_until_somebody_presses_a_key() {
    let mut screen = late();
    screen.settle(Instant::now(), Some(80));
    assert_eq!(screen.pane, Pane::Team);
    fold(&mut screen, &access("b3", "core/auth.rs"));
    screen.settle(Instant::now(), Some(80));
    assert_eq!(screen.pane, Pane::Inbox);
    letters(&mut screen, "i", later());
    assert_eq!(screen.pane, Pane::Team);
    letters(&mut screen, "4i", later());
    assert_eq!(screen.pane, Pane::Inbox);
    letters(&mut screen, "i", later());
    assert_eq!(screen.pane, Pane::Log);
}

#[test]
fn the_line_of_keys_has_whole_keys_and_the_help() {
    let mut screen = screen();
    for pane in Pane::ALL.map(|(_, pane, _)| pane) {
        screen.pane = pane;
        for width in 6..120 {
            let line = keys::line(&screen, width);
            assert!(line.width() <= width && line.ends_with("? help"), "{width}: {line}");
        }
    }
    for row in keys::help(40) {
        assert!(row.width() <= 40, "{row}");
    }
}
