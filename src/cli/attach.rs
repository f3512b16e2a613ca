//! `attach`: connects an editor to an agent of a running team.

use clap::Args;

use super::team::{Which, failed};
use super::{Global, stdio};
use crate::app::Failure;
use crate::serve::client::attach;

/// Connect an editor to an agent of a running team, over ACP
///
/// The editor is connected to standard input and output: configure this command as an agent of the
/// editor. The editor has its own sessions, separate from those of the team. The agent stays inside
/// its zone in them, and its activity is published on the port. If the editor does not provide file
/// access or terminals, the team does.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core attach ui
  eisen-core attach ui --team shop

As an agent of Zed, in its settings.json:
  \"agent_servers\": { \"shop: ui\": { \"type\": \"custom\", \"command\": \"eisen-core\", \"args\": [\"attach\", \"ui\"] } }

Exit codes: 0 the editor disconnected, 1 the agent or the team has ended, or was not found.")]
pub(super) struct Attach {
    /// Id of the agent
    agent: String,
    #[command(flatten)]
    which: Which,
}

impl Attach {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let target = self.which.find(global)?;
        let (input, output) = (stdio::input(), stdio::output());
        attach::attach(&target, &self.agent, input, output).await.map_err(failed)
    }
}
