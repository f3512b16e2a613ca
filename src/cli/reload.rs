//! `reload`: applies a changed configuration to a running team, and prints the changes.

use std::fmt::Write as _;

use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::Global;
use super::output::{escape_controls, print};
use super::team::{AtHost, Which, failed};
use crate::app::Failure;
use crate::serve::client::ClientError;

/// Apply changes of the configuration to a running team
///
/// Unchanged agents are left alone, and no agent is restarted: changes that need a restart are
/// listed, and `restart` applies them. An invalid configuration changes nothing.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core reload
  eisen-core reload --json | jq .needs_restart

Exit codes: 0 applied, 1 refused or no such team, 2 wrong usage.")]
pub(super) struct Reload {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    at: AtHost,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct ReloadAnswer {
    applied: Vec<AppliedChange>,
    needs_restart: Vec<AppliedChange>,
    #[serde(default)]
    notes: Vec<String>,
}

#[derive(Deserialize)]
struct AppliedChange {
    agent_id: Option<String>,
    key: String,
    #[serde(rename = "change")]
    kind: String,
    restart: Option<String>,
}

impl Reload {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let mut team = self.which.connect(global).await?;
        let answer = team.call("reload", &self.at.params(json!({}))).await.map_err(refused)?;
        if self.json {
            return print(answer);
        }
        let answer =
            ReloadAnswer::deserialize(&answer).map_err(|error| Failure::Run(error.into()))?;
        print(escape_controls(answer.to_string().trim_end()))
    }
}

/// Errors of the configuration are shown as `check` shows them.
fn refused(error: ClientError) -> Failure {
    match error {
        ClientError::Refused { code: 400, message } => {
            Failure::Run(anyhow::anyhow!("nothing was changed:\n{message}"))
        }
        error => failed(error),
    }
}

impl std::fmt::Display for ReloadAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.applied.is_empty() && self.needs_restart.is_empty() {
            f.write_str("nothing changed\n")?;
        }
        for (title, changes) in
            [("applied", &self.applied), ("needs a restart", &self.needs_restart)]
        {
            if !changes.is_empty() {
                writeln!(f, "{title}")?;
            }
            changes.iter().try_for_each(|change| writeln!(f, "  {}", change.sentence()))?;
        }
        if !self.notes.is_empty() {
            writeln!(f, "over the port")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  {note}"))
    }
}

impl AppliedChange {
    fn sentence(&self) -> String {
        let agent = self.agent_id.as_ref().map(|id| format!("agent {id}: "));
        let mut text = agent.unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = match self.kind.as_str() {
            "changed" => write!(text, "{}", self.key),
            kind => write!(text, "{kind}"),
        };
        let _ = match (self.restart.as_deref(), &self.agent_id) {
            (Some("agent"), Some(id)) => write!(text, " (eisen-core restart {id})"),
            (Some(_), _) => write!(text, " (stop the team and start it again)"),
            (None, _) => Ok(()),
        };
        text
    }
}
