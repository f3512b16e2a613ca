//! The command line: flags, help, exit codes. Knows no policy; `app` does the work.

mod agents;
mod attach;
mod blocked;
mod down;
mod format;
mod help;
mod init;
mod logs;
mod many;
mod notify;
mod output;
mod packaging;
mod plugin;
mod prompt;
mod ps;
mod reload;
mod resolve;
mod snapshot;
mod table;
mod team;
mod up;
mod watch;
mod why;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, FromArgMatches, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use self::help::command;
use crate::app::{self, Failure, ObserveOptions, ObservePlugin};
use crate::config;
use crate::model::OnViolation;
use crate::scripted;
use crate::serve;

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
    /// TCP port: to listen on, where 0 takes a free one [default: 17320, or the configuration's];
    /// or that of the running team that is meant
    #[arg(long, global = true, value_name = "N")]
    port: Option<u16>,
    /// Id of the observed agent [default: the command's file name]
    #[arg(long, global = true, value_name = "ID")]
    agent_id: Option<String>,
    /// Session id that the port shows before the observed agent has one
    #[arg(long, global = true, value_name = "ID")]
    session_id: Option<String>,
    /// Folder to work in
    #[arg(long, global = true, value_name = "PATH")]
    cwd: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
enum Command {
    Up(up::Up),
    Down(down::Down),
    /// Put a transparent proxy between an editor and one agent
    ///
    /// The editor is at standard input and output. Passes every byte on as it is, follows the agent
    /// on the port, and, with --zone or --deny, keeps it inside its zone. Ends with the agent's own
    /// exit code.
    #[command(after_help = help::OBSERVE)]
    Observe(Observe),
    /// Validate a configuration and show what it means; starts nothing
    #[command(after_help = help::CHECK)]
    Check(ConfigFile),
    Init(init::Init),
    Why(why::WhyArgs),
    Ps(ps::Ps),
    Watch(watch::Watch),
    Logs(logs::Logs),
    Blocked(blocked::BlockedArgs),
    Prompt(prompt::PromptArgs),
    Cancel(agents::Cancel),
    Resolve(resolve::Resolve),
    /// Start agents
    ///
    /// Each begins to start at once, or as soon as those it depends on are ready.
    Start(agents::AgentsArgs),
    /// Stop agents
    ///
    /// Answers once they have ended. Stopped agents stay stopped until they are started.
    Stop(agents::AgentsArgs),
    /// Stop agents, and start them again
    Restart(agents::AgentsArgs),
    Reload(reload::Reload),
    Notify(notify::NotifyArgs),
    /// Print the JSON Schema of all that goes over the port
    ///
    /// docs/wire.md is the same for people.
    #[command(after_help = help::SCHEMA)]
    Schema,
    Attach(attach::Attach),
    Snapshot(snapshot::SnapshotArgs),
    Plugin(plugin::PluginArgs),
    /// Play a script as an ACP agent: for demos, rehearsals and tests
    ScriptedAgent {
        /// The script; see docs/scripted-agent.md
        script: PathBuf,
    },
    Completions(packaging::Completions),
    Man(packaging::Man),
}

#[derive(Args, Debug)]
struct ConfigFile {
    /// The team's configuration; see docs/configuration.md
    #[arg(short, long, value_name = "FILE", default_value = "eisen.toml")]
    config: PathBuf,
}

#[derive(Args, Debug)]
struct Observe {
    /// What the agent may touch: a glob relative to the folder it works in (repeatable)
    #[arg(long, value_name = "PATTERN")]
    zone: Vec<String>,
    /// What it may not, whatever --zone says (repeatable)
    #[arg(long, value_name = "PATTERN")]
    deny: Vec<String>,
    /// What follows an access outside the zone that the agent made past its client
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    on_violation: OnViolation,
    /// Read along by an extractor plugin, for an agent that doesn't speak ACP: its library, or its
    /// name in the plugin folder
    #[arg(long, value_name = "FILE")]
    plugin: Option<PathBuf>,
    /// The plugin's configuration
    #[arg(long, value_name = "JSON", default_value = "{}", requires = "plugin")]
    plugin_config: String,
    /// Keep no code graph of the folder
    #[arg(long)]
    no_graph: bool,
    /// The agent's command and arguments
    #[arg(last = true, required = true, value_name = "CMD ARGS")]
    command: Vec<OsString>,
}

/// How long what was logged and said at the end may take to be written: standard error may be a pipe
/// that nobody reads.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Runs the command line; returns the exit code.
pub fn main() -> ExitCode {
    let parsed = Cli::from_arg_matches(&command().get_matches());
    let cli = parsed.unwrap_or_else(|error| error.exit());
    log_to_stderr();
    let code = match run(cli) {
        Ok(code) => code,
        Err(failure) if failure.error().is::<output::Closed>() => 0,
        Err(failure) => {
            let colored = format!("{}\n", Complaint(failure.error()));
            let text = if has_colors() {
                colored
            } else {
                anstream::adapter::strip_str(&colored).to_string()
            };
            let _ = app::stderr().clone().write_all(text.as_bytes());
            failure.exit_code()
        }
    };
    app::stderr().flush_within(LAST_WORDS);
    // Not by returning: a thread that still reads standard input would keep the process alive.
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
            plugin: observe
                .plugin
                .map(|file| ObservePlugin { file, config: observe.plugin_config }),
        })),
        Command::Check(file) => check(&in_folder(global.cwd, &file.config)),
        Command::Init(init) => init.run(global.cwd).map(|()| 0),
        Command::Why(why) => why.run(global.cwd).map(|()| 0),
        Command::Ps(ps) => block_on(ps.run(&global)).map(|()| 0),
        Command::Watch(watch) => block_on(watch.run(&global)).map(|()| 0),
        Command::Logs(logs) => logs.run(&global).map(|()| 0),
        Command::Blocked(blocked) => block_on(blocked.run(&global)).map(|()| 0),
        Command::Prompt(prompt) => block_on(prompt.run(&global)),
        Command::Cancel(cancel) => block_on(cancel.run(&global)).map(|()| 0),
        Command::Resolve(resolve) => block_on(resolve.run(&global)),
        Command::Attach(attach) => block_on(attach.run(&global)).map(|()| 0),
        Command::Start(order) => block_on(order.run(&global, "start_agent")),
        Command::Stop(order) => block_on(order.run(&global, "stop_agent")),
        Command::Restart(order) => block_on(order.run(&global, "restart_agent")),
        Command::Reload(reload) => block_on(reload.run(&global)).map(|()| 0),
        Command::Notify(notify) => block_on(notify.run(&global)).map(|()| 0),
        Command::Schema => output::print(format_args!("{:#}", serve::schema())).map(|()| 0),
        Command::Snapshot(snapshot) => snapshot.run(global.cwd).map(|()| 0),
        Command::Plugin(plugin) => plugin.run(global.cwd),
        Command::ScriptedAgent { script } => scripted_agent(&in_folder(global.cwd, &script)),
        Command::Completions(completions) => completions.run().map(|()| 0),
        Command::Man(man) => man.run(global.cwd).map(|()| 0),
    }
}

impl clap::ValueEnum for OnViolation {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Report, Self::Cancel, Self::Stop]
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        let (name, help) = match self {
            Self::Report => ("report", "It is reported as blocked, with status `observed`"),
            Self::Cancel => ("cancel", "Its turn is cancelled, too"),
            Self::Stop => ("stop", "The agent is stopped, too"),
        };
        Some(clap::builder::PossibleValue::new(name).help(help))
    }
}

fn check(file: &Path) -> Result<u8, Failure> {
    let eisen_dir = app::eisen_dir().map_err(Failure::Usage)?;
    let layered = app::load(file, &eisen_dir)?;
    let mut progress = progress();
    let held = app::how_limits_are_held();
    let hints = app::hints(&layered.config, &eisen_dir);
    let kernel = app::kernel();
    let mut report = config::check::check(&layered.config, &kernel, held, hints, &mut progress);
    progress(0);
    report.add_kept(&layered);
    output::print(output::escape_controls(&report.to_string())).map(|()| 0)
}

/// Shows on a terminal how many files were seen, once that takes longer than a second; with 0 it
/// clears that away.
fn progress() -> impl FnMut(u64) {
    use std::io::IsTerminal;
    let (start, terminal) = (std::time::Instant::now(), std::io::stderr().is_terminal());
    move |files| {
        if terminal && start.elapsed().as_secs() >= 1 {
            let count = if files == 0 { String::new() } else { format!("{files} files …") };
            let _ = write!(std::io::stderr(), "\r\x1b[K{count}");
        }
    }
}

fn scripted_agent(script: &Path) -> Result<u8, Failure> {
    scripted::run(script).map_err(|error| match error.exit_code() {
        2 => Failure::Usage(error.into()),
        _ => Failure::Run(error.into()),
    })
}

fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Run(error.into()))?;
    let done = runtime.block_on(work);
    // A read of standard input that never ends must not hold the end up.
    runtime.shutdown_background();
    done
}

fn in_folder(folder: Option<PathBuf>, file: &Path) -> PathBuf {
    folder.map_or_else(|| file.to_owned(), |folder| folder.join(file))
}

/// What is logged unless something else is asked for. The watcher of files warns of each folder that
/// is gone before it hears of that.
const WARNINGS: &str = "warn,notify=error";

/// Logs to standard error by `EISEN_LOG`, else `RUST_LOG`, else warnings.
fn log_to_stderr() {
    let set = |name| std::env::var(name).ok().filter(|filter| !filter.is_empty());
    let filter =
        set("EISEN_LOG").or_else(|| set("RUST_LOG")).unwrap_or_else(|| WARNINGS.to_owned());
    let (filter, wrong) = match EnvFilter::try_new(&filter) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(WARNINGS), Some((filter, error))),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| app::stderr().clone())
        .with_ansi(has_colors())
        .init();
    if let Some((filter, error)) = wrong {
        tracing::warn!(filter, %error, "no such log filter: showing warnings");
    }
}

fn has_colors() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}

/// An error and what led to it, each once: some say their cause themselves.
fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// An error and what led to it, for a person; coloured, which a stream that is no terminal strips.
struct Complaint<'a>(&'a anyhow::Error);

impl std::fmt::Display for Complaint<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Configuration errors say `error:` themselves, once each.
        if let Some(errors) = self.0.downcast_ref::<config::ConfigErrors>() {
            return f.write_str(&errors.render(true));
        }
        // It may quote an agent, or a path.
        let error = output::escape_controls(&chain(self.0));
        write!(f, "error: {error}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let cause = || std::io::Error::from_raw_os_error(13);
        let words = "cannot write: Permission denied (os error 13)";
        let told = anyhow::Error::new(cause()).context(words);
        assert_eq!(chain(&told), words);
        let plain = anyhow::Error::new(cause()).context("cannot write");
        assert_eq!(chain(&plain), words);
    }
}
