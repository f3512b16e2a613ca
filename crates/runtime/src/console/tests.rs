//! Tests of the hints of the console.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::console::*;
use crate::model::{AgentId, SessionId, Via};

fn config() -> (tempfile::TempDir, Config) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("node_modules")).unwrap();
    let agent = |id: &str, keys: &str| {
        format!(
            "[[agents]]\nid = \"{id}\"\ncommand = [\"sh\"]\n{keys}\n[agents.zone]\nallowed = [\"src/{id}/**\"]\n"
        )
    };
    let text = format!(
        "[team]\nworkspace = \".\"\n[orchestrator]\nagent = \"lead\"\n{}{}{}{}",
        agent("lead", "prompt = \"Lead.\""),
        agent("ui", "prompt = \"Show it.\""),
        agent("api", ""),
        agent("off", "autostart = false"),
    );
    let file = folder.path().join("eisen.toml");
    std::fs::write(&file, text).unwrap();
    let config = Config::load(&file, Path::new("/nonexistent")).unwrap();
    (folder, config)
}

fn id(agent: &str) -> AgentId {
    AgentId::new(agent)
}

#[test]
fn the_next_command_is_shown_once_all_agents_have_settled() {
    let (_folder, config) = config();
    let mut next = Next::new(&config, false);
    for agent in ["lead", "api", "ui"] {
        assert_eq!(next.agent(&id(agent), AgentState::Ready), None);
    }
    assert_eq!(next.turn(&id("lead")), None);
    assert_eq!(next.turn(&id("lead")), None);
    assert_eq!(next.turn(&id("ui")), Some(id("ui")));
    assert_eq!(next.turn(&id("ui")), None);
    let text = next.text("eisen-core", &id("ui"));
    assert_eq!(
        text,
        "next: eisen-core agent watch, or ps, inbox, prompt ui \"…\"; Ctrl-C stops the team"
    );
    // The end of a turn may be heard of before its agent is ready.
    let mut next = Next::new(&config, false);
    for agent in ["lead", "ui"] {
        assert_eq!(next.turn(&id(agent)), None);
    }
    assert_eq!(next.agent(&id("api"), AgentState::Error), None);
    assert_eq!(next.agent(&id("ui"), AgentState::Ready), Some(id("ui")));
    assert_eq!(next.agent(&id("lead"), AgentState::Ready), None);
    // A failed agent is neither awaited nor suggested.
    let mut next = Next::new(&config, true);
    assert_eq!(next.agent(&id("ui"), AgentState::Error), None);
    assert_eq!(next.agent(&id("lead"), AgentState::Ready), None);
    assert_eq!(next.turn(&id("lead")), None);
    assert_eq!(next.agent(&id("api"), AgentState::Ready), Some(id("api")));
    assert!(next.text("eisen-core", &id("api")).ends_with("down stops the team"));
}

#[test]
fn a_sweep_is_explained_once_with_its_pattern() {
    let (_folder, config) = config();
    let mut sweeps = Sweeps::new(config);
    let key = SessionKey::new(id("ui"), SessionId::new("s"));
    let sweep = |path: &str, count| BlockedAccess {
        path: path.into(),
        via: Via::Kernel,
        sweep: count,
        ..eisen_testing::blocked_access("b3", key.clone(), BlockedStatus::Denied)
    };
    sweeps.add(&sweep("node_modules/a", None));
    assert_eq!(sweeps.hint(&key, "eisen-core"), None);
    sweeps.add(&sweep("node_modules/a", Some(1)));
    sweeps.add(&sweep("node_modules", Some(3)));
    assert_eq!(
        sweeps.hint(&key, "eisen-core").unwrap(),
        "3 accesses were denied in passing (b3: read node_modules); if this made a command fail: \
         add \"node_modules/**\" to `readable` of [zones]; eisen-core why ui node_modules"
    );
    assert_eq!(sweeps.hint(&key, "eisen-core"), None);
    sweeps.add(&BlockedAccess { harmless: true, ..sweep("node_modules", Some(3)) });
    assert_eq!(sweeps.hint(&key, "eisen-core"), None);
    sweeps.add(&sweep(".", Some(9)));
    assert!(sweeps.hint(&key, "eisen-core").unwrap().ends_with("fail: eisen-core why ui ."));
}
