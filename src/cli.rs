//! The command line: flags, help, exit codes. Contains no policy; `runtime` does the work.

mod acp;
mod agents;
mod attach;
mod batch;
mod blame;
mod blocked;
mod branch_agent;
mod branches;
mod budget;
mod check;
mod choose;
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
mod fork;
mod format;
mod gc;
mod global;
mod grants;
mod groups;
mod help;
mod history;
mod hub;
mod inbox;
mod init;
mod journal;
mod learn;
mod log;
mod logs;
mod many;
mod mcp;
mod merge;
mod model_server;
mod names;
mod nested;
mod notify;
mod observe;
mod options;
mod output;
mod packaging;
mod phone;
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
mod review;
mod run;
mod runs;
mod runtime;
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
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory as _, FromArgMatches, Parser, Subcommand};

use self::global::{Global, in_folder};
use self::help::command;
use self::log::{DEFAULT_FILTER, has_colors, log_to_stderr};
use self::names::TypedLine;
use self::report::ErrorReport;
use self::runtime::{block_on, pass_on};
use crate::program::{self, Failure};

/// Runs a team of AI coding agents on one code base, each inside its own zone.
#[derive(Parser, Debug)]
#[command(name = "eisen-core", version, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Up(up::Up),
    Down(down::Down),
    Run(Box<run::RunArgs>),
    Runs(groups::RunsGroup),
    Branches(branches::BranchesGroup),
    Review(review::ReviewArgs),
    Merge(merge::MergeArgs),
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
    crate::providers::receive_keys();
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
        output::note(format_args!("note: `{path}` does not use --team"));
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
        Command::Branches(branches) => block_on(branches.run(&global)),
        Command::Review(review) => block_on(review.run(&global)),
        Command::Merge(merge) => block_on(merge.run(&global)),
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
