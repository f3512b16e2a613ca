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
mod crates;
mod diff;
mod doctor;
mod down;
mod exit_codes;
mod format;
mod gc;
mod grants;
mod groups;
mod help;
mod history;
mod hub;
mod inbox;
mod init;
mod journal;
mod learn;
mod logs;
mod many;
mod mcp;
mod names;
mod nested;
mod notify;
mod observe;
mod options;
mod output;
mod packaging;
mod pin;
mod plugin;
mod prompt;
mod ps;
mod purge;
mod reasons;
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

use std::io::{IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory as _, FromArgMatches, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use self::help::command;
use self::names::TypedLine;
use self::report::ErrorReport;
use crate::program;
use crate::program::Failure;

/// Runs a team of AI coding agents on one code base, each inside its own zone.
#[derive(Parser, Debug)]
#[command(name = "eisen-core", version, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// The options of every command. `options` says in whose help each is shown.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of every command")]
struct Global {
    /// The team [default: `EISEN_TEAM`, the team of this folder, or the only running one]
    #[arg(long, global = true, value_name = "NAME")]
    team: Option<String>,
    /// Working directory
    #[arg(long, global = true, value_name = "PATH")]
    cwd: Option<PathBuf>,
    /// TCP port to listen on (0: any free port) [default: 17320, or the configuration's]; for
    /// commands to a running team, the port of that team
    #[arg(long, global = true, hide = true, value_name = "N")]
    port: Option<u16>,
    /// Id of the observed agent [default: the command's file name]
    #[arg(long, global = true, hide = true, value_name = "ID")]
    agent_id: Option<String>,
    /// Session id to show on the port until the observed agent opens a session
    #[arg(long, global = true, hide = true, value_name = "ID")]
    session_id: Option<String>,
}

#[derive(Subcommand, Debug)]
enum Command {
    Up(up::Up),
    Down(down::Down),
    Run(Box<run::RunArgs>),
    Runs(groups::RunsGroup),
    Top(top::Top),
    Web(web::WebArgs),
    Ps(ps::Ps),
    Prompt(prompt::PromptArgs),
    Inbox(inbox::InboxArgs),
    History(groups::HistoryGroup),
    Diff(diff::DiffArgs),
    Undo(undo::Undo),
    Redo(undo::Redo),
    Blame(blame::BlameArgs),
    Why(why::WhyArgs),
    Check(check::CheckArgs),
    Init(init::Init),
    Doctor(doctor::Doctor),
    Agent(groups::AgentGroup),
    Session(groups::SessionGroup),
    Journal(groups::JournalGroup),
    Team(groups::TeamGroup),
    Dev(groups::DevGroup),
    Observe(observe::Observe),
    #[command(hide = true)]
    Blocked(blocked::BlockedArgs),
    #[command(hide = true)]
    Resolve(resolve::Resolve),
}

/// How long to flush standard error at exit: it may be a pipe without a reader.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs the command line; returns the exit code.
pub fn main() -> ExitCode {
    let line = TypedLine::of(&Cli::command(), std::env::args_os().collect());
    let matches = command(line.asks_for_all()).get_matches_from(&line.words);
    let parsed = Cli::from_arg_matches(&matches);
    let cli = parsed.unwrap_or_else(|error| error.exit());
    // A run says on standard error what it came to, and nothing else.
    let is_run = match &cli.command {
        Command::Run(_) => true,
        Command::Runs(runs) => runs.is_batch(),
        _ => false,
    };
    log_to_stderr(if is_run { "off" } else { DEFAULT_FILTER });
    if let Some(told) = line.told().filter(|_| std::io::stderr().is_terminal()) {
        output::note(told);
    }
    if let (Some(_), Some(path)) = (&cli.global.team, options::without_team(&matches)) {
        output::note(format_args!("note: --team says nothing to `{path}`"));
    }
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
            let _ = program::stderr().clone().write_all(text.as_bytes());
            failure.exit_code()
        }
    };
    program::stderr().flush_within(FLUSH_TIMEOUT);
    // Returning would wait for a thread that still reads standard input.
    std::process::exit(i32::from(code))
}

fn run(cli: Cli) -> Result<u8, Failure> {
    let Cli { global, command } = cli;
    match command {
        Command::Up(up) => block_on(up.run(global)).map(|()| 0),
        Command::Down(down) => down.run(&global).map(|()| 0),
        Command::Run(run) => block_on(run.run(global.cwd)),
        Command::Runs(runs) => runs.run(global),
        Command::Top(top) => block_on(top.run(&global)).map(|()| 0),
        Command::Web(web) => block_on(web.run(&global)).map(|()| 0),
        Command::Ps(ps) => block_on(ps.run(&global)).map(|()| 0),
        Command::Prompt(prompt) => block_on(prompt.run(&global)),
        Command::Inbox(inbox) => block_on(inbox.run(&global)),
        Command::History(history) => history.run(&global).map(|()| 0),
        Command::Diff(diff) => block_on(diff.run(&global)).map(|()| 0),
        Command::Undo(undo) => block_on(undo.run(&global)),
        Command::Redo(redo) => block_on(redo.run(&global)),
        Command::Blame(blame) => block_on(blame.run(&global)).map(|()| 0),
        Command::Why(why) => why.run(global.cwd).map(|()| 0),
        Command::Check(check) => check.run(global.cwd).map(|()| 0),
        Command::Init(init) => init.run(global.cwd).map(|()| 0),
        Command::Doctor(doctor) => doctor.run(global.cwd),
        Command::Agent(agent) => agent.run(global),
        Command::Session(session) => session.run(&global).map(|()| 0),
        Command::Journal(journal) => journal.run(&global).map(|()| 0),
        Command::Team(team) => team.run(global),
        Command::Dev(dev) => dev.run(global),
        Command::Observe(observe) => block_on(observe.run(global)),
        Command::Blocked(blocked) => block_on(blocked.run(&global)).map(|()| 0),
        Command::Resolve(resolve) => block_on(resolve.run(&global)),
    }
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
    let filter = crates::log_filter(&filter);
    let (filter, invalid) = match EnvFilter::try_new(&filter) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(DEFAULT_FILTER), Some((filter, error))),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| program::stderr().clone())
        .with_ansi(has_colors())
        .init();
    if let Some((filter, error)) = invalid {
        tracing::warn!(filter, %error, "invalid log filter: showing warnings");
    }
}

fn has_colors() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}
