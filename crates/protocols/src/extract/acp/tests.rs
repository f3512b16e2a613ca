//! Tests of the extractor as a whole, line by line.

#![allow(clippy::unwrap_used, clippy::needless_raw_string_hashes)]

mod contexts;
mod corpus;
mod failing;
mod gate;
mod lines;
mod makers;
mod merging;
mod models;
mod observe;
mod past;
mod properties;
mod running;
mod shapes;
mod spending;
mod unicode;
mod version_2;
mod waiting;
mod withdrawn;

use std::path::PathBuf;
use std::sync::Arc;

use super::Acp;
use crate::extract::testing::Sample;
use crate::extract::{Extractor, Gate};
use crate::line::Direction;
use crate::model::Activity;

/// An extractor over a small workspace at `/w`.
fn acp() -> Acp {
    let files = ["ui/app.tsx", "core/auth.rs", "core/db.py", "README.md", "sub/x.rs"];
    Acp::new(Arc::new(Sample::new(&files)), PathBuf::from("/w"))
}

/// Gates and observes a line of the agent, and says what came of it.
fn take_in(acp: &mut Acp, line: &[u8], is_allowed: bool) -> String {
    let (mut asked, mut activities) = (Gate::Pass, Vec::new());
    let mut passes = |gate| {
        asked = gate;
        is_allowed && matches!(asked, Gate::Ask(_))
    };
    acp.gate_and_observe(line, &mut passes, &mut activities);
    format!("{asked:?} {activities:?}")
}

/// The same, one after the other and with nothing known by sight.
fn take_in_slowly(acp: &mut Acp, line: &[u8], is_allowed: bool) -> String {
    let mut activities = Vec::new();
    acp.chunks = super::chunks::Chunks::default();
    let gate = acp.gate(line);
    if matches!(gate, Gate::Pass) || is_allowed && matches!(gate, Gate::Ask(_)) {
        acp.observe(Direction::ToClient, line, &mut activities);
    }
    format!("{gate:?} {activities:?}")
}

/// Observes lines, those that begin with `>` on their way to the agent.
fn observe(acp: &mut Acp, lines: &[&str]) -> Vec<Activity> {
    let mut activities = Vec::new();
    for line in lines {
        let (direction, line) = match line.strip_prefix('>') {
            Some(line) => (Direction::ToAgent, line),
            None => (Direction::ToClient, *line),
        };
        acp.observe(direction, line.as_bytes(), &mut activities);
    }
    activities
}
