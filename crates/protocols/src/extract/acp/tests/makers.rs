//! Tests of variants of agents without a recording: their activities and requested accesses.

use super::gate::shown as asked;
use super::{acp, observe};
use crate::extract::Extractor;
use crate::model::{Activity, ActivityKind};

/// The touches of lines, in one line: `write a, read b`.
pub(super) fn observed(lines: &[&str]) -> String {
    touches(&observe(&mut acp(), lines))
}

fn touches(observed: &[Activity]) -> String {
    let touch = |activity: &Activity| match &activity.kind {
        ActivityKind::Touched { path, touch, .. } => Some(format!("{} {path}", touch.as_str())),
        _ => None,
    };
    observed.iter().filter_map(touch).collect::<Vec<_>>().join(", ")
}

pub(super) fn update(update: &str) -> String {
    format!(r#"{{"method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#)
}

/// A call with these fields, as it is begun and as permission is asked for it.
pub(super) fn call(fields: &str) -> (String, String) {
    let begun = update(&format!(
        r#"{{"sessionUpdate":"tool_call","toolCallId":"c","title":"t",{fields}}}"#
    ));
    let permission = format!(
        r#"{{"id":1,"method":"session/request_permission","params":{{"sessionId":"s","options":[],"toolCall":{{"toolCallId":"c","title":"t",{fields}}}}}}}"#
    );
    (observed(&[&begun]), asked(&acp().gate(permission.as_bytes())))
}

/// Fields of a call, its activities at the start, and the accesses of a permission for it.
const INPUTS: &[(&str, &str, &str)] = &[
    (
        r#""kind":"read","rawInput":{"file_path":"core/auth.rs"}"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"read","rawInput":{"absolute_path":"/o/x","offset":3,"limit":9}"#,
        "read /o/x",
        "1: read /o/x",
    ),
    (r#""kind":"read","rawInput":{"AbsolutePath":"/o/x"}"#, "read /o/x", "1: read /o/x"),
    (
        r#""kind":"read","rawInput":{"paths":["README.md","/o/x"]}"#,
        "read README.md, read /o/x",
        "1: read /w/README.md, read /o/x",
    ),
    (
        r#""kind":"read","rawInput":{"files":[{"path":"README.md"},{"path":"/o/x"}]}"#,
        "read /o/x, read README.md",
        "1: read /o/x, read /w/README.md",
    ),
    (r#""kind":"read","rawInput":{"uri":"file:///o/a%20b"}"#, "read /o/a b", "1: read /o/a b"),
    (
        r#""kind":"fetch","rawInput":{"url":"https://example.com/a.rs","uri":"https://example.com/b.rs"}"#,
        "",
        "1: ",
    ),
    (
        r#""kind":"other","rawInput":{"tool":"Read","args":{"filename":"README.md"}}"#,
        "read README.md",
        "1: write /w/README.md",
    ),
    (
        r#""kind":"read","rawInput":{"name":"read","arguments":"{\"filePath\":\"/o/x\"}"}"#,
        "read /o/x",
        "1: read /o/x",
    ),
    (
        r#""kind":"edit","rawInput":{"notebook_path":"a.ipynb","new_source":"x"}"#,
        "write a.ipynb",
        "1: write /w/a.ipynb",
    ),
    (r#""rawInput":{"target_file":"a","code_edit":"x"}"#, "write a", "1: write /w/a"),
    (r#""rawInput":{"path":"a","old_str":"x","new_str":"y"}"#, "write a", "1: write /w/a"),
    (
        r#""rawInput":{"source_path":"a","destination_path":"/o/b"},"kind":"move""#,
        "write /o/b, write a",
        "1: write /w/a, write /o/b",
    ),
    (
        r#""kind":"search","rawInput":{"pattern":"x","path":"core"}"#,
        "search core",
        "1: search /w/core",
    ),
    (r#""kind":"search","rawInput":{"query":"x","directory":"/o"}"#, "", "1: search /o"),
    // Cline, as it asks.
    (
        r#""kind":"read","rawInput":{"files":[{"path":"/w/README.md","start_line":2,"end_line":3},{"path":"/o/x","start_line":null,"end_line":null}]}"#,
        "read /o/x, read README.md",
        "1: read /o/x, read /w/README.md",
    ),
    (r#""kind":"search","rawInput":{"queries":["three"]}"#, "", "1: search /w"),
    (
        r#""kind":"execute","rawInput":{"commands":["cat core/auth.rs | head -2","echo hi > /o/x"]}"#,
        "read core/auth.rs, write /o/x",
        "1: read /w/core/auth.rs, write /o/x",
    ),
    (
        r#""kind":"other","rawInput":{"input":"*** Begin Patch\n*** Update File: core/auth.rs\n@@\n-x\n+z\n*** Add File: /o/c\n+added\n*** End Patch"}"#,
        "write core/auth.rs, write /o/c",
        "1: write /w/core/auth.rs, write /o/c",
    ),
    // Droid: its permissions hold the input as text once more.
    (
        r#""kind":"other","rawInput":{"input":"{\"input\": \"*** Begin Patch\\n*** Update File: core/auth.rs\\n@@\\n-x\\n+z\\n*** End Patch\"}"}"#,
        "write core/auth.rs",
        "1: write /w/core/auth.rs",
    ),
    (
        r#""kind":"read","rawInput":{"file_path":"/w/README.md","offset":2,"limit":2},"locations":[{"path":"/w/README.md","line":0}]"#,
        "read README.md",
        "1: read /w/README.md",
    ),
    (
        r#""kind":"execute","rawInput":{"summary":"Write the new file","command":"cat core/auth.rs > /o/n","timeout":20,"riskLevelReason":"writes","riskLevel":"low"}"#,
        "write /o/n, read core/auth.rs",
        "1: write /o/n, read /w/core/auth.rs",
    ),
    (
        r#""kind":"other","rawInput":{"patterns":["**/*.txt"],"folder":"core"}"#,
        "",
        "1: search /w/core",
    ),
    (
        r#""kind":"edit","rawInput":{"patch":"*** Begin Patch\n*** Update File: a.rs\n*** Move to: /o/b.rs\n*** End Patch"}"#,
        "write a.rs, write /o/b.rs",
        "1: write /w/a.rs, write /o/b.rs",
    ),
    (
        r#""kind":"edit","rawInput":{"diff":"--- a/core/auth.rs\n+++ b/core/auth.rs\n@@ -1 +1 @@\n-x\n+y\n"}"#,
        "write core/auth.rs",
        "1: write /w/core/auth.rs",
    ),
    (
        r#""kind":"edit","rawInput":{"diff":"diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+y\n"}"#,
        "write n",
        "1: write /w/n",
    ),
    (
        r#""kind":"edit","rawInput":"*** Begin Patch\n*** Delete File: core/db.py\n*** End Patch""#,
        "write core/db.py",
        "1: write /w/core/db.py",
    ),
    (
        r#""kind":"edit","content":[{"type":"diff","path":"ui/app.tsx","oldText":null,"newText":"x"}]"#,
        "write ui/app.tsx",
        "1: write /w/ui/app.tsx",
    ),
    (
        r#""kind":"execute","rawInput":{"command":"cat core/auth.rs README.md"}"#,
        "read core/auth.rs, read README.md",
        "1: read /w/core/auth.rs, read /w/README.md",
    ),
    (
        r#""kind":"execute","rawInput":{"cmd":["bash","-lc","cd core && head -n5 auth.rs"]}"#,
        "read core/auth.rs",
        "1: read /w/core/auth.rs",
    ),
    (
        r#""kind":"execute","rawInput":{"command":"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: n\n+x\n*** End Patch\nEOF"}"#,
        "write n",
        "1: write /w/n",
    ),
    (
        r#""kind":"execute","rawInput":{"program":"cat","args":["README.md"]}"#,
        "read README.md",
        "1: read /w/README.md",
    ),
    (r#""kind":"think","rawInput":{"thought":"look at core/auth.rs"}"#, "", "1: "),
    (
        r#""kind":"other","rawInput":{"todos":[{"content":"edit core/auth.rs","status":"pending"}]}"#,
        "",
        "1: ",
    ),
    (
        r#""kind":"execute","rawInput":{"command":"git commit -m 'mention core/auth.rs'"}"#,
        "",
        "1: ",
    ),
];

#[test]
fn inputs_of_any_maker_name_their_files() {
    let mut wrong = Vec::new();
    for (fields, observed, asked) in INPUTS {
        let found = call(fields);
        if (found.0.as_str(), found.1.as_str()) != (*observed, *asked) {
            wrong.push(format!("{fields}\n   observed: {}\n  asked: {}", found.0, found.1));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn commands_touch_what_they_certainly_touch() {
    let cases = [
        ("cat a b", "read a, read b"),
        ("head -n5 f", "read f"),
        ("head -5 f", "read f"),
        ("head --lines=5 f", "read f"),
        ("tail -n +3 f | head", "read f"),
        ("sed -n 1,5p f", "read f"),
        ("sed -n '1,5p' 'a b'", "read a b"),
        ("sed --in-place s/a/b/ f", "write f"),
        ("perl -pi -e 's/a/b/' f", "write f"),
        ("awk '{print $1}' f", "read f"),
        ("awk -F: '/x/ {print}' f g", "read f, read g"),
        ("nl -ba f; wc -l g; less h; bat i", "read f, read g, read h, read i"),
        ("tee -a f < g", "read g, write f"),
        ("echo x | sudo tee f >/dev/null", "write f"),
        ("> f", "write f"),
        (": > f", "write f"),
        ("echo x >> f", "write f"),
        ("echo x >| f", "write f"),
        ("cmd &> f", "write f"),
        ("cmd >f 2>&1", "write f"),
        ("cp f g", "read f, write g"),
        ("cp -r core/auth.rs ui", "read core/auth.rs, write ui/auth.rs"),
        ("cp -t ui core/auth.rs", "read core/auth.rs, write ui/auth.rs"),
        ("mv f g", "write f, write g"),
        ("install -m 644 f g", "read f, write g"),
        ("rm -f f", "write f"),
        ("truncate -s 0 f", "write f"),
        ("cd core && cat y", "read core/y"),
        ("(cd core && cat y) && cat z", "read core/y, read z"),
        ("pushd core; cat y", "read core/y"),
        ("bash -lc \"cat f\"", "read f"),
        ("/bin/zsh -c 'cat f'", "read f"),
        ("FOO=1 BAR=2 cat f", "read f"),
        ("env FOO=1 cat f", "read f"),
        ("timeout 10s cat f", "read f"),
        ("time cat f", "read f"),
        ("nohup cat f &", "read f"),
        ("cat <<'EOF' > f\ncat g > h\nEOF", "write f"),
        ("cat <<EOF | tee f\nx\nEOF", "write f"),
        ("cat > f << 'END'\nx\nEND\ncat g", "write f, read g"),
        ("python3 - <<'EOF'\nopen('f')\nEOF", ""),
        ("cat f | grep x | sort > g", "read f, write g"),
        ("cat \"a b\" 'c d' e\\ f", "read a b, read c d, read e f"),
        ("cat -- -f", "read -f"),
        ("cat f 2>/dev/null || true", "read f"),
        ("if [ -f f ]; then cat f; fi", "read f"),
        ("for f in a b; do cat $f; done", ""),
        ("grep -n x core/auth.rs", "search core/auth.rs"),
        ("grep -rn x .", ""),
        ("ls core; pwd; git status; npm test", ""),
        ("echo 'cat f'", ""),
        ("echo cat f", ""),
        ("# cat f", ""),
        ("curl -sSLo f https://example.com/g", "write f"),
        ("wget -q -O f https://example.com/g; wget -O- https://example.com", "write f"),
        ("make | sponge f", "write f"),
        ("patch -p1 < x.diff", "read x.diff"),
        ("git diff f", ""),
    ];
    let mut wrong = Vec::new();
    for (command, expected) in cases {
        let raw = serde_json::json!({ "command": command });
        let (found, _) = call(&format!(r#""kind":"execute","rawInput":{raw}"#));
        if found != expected {
            wrong.push(format!("{command:?}\n    observed: {found}\n expected: {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ids_are_what_they_are() {
    for id in [
        "7",
        "-7",
        "0",
        "1.5",
        "1e3",
        "123456789012345678901234567890",
        r#""x""#,
        r#""7""#,
        "\"\\u0061\"",
    ] {
        let lines = [
            format!(
                r#">{{"id":{id},"method":"session/prompt","params":{{"sessionId":"s","prompt":[]}}}}"#
            ),
            // The same id in the other direction is another request.
            format!(
                r#"{{"id":{id},"method":"fs/read_text_file","params":{{"sessionId":"s","path":"README.md"}}}}"#
            ),
            format!(r#">{{"id":{id},"result":{{"content":"x"}}}}"#),
            format!(r#"{{"id":{id},"result":{{"stopReason":"end_turn"}}}}"#),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let all = observe(&mut acp(), &lines);
        assert_eq!(touches(&all), "read README.md", "{id}");
        let ended = |it: &Activity| matches!(&it.kind, ActivityKind::TurnEnded { stop_reason, .. } if &**stop_reason == "end_turn");
        assert_eq!(all.iter().filter(|it| ended(it)).count(), 1, "{id}");
    }
}

#[test]
fn messages_come_in_any_order_and_dress() {
    let read = update(
        r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","kind":"read","locations":[{"path":"README.md"}]}"#,
    );
    let crlf = format!("{read}\r");
    let bom = format!("\u{feff}{read}");
    let batch = format!("[{read}, {}]", read.replace("README.md", "core/db.py"));
    let ask = r#"{"id":0,"method":"session/request_permission","params":{"sessionId":"s","options":[],"toolCall":{"toolCallId":"c"}}}"#;
    let allowed = r#">{"id":0,"result":{"outcome":{"outcome":"selected","optionId":"y"}}}"#;
    let bare =
        update(r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress"}"#);
    let placed = update(
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","kind":"edit","status":"completed","content":[{"type":"diff","path":"core/auth.rs","newText":""}]}"#,
    );
    let numbered = read.replace(r#""c""#, "7");
    let cases: &[(&[&str], &str)] = &[
        (&["npm WARN deprecated", "Loading… {", &read], "read README.md"),
        (&[&crlf], "read README.md"),
        (&[&bom], "read README.md"),
        (&[&batch], "read README.md, read core/db.py"),
        (&[ask, allowed, &bare, &placed], "write core/auth.rs"),
        (&[&bare, &placed, &read], "write core/auth.rs, read README.md"),
        (&[ask, allowed, &read, &read], "read README.md"),
        (&[&numbered], "read README.md"),
    ];
    for (lines, expected) in cases {
        assert_eq!(observed(lines), *expected, "{lines:#?}");
    }
}
