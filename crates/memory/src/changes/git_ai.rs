//! A blame as a note of git-ai (`authorship/3.0.0`), which is attached to a commit under
//! `refs/notes/ai`. It depends on the lines of the commit, not on its id: a commit from a rebase,
//! squash, amend or cherry-pick gets the note of its own lines.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use aws_lc_rs::digest;
use serde_json::{Map, Value, json};

use super::agent_trace::ranges;
use super::blame::Blame;
use super::patch::hex;
use super::provenance::Provenance;
use crate::journal::{OpenError, Store};

const VERSION: &str = "authorship/3.0.0";

/// A note that files are added to.
#[derive(Default, Debug)]
pub struct AuthorshipNote {
    files: BTreeMap<String, BTreeMap<String, Vec<RangeInclusive<usize>>>>,
    sessions: Map<String, Value>,
}

impl AuthorshipNote {
    /// Adds the lines of a file that agents wrote. `is_new` tells whether the commit added a line,
    /// numbered from 1.
    pub fn add(
        &mut self,
        store: &Store,
        path: &Path,
        blame: &Blame,
        names: &[Provenance],
        is_new: &dyn Fn(usize) -> bool,
    ) -> Result<(), OpenError> {
        for range in ranges(blame) {
            let Some(name) = names.get(range.origin).filter(|name| name.by == "agent") else {
                continue;
            };
            let session = name.session_id.clone().or(name.agent_id.clone()).unwrap_or_default();
            let event = name.event_id.as_deref().unwrap_or_default();
            let key = format!("s_{}", digest(&format!("eisen-core:{session}")));
            let lines: Vec<_> = (range.first..=range.last).filter(|line| is_new(*line)).collect();
            if lines.is_empty() {
                continue;
            }
            if !self.sessions.contains_key(&key) {
                let model = store.model_of(&session, Some(event))?;
                let model = model.unwrap_or_else(|| "unknown".to_owned());
                let agent = name.agent_id.as_deref().unwrap_or_default();
                let record = json!({
                    "agent_id": { "tool": "eisen-core", "id": session, "model": model },
                    "custom_attributes": { "agent": agent },
                });
                self.sessions.insert(key.clone(), record);
            }
            let attestation = format!("{key}::t_{}", digest(event));
            let of_file = self.files.entry(path_line(path)).or_default();
            let of_key = of_file.entry(attestation).or_default();
            for line in lines {
                match of_key.last_mut() {
                    Some(last) if *last.end() + 1 == line => *last = *last.start()..=line,
                    _ => of_key.push(line..=line),
                }
            }
        }
        Ok(())
    }

    /// Whether no agent wrote a line of the commit.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The text of the note for the commit.
    pub fn text(&self, commit: &str) -> String {
        let mut text = String::new();
        for (path, entries) in &self.files {
            text.push_str(path);
            text.push('\n');
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_by_key(|(_, ranges)| ranges.first().map(|range| *range.start()));
            for (key, ranges) in entries {
                let ranges = ranges.iter().map(|range| match (range.start(), range.end()) {
                    (start, end) if start == end => start.to_string(),
                    (start, end) => format!("{start}-{end}"),
                });
                let ranges = ranges.collect::<Vec<_>>().join(",");
                text.push_str("  ");
                text.push_str(key);
                text.push(' ');
                text.push_str(&ranges);
                text.push('\n');
            }
        }
        let metadata = json!({
            "schema_version": VERSION,
            "base_commit_sha": commit,
            "prompts": {},
            "sessions": self.sessions,
        });
        text.push_str("---\n");
        text + &format!("{metadata:#}\n")
    }
}

/// 14 hexadecimal digits of the SHA-256.
fn digest(text: &str) -> String {
    hex(&digest::digest(&digest::SHA256, text.as_bytes()).as_ref()[..7])
}

fn path_line(path: &Path) -> String {
    let path = path.to_string_lossy();
    if path.contains(char::is_whitespace) { format!("\"{path}\"") } else { path.into_owned() }
}
