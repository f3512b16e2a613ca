//! Plays recorded traffic of real agents through the extractor, and compares what it tells with
//! what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::super::*;
use crate::extract::testing::Sample;
use crate::model::ActivityKind;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/recordings");

type Actions = BTreeMap<String, Vec<String>>;

#[derive(Deserialize)]
struct Truth {
    required: Actions,
    shell: Actions,
    maybe: Actions,
    stop_reasons: Vec<String>,
    last_usage: serde_json::Value,
    workspace: PathBuf,
}

#[derive(Deserialize)]
struct Recorded {
    dir: String,
    line: String,
}

/// Returns the differences between the extractor's reading of a recording and the truth.
fn differences(recording: &Path) -> Vec<String> {
    let truth = std::fs::read_to_string(recording.with_extension("truth.json")).unwrap();
    let truth: Truth = serde_json::from_str(&truth).unwrap();
    let files: BTreeSet<&str> = [&truth.required, &truth.shell, &truth.maybe]
        .iter()
        .flat_map(|actions| actions.keys())
        .map(String::as_str)
        .filter(|path| ![".", "core", "ui", "does/not/exist.txt"].contains(path))
        .collect();
    let workspace =
        Sample::at(truth.workspace.to_str().unwrap(), &files.into_iter().collect::<Vec<_>>());
    let workspace = Arc::new(workspace);
    let mut acp = Acp::new(Arc::clone(&workspace) as Arc<dyn Workspace>, truth.workspace.clone());
    let mut slow = Acp::new(workspace, truth.workspace.clone());
    let mut activities = Vec::new();
    for line in std::fs::read_to_string(recording).unwrap().lines() {
        let Recorded { dir, line } = serde_json::from_str(line).unwrap();
        let direction = if dir == "up" { Direction::ToAgent } else { Direction::ToClient };
        let (line, before) = (line.as_bytes(), activities.len());
        let mut reported_slowly = Vec::new();
        slow.chunks = chunks::Chunks::default();
        if direction == Direction::ToClient {
            let mut asked = Gate::Pass;
            let mut passes = |gate| {
                asked = gate;
                true
            };
            acp.gate_and_observe(line, &mut passes, &mut activities);
            assert_eq!(format!("{asked:?}"), format!("{:?}", slow.gate(line)));
            let is_clear = !matches!(asked, Gate::Ambiguous { .. });
            assert!(is_clear, "{recording:?}: {asked:?} {activities:?}");
        } else {
            acp.observe(direction, line, &mut activities);
        }
        slow.observe(direction, line, &mut reported_slowly);
        assert_eq!(activities[before..], reported_slowly);
    }
    compare(&truth, &activities)
}

fn compare(truth: &Truth, activities: &[Activity]) -> Vec<String> {
    let mut differences = Vec::new();
    let mut found: BTreeSet<(String, String)> = BTreeSet::new();
    let mut stop_reasons = Vec::new();
    let mut usage = serde_json::Value::Null;
    for activity in activities {
        match &activity.kind {
            ActivityKind::Touched { path, touch, .. } => {
                found.insert((path.to_string(), touch.as_str().to_owned()));
            }
            ActivityKind::TurnEnded { stop_reason, .. } => {
                stop_reasons.push(stop_reason.to_string());
            }
            ActivityKind::Usage { usage: last, .. } => {
                let cost = last.cost.as_ref().map(
                    |cost| serde_json::json!({"amount": cost.amount, "currency": &*cost.currency}),
                );
                usage = serde_json::json!({"cost": cost, "size": last.size, "used": last.used});
            }
            _ => {}
        }
    }
    let pairs = |actions: &Actions| -> BTreeSet<(String, String)> {
        let each = |(path, actions): (&String, &Vec<String>)| {
            actions.iter().map(|action| (path.clone(), action.clone())).collect::<Vec<_>>()
        };
        actions.iter().flat_map(each).collect()
    };
    let known: BTreeSet<_> = &pairs(&truth.required) | &pairs(&truth.shell);
    for (path, action) in known.difference(&found) {
        differences.push(format!("missed: {action} {path}"));
    }
    for (path, action) in found.difference(&(&known | &pairs(&truth.maybe))) {
        differences.push(format!("false: {action} {path}"));
    }
    if stop_reasons != truth.stop_reasons {
        differences.push(format!("stop reasons: {stop_reasons:?}"));
    }
    if usage != truth.last_usage {
        differences.push(format!("usage: {usage}"));
    }
    differences
}

#[test]
fn recordings_of_real_agents_are_read_as_they_happened() {
    let folder = std::fs::read_dir(CORPUS).unwrap();
    let mut recordings: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    recordings.retain(|path| path.extension().is_some_and(|extension| extension == "ndjson"));
    recordings.sort();
    let mut gaps = Vec::new();
    for recording in &recordings {
        let name = recording.file_stem().unwrap().to_string_lossy().into_owned();
        gaps.extend(differences(recording).into_iter().map(|gap| format!("{name}: {gap}")));
    }
    assert_eq!(gaps, Vec::<String>::new());
    assert!(!recordings.is_empty());
}
