//! `attach`: connects an editor to an agent of a running team.

use clap::Args;

use super::team::{AgentAt, Which, await_start, failed};
use super::{Global, stdio};
use crate::program::Failure;
use crate::serve::client::{Connection, attach};

/// Connect an editor to an agent of a running team, over ACP
///
/// The editor is connected to standard input and output: configure this command as an agent of the
/// editor. The editor has its own sessions, separate from those of the team. The agent stays inside
/// its zone in them, and its activity is published on the port. If the editor does not provide file
/// access or terminals, the team does. Instead of an agent's id the command takes that of a run that
/// has not ended, or a beginning of it that no other run has; an agent of that name comes first.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core agent attach ui
  eisen-core agent attach ui --team shop
  eisen-core agent attach 01M8CH14  the agent of a run

As an agent of Zed, in its settings.json:
  \"agent_servers\": { \"shop: ui\": { \"type\": \"custom\", \"command\": \"eisen-core\", \"args\": [\"agent\", \"attach\", \"ui\"] } }

Exit codes: 0 the editor disconnected, 1 the agent or the team has ended, or was not found.")]
pub(super) struct Attach {
    /// Id of the agent, or of a run
    agent: String,
    #[command(flatten)]
    which: Which,
}

impl Attach {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let AgentAt { target, agent } = self.which.agent(global, &self.agent).await?;
        // An agent that starts is waited for, as far as the token lets that be seen.
        if let Ok(mut team) = Connection::open(&target).await {
            let _ = await_start(&mut team, &agent).await;
        }
        let (input, output) = (stdio::input(), stdio::output());
        attach::attach(&target, &agent, input, output).await.map_err(failed)
    }
}
