//! `observe`: a transparent proxy between an editor and one agent.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::Global;
use super::violation::Violation;
use crate::app::{self, ObserveOptions, ObservePlugin};
use crate::program::Failure;

/// Put a transparent proxy between an editor and one agent
///
/// The editor is connected to standard input and output. Every byte is forwarded unchanged, and
/// the agent's activity is published on the port. With --zone or --deny, the agent is kept
/// inside its zone. The exit code is the agent's own.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core observe -- opencode acp
  eisen-core observe --zone 'src/**' --deny '**/.env' -- opencode acp
  eisen-core observe --plugin codex-exec-json -- codex exec --json 'Add a footer'

Exit codes: the agent's own, 128 + n after signal n; 1 failed, 2 wrong usage.")]
pub(super) struct Observe {
    /// Files the agent may access: a glob relative to its working directory (repeatable)
    #[arg(long, value_name = "PATTERN")]
    zone: Vec<String>,
    /// Files it may not access, even if --zone allows them (repeatable)
    #[arg(long, value_name = "PATTERN")]
    deny: Vec<String>,
    /// Reaction to an access outside the zone that did not go through the agent's client
    #[arg(long, value_name = "REACTION", value_enum, default_value_t = Violation::Report)]
    on_violation: Violation,
    /// Extractor plugin for an agent that doesn't speak ACP: its library, or its name in the plugin
    /// folder
    #[arg(long, value_name = "FILE")]
    plugin: Option<PathBuf>,
    /// Configuration of the plugin
    #[arg(long, value_name = "JSON", default_value = "{}", requires = "plugin")]
    plugin_config: String,
    /// Don't build a code graph of the working directory
    #[arg(long)]
    no_graph: bool,
    /// Keep a journal of what the agent does, for `history`: one for each agent id
    #[arg(long)]
    journal: bool,
    /// The agent's command and arguments
    #[arg(last = true, required = true, value_name = "CMD ARGS")]
    command: Vec<OsString>,
}

impl Observe {
    pub(super) async fn run(self, global: Global) -> Result<u8, Failure> {
        let plugin = self.plugin.map(|file| ObservePlugin { file, config: self.plugin_config });
        app::observe(ObserveOptions {
            command: self.command,
            port: global.port,
            agent_id: global.agent_id,
            session_id: global.session_id,
            cwd: global.cwd,
            zone: self.zone,
            deny: self.deny,
            on_violation: self.on_violation.into(),
            graph: !self.no_graph,
            journal: self.journal,
            plugin,
        })
        .await
    }
}
