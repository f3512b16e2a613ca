//! The commands that have their place in a group, such as `agent stop`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::observe::Observe;
use super::{Global, block_on, in_folder, pass_on};
use super::{
    acp, agents, attach, batch, budget, choose, compress, connect, cost, fork, gc, help, history,
};
use super::{
    grants, hub, learn, logs, mcp, model_server, notify, output, packaging, pin, plugin, purge,
    reload, replay, runs,
};
use super::{snapshot, streams, templates, tiers, token, transfer, trust, watch};
use crate::program::Failure;
use crate::scripted;
use crate::serve;
use crate::wire::{RestartAgent, StartAgent, StopAgent};

/// List runs, wait for them, print their answers, and end them
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, after_help = RUNS)]
pub(super) struct RunsGroup {
    #[command(subcommand)]
    part: Option<RunsPart>,
    #[command(flatten)]
    list: runs::RunsArgs,
}

const RUNS: &str = "\
Examples:
  eisen-core runs
  eisen-core runs --tree         what agents started, below them
  eisen-core runs --all --json | jq -r '.[] | select(.status == \"lost\") | .id'
  eisen-core runs show 01M8CH14  the answer of a run that has ended

Exit codes: 0 done, 2 wrong usage; its commands have more.";

#[derive(Subcommand, Debug)]
enum RunsPart {
    List(runs::RunsArgs),
    Wait(runs::WaitArgs),
    Show(runs::ResultArgs),
    Stop(runs::KillArgs),
    Batch(batch::BatchArgs),
    Tiers(tiers::TiersArgs),
}

impl RunsGroup {
    /// Whether standard error has the lines of the batch alone.
    pub(super) fn is_batch(&self) -> bool {
        matches!(self.part, Some(RunsPart::Batch(_)))
    }

    pub(super) fn run(self, global: Global) -> Result<u8, Failure> {
        match self.part {
            None => self.list.run().map(|()| 0),
            Some(RunsPart::List(runs)) => runs.run().map(|()| 0),
            Some(RunsPart::Wait(wait)) => wait.run(),
            Some(RunsPart::Show(result)) => result.run(),
            Some(RunsPart::Stop(kill)) => kill.run(),
            Some(RunsPart::Batch(batch)) => block_on(batch.run(global.cwd)),
            Some(RunsPart::Tiers(tiers)) => tiers.run(global.cwd.as_deref()).map(|()| 0),
        }
    }
}

/// Show what the agents of a team did, said and asked
///
/// The events come from the team's journal, also while the team runs and after it has ended. Each session
/// is a list of events, oldest first; a session that was forked stands below its branch point, and
/// `~` marks what a rewind left behind. docs/journal.md describes the events.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct HistoryGroup {
    #[command(subcommand)]
    part: Option<HistoryPart>,
    #[command(flatten)]
    list: history::History,
}

#[derive(Subcommand, Debug)]
enum HistoryPart {
    #[command(flatten)]
    Of(history::Part),
    Cost(cost::CostArgs),
}

impl HistoryGroup {
    pub(super) fn run(self, global: &Global) -> Result<(), Failure> {
        match self.part {
            Some(HistoryPart::Cost(cost)) => block_on(cost.run(global)),
            Some(HistoryPart::Of(part)) => self.list.run(Some(&part), global),
            None => self.list.run(None, global),
        }
    }
}

/// Start, stop and follow agents, and connect editors to them
#[derive(Args, Debug)]
#[command(after_help = AGENT)]
pub(super) struct AgentGroup {
    #[command(subcommand)]
    command: AgentCommand,
}

const AGENT: &str = "\
Examples:
  eisen-core agent restart ui
  eisen-core agent watch ui                 follow its messages and tool calls
  eisen-core agent logs -f ui               follow its standard error
  eisen-core agent observe -- opencode acp  for an editor: a proxy around one agent";

#[derive(Subcommand, Debug)]
enum AgentCommand {
    /// Start agents
    ///
    /// An agent that depends on others starts as soon as those are ready.
    Start(agents::AgentsArgs),
    /// Stop agents
    ///
    /// Returns once they have ended. Stopped agents stay stopped until they are started again.
    Stop(agents::AgentsArgs),
    /// Stop agents and start them again
    Restart(agents::AgentsArgs),
    Cancel(agents::Cancel),
    Set(choose::SetArgs),
    Compress(compress::CompressArgs),
    Attach(attach::Attach),
    Observe(Observe),
    Watch(watch::Watch),
    Logs(logs::Logs),
}

impl AgentGroup {
    pub(super) fn run(self, global: Global) -> Result<u8, Failure> {
        match self.command {
            AgentCommand::Start(order) => block_on(order.run::<StartAgent>(&global)),
            AgentCommand::Stop(order) => block_on(order.run::<StopAgent>(&global)),
            AgentCommand::Restart(order) => block_on(order.run::<RestartAgent>(&global)),
            AgentCommand::Cancel(cancel) => block_on(cancel.run(&global)).map(|()| 0),
            AgentCommand::Set(set) => block_on(set.run(&global)).map(|()| 0),
            AgentCommand::Compress(compress) => block_on(compress.run(&global)),
            AgentCommand::Attach(attach) => pass_on(attach.run(&global)).map(|()| 0),
            AgentCommand::Observe(observe) => block_on(observe.run(global)),
            AgentCommand::Watch(watch) => block_on(watch.run(&global)).map(|()| 0),
            AgentCommand::Logs(logs) => logs.run(&global).map(|()| 0),
        }
    }
}

/// Go on from an earlier point of a session, or show it again
#[derive(Args, Debug)]
#[command(after_help = SESSION)]
pub(super) struct SessionGroup {
    #[command(subcommand)]
    command: SessionCommand,
}

const SESSION: &str = "\
Examples:
  eisen-core session fork ui/ui-s1  go on from where a session is
  eisen-core session replay shop    show the journal of a team on a port";

#[derive(Subcommand, Debug)]
enum SessionCommand {
    Fork(fork::ForkArgs),
    Rewind(fork::Rewind),
    Replay(replay::Replay),
}

impl SessionGroup {
    pub(super) fn run(self, global: &Global) -> Result<(), Failure> {
        match self.command {
            SessionCommand::Fork(fork) => block_on(fork.run(global)),
            SessionCommand::Rewind(rewind) => block_on(rewind.run(global)),
            SessionCommand::Replay(replay) => block_on(replay.run(global)),
        }
    }
}

/// Carry journals elsewhere, keep parts of them, and clean them
#[derive(Args, Debug)]
#[command(after_help = JOURNAL)]
pub(super) struct JournalGroup {
    #[command(subcommand)]
    command: JournalCommand,
}

const JOURNAL: &str = "\
Examples:
  eisen-core journal export > shop.ndjson
  eisen-core journal gc --dry-run  list what would be removed";

#[derive(Subcommand, Debug)]
enum JournalCommand {
    Export(transfer::Export),
    Import(transfer::Import),
    Pin(pin::PinArgs),
    Purge(purge::Purge),
    Gc(gc::Gc),
}

impl JournalGroup {
    pub(super) fn run(self, global: &Global) -> Result<(), Failure> {
        match self.command {
            JournalCommand::Export(export) => export.run(global),
            JournalCommand::Import(import) => import.run(global),
            JournalCommand::Pin(pin) => pin.run(global),
            JournalCommand::Purge(purge) => purge.run(global),
            JournalCommand::Gc(gc) => block_on(gc.run(global)),
        }
    }
}

/// Change a running team, and connect others to it
#[derive(Args, Debug)]
#[command(after_help = TEAM)]
pub(super) struct TeamGroup {
    #[command(subcommand)]
    command: TeamCommand,
}

const TEAM: &str = "\
Examples:
  eisen-core team reload                  apply changes of the configuration
  eisen-core team budget --json
  eisen-core team acp -c shop/eisen.toml  for an editor: the team as one agent";

#[derive(Subcommand, Debug)]
enum TeamCommand {
    Reload(reload::Reload),
    Budget(budget::BudgetArgs),
    Token(token::TokenArgs),
    Grants(grants::GrantsArgs),
    Streams(streams::StreamsArgs),
    Hub(hub::HubArgs),
    Connect(connect::Connect),
    Acp(acp::Acp),
    Mcp(mcp::Mcp),
    Notify(notify::NotifyArgs),
    Templates(templates::TemplatesArgs),
    Learn(learn::LearnArgs),
    TrustPlace(trust::TrustPlace),
}

impl TeamGroup {
    pub(super) fn run(self, global: Global) -> Result<u8, Failure> {
        match self.command {
            TeamCommand::Reload(reload) => block_on(reload.run(&global)),
            TeamCommand::Budget(budget) => block_on(budget.run(&global)),
            TeamCommand::Token(token) => block_on(token.run(&global)),
            TeamCommand::Grants(grants) => block_on(grants.run(&global)),
            TeamCommand::Streams(streams) => block_on(streams.run(&global)),
            TeamCommand::Hub(hub) => block_on(hub.run(&global)),
            TeamCommand::Connect(connect) => pass_on(connect.run()),
            TeamCommand::Acp(acp) => pass_on(acp.run(global)),
            TeamCommand::Mcp(mcp) => pass_on(mcp.run(&global)),
            TeamCommand::Notify(notify) => block_on(notify.run(&global)),
            TeamCommand::Templates(templates) => templates.run(global.cwd),
            TeamCommand::Learn(learn) => block_on(learn.run(&global)),
            TeamCommand::TrustPlace(trust) => return trust.run(global.cwd),
        }
        .map(|()| 0)
    }
}

/// For developers of agents, plugins and clients
#[derive(Args, Debug)]
#[command(after_help = DEV)]
pub(super) struct DevGroup {
    #[command(subcommand)]
    command: DevCommand,
}

const DEV: &str = "\
Examples:
  eisen-core dev plugin list
  eisen-core dev schema > wire.schema.json
  source <(eisen-core dev completions bash)";

#[derive(Subcommand, Debug)]
enum DevCommand {
    /// Print the JSON Schema of the protocol on the port
    ///
    /// docs/wire.md describes the same protocol in prose.
    #[command(after_help = help::SCHEMA)]
    Schema,
    Snapshot(snapshot::SnapshotArgs),
    Plugin(plugin::PluginArgs),
    /// Play a script as an ACP agent: for demos, rehearsals and tests
    ScriptedAgent {
        /// The script file; see docs/scripted-agent.md
        script: PathBuf,
    },
    ModelServer(model_server::ModelServerArgs),
    Completions(packaging::Completions),
    Man(packaging::Man),
}

impl DevGroup {
    pub(super) fn run(self, global: Global) -> Result<u8, Failure> {
        match self.command {
            DevCommand::Schema => output::print(format_args!("{:#}", serve::schema())).map(|()| 0),
            DevCommand::Snapshot(snapshot) => snapshot.run(global.cwd).map(|()| 0),
            DevCommand::Plugin(plugin) => plugin.run(global.cwd),
            DevCommand::ScriptedAgent { script } => scripted::run(&in_folder(global.cwd, &script))
                .map_err(|error| match error.exit_code() {
                    2 => Failure::Usage(error.into()),
                    _ => Failure::Run(error.into()),
                }),
            DevCommand::ModelServer(server) => block_on(server.run(&global)).map(|()| 0),
            DevCommand::Completions(completions) => completions.run().map(|()| 0),
            DevCommand::Man(man) => man.run(global.cwd).map(|()| 0),
        }
    }
}
