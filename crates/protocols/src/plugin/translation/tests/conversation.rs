//! Tests how a conversation is resumed in the next run.

use super::*;

const RESUME: &str = r#"{"id":1,"method":"session/resume","params":{"sessionId":"S","cwd":"/w"}}"#;
const NEW: &str = r#"{"id":2,"method":"session/new","params":{"cwd":"/w"}}"#;

/// A run after one whose session `S` the agent calls `a`.
fn later() -> Translation {
    let conversation = Conversation::default();
    conversation.keep(ResumableSession { session: "S".to_owned(), known_as: "a".to_owned() });
    Translation::new("words".to_owned(), None, conversation)
}

/// Has the plugin start: it goes on with this session.
fn started(translation: &mut Translation, goes_on: Option<&'static str>) -> String {
    let mut said = Translated::default();
    translation.on_client_line(RESUME.as_bytes(), &mut said);
    let intent = said.intents.remove(0);
    assert!(format!("{intent:?}").contains(r#"\"resume\":\"a\""#), "{intent:?}");
    if let Some(id) = goes_on {
        translation.translate(Record::Session { id: id.into() }, &mut said).unwrap();
    }
    translation.fulfilled(intent, Ok(()), &mut said);
    shown(&said)
}

#[test]
fn a_plugin_that_goes_on_keeps_the_session() {
    let it = &mut later();
    let able = heard(it, r#"{"id":0,"method":"initialize","params":{}}"#);
    assert!(able.contains(r#""sessionCapabilities":{"resume":{}}"#), "{able}");
    let expected = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
    assert_eq!(started(it, Some("a")), expected);
    let asked = heard(it, &prompt(2, "S"));
    assert_eq!(asked, "Prompt { text: \"do\" }\n");
}

#[test]
fn one_that_does_not_begins_a_new_one_and_is_started_once() {
    for goes_on in [None, Some("b")] {
        let it = &mut later();
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"the plugin does not go on with an earlier conversation"}}
        "#]]
        .assert_eq(&started(it, goes_on));
        let opened = heard(it, NEW);
        assert!(opened.contains(r#""result":{"sessionId""#), "{opened}");
        assert!(!opened.contains("Start"), "{opened}");
    }
}

#[test]
fn a_session_is_kept_once_a_turn_of_it_went_well() {
    let ended = |reason: &'static str| Record::TurnEnded { reason: reason.into(), body: "".into() };
    let it = &mut later();
    started(it, Some("a"));
    reported(it, Record::Text { body: "no such session".into(), reason: "".into() });
    reported(it, ended("error"));
    assert!(!it.conversation.is_kept(), "an agent that can't go on is to begin anew");
    reported(it, ended("end_turn"));
    assert!(it.conversation.is_kept());

    // One that names its session late is known by that in the next run.
    let it = &mut plain();
    let mut said = Translated::default();
    it.on_client_line(NEW.as_bytes(), &mut said);
    let intent = said.intents.remove(0);
    it.fulfilled(intent, Ok(()), &mut said);
    reported(it, ended("end_turn"));
    assert!(!it.conversation.is_kept());
    reported(it, Record::Session { id: "late".into() });
    reported(it, ended("end_turn"));
    let session = it.session.clone().unwrap();
    let kept = ResumableSession { session: session.clone(), known_as: "late".to_owned() };
    assert_eq!(it.conversation.take(&session), Some(kept));
}

#[test]
fn nothing_is_gone_on_with_that_is_not_known() {
    let refused = expect![[r#"
        {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"there is no such session"}}
    "#]];
    hears(&mut plain(), RESUME, refused);
}
