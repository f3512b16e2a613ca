//! What is said of a turn once it has ended: what it changed, and what was refused.

use serde_json::{Value, json};

use crate::app::{self, Failure};
use crate::cli::output::{note, plain};
use crate::runs::{ChangedFiles, RefusedAccess};
use crate::serve::client::Connection;
use crate::wire::{GetDiff, GetDiffParams, Prompted};

/// The end of a turn, for whoever prompted.
pub(super) struct EndedTurn {
    /// None: it is not known.
    changed: Option<ChangedFiles>,
    refused: Vec<RefusedAccess>,
    /// The command that shows what it changed.
    diff: String,
}

impl EndedTurn {
    /// Asks the team's journal, if there is one.
    pub(super) async fn look(
        team: &mut Connection,
        agent: &str,
        turn: Option<u64>,
        result: &Prompted,
    ) -> Self {
        let session = format!("{agent}/{}", result.session_id);
        let params = GetDiffParams {
            agent_id: Some(agent.to_owned().into()),
            session_id: Some(session.clone()),
            turn,
            ..GetDiffParams::default()
        };
        let diff = match turn {
            Some(_) => team.ask::<GetDiff>(&params).await.ok(),
            None => None,
        };
        let changed = diff.and_then(|diff| diff.read().ok()).map(|diff| ChangedFiles {
            files: diff.files.len(),
            added: diff.files.iter().map(|file| file.added).sum(),
            removed: diff.files.iter().map(|file| file.removed).sum(),
        });
        let turn = turn.map(|turn| format!(" --turn {turn}")).unwrap_or_default();
        let diff = format!("{} diff --session {}{turn}", app::own_command(), plain(&session));
        Self { changed, refused: result.refused.clone(), diff }
    }

    /// Whether something that the agent meant to do was refused.
    pub(super) fn is_short(&self) -> bool {
        self.refused.iter().any(|access| access.stops_work)
    }

    /// The result, with both.
    pub(super) fn json(&self, result: &Prompted) -> Result<Value, Failure> {
        let result = serde_json::to_value(result).map_err(|error| Failure::Run(error.into()))?;
        let Value::Object(mut result) = result else { return Ok(result) };
        result.remove("refused");
        result.insert("changed".to_owned(), json!(self.changed));
        result.insert("blocked".to_owned(), json!(self.refused));
        Ok(Value::Object(result))
    }

    /// Says both on standard error.
    pub(super) fn tell(&self) {
        tell_changed(self.changed, &self.diff);
        tell_refused(&self.refused, &format!("{} inbox --all", app::own_command()));
    }
}

/// `2 files, +12 −3: eisen-core diff …`
pub(in crate::cli) fn tell_changed(changed: Option<ChangedFiles>, diff: &str) {
    if let Some(ChangedFiles { files, added, removed }) = changed.filter(|it| it.files > 0) {
        let s = if files == 1 { "" } else { "s" };
        note(format_args!("{files} file{s}, +{added} \u{2212}{removed}: {diff}"));
    }
}

/// `1 refused: eisen-core inbox --all`; sweeps don't count.
pub(in crate::cli) fn tell_refused(refused: &[RefusedAccess], command: &str) {
    let count = refused.iter().filter(|access| access.sweep.is_none()).count();
    if count > 0 {
        note(format_args!("{count} refused: {command}"));
    }
}
