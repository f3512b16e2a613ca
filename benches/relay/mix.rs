//! What agents say: recorded, or made up where there are no recordings.

use std::path::Path;

/// Names the folder of recordings.
const RECORDINGS: &str = "EISEN_RECORDINGS";

/// Returns where the lines are from, and what agents said, in a workspace at `workspace`.
pub(crate) fn mix(workspace: &Path) -> (&'static str, String) {
    let recorded = recorded(workspace);
    if recorded.is_empty() { ("made up", made_up()) } else { ("recorded", recorded) }
}

fn recorded(workspace: &Path) -> String {
    let Some(folder) = std::env::var_os(RECORDINGS) else { return String::new() };
    let folder = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "ndjson"));
    files.sort();
    let mut lines = String::new();
    for file in files {
        for entry in std::fs::read_to_string(file).unwrap().lines() {
            let entry: serde_json::Value = serde_json::from_str(entry).unwrap();
            if entry["dir"] == "down" {
                lines += entry["line"].as_str().unwrap();
                lines.push('\n');
            }
        }
    }
    // All of it is in the workspace, so that a zone of all that is there denies nothing.
    let inside = workspace.to_str().unwrap();
    lines.replace("/workspace", inside).replace("/outside", &format!("{inside}/outside"))
}

/// Chunks, and every fiftieth line the output of a tool, of up to 64 KB.
fn made_up() -> String {
    let update = |update: &str| {
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"5b1f","update":{"#
            .to_owned()
            + update
            + "}}}\n"
    };
    let chunk = |text: &str| {
        update(&format!(
            r#""sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}"#
        ))
    };
    let output = |call: usize, text: &str| {
        update(&format!(
            r#""sessionUpdate":"tool_call_update","toolCallId":"call_{call}","status":"completed","content":[{{"type":"content","content":{{"type":"text","text":"{text}"}}}}]"#
        ))
    };
    let line = |number: usize| match number % 50 {
        49 => output(number, &"fn main() {}\\n".repeat(1 << (number / 50 % 13))),
        _ => chunk(&"word ".repeat(10 + number % 20)),
    };
    (0..13_000).map(line).collect()
}
