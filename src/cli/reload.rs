//! `reload`: applies a changed configuration to a running team, and prints the changes.

use clap::Args;

use super::Global;
use super::output::{escape_controls, print};
use super::team::{AtHost, Which, failed, read};
use crate::program::Failure;
use crate::serve::client::ClientError;
use crate::wire::{self, Change, Empty, Kind, Reloaded, Restart};

/// Apply changes of the configuration to a running team
///
/// Unchanged agents are left alone, and no agent is restarted: changes that need a restart are
/// listed, and `restart` applies them. An invalid configuration changes nothing.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core team reload
  eisen-core team reload --json | jq .needs_restart

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

impl Reload {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let mut team = self.which.connect(global).await?;
        let answer = self.at.ask::<wire::Reload>(&mut team, &Empty {}).await.map_err(refused)?;
        if self.json {
            return print(answer);
        }
        print(escape_controls(&told(&read(&answer)?)))
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

fn told(Reloaded { applied, needs_restart, notes }: &Reloaded) -> String {
    let mut lines = Vec::new();
    if applied.is_empty() && needs_restart.is_empty() {
        lines.push("nothing changed".to_owned());
    }
    for (title, changes) in [("applied", applied), ("needs a restart", needs_restart)] {
        lines.extend((!changes.is_empty()).then(|| title.to_owned()));
        lines.extend(changes.iter().map(|change| format!("  {}", sentence(change))));
    }
    lines.extend((!notes.is_empty()).then(|| "over the port".to_owned()));
    lines.extend(notes.iter().map(|note| format!("  {note}")));
    lines.join("\n")
}

fn sentence(Change { agent_id, key, change, restart }: &Change) -> String {
    let agent = agent_id.as_ref().map(|id| format!("agent {id}: ")).unwrap_or_default();
    let what = if *change == Kind::Changed { key.as_str() } else { change.as_str() };
    let restart = match (restart, agent_id) {
        (Some(restart), Some(id)) if *restart == Restart::Agent => {
            format!(" (eisen-core agent restart {id})")
        }
        (Some(_), _) => " (stop the team and start it again)".to_owned(),
        (None, _) => String::new(),
    };
    format!("{agent}{what}{restart}")
}
