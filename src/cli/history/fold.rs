//! Changes of files that follow one another, in one line.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::summary::summary;
use crate::journal::Event;
use crate::model::is_aside;

/// Files that a line names.
const NAMED: usize = 3;

/// Paths of one line that are told apart; more count as often as they change.
const MOST_PATHS: usize = 10_000;

/// Changes of files that are not shown yet.
#[derive(Default)]
pub(super) struct FoldedFiles {
    /// The event that the line stands at.
    last: Option<Event>,
    inside: BTreeSet<String>,
    outside: BTreeSet<String>,
    more: usize,
}

/// Whether an event is one of a file that changed.
pub(super) fn is_of_file(event: &Event) -> bool {
    event.kind.starts_with("file.")
}

impl FoldedFiles {
    pub(super) fn add(&mut self, event: &Event) {
        let path = summary(event);
        let paths = if is_aside(&path) { &mut self.outside } else { &mut self.inside };
        if paths.len() < MOST_PATHS {
            paths.insert(path);
        } else {
            self.more += 1;
        }
        self.last = Some(event.clone());
    }

    /// The last event, and what is said of all; nothing is left then.
    pub(super) fn take(&mut self) -> Option<(Event, String)> {
        let Self { last, inside, outside, more } = std::mem::take(self);
        let mut parts: Vec<_> = inside.iter().take(NAMED).cloned().collect();
        let rest = inside.len().saturating_sub(NAMED) + more;
        if rest > 0 {
            parts.push(format!("{rest} more"));
        }
        let mut said = parts.join(", ");
        if !outside.is_empty() {
            let (count, s) = (outside.len(), if outside.len() == 1 { "" } else { "s" });
            said += if said.is_empty() { "" } else { "; " };
            let _ = write!(said, "{count} path{s} outside the workspace or in .git (--outside)");
        }
        Some((last?, said))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{json, value::to_raw_value};

    use super::*;

    fn changed(path: &str) -> Event {
        Event {
            id: "e".to_owned(),
            parent_id: None,
            session_id: None,
            agent_id: None,
            sequence: None,
            depth: None,
            kind: "file.modify".to_owned(),
            timestamp: 0,
            turn: None,
            payload: to_raw_value(&json!({ "path": path })).unwrap(),
        }
    }

    #[test]
    fn files_are_named_and_what_is_outside_is_counted() {
        let mut files = FoldedFiles::default();
        for path in ["src/a.rs", "src/a.rs", "/home/u/.agent/log", ".git/index", "/tmp/x"] {
            files.add(&changed(path));
        }
        let (_, said) = files.take().unwrap();
        assert_eq!(said, "src/a.rs; 3 paths outside the workspace or in .git (--outside)");
        assert!(files.take().is_none());
        for path in ["a", "b", "c", "d", "e"] {
            files.add(&changed(path));
        }
        assert_eq!(files.take().unwrap().1, "a, b, c, 2 more");
    }
}
