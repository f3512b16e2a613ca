//! `mcp`: connects an MCP client to the tools of a running team.

use anyhow::anyhow;
use clap::Args;

use super::team::{Which, failed};
use super::{Global, stdio};
use crate::program::Failure;
use crate::serve::client::{Environment, Target, attach};

/// Offer the tools of a running team to an MCP client
///
/// The client is connected to standard input and output. The team puts this command into the
/// sessions of its agents by itself; each agent is known by a token in its environment. Without
/// that token, the client leads the team: it has the tools of an orchestrator, but decides nothing
/// that is for a person. docs/tools.md lists the tools.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core team mcp --team shop

As a server of an MCP client:
  { \"mcpServers\": { \"eisen\": { \"command\": \"eisen-core\", \"args\": [\"team\", \"mcp\", \"--team\", \"shop\"] } } }

Exit codes: 0 the client disconnected, 1 the team has ended, or was not found.")]
pub(super) struct Mcp {
    /// Only as this agent, by its token in `EISEN_TOOL_TOKEN`: the team's own entry has it
    #[arg(long, value_name = "ID", conflicts_with = "team")]
    agent: Option<String>,
    #[command(flatten)]
    which: Which,
}

impl Mcp {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let named = self.which.team.is_some() || global.port.is_some();
        let own = Target::of_tools(&Environment::of_process()).map_err(failed)?;
        let target = match (own.filter(|_| !named), &self.agent) {
            (Some(own), _) => own,
            // Without its token it must not lead.
            (None, Some(agent)) => {
                let why =
                    "without `EISEN_TOOL_TOKEN`: its MCP client has to pass the entry's `env` on";
                return Err(Failure::Run(anyhow!("no tools for `{agent}` {why}")));
            }
            (None, None) => self.which.find(global)?,
        };
        let (input, output) = (stdio::input(), stdio::output());
        attach::tools(&target, input, output).await.map_err(failed)
    }
}
