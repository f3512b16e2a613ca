//! Tests of unusual but plausible tool calls, without recordings.

use super::makers::{call, observed, update};
use super::{acp, observe};
use crate::model::{Activity, ActivityKind};

/// Fields of a call, its activities at the start, and the accesses of a permission for it.
const SHAPES: &[(&str, &str, &str)] = &[
    (
        r#""kind":"read","rawInput":{"input":"{\"filePath\":\"core/auth.rs\"}"}"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"other","rawInput":{"tool_input":"{\"path\":\"core/auth.rs\"}"}"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"read","rawInput":"{\"path\":\"core/auth.rs\"}""#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"edit","rawInput":"{\"path\":\"core/auth.rs\",\"content\":\"x\"}""#,
        "write core/auth.rs",
        "1: write /w/core/auth.rs",
    ),
    (
        r#""kind":"read","rawInput":{"files":"[\"core/auth.rs\",\"core/db.py\"]"}"#,
        "read core/auth.rs, read core/db.py",
        "1: read /w/core/auth.rs, read /w/core/db.py",
    ),
    (
        r#""kind":"read","rawInput":["core/auth.rs","core/db.py"]"#,
        "read core/auth.rs, read core/db.py",
        "1: read /w/core/auth.rs, read /w/core/db.py",
    ),
    (r#""kind":"read","rawInput":"core/auth.rs""#, "read core/auth.rs", "1: read /w/core/auth.rs"),
    (
        r#""kind":"read","rawInput":"file:///w/core/auth.rs""#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"execute","rawInput":"cat core/auth.rs""#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"execute","rawInput":["cat","core/auth.rs"]"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"execute","rawInput":["bash","-lc","cat core/auth.rs"]"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"edit","rawInput":{"patchText":"--- a/core/auth.rs\n+++ b/core/auth.rs\n@@ -1 +1 @@\n-x\n+y\n"}"#,
        "write core/auth.rs",
        "1: write /w/core/auth.rs",
    ),
    (
        r#""kind":"edit","rawInput":{"diff":"diff --git a/core/auth.rs b/core/a.rs\nsimilarity index 100%\nrename from core/auth.rs\nrename to core/a.rs\n"}"#,
        "write core/auth.rs, write core/a.rs",
        "1: write /w/core/auth.rs, write /w/core/a.rs",
    ),
    (
        r#""kind":"execute","rawInput":{"cmd":"[\"bash\",\"-lc\",\"cat core/auth.rs\"]"}"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"execute","rawInput":{"bash":"cat core/auth.rs"}"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"execute","rawInput":{"commands":"cat core/auth.rs"}"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"execute","rawInput":{"executable":"cat","arguments":"core/auth.rs"}"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"execute","rawInput":{"command":"cat","args":"core/auth.rs core/db.py"}"#,
        "read core/auth.rs, read core/db.py",
        "1: read /w/core/auth.rs, read /w/core/db.py",
    ),
    (
        r#""kind":"read","locations":{"path":"core/auth.rs"}"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"read","locations":["core/auth.rs"]"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"read","locations":[{"uri":"file:///w/core/auth.rs"}]"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"read","locations":[{"file":"core/auth.rs"}]"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"read","locations":[{"path":"core/auth.rs:12"}]"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"read","locations":[{"path":"core/auth.rs#L12"}]"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"edit","content":[{"type":"diff","path":"core/auth.rs","newText":"x"}],"rawInput":{"path":"auth.rs"}"#,
        "write core/auth.rs",
        "1: write /w/auth.rs, write /w/core/auth.rs",
    ),
    (
        r#""kind":"edit","content":[{"type":"content","content":{"type":"text","text":"--- a/core/auth.rs\n+++ b/core/auth.rs\n@@ -1 +1 @@\n-x\n+y\n"}}]"#,
        "write core/auth.rs",
        "1: write /w/core/auth.rs",
    ),
    (
        r#""kind":"write","rawInput":{"file":"core/auth.rs"}"#,
        "write core/auth.rs",
        "1: write /w/core/auth.rs",
    ),
    (r#""kind":"create","rawInput":{"path":"n","body":"x"}"#, "write n", "1: write /w/n"),
    (r#""rawInput":{"path":"n","body":"x"}"#, "write n", "1: write /w/n"),
    (r#""rawInput":{"path":"n","data":"x"}"#, "write n", "1: write /w/n"),
    (r#""rawInput":{"file":"n","new_contents":"x"}"#, "write n", "1: write /w/n"),
    (r#""rawInput":{"file":"n","updated_content":"x"}"#, "write n", "1: write /w/n"),
    (
        r#""rawInput":{"path":"core/auth.rs","search_text":"a","replace_text":"b"}"#,
        "write core/auth.rs",
        "1: write /w/core/auth.rs",
    ),
    (
        r#""rawInput":{"TargetFile":"/w/n","CodeContent":"x","EmptyFile":false}"#,
        "write n",
        "1: write /w/n",
    ),
    (
        r#""rawInput":{"TargetFile":"/w/core/auth.rs","ReplacementChunks":[{"TargetContent":"a","ReplacementContent":"b"}]}"#,
        "write core/auth.rs",
        "1: write /w/core/auth.rs",
    ),
    (
        r#""kind":"search","rawInput":{"pattern":"**/*.rs","target_directory":"core"}"#,
        "",
        "1: search /w/core",
    ),
    (
        r#""kind":"move","rawInput":{"from":"core/auth.rs","to":"core/a.rs"}"#,
        "write core/a.rs, write core/auth.rs",
        "1: write /w/core/auth.rs, write /w/core/a.rs",
    ),
    (
        r#""kind":"move","rawInput":{"source":"core/auth.rs","destination":"core/a.rs"}"#,
        "write core/a.rs, write core/auth.rs",
        "1: write /w/core/auth.rs, write /w/core/a.rs",
    ),
    (
        r#""kind":"move","rawInput":{"src":"core/auth.rs","dst":"core/a.rs"}"#,
        "write core/a.rs, write core/auth.rs",
        "1: write /w/core/auth.rs, write /w/core/a.rs",
    ),
    (
        r#""kind":"read","rawInput":{"filePath":"core/auth.rs\n"}"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"read","rawInput":{"filePath":"core/auth.rs:10-20"}"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"read","rawInput":{"pathname":"core/auth.rs"}"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"read","rawInput":{"file_path_list":["core/auth.rs"]}"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"edit","rawInput":{"changes":{"core/auth.rs":{"update":{"unified_diff":"@@"}}}}"#,
        "write core/auth.rs",
        "1: write /w/core/auth.rs",
    ),
    (
        r#""kind":"edit","rawInput":{"fileChanges":{"core/auth.rs":"x"}}"#,
        "write core/auth.rs",
        "1: write /w/core/auth.rs",
    ),
    (
        r#""kind":"edit","rawInput":{"files":{"core/auth.rs":"x","ui/app.tsx":{"content":"y"}}}"#,
        "write core/auth.rs, write ui/app.tsx",
        "1: write /w/core/auth.rs, write /w/ui/app.tsx",
    ),
    (
        r#""kind":"edit","rawInput":{"edits":[{"file_path":"core/auth.rs","old":"a","new":"b"},{"file_path":"core/db.py","old":"a","new":"b"}]}"#,
        "write core/db.py, write core/auth.rs",
        "1: write /w/core/db.py, write /w/core/auth.rs",
    ),
    (
        r#""kind":"edit","rawInput":{"command":"str_replace","path":"/w/core/auth.rs","old_str":"x","new_str":"y"}"#,
        "write core/auth.rs",
        "1: write /w/core/auth.rs",
    ),
    (
        r#""kind":"other","rawInput":{"command":"create","path":"/w/n.rs","file_text":"x"}"#,
        "write n.rs",
        "1: write /w/n.rs",
    ),
    (
        r#""kind":"execute","rawInput":{"cmd":["bash","-lc","cd sub && cat x.rs > y"]}"#,
        "write sub/y, read sub/x.rs",
        "1: write /w/sub/y, read /w/sub/x.rs",
    ),
    (
        r#""kind":"execute","rawInput":{"command":"cat <<'EOF' | tee -a sub/y > /dev/null\ncat z\nEOF"}"#,
        "write sub/y",
        "1: write /w/sub/y",
    ),
    (
        r#""kind":"execute","rawInput":{"CommandLine":"cat auth.rs","Cwd":"/w/core","Blocking":true}"#,
        "read core/auth.rs",
        "1: cwd /w/core, read /w/core/auth.rs",
    ),
    (
        r#""kind":"execute","rawInput":{"action":{"type":"exec","command":["cat","core/auth.rs"]}}"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"execute","rawInput":{"steps":[{"command":"cat core/auth.rs"},{"command":"rm core/db.py"}]}"#,
        "write core/db.py, read core/auth.rs",
        "1: write /w/core/db.py, read /w/core/auth.rs",
    ),
    (
        r#""kind":"read","rawInput":{"uri":"file:///w/core/a%C3%A9.rs"}"#,
        "read core/aé.rs",
        "1: read /w/core/aé.rs",
    ),
    (
        r#""kind":"read","rawInput":{"textDocument":{"uri":"file:///w/core/auth.rs"},"position":{"line":1}}"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"read","locations":[{"path":"file:///w/core/auth.rs","line":null}]"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"edit","rawInput":{"name":"apply_patch","arguments":"*** Begin Patch\n*** Delete File: core/db.py\n*** End Patch"}"#,
        "write core/db.py",
        "1: write /w/core/db.py",
    ),
    // What only looks like it.
    (
        r#""rawInput":{"path":"core/auth.rs","include_content":true}"#,
        "read core/auth.rs",
        "1: write /w/core/auth.rs",
    ),
    (r#""rawInput":{"path":"n","content":{"editor.tab":2,"a/b":1}}"#, "write n", "1: write /w/n"),
    (
        r#""kind":"edit","rawInput":{"path":"n","body":"{\"path\":\"/o/x\"}"}"#,
        "write n",
        "1: write /w/n",
    ),
    (r#""kind":"execute","rawInput":{"command":"python3","input":"core/auth.rs"}"#, "", "1: "),
    (
        r#""kind":"execute","rawInput":{"command":"[ -f x ] && cat core/auth.rs"}"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (r#""kind":"edit","rawInput":"rename it everywhere""#, "", "1: "),
    (r#""kind":"other","rawInput":"core/auth.rs""#, "", "1: "),
    (r#""rawInput":{"from":"English","to":"German"}"#, "", "1: "),
    (r#""kind":"edit","locations":[{"path":"n:12"}]"#, "write n:12", "1: write /w/n:12"),
    // It may be such a file that is made.
    (
        r#""kind":"edit","locations":[{"path":"core/auth.rs:12"}]"#,
        "write core/auth.rs",
        "1: write /w/core/auth.rs:12",
    ),
];

#[test]
fn odd_shapes_name_their_files() {
    let mut wrong = Vec::new();
    for (fields, observed, asked) in SHAPES {
        let found = call(fields);
        if (found.0.as_str(), found.1.as_str()) != (*observed, *asked) {
            wrong.push(format!("{fields}\n   observed: {}\n  asked: {}", found.0, found.1));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_users_home_is_where_it_is() {
    let home = std::env::home_dir().unwrap();
    let (observed, asked) = call(r#""kind":"read","rawInput":{"file_path":"~/x"}"#);
    let file = home.join("x");
    assert_eq!(observed, format!("read {}", file.display()));
    assert_eq!(asked, format!("1: read {}", file.display()));
}

#[test]
fn a_title_names_files_that_are_there_if_nothing_else_does() {
    for (kind, title, expected) in [
        ("read", "Read core/auth.rs", "read core/auth.rs"),
        ("read", "Read(`README.md`, lines 1-20)", "read README.md"),
        ("read", "ReadFile: core/db.py:7-9", "read core/db.py"),
        ("edit", "Edit `core/auth.rs`", "write core/auth.rs"),
        ("read", "Read core and none.rs", ""),
        ("think", "Think of core/auth.rs", ""),
        ("search", "Search core/auth.rs", ""),
        ("execute", "$ cat core/auth.rs", "read core/auth.rs"),
        ("execute", "Run `cat core/auth.rs` in the shell", "read core/auth.rs"),
        ("execute", "Run the tests of core/auth.rs", ""),
    ] {
        let fields = format!(r#""toolCallId":"c","title":"{title}","kind":"{kind}""#);
        let begun = update(&format!(r#"{{"sessionUpdate":"tool_call",{fields}}}"#));
        assert_eq!(observed(&[&begun]), expected, "{title}");
        // It is observed by its input, once it is there.
        let input = r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","rawInput":{"file_path":"sub/x.rs"}}"#;
        let early = begun.replace(title, "t");
        assert!(observed(&[&early, &update(input)]).ends_with("sub/x.rs"), "{title}");
    }
}

#[test]
fn status_words_are_mapped() {
    for (status, performed) in [
        ("\"completed\"", true),
        ("\"Success\"", true),
        ("\"done\"", true),
        ("\"error\"", false),
        ("\"rejected\"", false),
        ("\"canceled\"", false),
        ("\"quantum\"", false),
        ("\"pending\"", false),
        // It says nothing, so that the good end of its turn does.
        ("null", true),
        ("7", true),
    ] {
        let call = update(&format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","kind":"edit","status":{status},"locations":[{{"path":"a"}}]}}"#
        ));
        let lines = [
            r#">{"id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#,
            &call,
            r#"{"id":1,"result":{"stopReason":"end_turn"}}"#,
        ];
        let all = observe(&mut acp(), &lines);
        let is_performed = |it: &Activity| matches!(it.kind, ActivityKind::Performed { .. });
        assert_eq!(all.iter().any(is_performed), performed, "{status}");
    }
}
