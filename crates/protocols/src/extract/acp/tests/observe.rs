//! The activities of single lines.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use expect_test::{Expect, expect};

use super::{Acp, acp, observe};
use crate::extract::Extractor;
use crate::extract::testing::Sample;
use crate::model::{Activity, ActivityKind};

pub(super) fn shown(activities: &[Activity]) -> String {
    let mut shown = String::new();
    for Activity { session, kind } in activities {
        let activities = match kind {
            ActivityKind::Touched { path, touch, source, lines } => {
                let ranges = lines.ranges().iter();
                let range = |range: &(u32, u32)| match *range {
                    (1, u32::MAX) => "all ".to_owned(),
                    (first, last) => format!("{first}-{last} "),
                };
                let lines = ranges.map(range).collect::<Vec<_>>().concat();
                format!("{} {path} {lines}({source:?})", touch.as_str())
            }
            ActivityKind::Performed { path, action, .. } => format!("performed {action} {path}"),
            ActivityKind::TurnEnded { stop_reason, reason } => {
                format!(
                    "ended {stop_reason}{}",
                    reason.as_ref().map_or(String::new(), |r| format!(": {r}"))
                )
            }
            // What was spent has tests of its own.
            ActivityKind::Spent(_)
            | ActivityKind::Update(_)
            | ActivityKind::Runs { .. }
            | ActivityKind::Ran { .. } => {
                continue;
            }
            other => format!("{other:?}"),
        };
        writeln!(shown, "{session} {activities}").unwrap();
    }
    shown
}

fn check(lines: &[&str], expected: &Expect) {
    expected.assert_eq(&shown(&observe(&mut acp(), lines)));
}

fn update(update: &str) -> String {
    format!(r#"{{"method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#)
}

fn check_updates(updates: &[&str], expected: &Expect) {
    let lines: Vec<String> = updates.iter().map(|it| update(it)).collect();
    check(&lines.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn what_is_not_there_was_not_read() {
    let sample = Sample::new(&[]).without("agents.md").without("new.txt");
    let mut acp = Acp::new(Arc::new(sample), PathBuf::from("/w"));
    let lines = [
        r#"{"sessionUpdate":"tool_call","toolCallId":"1","kind":"read","locations":[{"path":"/w/agents.md"}]}"#,
        r#"{"sessionUpdate":"tool_call","toolCallId":"2","kind":"read","locations":[{"path":"/w/here.md"}]}"#,
        // It is about to be made.
        r#"{"sessionUpdate":"tool_call","toolCallId":"3","kind":"edit","locations":[{"path":"/w/new.txt"}]}"#,
    ];
    let lines = lines.map(update);
    let activities = observe(&mut acp, &lines.each_ref().map(String::as_str));
    expect![[r#"
        s read here.md (Tool)
        s write new.txt (Tool)
    "#]]
    .assert_eq(&shown(&activities));
}

#[test]
fn cancellations_are_reported() {
    check(
        &[
            r#">{"method":"session/cancel","params":{"sessionId":"s"}}"#,
            r#"{"method":"$/cancel_request","params":{"requestId": "own 7" }}"#,
            // Neither the agent's to send nor about one of its own requests.
            r#"{"method":"session/cancel","params":{"sessionId":"s"}}"#,
            r#">{"method":"$/cancel_request","params":{"requestId":7}}"#,
        ],
        &expect![[r#"
            s CancelRequested
             RequestCancelled { id: "\"own 7\"" }
        "#]],
    );
}

#[test]
fn sessions_open_and_close() {
    check(
        &[
            r#">{"id":1,"method":"session/new","params":{"cwd":"/w/core"}}"#,
            r#">{"id":"1","method":"session/new","params":{"cwd":"/w"}}"#,
            r#"{"id":"1","result":{"sessionId":"b"}}"#,
            r#"{"id":1,"result":{"sessionId":"a"}}"#,
            r#">{"id":2,"method":"session/resume","params":{"sessionId":"c","cwd":"/w"}}"#,
            r#"{"id":2,"error":{"code":1,"message":"no"}}"#,
            r#">{"id":3,"method":"session/close","params":{"sessionId":"a"}}"#,
            r#"{"id":3,"result":{}}"#,
            r#"{"method":"fs/read_text_file","id":0,"params":{"sessionId":"b","path":"x"}}"#,
            r#">{"id":0,"result":{"content":""}}"#,
        ],
        &expect![[r#"
            b Opened { is_new: true }
            a Opened { is_new: true }
            a Closed
            b read x all (Request)
        "#]],
    );
}

#[test]
fn a_prompt_is_a_turn_with_what_it_embeds() {
    check(
        &[
            r#">{"id":4,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"/w/no"},{"type":"resource_link","uri":"file:///w/ui/a%20b"},{"type":"resource","resource":{"uri":"/w/core/auth.rs","text":""}},{"type":"resource_link","uri":"https://x/y"},{"type":"resource_link","uri":"file:///w/node_modules/x"},{"type":"hologram"}]}}"#,
            r#">{"id":5,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#,
            r#">{"id":4,"result":{"outcome":{}}}"#,
            r#"{"id":5,"error":{"code":-1,"message":"overloaded"}}"#,
            r#"{"id":4,"result":{"stopReason":"max_tokens","usage":{"totalTokens":3}}}"#,
            r#"{"id":4,"result":{"stopReason":"end_turn"}}"#,
        ],
        &expect![[r#"
            s TurnBegan
            s Record(Prompt("[{\"type\":\"text\",\"text\":\"/w/no\"},{\"type\":\"resource_link\",\"uri\":\"file:///w/ui/a%20b\"},{\"type\":\"resource\",\"resource\":{\"uri\":\"/w/core/auth.rs\",\"text\":\"\"}},{\"type\":\"resource_link\",\"uri\":\"https://x/y\"},{\"type\":\"resource_link\",\"uri\":\"file:///w/node_modules/x\"},{\"type\":\"hologram\"}]"))
            s user_referenced ui/a b (Prompt)
            s user_provided core/auth.rs (Prompt)
            s TurnBegan
            s Record(Prompt("[]"))
            s ended error: overloaded (transient): overloaded
            s ended max_tokens
        "#]],
    );
}

#[test]
fn turns_end_with_the_agent() {
    let mut acp = acp();
    observe(
        &mut acp,
        &[r#">{"id":4,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#],
    );
    let mut activities = Vec::new();
    acp.end("killed by signal 9", &mut activities);
    acp.end("again", &mut activities);
    assert_eq!(shown(&activities), "s ended error: killed by signal 9\n");
}

#[test]
fn tool_calls_are_pieced_together() {
    check_updates(
        &[
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"1","locations":[{"path":"ui/app.tsx"}]}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"1","title":"t","kind":"edit","rawInput":{}}"#,
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"in_progress"}"#,
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","content":[{"type":"diff","path":"/w/README.md","newText":""}]}"#,
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed"}"#,
        ],
        &expect![[r#"
            s write ui/app.tsx (Tool)
            s write README.md (Tool)
            s performed write README.md
            s performed write ui/app.tsx
        "#]],
    );
    // A diff that has no more than the name of what is named whole beside it.
    check_updates(
        &[
            r#"{"sessionUpdate":"tool_call","toolCallId":"1","kind":"edit","status":"completed","locations":[{"path":"/w/sub/new.txt"}],"content":[{"type":"diff","path":"new.txt","newText":""},{"type":"diff","path":"n","newText":""}]}"#,
        ],
        &expect![[r#"
            s write sub/new.txt (Tool)
            s write n (Tool)
            s performed write sub/new.txt
            s performed write n
        "#]],
    );
    check_updates(
        &[
            r#"{"sessionUpdate":"tool_call","toolCallId":"1","title":"t","kind":"warp","rawInput":{"target_file":"a","code_edit":"x"}}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"2","title":"t","rawInput":{"pattern":"x","path":"core"}}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"3","title":"t","kind":7,"locations":[3,{"path":"/o/b"},{"line":1}],"content":"?"}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"4","title":"t","kind":"read","locations":[{"path":"/w"},{"path":"core"},{"path":".git/config"}]}"#,
        ],
        &expect![[r#"
            s write a (Tool)
            s search core (Tool)
            s read /o/b (Tool)
        "#]],
    );
}

#[test]
fn what_a_search_finds_is_not_what_it_searched() {
    check_updates(
        &[
            r#"{"sessionUpdate":"tool_call","toolCallId":"1","title":"t","kind":"search","rawInput":{"path":"core"}}"#,
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","locations":[{"path":"core/db.py","line":2}]}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"2","title":"t","kind":"search","locations":[{"path":"ui/app.tsx"}],"status":"completed"}"#,
        ],
        &expect![[r#"
            s search core (Tool)
            s search ui/app.tsx (Tool)
            s performed read ui/app.tsx
        "#]],
    );
}

#[test]
fn commands_count_where_they_are_plain() {
    check_updates(
        &[
            r#"{"sessionUpdate":"tool_call","toolCallId":"1","title":"t","kind":"execute","rawInput":{"command":"sed -n 1p core/db.py > out && python3 core/auth.rs"},"locations":[{"path":"/w"}]}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"2","title":"`cat README.md none.md`","kind":"execute"}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"3","title":"t","content":[{"type":"content","content":{"type":"text","text":"{\"path\": \"ui/app.tsx\", \"offs"}}]}"#,
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"3","content":[{"type":"content","content":{"type":"text","text":"{\"path\": \"ui/app.tsx\", \"offset\": 1}"}}]}"#,
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"3","status":"completed","content":[{"type":"content","content":{"type":"text","text":"{\"path\": \"core/db.py\"}"}}]}"#,
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"4","kind":"read","status":"failed","content":[{"type":"content","content":{"type":"text","text":"\"/outside/x\" is not in /w"}}]}"#,
        ],
        &expect![[r#"
            s write out (Tool)
            s read core/db.py (Tool)
            s read README.md (Tool)
            s read ui/app.tsx (Tool)
            s performed read ui/app.tsx
            s read /outside/x (Tool)
        "#]],
    );
}

#[test]
fn a_permission_is_no_activity_until_its_call_goes_on() {
    check(
        &[
            r#"{"id":1,"method":"session/request_permission","params":{"sessionId":"s","options":[],"toolCall":{"toolCallId":"1","kind":"edit","locations":[{"path":"a"}]}}}"#,
            r#">{"id":1,"result":{"outcome":{"outcome":"selected","optionId":"y"}}}"#,
            &update(r#"{"sessionUpdate":"usage_update","used":1,"size":2}"#),
            &update(
                r#"{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed"}"#,
            ),
        ],
        &expect![[r#"
            s Record(PermissionAsked { id: "1", params: "{\"sessionId\":\"s\",\"options\":[],\"toolCall\":{\"toolCallId\":\"1\",\"kind\":\"edit\",\"locations\":[{\"path\":\"a\"}]}}" })
            s Record(PermissionAnswered { id: "1", result: Some("{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"y\"}}") })
            s Usage { usage: Usage { used: 1, size: 2, cost: None }, is_past: true }
            s write a (Tool)
            s performed write a
        "#]],
    );
}

#[test]
fn a_replay_is_no_activity() {
    let old = update(
        r#"{"sessionUpdate":"tool_call","toolCallId":"1","title":"t","kind":"read","status":"completed","locations":[{"path":"a"}]}"#,
    );
    let late = update(
        r#"{"sessionUpdate":"tool_call","toolCallId":"2","title":"t","kind":"read","locations":[{"path":"b"}]}"#,
    );
    let new = update(
        r#"{"sessionUpdate":"tool_call","toolCallId":"3","title":"t","kind":"read","locations":[{"path":"c"}]}"#,
    );
    check(
        &[
            r#">{"id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/w"}}"#,
            &old,
            &update(
                r#"{"sessionUpdate":"usage_update","used":9,"size":10,"cost":{"amount":0.5,"currency":"EUR"}}"#,
            ),
            r#"{"id":1,"result":{}}"#,
            &late,
            r#">{"id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#,
            &old,
            &new,
        ],
        &expect![[r#"
            s Record(Replays(true))
            s Opened { is_new: false }
            s Usage { usage: Usage { used: 9, size: 10, cost: Some(Cost { amount: 0.5, currency: "EUR" }) }, is_past: true }
            s Record(Replays(false))
            s TurnBegan
            s Record(Prompt("[]"))
            s read c (Tool)
        "#]],
    );
}

#[test]
fn terminals_name_files_in_their_command_and_their_output() {
    check(
        &[
            r#"{"id":1,"method":"terminal/create","params":{"sessionId":"s","command":"cat db.py","cwd":"/w/core"}}"#,
            r#">{"id":1,"result":{"terminalId":"t"}}"#,
            r#"{"id":2,"method":"terminal/output","params":{"sessionId":"s","terminalId":"t"}}"#,
            r#">{"id":2,"result":{"output":"auth.rs:1:2: bad\nsee none.rs:1:1\n"}}"#,
            r#"{"id":2,"method":"terminal/output","params":{"sessionId":"s","terminalId":"t"}}"#,
            r#">{"id":2,"result":{"output":"auth.rs:1:2: bad\nsee none.rs:1:1\nin \"../ui/app.tsx\"\nauth.rs:9:9\n"}}"#,
        ],
        &expect![[r#"
            s read core/db.py (Request)
            s read core/auth.rs (Output)
            s read ui/app.tsx (Output)
        "#]],
    );
}

#[test]
fn usage_and_compaction_are_reported() {
    check_updates(
        &[
            r#"{"sessionUpdate":"usage_update","used":1.0,"size":2e3,"cost":{"amount":1}}"#,
            r#"{"sessionUpdate":"usage_update","used":"many"}"#,
            r#"{"sessionUpdate":"compaction_update","compactionId":"k","status":"in_progress"}"#,
            r#"{"sessionUpdate":"compaction_update","compactionId":"k","status":"completed"}"#,
            r#"{"sessionUpdate":"compaction_update","compactionId":"k","status":"completed"}"#,
        ],
        &expect![[r#"
            s Usage { usage: Usage { used: 1, size: 2000, cost: None }, is_past: true }
            s Compacted
        "#]],
    );
}

#[test]
fn every_update_is_reported_verbatim() {
    let raw = r#"{ "sessionUpdate" : "future", "x": [1.50, "\u0061"] }"#;
    let activities = observe(&mut acp(), &[&update(raw)]);
    assert!(
        matches!(&activities[..], [Activity { kind: ActivityKind::Update(it), .. }] if **it == *raw)
    );
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut acp = acp();
    for n in 0..3000 {
        let line = format!(
            r#"{{"method":"session/update","params":{{"sessionId":"s{n}","update":{{"sessionUpdate":"tool_call","toolCallId":"{n}","title":"t"}}}}}}"#
        );
        observe(&mut acp, &[&line]);
        observe(
            &mut acp,
            &[&update(&format!(
                r#"{{"sessionUpdate":"tool_call","toolCallId":"{n}","title":"t"}}"#
            ))],
        );
    }
    let prompts: Vec<String> = (0..1100)
        .map(|n| format!(r#">{{"id":{n},"method":"session/prompt","params":{{"sessionId":"s","prompt":[]}}}}"#))
        .collect();
    let activities = observe(&mut acp, &prompts.iter().map(String::as_str).collect::<Vec<_>>());
    let ended =
        activities.iter().filter(|it| matches!(it.kind, ActivityKind::TurnEnded { .. })).count();
    assert_eq!(ended, 1100 - 1024);
}
