//! The rules of a session: it makes no access without asking. So each access is judged by the zone.

use serde_json::{Value, json};

use super::shapes::{AgentMode, Permission, PermissionRule};
use super::show::{ToolUse, kind_of};

/// Most rules of a mode that are read; a mode with more can't be used.
pub(super) const MOST_RULES: usize = 1000;

/// The rules of a session in this mode. Of the mode's own rules, what is denied stays denied; what is
/// allowed is asked. The last one that matches counts.
pub(super) fn of_session(mode: &AgentMode) -> Vec<Value> {
    let rule = |permission: &str, pattern: &str, action: &str| json!({ "permission": permission, "pattern": pattern, "action": action });
    let own = mode.permission.iter().map(|PermissionRule { permission, pattern, action }| {
        rule(permission, pattern, if action == "deny" { "deny" } else { "ask" })
    });
    let mut rules = vec![rule("*", "*", "ask")];
    rules.extend(own);
    // It touches no file.
    rules.push(rule("todowrite", "*", "allow"));
    // A session below this one has not its rules: nothing would be asked. Nobody answers questions.
    rules.push(rule("task", "*", "deny"));
    rules.push(rule("question", "*", "deny"));
    rules
}

/// Whether the request itself says what is accessed; else the call's input does.
pub(super) fn says_all(asked: &Permission) -> bool {
    match &*asked.what {
        "edit" | "external_directory" => !places(asked, &Value::Null).is_empty(),
        "bash" => asked.metadata["command"].is_string(),
        _ => false,
    }
}

/// The tool call of a request for permission, as the protocol has it. An error says why it must be
/// refused: it can't be judged.
pub(super) fn tool_call(asked: &Permission, call: Option<&ToolUse>) -> Result<Value, &'static str> {
    let input = call.map_or(&Value::Null, |call| &call.input);
    let has_input = input.as_object().is_some_and(|input| !input.is_empty());
    let places = places(asked, input);
    let input = if has_input { input } else { &asked.metadata };
    let permission = &*asked.what;
    let command = input["command"].as_str().or_else(|| asked.metadata["command"].as_str());
    match permission {
        "edit" | "read" | "external_directory" if places.is_empty() => {
            return Err("it names no file");
        }
        "bash" if command.is_none() => return Err("it names no command"),
        // Their input says where; without it they may be anywhere.
        "glob" | "grep" | "list" if !has_input => return Err("its input is not known"),
        _ => {}
    }
    let title = match (permission, places.first()) {
        ("bash", _) => command.unwrap_or_default().to_owned(),
        ("edit" | "read", Some(place)) => format!("{permission} {place}"),
        _ => permission.to_owned(),
    };
    let locations: Vec<Value> = places.iter().map(|place| json!({ "path": place })).collect();
    Ok(json!({
        "toolCallId": call.map_or(&asked.id, |call| &call.id),
        "title": title,
        "kind": kind_of(permission),
        "status": "pending",
        "locations": locations,
        "rawInput": input,
    }))
}

/// Most places that one request names; more can't be judged.
const MOST_PLACES: usize = 1000;

/// The files and folders that a request names. Not its patterns where it has others: those are relative
/// to a folder that only the server knows.
fn places(asked: &Permission, input: &Value) -> Vec<String> {
    let data = &asked.metadata;
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    match &*asked.what {
        "edit" => {
            let files = data["files"].as_array().map(Vec::as_slice).unwrap_or_default();
            let of_files =
                files.iter().flat_map(|file| [text(&file["filePath"]), text(&file["movePath"])]);
            let named: Vec<_> = of_files.flatten().take(MOST_PLACES + 1).collect();
            match named.len() {
                0 => text(&data["filepath"])
                    .or_else(|| text(&input["filePath"]))
                    .into_iter()
                    .collect(),
                1..=MOST_PLACES => named,
                _ => Vec::new(),
            }
        }
        "read" => text(&input["filePath"]).into_iter().collect(),
        "external_directory" => {
            let of_data = [text(&data["filepath"]), text(&data["parentDir"])];
            let named: Vec<_> = of_data.into_iter().flatten().collect();
            let folder = |pattern: &String| {
                let folder = pattern.trim_end_matches('*').trim_end_matches('/');
                if folder.is_empty() { "/".to_owned() } else { folder.to_owned() }
            };
            match asked.patterns.len() {
                _ if !named.is_empty() => named,
                0..=MOST_PLACES => asked.patterns.iter().map(folder).collect(),
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}
