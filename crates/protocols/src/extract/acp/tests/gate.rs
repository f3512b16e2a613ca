//! Tests of the accesses that lines request, and of ambiguous lines.

use expect_test::{Expect, expect};

use super::{acp, observe};
use crate::extract::{Extractor, Gate, Target};

pub(super) fn shown(gate: &Gate) -> String {
    match gate {
        Gate::Pass => "pass".to_owned(),
        Gate::Ask(ask) => {
            let accesses = ask.accesses.iter().map(|access| {
                let path = access.path.display();
                match access.target {
                    Target::File(action) => format!("{action} {path}"),
                    Target::Cwd => format!("cwd {path}"),
                    Target::Search => format!("search {path}"),
                }
            });
            let accesses: Vec<_> = accesses.collect();
            let id = ask.id.as_ref().map_or("nobody", |id| id.get());
            format!("{id}: {}", accesses.join(", "))
        }
        Gate::Ambiguous { why, replies } => {
            let ids: Vec<String> = replies
                .iter()
                .map(|reply| {
                    let reply: serde_json::Value = serde_json::from_slice(reply).unwrap();
                    assert_eq!(reply["error"]["code"], -32600);
                    reply["id"].to_string()
                })
                .collect();
            format!("ambiguous, {why} [{}]", ids.join(" "))
        }
    }
}

fn check(line: &str, expected: &Expect) {
    expected.assert_eq(&shown(&acp().gate(line.as_bytes())));
}

fn read(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{params}}}"#)
}

#[test]
fn requests_for_files_are_asks() {
    check(&read(r#"{"sessionId":"s","path":"/w/core/a"}"#), &expect!["7: read /w/core/a"]);
    check(&read(r#"{"path":"ui/../core/a","sessionId":"s"}"#), &expect!["7: read /w/ui/../core/a"]);
    check(&read(r#"{"sessionId":"s","path":"file:///w/a%20b"}"#), &expect!["7: read /w/a b"]);
    check(&read(r#"{"sessionId":"s","p\u0061th":"\/w\/\u0063"}"#), &expect!["7: read /w/c"]);
    check(
        r#"{"id":"\u0061","method":"fs\/write_text_file","params":{"sessionId":"s","path":"x","content":"\ud800"}}"#,
        &expect![[r#""\u0061": write /w/x"#]],
    );
    check(
        r#"{"method":"fs/read_text_file","params":{"sessionId":"s","path":"x"}}"#,
        &expect!["nobody: read /w/x"],
    );
    check(
        r#"{"id":null,"method":"fs/read_text_file","params":{"sessionId":"s","path":"x"}}"#,
        &expect!["null: read /w/x"],
    );
    check(
        r#"{"id":123456789012345678901234567890,"result":{},"method":"fs/read_text_file","params":{"sessionId":"s","path":"x"}}"#,
        &expect!["123456789012345678901234567890: read /w/x"],
    );
}

#[test]
fn what_no_zone_judges_passes() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{}1{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    for line in [
        "",
        "  \r\n",
        "7",
        "\"text\"",
        r#"{"jsonrpc":"2.0","id":1,"result":{"path":"/x","path":"/y"}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"a":1,"a":2,"n":1e999999,"s":"\ud800","\udc00":1}}"#,
        r#"{"id":1,"method":"future/method","params":{"path":"/x"}}"#,
        r#"{"id":1,"method":"terminal/output","params":{"sessionId":"s","terminalId":"t"}}"#,
        "{\"method\":\"session/update\",\"params\":{\"text\":\"a\u{2028}b\u{2029}{c\"}}\r\n",
        "{\"id\":1,\r\"result\":\r{}}",
        "\u{feff}{\"id\":1,\"result\":{}}",
        &deep,
    ] {
        assert_eq!(shown(&acp().gate(line.as_bytes())), "pass", "{line:.200}");
    }
}

#[test]
fn what_parsers_could_read_differently_never_passes() {
    let params = r#"{"sessionId":"s","path":"/w/ui/a"}"#;
    let deep_double = read(&format!(
        r#"{{"sessionId":"s","path":"x","_meta":{}{{"k":1,"K":2}}{}}}"#,
        "[".repeat(50_000),
        "]".repeat(50_000)
    ));
    let lines: Vec<(String, &str)> = vec![
        (format!(r#"{{"id":1,"method":"x","method":"fs/read_text_file","params":{params}}}"#), "1"),
        (format!(r#"{{"id":1,"m\u0065thod":"x","method":"y","params":{params}}}"#), "1"),
        (format!(r#"{{"id":1,"Method":"fs/read_text_file","params":{params}}}"#), "1"),
        (format!(r#"{{"id":1,"method":"fs/read_text_file","params":{params},"PARAMS":{{}}}}"#), "1"),
        (format!(r#"{{"id":1,"id":2,"method":"fs/read_text_file","params":{params}}}"#), ""),
        (format!(r#"{{"id":1,"id":1,"method":"fs/read_text_file","params":{params}}}"#), "1"),
        (r#"{"id":1,"re\u017fult":{},"result":{}}"#.to_owned(), ""),
        (read(r#"{"sessionId":"s","path":"/w/ui/a","path":"/etc/x"}"#), "7"),
        (read(r#"{"sessionId":"s","path":"/w/ui/a","Path":"/etc/x"}"#), "7"),
        (read(r#"{"sessionId":"s","PATH":"/etc/x"}"#), "7"),
        (read(r#"{"sessionId":"s","path\u0000":"/etc/x","path":"x"}"#), "7"),
        (read(r#"{"\u017fessionId":"s","path":"x"}"#), "7"),
        (deep_double, "7"),
        (read(r#"{"sessionId":"s","path":"/w/\ud800"}"#), "7"),
        (read(r#"{"sessionId":"s","path":"/w/a\u0000b"}"#), "7"),
        (read(r#"{"sessionId":"s","path":"file:///w/ui/a?/../../x"}"#), "7"),
        (read(r#"{"sessionId":"s","path":["/w/a"]}"#), "7"),
        (read(r#"{"sessionId":"s"}"#), "7"),
        (read(r#"{"path":"x"}"#), "7"),
        (read(r#"["s","/w/a"]"#), "7"),
        (r#"{"id":7,"method":"fs/read_text_file"}"#.to_owned(), "7"),
        (format!(r#"{{"id":7,"method":"FS/read_text_file","params":{params}}}"#), "7"),
        (format!(r#"{{"id":7,"method":["fs/read_text_file"],"params":{params}}}"#), "7"),
        (format!(r#"{{"id":7,"method":"fs/read_text_file\u0000","params":{params}}}"#), "7"),
        (format!(r#"[{},{{"id":"b","method":"x"}},{{"id":3,"result":1}},{{"method":"x"}}]"#, read(params)), r#"7 "b""#),
        ("[]".to_owned(), ""),
        (format!("{} {}", read(params), read(params)), "7"),
        (format!("\u{feff}{}", read(params)), "7"),
        (read(params).replace("}}", "},}"), "7"),
        (format!("{}\0", read(params)), "7"),
        ("Loading model…".to_owned(), ""),
        (format!("{{\"x\":\r{}\r}}", read(params)), ""),
        (format!("{{\"id\":9,\"method\":\"x\",\"params\":\r\n[\r{}\r]}}", read(params)), "9"),
        (format!("{{\"x\":\r[{}]\r}}", read(params)), ""),
        (r#"{"id":1,"method":"terminal/create","params":{"sessionId":"s","command":"cat","args":"x"}}"#.to_owned(), "1"),
        (r#"{"id":1,"method":"terminal/create","params":{"sessionId":"s","command":"cat","args":["x",1]}}"#.to_owned(), "1"),
        (r#"{"id":1,"method":"terminal/create","params":{"sessionId":"s","command":"cat","cwd":1}}"#.to_owned(), "1"),
    ];
    for (line, ids) in lines {
        let verdict = shown(&acp().gate(line.as_bytes()));
        assert!(verdict.starts_with("ambiguous"), "{verdict}: {line:.200}");
        assert!(verdict.ends_with(&format!("[{ids}]")), "{verdict}: {line:.200}");
    }
}

#[test]
fn bytes_that_are_no_unicode_never_pass() {
    let mut line = read(r#"{"sessionId":"s","path":"/w/?"}"#).into_bytes();
    let at = line.iter().position(|byte| *byte == b'?').unwrap();
    line[at] = 0xff;
    assert_eq!(shown(&acp().gate(&line)), "ambiguous, it is no UTF-8 [7]");
    assert_eq!(
        shown(&acp().gate(b"{\"id\":\"\xff\",\"method\":\"x\"}")),
        "ambiguous, it is no UTF-8 []"
    );
}

fn terminal(params: &str) -> String {
    format!(r#"{{"id":1,"method":"terminal/create","params":{{"sessionId":"s",{params}}}}}"#)
}

#[test]
fn a_terminal_asks_for_its_folder_and_the_files_it_names() {
    check(
        &terminal(r#""command":"cat core/auth.rs > out""#),
        &expect!["1: cwd /w, write /w/out, read /w/core/auth.rs"],
    );
    check(
        &terminal(r#""command":"cat auth.rs","cwd":"/w/core""#),
        &expect!["1: cwd /w/core, read /w/core/auth.rs"],
    );
    check(
        &terminal(r#""command":"cat","args":["a b",">","c"],"cwd":"sub""#),
        &expect!["1: cwd /w/sub, read /w/sub/a b, read /w/sub/>, read /w/sub/c"],
    );
    check(
        &terminal(r#""command":"sh","args":["-c","cd core && cat *.py"]"#),
        &expect!["1: cwd /w, read /w/core/*.py"],
    );
    check(&terminal(r#""command":"cat x; true","args":["y"]"#), &expect!["1: cwd /w, read /w/x"]);
    check(&terminal(r#""command":"ls","args":[]"#), &expect!["1: cwd /w"]);
    check(
        &terminal(
            r#""command":"/usr/bin/env node /usr/lib/x.js core/db.py 2>/dev/null; ls ui; cat /etc/hosts""#,
        ),
        &expect!["1: cwd /w, read /w/core/db.py"],
    );
    check(
        &terminal(r#""command":"cat /usr/../outside/x; echo x > /etc/y""#),
        &expect!["1: cwd /w, read /usr/../outside/x, write /etc/y"],
    );
    check(
        &terminal(r#""command":"make --file=core/auth.rs OUT=/o/x unknown""#),
        &expect!["1: cwd /w, read /w/core/auth.rs"],
    );
}

fn permission(call: &str) -> String {
    format!(
        r#"{{"id":1,"method":"session/request_permission","params":{{"sessionId":"s","options":[{{"optionId":"y","name":"Yes","kind":"allow_once"}},{{"optionId":"n","name":"No","kind":"reject_once"}}],"toolCall":{{"toolCallId":"c",{call}}}}}}}"#
    )
}

#[test]
fn a_permission_asks_for_what_its_call_names() {
    check(
        &permission(
            r#""kind":"edit","locations":[{"path":"/w/core/a"}],"content":[{"type":"diff","path":"core/a","newText":"x"}]"#,
        ),
        &expect!["1: write /w/core/a"],
    );
    check(
        &permission(
            r#""kind":"edit","rawInput":{"file_path":"/w/core/a"},"content":[{"type":"diff","path":"a","newText":"x"}]"#,
        ),
        &expect!["1: write /w/core/a"],
    );
    check(
        &permission(r#""kind":"read","rawInput":{"filePath":"/o/x","limit":3}"#),
        &expect!["1: read /o/x"],
    );
    check(
        &permission(r#""kind":"search","rawInput":{"pattern":"x","path":"/w"}"#),
        &expect!["1: search /w"],
    );
    check(
        &permission(
            r#""kind":"execute","rawInput":{"command":["bash","-lc","cat a > b"],"cwd":"core"}"#,
        ),
        &expect!["1: cwd /w/core, write /w/core/b, read /w/core/a"],
    );
    check(
        &permission(r#""kind":"execute","title":"`cat core/auth.rs`""#),
        &expect!["1: read /w/core/auth.rs"],
    );
    check(&permission(r#""title":"?","rawInput":{"path":"a"}"#), &expect!["1: read /w/a"]);
    check(
        &permission(r#""title":"?","rawInput":{"path":"a","sign":true}"#),
        &expect!["1: write /w/a"],
    );
    check(
        &permission(r#""kind":"teleport","locations":[{"path":"a"}]"#),
        &expect!["1: write /w/a"],
    );
    check(&permission(r#""kind":"other","title":"Set 3 todos""#), &expect!["1: "]);
    check(
        &permission(r#""locations":[{"path":"\ud800"}]"#),
        &expect!["ambiguous, a path of it is no Unicode [1]"],
    );
    check(
        &permission(r#""locations":[{"Path":"/o"}]"#),
        &expect!["ambiguous, a member of its tool call is misspelt [1]"],
    );
    check(
        &permission(r#""rawInput":{"a":{"x":1,"X":2}}"#),
        &expect!["ambiguous, a member of its parameters is there twice [1]"],
    );
}

#[test]
fn a_permission_that_names_only_the_call_means_what_was_reported_of_it() {
    let mut acp = acp();
    observe(
        &mut acp,
        &[
            r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","kind":"read","locations":[{"path":"/outside/secret.txt"}]}}}"#,
        ],
    );
    let line = permission(r#""title":"t""#);
    assert_eq!(shown(&acp.gate(line.as_bytes())), "1: read /outside/secret.txt");
    let Gate::Ask(ask) = acp.gate(line.as_bytes()) else { panic!("no ask") };
    let options: Vec<_> = ask.options.iter().map(|option| (&*option.id, &*option.kind)).collect();
    assert_eq!(options, [("y", "allow_once"), ("n", "reject_once")]);
}

#[test]
fn a_permission_to_leave_the_workspace_is_for_what_the_call_does() {
    let permission = permission(
        r#""kind":"other","title":"/outside","locations":[{"path":"/outside/a"},{"path":"/outside"}],"rawInput":{"filepath":"/outside/a","parentDir":"/outside"}"#,
    );
    for (kind, asked) in [
        ("read", "1: read /outside/a, read /outside"),
        ("edit", "1: write /outside/a, write /outside"),
    ] {
        let mut acp = acp();
        let call = format!(
            r#"{{"method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress","kind":"{kind}","locations":[{{"path":"/outside/a"}}]}}}}}}"#
        );
        observe(&mut acp, &[&call]);
        assert_eq!(shown(&acp.gate(permission.as_bytes())), asked);
    }
}

#[test]
fn relative_paths_are_taken_against_the_sessions_folder() {
    let mut acp = acp();
    observe(
        &mut acp,
        &[
            r#">{"id":1,"method":"session/new","params":{"cwd":"/w/core","mcpServers":[]}}"#,
            r#"{"id":1,"result":{"sessionId":"s"}}"#,
        ],
    );
    let gate = acp.gate(read(r#"{"sessionId":"s","path":"auth.rs"}"#).as_bytes());
    assert_eq!(shown(&gate), "7: read /w/core/auth.rs");
    let gate = acp.gate(read(r#"{"sessionId":"other","path":"auth.rs"}"#).as_bytes());
    assert_eq!(shown(&gate), "7: read /w/auth.rs");
}

#[test]
fn a_search_asks_for_all_that_lies_below() {
    let permission = |call: &str| {
        format!(
            r#"{{"id":7,"method":"session/request_permission","params":{{"sessionId":"s","toolCall":{{"toolCallId":"t",{call}}},"options":[]}}}}"#
        )
    };
    for (call, expected) in [
        // An unclear input counts as the wider access.
        (r#""kind":"search","locations":[{"path":"/w"}]"#, expect!["7: search /w"]),
        (r#""kind":"search","rawInput":{"pattern":"auth","path":"."}"#, expect!["7: search /w/."]),
        (
            r#""kind":"search","rawInput":{"query":"auth","dir":"/w/core"}"#,
            expect!["7: search /w/core"],
        ),
        (r#""rawInput":{"regex":"auth","path":"/w"}"#, expect!["7: search /w"]),
        // Files are searched where the session works; the web is where the title says so.
        (r#""kind":"search","rawInput":{"pattern":"auth"}"#, expect!["7: search /w"]),
        (r#""kind":"search","rawInput":{"query":"auth"}"#, expect!["7: search /w"]),
        (
            r#""kind":"search","title":"search_codebase: auth","rawInput":{"queries":["auth"]}"#,
            expect!["7: search /w"],
        ),
        (
            r#""kind":"search","title":"Searching the web for: auth","rawInput":{"query":"auth"}"#,
            expect!["7: "],
        ),
        (
            r#""kind":"search","title":"Web search","rawInput":{"pattern":"auth"}"#,
            expect!["7: search /w"],
        ),
        // One file.
        (
            r#""kind":"search","rawInput":{"pattern":"auth","path":"core/auth.rs"}"#,
            expect!["7: read /w/core/auth.rs"],
        ),
        // Names are listed.
        (r#""kind":"search","rawInput":{"path":"/w"}"#, expect!["7: cwd /w"]),
        (r#""kind":"read","locations":[{"path":"/w"}]"#, expect!["7: cwd /w"]),
        (
            r#""kind":"execute","rawInput":{"command":"ls","cwd":"/w","pattern":"x"}"#,
            expect!["7: cwd /w"],
        ),
    ] {
        check(&permission(call), &expected);
    }
}

#[test]
fn the_text_of_a_write_is_known() {
    let line = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"fs/write_text_file","params":{params}}}"#)
    };
    let wanted = |params: &str| acp().wanted(line(params).as_bytes());
    let params = r#"{"sessionId":"s","path":"/w/x","content":"a \"b\"\nä"}"#;
    assert_eq!(wanted(params).as_deref(), Some("a \"b\"\nä"));
    assert_eq!(wanted(r#"{"content":7}"#), None);
    assert_eq!(wanted("[]"), None);
    assert_eq!(acp().wanted(b"\xff"), None);
}
