//! The lines of files, from lines of the protocol and lines of real agents.

use std::path::PathBuf;
use std::sync::Arc;

use expect_test::{Expect, expect};

use super::observe::shown;
use super::{Acp, observe};
use crate::extract::testing::Sample;

const BUTTON: &str = "import React from 'react';\nexport function Button({ label }: { label: string }) {\n  return <button className=\"btn\">{label}</button>;\n}\n";

/// Observes lines beside a workspace of two files, of which one has this text.
fn check(lines: &[&str], expected: &Expect) {
    let sample = Sample::at("/workspace", &["ui/button.tsx", "core/auth.rs"]);
    let sample = sample.with_text("ui/button.tsx", BUTTON);
    let mut acp = Acp::new(Arc::new(sample), PathBuf::from("/workspace"));
    expected.assert_eq(&shown(&observe(&mut acp, lines)));
}

fn update(update: &str) -> String {
    format!(r#"{{"method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#)
}

fn check_calls(calls: &[&str], expected: &Expect) {
    let lines: Vec<String> = calls.iter().map(|call| update(call)).collect();
    check(&lines.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn requests_name_their_lines_and_writes_what_differs() {
    check(
        &[
            r#"{"id":1,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/workspace/a"}}"#,
            r#"{"id":2,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/workspace/b","line":3,"limit":4}}"#,
            r#"{"id":3,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/workspace/c","line":3}}"#,
            r#"{"id":4,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/workspace/d","line":0,"limit":0}}"#,
            r#">{"id":1,"result":{"content":""}}"#,
            r#">{"id":2,"result":{"content":""}}"#,
            r#">{"id":3,"result":{"content":""}}"#,
            r#">{"id":4,"result":{"content":""}}"#,
            r#"{"id":1,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/workspace/absent"}}"#,
            r#">{"id":1,"error":{"code":-32002,"message":"not found"}}"#,
            r#"{"id":5,"method":"fs/write_text_file","params":{"sessionId":"s","path":"/workspace/ui/button.tsx","content":"import React from 'react';\nexport function Button({ text }: { text: string }) {\n  return <b>{text}</b>;\n}\n"}}"#,
            r#"{"id":6,"method":"fs/write_text_file","params":{"sessionId":"s","path":"/workspace/new","content":"one\ntwo\n"}}"#,
            r#"{"id":7,"method":"fs/write_text_file","params":{"sessionId":"s","path":"/workspace/.git/x","content":""}}"#,
            r#">{"id":7,"result":null}"#,
            r#">{"id":5,"result":{}}"#,
            r#">{"id":6,"error":{"code":-32603,"message":"no room"}}"#,
        ],
        &expect![[r#"
            s read a all (Request)
            s read b 3-6 (Request)
            s read c 3-4294967295 (Request)
            s read d (Request)
            s write ui/button.tsx 2-3 (Request)
            s write new 1-2 (Request)
            s Written { path: "ui/button.tsx" }
        "#]],
    );
}

#[test]
fn a_location_names_a_line_and_comes_again_with_another() {
    check_calls(
        &[
            r#"{"sessionUpdate":"tool_call","toolCallId":"1","kind":"read","locations":[{"path":"core/auth.rs"}]}"#,
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"1","locations":[{"path":"core/auth.rs","line":12}]}"#,
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"1","locations":[{"path":"core/auth.rs","line":12}]}"#,
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"1","locations":[{"path":"core/auth.rs","line":0},{"path":"core/auth.rs","line":"x"}]}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"2","kind":"edit","locations":[{"path":"core/auth.rs","line":7},{"path":"core/auth.rs","line":20}]}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"3","kind":"read","rawInput":{"path":"core/auth.rs","offset":3,"limit":5},"locations":[{"path":"core/auth.rs","line":3}]}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"4","kind":"read","rawInput":{"path":"core/auth.rs"},"locations":[{"path":"core/auth.rs","line":1}]}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"5","kind":"search","rawInput":{"pattern":"x","path":"core","limit":5},"locations":[{"path":"core/auth.rs","line":1}]}"#,
        ],
        &expect![[r#"
            s read core/auth.rs (Tool)
            s read core/auth.rs 12-12 (Tool)
            s write core/auth.rs 7-7 20-20 (Tool)
            s read core/auth.rs 3-7 (Tool)
            s read core/auth.rs all (Tool)
            s search core/auth.rs (Tool)
            s search core (Tool)
        "#]],
    );
}

/// As claude-code-acp says it.
#[test]
fn the_lines_of_a_fragment_are_found_in_the_file() {
    check(
        &[
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"_meta":{"claudeCode":{"toolName":"mcp__acp__Read"}},"toolCallId":"toolu_000b71f1632769d","sessionUpdate":"tool_call","rawInput":{"file_path":"/workspace/ui/button.tsx"},"status":"pending","title":"Read /workspace/ui/button.tsx","kind":"read","locations":[{"path":"/workspace/ui/button.tsx","line":0}],"content":[]}}}"#,
            r#"{"jsonrpc":"2.0","id":0,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/workspace/ui/button.tsx","line":1,"limit":2000}}"#,
            r#">{"jsonrpc":"2.0","id":0,"result":{"content":""}}"#,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"_meta":{"claudeCode":{"toolName":"mcp__acp__Edit"}},"toolCallId":"toolu_030f349b4a778a9","sessionUpdate":"tool_call","rawInput":{"file_path":"/workspace/ui/button.tsx","old_string":"  return <button className=\"btn\">{label}</button>;","new_string":"  return <button className=\"btn btn-primary\" type=\"button\">{label}</button>;"},"status":"pending","title":"Edit `/workspace/ui/button.tsx`","kind":"edit","content":[{"type":"diff","path":"/workspace/ui/button.tsx","oldText":"  return <button className=\"btn\">{label}</button>;","newText":"  return <button className=\"btn btn-primary\" type=\"button\">{label}</button>;"}],"locations":[{"path":"/workspace/ui/button.tsx"}]}}}"#,
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"_meta":{"claudeCode":{"toolName":"mcp__acp__Write"}},"toolCallId":"toolu_040a7b2d68a6317","sessionUpdate":"tool_call","rawInput":{"file_path":"/workspace/ui/new_widget.tsx","content":"export function NewWidget() {\n  return <div>new widget</div>;\n}\n"},"status":"pending","title":"Write /workspace/ui/new_widget.tsx","kind":"edit","content":[{"type":"diff","path":"/workspace/ui/new_widget.tsx","oldText":null,"newText":"export function NewWidget() {\n  return <div>new widget</div>;\n}\n"}],"locations":[{"path":"/workspace/ui/new_widget.tsx"}]}}}"#,
        ],
        &expect![[r#"
            s read ui/button.tsx (Tool)
            s read ui/button.tsx 1-2000 (Request)
            s write ui/button.tsx 3-3 (Tool)
            s write ui/new_widget.tsx 1-3 (Tool)
        "#]],
    );
}

/// As gemini-cli says it: all of the file, under its bare name.
#[test]
fn whole_files_report_the_lines_that_differ() {
    let call = format!(
        r#"{{"sessionUpdate":"tool_call","toolCallId":"e","status":"in_progress","title":"button.tsx","kind":"edit","locations":[{{"path":"/workspace/ui/button.tsx"}}],"content":[{{"type":"diff","path":"button.tsx","oldText":{},"newText":{}}}]}}"#,
        serde_json::to_string(BUTTON).unwrap(),
        serde_json::to_string(&BUTTON.replace("btn", "btn btn-primary")).unwrap(),
    );
    check_calls(
        &[&call, &call],
        &expect![[r#"
            s write ui/button.tsx 3-3 (Tool)
        "#]],
    );
}
