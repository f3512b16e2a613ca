//! `[[streams]]`: tables that can't be used, what is closed to agents, and secrets that are not shown.

use serde_json::json;

use super::{Bench, errors};
use crate::config::{AgentTable, stream_of};
use crate::model::StreamTarget;

#[test]
fn a_stream_that_can_not_be_used_is_a_mistake() {
    let twice =
        "kind = \"file\"\npath = \"a\"\n[[streams]]\nname = \"x\"\nkind = \"file\"\npath = \"./a\"";
    for (keys, wanted) in [
        ("kind = \"file\"", &["a stream into a file needs `path`"][..]),
        ("kind = \"files\"", &["`kind` can't be \"files\"", "did you mean \"file\"?"]),
        ("", &["this stream has no `kind`"]),
        ("kind = \"file\"\npath = \"/tmp\"", &["\"/tmp\" is a folder"]),
        (
            "kind = \"file\"\npath = \"a\"\nbatch = 3",
            &["`batch` is not for `kind = \"file\"`", "`kind = \"webhook\"`"],
        ),
        (
            "kind = \"webhook\"\nurl = \"example.org\"\nsecret = \"guess-me\"",
            &["is not a web address", "`secret` must be `whsec_` and base64 of 24 to 64 bytes"],
        ),
        (
            "kind = \"nats\"\nurl = \"http://me:pw@example.org\"\nsubject = \"a.*\"",
            &["this is not an address of NATS", "`subject` can't be \"a.*\""],
        ),
        ("kind = \"otlp\"", &["a stream with `kind = \"otlp\"` needs `url`"]),
        (
            "kind = \"file\"\npath = \"a\"\nscope = \"some\"\nfrom = \"end\"",
            &["`scope` can't be \"some\"", "`from` can't be \"end\""],
        ),
        (
            "kind = \"file\"\npath = \"a\"\nscope = { agents = [], kinds = [\"x\"] }",
            &["`agents` is empty: nothing would be delivered", "unknown key `kinds`"],
        ),
        (twice, &["there are two streams \"x\"", "another stream writes this file"]),
        (
            "kind = \"file\"\npath = \"a\"\n[journal]\nenabled = false",
            &["streams deliver what the journal has, and it is off"],
        ),
    ] {
        let told = errors(&format!("[[streams]]\nname = \"x\"\n{keys}\n"));
        for wanted in wanted {
            assert!(told.contains(wanted), "{keys}\n{wanted}\n{told}");
        }
        assert!(!told.contains("guess-me") && !told.contains("pw@"), "{told}");
    }
    assert!(errors("[[streams]]\nkind = \"file\"\n").contains("this stream has no `name`"));
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
