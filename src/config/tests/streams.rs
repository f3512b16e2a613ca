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
    expect![[r#"
        1:1 this stream has no `name` | write `name = "audit"`
        1:1 a stream into a file needs `path` | write `path = "logs/events.ndjson"`
        2:8 a stream's name can't be "a b" | write "a-b": up to 64 letters, digits, `.`, `_`, `-`, with a letter or digit first
        3:8 `kind` can't be "files" | did you mean "file"? It can be "file", "webhook", "nats", "otlp"
        4:8 "/tmp" is a folder | name a file in it: "/tmp/events.ndjson"
        5:10 `secret` is not for `kind = "file"` | leave it out, or write `kind = "webhook"`
        5:10 `secret` must be `whsec_` and base64 of 24 to 64 bytes | make one: `echo whsec_$(openssl rand -base64 32)`
        4:7 "example.org" is not a web address | write one such as "https://example.org/x"
        5:10 `secret` must be `whsec_` and base64 of 24 to 64 bytes | make one: `echo whsec_$(openssl rand -base64 32)`
        4:7 this is not an address of NATS | write `url = "nats://127.0.0.1:4222"`
        5:11 `subject` can't be "a.*" | write words of letters, digits, `-` and `_` with dots between, such as "eisen.shop"
        1:1 a stream with `kind = "otlp"` needs `url` | write `url = "http://127.0.0.1:4318"`, the address of a collector
        4:13 no header can be called "a b" | write one such as "x-api-key"
        5:9 `scope` can't be "some" | write "all", or a table such as `{ agents = ["ui"] }`
        6:8 `from` can't be "end" | it can be "now", "start"
        5:20 `agents` is empty: nothing would be delivered | leave it out for all
        5:24 unknown key `kinds` in `[streams.scope]` | the keys here are `agents`, `sessions`, `types`
        6:8 there are two streams "x" | give one another name
        8:8 another stream writes this file | name another one
        1:1 streams deliver what the journal has, and it is off | leave out `enabled = false` in `[journal]`
    "#]].assert_eq(&all);
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
