//! Tests how a plugin's requests for permission become ACP, and how they are withdrawn.

use super::*;

#[test]
fn a_folder_is_listed_or_searched_through() {
    let it = &mut opened();
    for (asked, kind) in [
        (&["read"][..], "read"),
        (&["search"], "search"),
        (&["read", "search"], "search"),
        (&["search", "write"], "edit"),
        (&["shred"], "edit"),
    ] {
        let accesses = asked.iter().map(|&action| (action.into(), ".".into())).collect();
        let command = "".into();
        let id = format!("{asked:?}").into();
        let line = reported(it, Record::Ask { id, title: "T".into(), accesses, command });
        assert!(line.contains(&format!(r#""kind":"{kind}""#)), "{asked:?}: {line}");
    }
}

#[test]
fn what_is_withdrawn_is_answered_by_nobody() {
    let it = &mut prompted();
    for id in ["7", "8"] {
        reported(it, ask(id, Some(("write", "a"))));
    }
    reports(
        it,
        Record::Withdrawn { id: "7".into() },
        expect![[r#"
            {"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}
        "#]],
    );
    reports(it, Record::Withdrawn { id: "7".into() }, expect![[""]]);
    hears(it, r#"{"id":1,"error":{"code":-32800,"message":"cancelled"}}"#, expect![[""]]);
    hears(
        it,
        r#"{"id":2,"result":{"outcome":{"outcome":"selected","optionId":"allow"}}}"#,
        expect![[r#"
            Allow { ask: "8" }
        "#]],
    );
}

#[test]
fn what_is_withdrawn_at_once_is_not_refused_any_more() {
    let it = &mut prompted();
    let mut said = Translated::default();
    for _ in 0..2 {
        let _ = it.translate(ask("7", Some(("write", "a"))), &mut said);
    }
    assert_eq!(said.intents.len(), 1, "one refusal for both");
    it.translate(Record::Withdrawn { id: "7".into() }, &mut said).unwrap();
    assert!(said.intents.is_empty());
}

#[test]
fn an_agent_gets_the_reason_of_a_denial() {
    let it = &mut prompted();
    reported(it, ask("7", Some(("write", "a"))));
    hears(
        it,
        r#"{"id":1,"result":{"outcome":{"outcome":"selected","optionId":"reject"},"_meta":{"eisen/why":"Ask core."}}}"#,
        expect![[r#"
            Deny { ask: "7", why: "Ask core." }
        "#]],
    );
}

/// The answer to the one would be taken for the other's.
#[test]
fn what_is_asked_twice_under_one_id_is_refused_once_for_both() {
    let it = &mut prompted();
    reported(it, ask("7", Some(("read", "mine"))));
    let mut said = Translated::default();
    for path in ["theirs", "others"] {
        let wrong = it.translate(ask("7", Some(("read", path))), &mut said).unwrap_err();
        assert_eq!(wrong, "it asks under the id `7` for two things at once");
    }
    expect![[r#"
        {"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}
        Deny { ask: "7", why: "Two things were asked for under one id." }
    "#]]
    .assert_eq(&shown(&said));
    let allowed = r#"{"id":1,"result":{"outcome":{"outcome":"selected","optionId":"allow"}}}"#;
    hears(it, allowed, expect![[""]]);
    // It is free again.
    assert!(reported(it, ask("7", Some(("read", "mine")))).contains("request_permission"));
}
