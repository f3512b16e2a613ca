//! The end of a turn as a person is told of it: its changes, and what was refused.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::signal::unix::Signal;
use tokio::time::timeout;

use crate::cli::output::{note, plain};
use crate::home;
use crate::runs::{ChangedFiles, RefusedAccess};
use crate::serve::client::Connection;
use crate::wire::{Diff, GetDiff, GetDiffParams, NotInDiff, Prompted};

/// Longest wait for what a turn changed.
const LOOK: Duration = Duration::from_secs(5);

/// The end of a turn, for whoever prompted.
pub(super) struct EndedTurn {
    /// None: it is not known.
    changed: Option<ChangedFiles>,
    refused: Vec<RefusedAccess>,
    /// The command that shows what it changed.
    diff: String,
}

impl EndedTurn {
    /// Asks the team's journal, if there is one; Ctrl-C and a slow answer leave open what was changed.
    pub(super) async fn look(
        team: &mut Connection,
        agent: &str,
        turn: Option<u64>,
        result: &Prompted,
        interrupts: &mut Signal,
    ) -> Self {
        let session = format!("{agent}/{}", result.session_id);
        let params = GetDiffParams {
            agent_id: Some(agent.to_owned().into()),
            session_id: Some(session.clone()),
            turn,
            ..GetDiffParams::default()
        };
        let diff = match turn {
            Some(_) => tokio::select! {
                diff = timeout(LOOK, team.ask::<GetDiff>(&params)) => diff.ok().and_then(Result::ok),
                _ = interrupts.recv() => None,
            },
            None => None,
        };
        let changed = diff.and_then(|diff| diff.read().ok()).map(|diff| counted(&diff));
        let turn = turn.map(|turn| format!(" --turn {turn}")).unwrap_or_default();
        let diff = format!("{} diff --session {}{turn}", home::own_command(), plain(&session));
        Self { changed, refused: result.refused.clone(), diff }
    }

    /// Whether something that the agent meant to do was refused.
    pub(super) fn is_short(&self) -> bool {
        self.refused.iter().any(|access| access.stops_work)
    }

    /// The team's answer, with both. The ids that an orchestrator gets stay in `blocked`, and what was refused
    /// in `refused`.
    pub(super) fn json(&self, answer: &Value) -> Value {
        let mut answer = answer.clone();
        let Some(result) = answer.as_object_mut() else { return answer };
        result.insert("changed".to_owned(), json!(self.changed));
        let refused = result.remove("refused").unwrap_or_else(|| json!([]));
        let name = if result.contains_key("blocked") { "refused" } else { "blocked" };
        result.insert(name.to_owned(), refused);
        answer
    }

    /// Says both on standard error.
    pub(super) fn tell(&self) {
        tell_changed(self.changed, &self.diff);
        tell_refused(&self.refused, &format!("{} inbox --all", home::own_command()));
    }
}

/// An answer has room for a part of a large change, and names the other files.
fn counted(diff: &Diff) -> ChangedFiles {
    let is_inside = |file: &&NotInDiff| Path::new(&file.path).is_relative();
    let left_out = diff.left_out.iter().filter(is_inside).count() + diff.more_left_out;
    ChangedFiles {
        files: diff.files.len() + left_out,
        added: diff.files.iter().map(|file| file.added).sum(),
        removed: diff.files.iter().map(|file| file.removed).sum(),
        partial: left_out > 0,
    }
}

/// `2 files, +12 −3: eisen-core diff …`
pub(in crate::cli) fn tell_changed(changed: Option<ChangedFiles>, diff: &str) {
    if let Some(changed) = changed.filter(|it| it.files > 0) {
        let ChangedFiles { files, added, removed, partial } = changed;
        let s = if files == 1 { "" } else { "s" };
        let least = if partial { "at least " } else { "" };
        note(format_args!("{files} file{s}, {least}+{added} \u{2212}{removed}: {diff}"));
    }
}

/// `1 refused: eisen-core inbox --all`; sweeps don't count.
pub(in crate::cli) fn tell_refused(refused: &[RefusedAccess], command: &str) {
    let count = refused.iter().filter(|access| access.sweep.is_none()).count();
    if count > 0 {
        note(format_args!("{count} refused: {command}"));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn json_keeps_what_the_team_says() {
        let changed = Some(ChangedFiles { files: 1, added: 2, removed: 3, partial: false });
        let ended = EndedTurn { changed, refused: Vec::new(), diff: String::new() };
        let refused = json!([{ "id": "b1", "later": true }]);
        let changed = json!({ "files": 1, "added": 2, "removed": 3 });
        for (answer, shown) in [
            (json!({ "new": 1 }), json!({ "new": 1, "changed": changed, "blocked": [] })),
            (json!({ "refused": refused }), json!({ "changed": changed, "blocked": refused })),
            (
                json!({ "blocked": ["b1"], "refused": refused }),
                json!({ "changed": changed, "blocked": ["b1"], "refused": refused }),
            ),
        ] {
            assert_eq!(ended.json(&answer), shown);
        }
    }

    #[test]
    fn files_that_an_answer_has_no_room_for_count() {
        let diff = json!({
            "diff": "", "ignored": 0, "undone": 0, "unread": 0, "more_left_out": 3,
            "files": [{ "path": "a", "added": 2, "removed": 1, "binary": false }],
            "left_out": [{ "path": "b", "reason": "no room" }, { "path": "/c", "reason": "outside" }],
        });
        let counts = counted(&serde_json::from_value(diff).unwrap());
        assert_eq!(counts, ChangedFiles { files: 5, added: 2, removed: 1, partial: true });
    }
}
