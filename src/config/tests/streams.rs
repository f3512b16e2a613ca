//! `[[streams]]`: tables that can't be used, what is closed to agents, and secrets that are not shown.

use expect_test::expect;
use serde_json::json;

use super::{Bench, errors};
use crate::config::{AgentTable, stream_of};
use crate::model::StreamTarget;

#[test]
fn a_stream_that_can_not_be_used_is_a_mistake() {
    let of = |keys: &str| errors(&format!("[[streams]]\n{keys}\n"));
    let named = |keys: &str| of(&format!("name = \"x\"\n{keys}"));
    let all = [
        of("kind = \"file\""),
        of("name = \"a b\"\nkind = \"files\""),
        named("kind = \"file\"\npath = \"/tmp\"\nsecret = \"s\""),
        named("kind = \"webhook\"\nurl = \"example.org\"\nsecret = \"guess-me\""),
        named("kind = \"nats\"\nurl = \"http://me:pw@example.org\"\nsubject = \"a.*\""),
        named("kind = \"otlp\"\nheaders = { \"a b\" = \"x\" }"),
        named("kind = \"file\"\npath = \"a\"\nscope = \"some\"\nfrom = \"end\""),
        named("kind = \"file\"\npath = \"a\"\nscope = { agents = [], kinds = [\"x\"] }"),
        named(
            "kind = \"file\"\npath = \"a\"\n[[streams]]\nname = \"x\"\nkind = \"file\"\npath = \"./a\"",
        ),
        named("kind = \"file\"\npath = \"a\"\n[journal]\nenabled = false"),
    ];
    let all = all.concat();
    assert!(!all.contains("guess-me") && !all.contains("pw"), "{all}");
    expect![[r#""#]].assert_eq(&all);
}

#[test]
fn no_agent_opens_the_file_of_a_stream_and_no_secret_is_shown() {
    let text = "[[streams]]\nname = \"a\"\nkind = \"file\"\npath = \"out/a.ndjson\"\n\
                [[streams]]\nname = \"b\"\nkind = \"webhook\"\nurl = \"https://example.org/k-123\"\n\
                secret = \"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"\nscope = \"all\"\n\
                [[agents]]\nid = \"ui\"\ncommand = [\"a\"]\n";
    let config = Bench::new().compile(text).unwrap();
    let closed = &config.agents[0].zone.spec.journals;
    assert!(closed.iter().any(|path| path.ends_with("out/a.ndjson")), "{closed:?}");
    let shown = format!("{:?}", config.streams);
    assert!(!shown.contains("k-123") && !shown.contains("MfKQ"), "{shown}");
}

#[test]
fn a_table_from_the_port_has_its_files_in_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let compile = |table: serde_json::Value| {
        let table: AgentTable = table.as_object().unwrap().clone();
        stream_of(&table, folder.path(), folder.path())
    };
    let file = |path: &str| json!({ "name": "x", "kind": "file", "path": path });
    let StreamTarget::File(target) = compile(file("a.ndjson")).unwrap().target else {
        panic!("no file")
    };
    assert_eq!(target.path, folder.path().join("a.ndjson"));
    for path in ["/etc/passwd", "../a", "a/b", "..", "", "${HOME}"] {
        let refused = compile(file(path)).unwrap_err();
        assert!(refused.contains("must be a name of a file in"), "{path}: {refused}");
    }
    for wrong in [json!({ "name": "x", "kind": null }), json!({ "name": "x", "kin": "file" })] {
        compile(wrong).unwrap_err();
    }
}
