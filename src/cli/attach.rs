use clap::Args;

use super::Global;
use super::team::{Which, failed};
use crate::app::Failure;
use crate::serve::client::attach;

/// Speak ACP to an agent of a running team: for editors
///
/// Speaks over standard input and output: configure it as the command of an agent. Its sessions are
/// the editor's own, beside those of the team; what the agent does in them stays inside its zone
/// and is on the port like all else. What the editor does not serve (files, terminals), the team
/// does.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core attach ui
  eisen-core attach ui --team shop

As an agent of Zed, in its settings.json:
  \"agent_servers\": { \"shop: ui\": { \"type\": \"custom\", \"command\": \"eisen-core\", \"args\": [\"attach\", \"ui\"] } }

Exit codes: 0 the editor has left, 1 the agent or the team is gone, or is not there.")]
pub(super) struct Attach {
    /// The agent, as the team's configuration names it
    agent: String,
    #[command(flatten)]
    which: Which,
}

impl Attach {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let target = self.which.find(global)?;
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        attach::attach(&target, &self.agent, input, output).await.map_err(failed)
    }
}
