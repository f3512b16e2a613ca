//! Texts that are no Unicode, and integers with a point.

use super::{acp, observe, take_in};
use crate::extract::{Extractor, Gate};
use crate::line::Direction;
use crate::model::ActivityKind;

const PROMPT: &str =
    r#">{"id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#;

fn updates(lines: &[&[u8]]) -> Vec<String> {
    let (mut acp, mut activities) = (acp(), Vec::new());
    for line in lines {
        acp.observe(Direction::ToClient, line, &mut activities);
    }
    let update = |kind| match kind {
        ActivityKind::Update(update) => Some(update.to_string()),
        _ => None,
    };
    activities.into_iter().filter_map(|activity| update(activity.kind)).collect()
}

#[test]
fn what_is_kept_of_a_line_is_unicode() {
    let chunk = |text: &[u8]| {
        let around = r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"@"}}}}"#;
        let (before, after) = around.split_once('@').unwrap();
        [before.as_bytes(), text, after.as_bytes()].concat()
    };
    // The later ones are like the first but for their text.
    let lines =
        [chunk(br"a \ud83d"), chunk(br"\ude00 b"), chunk(b"c\xed\xa0\xbd"), chunk(b"caf\xe9")];
    let kept = updates(&lines.each_ref().map(Vec::as_slice));
    assert_eq!(kept.len(), 4);
    for update in kept {
        let update: serde_json::Value = serde_json::from_str(&update).unwrap();
        assert!(update["content"]["text"].as_str().unwrap().contains('\u{fffd}'), "{update}");
    }
}

#[test]
fn a_request_is_judged_and_answered_under_the_id_it_came_with() {
    let write = |path: &str, content: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"\ud83d 1.0","method":"fs/write_text_file","params":{{"sessionId":"s","path":"{path}","content":"{content}"}}}}"#
        )
    };
    let Gate::Ask(ask) = acp().gate(write("/w/a", r"half \ud83d").as_bytes()) else { panic!() };
    assert_eq!(ask.id.unwrap().get(), r#""\ud83d 1.0""#);
    assert_eq!(acp().wanted(write("/w/a", r"half \ud83d").as_bytes()).unwrap(), "half \u{fffd}");
    // Clients differ in the bytes that such a name means.
    let gate = acp().gate(write(r"/w/\udce9", "").as_bytes());
    assert!(matches!(gate, Gate::Ambiguous { replies, .. } if replies.len() == 1));
    let run = r#"{"id":1,"method":"terminal/create","params":{"sessionId":"s","command":"cat \udce9.txt"}}"#;
    assert!(matches!(acp().gate(run.as_bytes()), Gate::Ambiguous { .. }));
    let run = r#"{"id":1,"method":"terminal/create","params":{"sessionId":"s","command":"echo","args":["\udce9"]}}"#;
    assert!(matches!(acp().gate(run.as_bytes()), Gate::Ask(_)));
    let asks = r#"{"id":1.0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","title":"\ud83d","rawInput":{"x":"\ud83d"}},"options":[]}}"#;
    assert!(take_in(&mut acp(), asks.as_bytes(), true).starts_with("Ask"));
}

#[test]
fn a_call_with_half_a_title_ends() {
    let mut acp = acp();
    let call = r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"\ud83d","title":"\ud83d","kind":"read","locations":[{"path":"/w/README.md","line":3.0}],"status":"completed"}}}"#;
    let done = observe(&mut acp, &[PROMPT, call]);
    let lines = done.iter().find_map(|activity| match &activity.kind {
        ActivityKind::Touched { lines, .. } => Some(lines.ranges().to_vec()),
        _ => None,
    });
    assert!(lines.is_some_and(|lines| !lines.is_empty()), "{done:?}");
    assert!(done.iter().any(|it| matches!(it.kind, ActivityKind::Performed { .. })), "{done:?}");
}

#[test]
fn an_answer_to_another_spelling_of_its_id_counts() {
    let ended = observe(&mut acp(), &[PROMPT, r#"{"id":2.0,"result":{"stopReason":"end_turn"}}"#]);
    assert!(ended.iter().any(|it| matches!(it.kind, ActivityKind::TurnEnded { .. })), "{ended:?}");
}
