#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::queue::MAX_QUEUED;
use super::*;
use crate::client_host::Urgency;

type Answer = oneshot::Receiver<Result<PromptOutcome, HostError>>;

fn id() -> SessionId {
    SessionId::new("s")
}

fn sessions() -> HostSessions {
    let mut sessions = HostSessions::default();
    sessions.open(id(), false, None);
    sessions
}

fn queue(sessions: &mut HostSessions, name: &str, urgency: Urgency) -> Answer {
    let (reply, answer) = oneshot::channel();
    sessions.queue(
        &id(),
        QueuedPrompt {
            content: Content::Now(vec![json!(name)]),
            said: watch::Sender::default(),
            reply,
        },
        urgency,
    );
    answer
}

fn begin(sessions: &mut HostSessions) -> Option<Vec<Value>> {
    match sessions.begin(&id())? {
        Content::Now(blocks) => Some(blocks),
        Content::Later(_) | Content::Drafted(..) => {
            panic!("only contents that are there are queued")
        }
    }
}

#[test]
fn briefings_go_behind_the_running_turn_and_before_the_rest() {
    let mut sessions = sessions();
    let mut answers = Vec::new();
    answers.push(queue(&mut sessions, "first", Urgency::Normal));
    assert_eq!(begin(&mut sessions).unwrap(), [json!("first")]);
    for (name, urgency) in [
        ("a", Urgency::Normal),
        ("x", Urgency::Briefing),
        ("b", Urgency::Normal),
        ("y", Urgency::Briefing),
    ] {
        answers.push(queue(&mut sessions, name, urgency));
    }
    assert_eq!(begin(&mut sessions), None, "one turn a session");
    let mut order = Vec::new();
    sessions.end_turn(&id(), Ok("end_turn".to_owned()));
    while let Some(blocks) = begin(&mut sessions) {
        order.push(blocks[0].clone());
        sessions.end_turn(&id(), Ok("end_turn".to_owned()));
    }
    assert_eq!(order, ["x", "y", "a", "b"]);
}

#[test]
fn a_full_queue_refuses_until_somebody_leaves() {
    let mut sessions = sessions();
    let mut answers: Vec<_> =
        (0..MAX_QUEUED).map(|_| queue(&mut sessions, "p", Urgency::Normal)).collect();
    let refused = queue(&mut sessions, "p", Urgency::Briefing).try_recv().unwrap();
    assert!(matches!(refused, Err(HostError::QueueFull { queued: MAX_QUEUED, .. })));
    answers.pop();
    let mut accepted = queue(&mut sessions, "p", Urgency::Normal);
    assert!(accepted.try_recv().is_err(), "it waits");
}

#[test]
fn a_long_answer_is_cut_at_a_character() {
    let mut sessions = sessions();
    let mut answer = queue(&mut sessions, "p", Urgency::Normal);
    begin(&mut sessions);
    sessions.append_text("s", &"x".repeat(MAX_TEXT - 1));
    sessions.append_text("s", "é");
    sessions.append_text("s", "more");
    sessions.append_text("other", "more");
    sessions.end_turn(&id(), Ok("end_turn".to_owned()));
    let text = answer.try_recv().unwrap().unwrap().text;
    assert_eq!(text.len(), MAX_TEXT - 1 + CUT.len());
    assert!(text.ends_with(CUT));
}

#[test]
fn a_session_beside_the_work_is_never_the_default() {
    let mut sessions = HostSessions::default();
    sessions.open(SessionId::new("beside"), true, None);
    assert!(matches!(sessions.resolve(None), Err(HostError::NoSession)));
    sessions.open(id(), false, None);
    assert_eq!(sessions.resolve(None).unwrap(), id());
}
