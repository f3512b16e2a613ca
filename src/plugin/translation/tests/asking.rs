//! What a plugin's asks are in ACP, and how one is taken back.

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
        let line = told(it, Record::Ask { id: kind.into(), title: "T".into(), accesses, command });
        assert!(line.contains(&format!(r#""kind":"{kind}""#)), "{asked:?}: {line}");
    }
}

#[test]
fn what_is_withdrawn_is_answered_by_nobody() {
    let it = &mut prompted();
    for id in ["7", "8"] {
        told(it, ask(id, Some(("write", "a"))));
    }
    tells(
        it,
        Record::Withdrawn { id: "7".into() },
        expect![[r#"
            {"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}
        "#]],
    );
    tells(it, Record::Withdrawn { id: "7".into() }, expect![[""]]);
    hears(it, r#"{"id":1,"error":{"code":-32800,"message":"cancelled"}}"#, expect![[""]]);
    hears(
        it,
        r#"{"id":2,"result":{"outcome":{"outcome":"selected","optionId":"allow"}}}"#,
        expect![[r#"
            Allow { ask: "8" }
        "#]],
    );
}
