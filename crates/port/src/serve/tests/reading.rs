//! Lines of the port are read by the types that write them, by other versions too.

use serde_json::{Value, json};

use super::samples;
use crate::wire::{NameOf, ServerLine};

fn read(line: &Value) -> ServerLine<'static> {
    ServerLine::read(line.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// Puts a field that no reader knows into each object.
fn grow(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(grow);
            fields.insert("of_tomorrow".to_owned(), json!({ "a": [1] }));
        }
        Value::Array(items) => items.iter_mut().for_each(grow),
        _ => {}
    }
}

/// Gives each field that has a name of an enumeration a name of tomorrow.
fn rename(value: &mut Value) {
    const ENUMERATIONS: [&str; 12] = [
        "session_mode",
        "status",
        "state",
        "via",
        "action",
        "kind",
        "decide",
        "last_action",
        "origin",
        "on_exceed",
        "stop_reason",
        "decided_by",
    ];
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if field.is_string() && ENUMERATIONS.contains(&name.as_str()) {
                    *field = "of_tomorrow".into();
                } else {
                    rename(field);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(rename),
        _ => {}
    }
}

#[test]
fn each_line_is_read_and_written_as_it_was() {
    for line in samples::lines() {
        let read = ServerLine::read(line.as_bytes()).unwrap();
        assert!(!matches!(read, ServerLine::Unknown), "{line}");
        assert_eq!(serde_json::to_string(&read).unwrap(), line);
    }
}

#[test]
fn fields_and_names_of_other_versions_do_not_make_a_reader_fail() {
    for line in samples::lines() {
        let mut line: Value = serde_json::from_str(&line).unwrap();
        rename(&mut line);
        let renamed = read(&line);
        let kept: Value = serde_json::to_value(&renamed).unwrap();
        assert_eq!(kept, line);
        // An update and a map have keys of their own.
        if !["session_update", "snapshot", "options", "graph", "graph_delta"]
            .contains(&line["type"].as_str().unwrap())
        {
            grow(&mut line);
            read(&line);
        }
    }
    assert!(matches!(read(&json!({ "type": "of_tomorrow" })), ServerLine::Unknown));
    let ServerLine::Blocked(blocked) = read(&json!({
        "type": "blocked", "agent_id": "ui", "session_id": "s", "session_mode": "single_agent",
        "path": "a", "action": "read", "timestamp_ms": 1, "id": "b1", "status": "pending",
        "owners": [], "orchestrator": null, "via": "telepathy",
    })) else {
        panic!("it is a blocked access");
    };
    assert_eq!(blocked.via, NameOf::Other("telepathy".into()));
    assert_eq!(blocked.status, crate::model::BlockedStatus::Pending);
}
