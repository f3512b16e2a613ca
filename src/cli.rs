//! The command line: flags, help, exit codes. Contains no policy; `app` does the work.

mod acp;
mod agents;
mod attach;
mod batch;
mod blame;
mod blocked;
mod branching;
mod budget;
mod check;
mod columns;
mod compress;
mod config_file;
mod conflicts;
mod connect;
mod cost;
mod diff;
mod doctor;
mod down;
mod exit_codes;
mod format;
mod gc;
mod help;
mod history;
mod hub;
mod init;
mod journal;
mod logs;
mod many;
mod mcp;
mod nested;
mod notify;
mod output;
mod packaging;
mod pin;
mod plugin;
mod prompt;
mod ps;
mod purge;
mod reload;
mod replay;
mod report;
mod resolve;
mod run;
mod runs;
mod snapshot;
mod stdio;
mod streams;
mod table;
mod team;
mod templates;
mod tiers;
mod token;
mod top;
mod transcript;
mod transfer;
mod trust;
mod undo;
mod up;
mod violation;
mod watch;
mod web;
mod why;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, FromArgMatches, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use self::help::command;
use self::report::ErrorReport;
use crate::app::{self, Failure, ObserveOptions, ObservePlugin};
use crate::model::OnViolation;
use crate::scripted;
use crate::serve;
use crate::wire::{RestartAgent, StartAgent, StopAgent};

/// Runs a team of AI coding agents on one code base, each inside its own zone.
#[derive(Parser, Debug)]
#[command(name = "eisen-core", version, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Options of every command")]
struct Global {
    /// TCP port to listen on (0: any free port) [default: 17320, or the configuration's]; for
    /// commands to a running team, the port of that team
    #[arg(long, global = true, value_name = "N")]
    port: Option<u16>,
    /// Id of the observed agent [default: the command's file name]
    #[arg(long, global = true, value_name = "ID")]
    agent_id: Option<String>,
    /// Session id to show on the port until the observed agent opens a session
    #[arg(long, global = true, value_name = "ID")]
    session_id: Option<String>,
    /// Working directory
    #[arg(long, global = true, value_name = "PATH")]
    cwd: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
enum Command {
    Up(up::Up),
    Down(down::Down),
    /// Put a transparent proxy between an editor and one agent
    ///
    /// The editor is connected to standard input and output. Every byte is forwarded unchanged, and
    /// the agent's activity is published on the port. With --zone or --deny, the agent is kept
    /// inside its zone. The exit code is the agent's own.
    #[command(after_help = help::OBSERVE)]
    Observe(Observe),
    Run(Box<run::RunArgs>),
    Runs(runs::RunsArgs),
    Wait(runs::WaitArgs),
    Result(runs::ResultArgs),
    Kill(runs::KillArgs),
    Tiers(tiers::TiersArgs),
    Templates(templates::TemplatesArgs),
    Batch(batch::BatchArgs),
    Check(check::CheckArgs),
    Init(init::Init),
    Doctor(doctor::Doctor),
    Why(why::WhyArgs),
    Ps(ps::Ps),
    Top(top::Top),
    Watch(watch::Watch),
    Logs(logs::Logs),
    Blocked(blocked::BlockedArgs),
    Conflicts(conflicts::ConflictsArgs),
    History(history::History),
    Fork(branching::ForkArgs),
    Rewind(branching::Rewind),
    Cost(cost::CostArgs),
    Diff(diff::DiffArgs),
    Blame(blame::BlameArgs),
    Replay(replay::Replay),
    Export(transfer::Export),
    Import(transfer::Import),
    Undo(undo::Undo),
    Redo(undo::Redo),
    Pin(pin::PinArgs),
    Purge(purge::Purge),
    Gc(gc::Gc),
    Prompt(prompt::PromptArgs),
    Compress(compress::CompressArgs),
    Budget(budget::BudgetArgs),
    Streams(streams::StreamsArgs),
    Cancel(agents::Cancel),
    Resolve(resolve::Resolve),
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
    Reload(reload::Reload),
    Notify(notify::NotifyArgs),
    /// Print the JSON Schema of the protocol on the port
    ///
    /// docs/wire.md describes the same protocol in prose.
    #[command(after_help = help::SCHEMA)]
    Schema,
    Acp(acp::Acp),
    Attach(attach::Attach),
    Mcp(mcp::Mcp),
    Connect(connect::Connect),
    Hub(hub::HubArgs),
    Web(web::WebArgs),
    Token(token::TokenArgs),
    Team(trust::TeamArgs),
    Snapshot(snapshot::SnapshotArgs),
    Plugin(plugin::PluginArgs),
    /// Play a script as an ACP agent: for demos, rehearsals and tests
    ScriptedAgent {
        /// The script file; see docs/scripted-agent.md
        script: PathBuf,
    },
    Completions(packaging::Completions),
    Man(packaging::Man),
}

#[derive(Args, Debug)]
struct Observe {
    /// Files the agent may access: a glob relative to its working directory (repeatable)
    #[arg(long, value_name = "PATTERN")]
    zone: Vec<String>,
    /// Files it may not access, even if --zone allows them (repeatable)
    #[arg(long, value_name = "PATTERN")]
    deny: Vec<String>,
    /// Reaction to an access outside the zone that did not go through the agent's client
    #[arg(long, value_name = "REACTION", value_enum, default_value_t)]
    on_violation: OnViolation,
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

/// How long to flush standard error at exit: it may be a pipe without a reader.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs the command line; returns the exit code.
pub fn main() -> ExitCode {
    let parsed = Cli::from_arg_matches(&command().get_matches());
    let cli = parsed.unwrap_or_else(|error| error.exit());
    // A run says on standard error what it came to, and nothing else.
    let is_run = matches!(cli.command, Command::Run(_) | Command::Batch(_));
    log_to_stderr(if is_run { "off" } else { DEFAULT_FILTER });
    let code = match run(cli) {
        Ok(code) => code,
        Err(failure) if failure.error().is::<output::Closed>() => 0,
        Err(failure) => {
            let colored = output::harmless(format!("{}\n", ErrorReport(failure.error())));
            let text = if has_colors() {
                colored
            } else {
                anstream::adapter::strip_str(&colored).to_string()
            };
            let _ = app::stderr().clone().write_all(text.as_bytes());
            failure.exit_code()
        }
    };
    app::stderr().flush_within(FLUSH_TIMEOUT);
    // Returning would wait for a thread that still reads standard input.
    std::process::exit(i32::from(code))
}

fn run(cli: Cli) -> Result<u8, Failure> {
    let Cli { global, command } = cli;
    match command {
        Command::Up(up) => block_on(up.run(global)).map(|()| 0),
        Command::Down(down) => down.run(&global).map(|()| 0),
        Command::Observe(observe) => block_on(app::observe(ObserveOptions {
            command: observe.command,
            port: global.port,
            agent_id: global.agent_id,
            session_id: global.session_id,
            cwd: global.cwd,
            zone: observe.zone,
            deny: observe.deny,
            on_violation: observe.on_violation,
            graph: !observe.no_graph,
            journal: observe.journal,
            plugin: observe
                .plugin
                .map(|file| ObservePlugin { file, config: observe.plugin_config }),
        })),
        Command::Run(run) => block_on(run.run(global.cwd)),
        Command::Runs(runs) => runs.run().map(|()| 0),
        Command::Wait(wait) => wait.run(),
        Command::Result(result) => result.run(),
        Command::Kill(kill) => kill.run(),
        Command::Batch(batch) => block_on(batch.run(global.cwd)),
        Command::Tiers(tiers) => tiers.run(global.cwd.as_deref()).map(|()| 0),
        Command::Templates(templates) => templates.run(global.cwd).map(|()| 0),
        Command::Check(check) => check.run(global.cwd).map(|()| 0),
        Command::Init(init) => init.run(global.cwd).map(|()| 0),
        Command::Doctor(doctor) => doctor.run(global.cwd),
        Command::Why(why) => why.run(global.cwd).map(|()| 0),
        Command::Ps(ps) => block_on(ps.run(&global)).map(|()| 0),
        Command::Top(top) => block_on(top.run(&global)).map(|()| 0),
        Command::Hub(hub) => block_on(hub.run(&global)).map(|()| 0),
        Command::Web(web) => block_on(web.run(&global)).map(|()| 0),
        Command::Token(token) => block_on(token.run(&global)).map(|()| 0),
        Command::Watch(watch) => block_on(watch.run(&global)).map(|()| 0),
        Command::Logs(logs) => logs.run(&global).map(|()| 0),
        Command::Blocked(blocked) => block_on(blocked.run(&global)).map(|()| 0),
        Command::Conflicts(conflicts) => block_on(conflicts.run(&global)).map(|()| 0),
        Command::History(history) => history.run(&global).map(|()| 0),
        Command::Fork(fork) => block_on(fork.run(&global)).map(|()| 0),
        Command::Rewind(rewind) => block_on(rewind.run(&global)).map(|()| 0),
        Command::Cost(cost) => block_on(cost.run(&global)).map(|()| 0),
        Command::Diff(diff) => block_on(diff.run(&global)).map(|()| 0),
        Command::Blame(blame) => block_on(blame.run(&global)).map(|()| 0),
        Command::Replay(replay) => block_on(replay.run(&global)).map(|()| 0),
        Command::Export(export) => export.run(&global).map(|()| 0),
        Command::Import(import) => import.run(&global).map(|()| 0),
        Command::Undo(undo) => block_on(undo.run(&global)),
        Command::Redo(redo) => block_on(redo.run(&global)),
        Command::Pin(pin) => pin.run(&global).map(|()| 0),
        Command::Purge(purge) => purge.run(&global).map(|()| 0),
        Command::Gc(gc) => block_on(gc.run(&global)).map(|()| 0),
        Command::Budget(budget) => block_on(budget.run(&global)).map(|()| 0),
        Command::Streams(streams) => block_on(streams.run(&global)).map(|()| 0),
        Command::Prompt(prompt) => block_on(prompt.run(&global)),
        Command::Compress(compress) => block_on(compress.run(&global)),
        Command::Cancel(cancel) => block_on(cancel.run(&global)).map(|()| 0),
        Command::Resolve(resolve) => block_on(resolve.run(&global)),
        Command::Acp(acp) => pass_on(acp.run(global)).map(|()| 0),
        Command::Attach(attach) => pass_on(attach.run(&global)).map(|()| 0),
        Command::Mcp(mcp) => pass_on(mcp.run(&global)).map(|()| 0),
        Command::Connect(connect) => pass_on(connect.run()).map(|()| 0),
        Command::Start(order) => block_on(order.run::<StartAgent>(&global)),
        Command::Stop(order) => block_on(order.run::<StopAgent>(&global)),
        Command::Restart(order) => block_on(order.run::<RestartAgent>(&global)),
        Command::Reload(reload) => block_on(reload.run(&global)).map(|()| 0),
        Command::Notify(notify) => block_on(notify.run(&global)).map(|()| 0),
        Command::Schema => output::print(format_args!("{:#}", serve::schema())).map(|()| 0),
        Command::Team(team) => team.run(global.cwd),
        Command::Snapshot(snapshot) => snapshot.run(global.cwd).map(|()| 0),
        Command::Plugin(plugin) => plugin.run(global.cwd),
        Command::ScriptedAgent { script } => scripted_agent(&in_folder(global.cwd, &script)),
        Command::Completions(completions) => completions.run().map(|()| 0),
        Command::Man(man) => man.run(global.cwd).map(|()| 0),
    }
}

fn scripted_agent(script: &Path) -> Result<u8, Failure> {
    scripted::run(script).map_err(|error| match error.exit_code() {
        2 => Failure::Usage(error.into()),
        _ => Failure::Run(error.into()),
    })
}

fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    run_on(&mut tokio::runtime::Builder::new_multi_thread(), work)
}

/// Like [`block_on`], on this thread alone: a byte that is passed on wakes no other.
fn pass_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    run_on(&mut tokio::runtime::Builder::new_current_thread(), work)
}

fn run_on<T>(
    runtime: &mut tokio::runtime::Builder,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let runtime = runtime.enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Run(error.into()))?;
    let done = runtime.block_on(work);
    // A pending read of standard input must not delay the exit.
    runtime.shutdown_background();
    done
}

fn in_folder(folder: Option<PathBuf>, file: &Path) -> PathBuf {
    folder.map_or_else(|| file.to_owned(), |folder| folder.join(file))
}

/// The default log filter. `notify` warns about folders that were removed, `rmcp` about refusals; what ends a
/// connection to an agent elsewhere is said once, by `connect`.
const DEFAULT_FILTER: &str = "warn,notify=error,rmcp=error,agent_client_protocol_http=off";

/// Logs to standard error by `EISEN_LOG`, else `RUST_LOG`, else `default`.
fn log_to_stderr(default: &str) {
    let set = |name| std::env::var(name).ok().filter(|filter| !filter.is_empty());
    let filter = set("EISEN_LOG").or_else(|| set("RUST_LOG")).unwrap_or_else(|| default.to_owned());
    let (filter, invalid) = match EnvFilter::try_new(&filter) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(DEFAULT_FILTER), Some((filter, error))),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| app::stderr().clone())
        .with_ansi(has_colors())
        .init();
    if let Some((filter, error)) = invalid {
        tracing::warn!(filter, %error, "invalid log filter: showing warnings");
    }
}

fn has_colors() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}
