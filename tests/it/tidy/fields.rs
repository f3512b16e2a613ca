//! Bounds how often code reads or writes a field of JSON by its name: our own JSON is read by types.

use std::collections::BTreeMap;

use super::{is_test, read, sources};

/// Files that name fields of JSON: how often by `["name"]`, how often by `.get("name")`, and whose JSON it is.
const NAMED: &[(&str, usize, usize, &str)] = &[
    ("app/changes.rs", 0, 1, "a table of the configuration"),
    ("care/doctor/version.rs", 0, 2, "npm's"),
    ("app/journal.rs", 0, 1, "a table of the configuration"),
    ("app/members.rs", 0, 1, "a table of the configuration"),
    ("app/streams.rs", 0, 1, "a table of the configuration"),
    ("team_file/of_run.rs", 0, 3, "a table of the configuration"),
    ("client_host/attach/serve.rs", 0, 1, "ACP"),
    ("client_host/tool_form.rs", 1, 0, "ACP"),
    ("config/mcp.rs", 0, 3, "a table of the configuration"),
    ("config/overlay.rs", 0, 3, "a table of the configuration"),
    ("extract/acp/gate.rs", 0, 2, "ACP"),
    ("extract/acp/heard.rs", 0, 3, "ACP"),
    ("extract/acp/observe.rs", 0, 3, "ACP"),
    ("extract/acp/replies.rs", 1, 0, "ACP"),
    ("extract/acp/executions.rs", 0, 7, "ACP"),
    ("extract/acp/update.rs", 0, 14, "ACP"),
    ("journal/event.rs", 0, 1, "payloads of any type"),
    ("journal/fold/messages.rs", 0, 2, "ACP"),
    ("model/mask.rs", 0, 1, "JSON of anybody"),
    ("remote/opencode/api.rs", 3, 0, "OpenCode's"),
    ("remote/opencode/rules.rs", 11, 0, "OpenCode's"),
    ("remote/opencode/session.rs", 1, 0, "OpenCode's"),
    ("remote/opencode/shapes.rs", 1, 0, "OpenCode's"),
    ("remote/opencode/show.rs", 15, 0, "OpenCode's"),
    ("remote/opencode/tasks.rs", 3, 5, "OpenCode's"),
    ("scripted/turn.rs", 1, 0, "ACP"),
    ("serve/rpc/admission.rs", 0, 1, "params of any method"),
    ("serve/schema.rs", 0, 1, "JSON Schema"),
    ("serve/sight.rs", 1, 0, "ACP"),
    ("telemetry/fold/tools.rs", 0, 1, "a vendor's"),
    ("wire/replayed.rs", 3, 1, "JSON Schema"),
    ("wire/tools/parameter.rs", 12, 0, "JSON Schema"),
];

/// Accesses by `["name"]` that may be left in all.
const MOST: usize = 60;

#[test]
fn fields_of_json_are_read_by_types() {
    let mut found: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for file in sources().into_iter().filter(|file| !is_test(file)) {
        let counts = accesses(&read(&file));
        if counts != (0, 0) {
            found.insert(file.to_string_lossy().into_owned(), counts);
        }
    }
    let listed = NAMED.iter().map(|(file, indexed, called, _)| (*file, (*indexed, *called)));
    let listed: BTreeMap<_, _> = listed.map(|(file, counts)| (file.to_owned(), counts)).collect();
    assert_eq!(found, listed, "read new fields by types; take from the list what is gone");
    let total: usize = found.values().map(|(indexed, _)| indexed).sum();
    assert!(total <= MOST, "{total} accesses, and {MOST} may be left");
}

/// Counts `value["name"]`; and `.get("name")` and `.pointer("/name")` in files that know `serde_json`, but for
/// rows of `SQLite`. Comments and unit tests are left out.
fn accesses(text: &str) -> (usize, usize) {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let knows_json = code.contains("serde_json");
    let (mut indexed, mut called) = (0, 0);
    for line in code.lines().map(str::trim_start).filter(|line| !line.starts_with("//")) {
        let is_value = |at: usize| {
            let before = line[..at].chars().next_back();
            before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ')' | ']'))
        };
        indexed += line.match_indices("[\"").filter(|(at, _)| is_value(*at)).count();
        for call in [".get(\"", ".get_mut(\"", ".pointer(\"", ".pointer_mut(\""] {
            let of_json = |at: usize| knows_json && !line[..at].ends_with("row");
            called += line.match_indices(call).filter(|(at, _)| of_json(*at)).count();
        }
    }
    (indexed, called)
}
