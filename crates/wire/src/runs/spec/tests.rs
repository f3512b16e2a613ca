#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use serde_json::json;

use super::super::bounds::{LONGEST_COMMAND, LONGEST_PROMPT, LONGEST_SCHEMA, LONGEST_SESSION};
use super::super::{LONGEST_ZONE, MOST_FILES, MOST_PATTERNS, RunState, RunStatus};
use super::*;

fn asked(params: &Value) -> Result<RunSpec, String> {
    let spec = RunSpec::deserialize(params).unwrap();
    spec.check_for_team().map(|()| spec)
}

#[test]
fn what_a_run_may_have_is_bounded() {
    let plain = asked(&json!({ "task": "x" })).unwrap();
    assert!(plain.zone.is_empty() && plain.timeout_s.is_none());
    let patterns = vec!["a"; MOST_PATTERNS];
    let file = |text: &str| {
        let content = json!({ "text": text });
        json!({ "name": "a", "uri": "file:///a", "mime_type": "text/plain", "content": content })
    };
    let asked_for = json!({ "task": "x", "files": [file("a")], "schema": { "type": "object" } });
    let RunSpec { files, schema, .. } = asked(&asked_for).unwrap();
    assert_eq!((files.len(), schema), (1, Some(json!({ "type": "object" }))));
    for wrong in [
        json!({ "task": " \n" }),
        json!({ "task": "x".repeat(LONGEST_PROMPT + 1) }),
        json!({ "task": "x", "zone": patterns, "deny": ["b"] }),
        json!({ "task": "x", "deny": ["a".repeat(LONGEST_ZONE + 1)] }),
        json!({ "task": "x", "command": ["sh", "a".repeat(LONGEST_COMMAND)] }),
        json!({ "task": "x", "timeout_s": 0 }),
        json!({ "task": "x", "files": vec![file("a"); MOST_FILES + 1] }),
        json!({ "task": "x", "files": vec![file(&"a".repeat(3 << 20)); 3] }),
        json!({ "task": "x", "files": [{ "name": "a", "uri": "", "mime_type": "", "content": { "bytes": "~" } }] }),
        json!({ "task": "x", "session": "a", "fork": "a" }),
        json!({ "task": "x", "fork": "" }),
        json!({ "task": "x", "tier": "smart", "model": "m" }),
        json!({ "task": "x", "tier": "smart", "session": "last" }),
        json!({ "task": "x", "no_failover": true }),
        json!({ "task": "x", "session": "a".repeat(LONGEST_SESSION + 1) }),
        json!({ "task": "x", "schema": { "title": "a".repeat(LONGEST_SCHEMA) } }),
    ] {
        assert!(
            asked(&wrong).is_err(),
            "{}",
            &wrong.to_string()[..40.min(wrong.to_string().len())]
        );
    }
    let budget = json!({ "tokens": 5, "cost": 0.5, "minutes": 30 });
    let spec = asked(&json!({ "task": "x", "budget": budget })).unwrap();
    assert_eq!(serde_json::to_value(spec.budget).unwrap(), budget);
    let other = json!({ "task": "x", "budget": { "on_exceed": "stop" } });
    assert!(RunSpec::deserialize(&other).is_err());
}

#[test]
fn a_team_takes_no_option_that_only_a_run_of_its_own_has() {
    let refused = |spec: RunSpec| {
        let spec = RunSpec { task: "x".to_owned(), ..spec };
        spec.check_for_team().unwrap_err()
    };
    let why = refused(RunSpec { slot_timeout: Some(1), ..RunSpec::default() });
    assert!(why.contains("does not take --slot-timeout"), "{why}");
    let why = refused(RunSpec { no_wait: true, ..RunSpec::default() });
    assert!(why.contains("does not take --no-wait"), "{why}");
}

pub(in crate::runs) fn run(id: &str, parent: Option<&str>) -> RunState {
    RunState {
        status: RunStatus::Running,
        parent: parent.map(str::to_owned),
        command: vec!["agent".to_owned()],
        started_at_ms: 1,
        ..RunState::new(&RunSpec::default(), id.to_owned(), PathBuf::from("/shop"))
    }
}

#[test]
fn a_state_without_a_parent_is_read_as_before() {
    let text = toml::to_string(&run("a", None)).unwrap();
    assert!(!text.contains("parent"), "{text}");
    assert_eq!(toml::from_str::<RunState>(&text).unwrap().parent, None);
    let text = toml::to_string(&run("a", Some("shop/ui"))).unwrap();
    assert_eq!(toml::from_str::<RunState>(&text).unwrap().parent.as_deref(), Some("shop/ui"));
}
