//! `logs`: shows and follows the agents' standard error, from their log files.

mod of_run;
mod tail;

use std::collections::BTreeSet;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::{Context, bail};
use clap::Args;
use notify::{RecursiveMode, Watcher as _};
use serde_json::json;

use self::tail::Tail;
use super::Global;
use super::output::{self, escape_controls, note};
use super::team::{Which, environment};
use crate::home;
use crate::kept::make_folder;
use crate::program::Failure;
use crate::runs::is_of_run;
use crate::serve::client::{ClientError, Target};

/// Colours of agents on a terminal.
const COLORS: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Yellow,
    AnsiColor::Green,
    AnsiColor::Magenta,
    AnsiColor::Blue,
    AnsiColor::Red,
];

/// Show the standard error of agents
///
/// The log is kept in `$EISEN_DIR/logs/TEAM/AGENT.log` across restarts, and stays readable after the
/// team has ended. The id of a run, as `runs` lists it, or a beginning of it that no other run has,
/// shows what the run's agent wrote, and the console of a detached run; an agent of that name
/// comes first. Each line starts with the time it was read, in UTC, and the process id of the
/// run (as `ps` and the console show it). If several agents are shown, it starts with the agent's
/// id.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core agent logs ui              the whole log of one agent
  eisen-core agent logs -f              follow every agent
  eisen-core agent logs -n 20 ui api
  eisen-core agent logs --team webshop  works after the team has ended, too
  eisen-core agent logs -f 01M8CH14     follow a run to its end
  eisen-core agent logs --json ui | jq -r 'select(.run == 4711) | .line'

Exit codes: 0 done, 1 no such log, 2 wrong usage.")]
pub(super) struct Logs {
    /// Ids of the agents, or the id of one run [default: all agents with a log]
    #[arg(value_name = "AGENT")]
    agents: Vec<String>,
    /// Follow the logs as they grow
    #[arg(short, long)]
    follow: bool,
    /// Start with the last N lines of each agent [default: all]
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<usize>,
    /// Print the lines unchanged, without time and run
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// Print each line as a JSON object: `agent`, `time`, `run` and `line`
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

impl Logs {
    pub(super) fn run(self, global: &Global) -> Result<(), Failure> {
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        if let Some(run) = self.run_meant(global, &eisen_dir)? {
            return self.show_run(&run, &eisen_dir);
        }
        let folder = self.folder(global, &eisen_dir.join("logs")).map_err(Failure::Run)?;
        // Watch before reading, so that no change is missed.
        let watch =
            self.follow.then(|| FolderWatch::of(&folder)).transpose().map_err(Failure::Run)?;
        let named = !self.agents.is_empty();
        let agents = self.agents(&folder).map_err(Failure::Run)?;
        let format = LogFormat { raw: self.raw, json: self.json };
        let mut output = LogWriter::new(&agents, named, format);
        let mut tails: Vec<_> = agents.iter().map(|agent| Tail::new(&folder, agent)).collect();
        for tail in &mut tails {
            for line in tail.begin(self.lines).map_err(|error| unreadable(tail, error))? {
                output.line(tail.agent(), &line)?;
            }
        }
        let Some(watch) = watch else { return Ok(()) };
        output::end_with_reader();
        loop {
            watch.wait();
            if !named {
                for agent in logged(&folder) {
                    if tails.iter().all(|tail| tail.agent() != agent) {
                        output.add(&agent);
                        tails.push(Tail::new(&folder, &agent));
                    }
                }
            }
            for tail in &mut tails {
                for line in tail.advance().map_err(|error| unreadable(tail, error))? {
                    output.line(tail.agent(), &line)?;
                }
            }
            if !folder.is_dir() {
                let gone = anyhow::anyhow!("the folder {} was removed", folder.display());
                return Err(Failure::Run(gone));
            }
        }
    }

    /// The folder with the team's logs.
    fn folder(&self, global: &Global, logs: &Path) -> anyhow::Result<PathBuf> {
        let teams = folders(logs);
        let of = |team: &str| teams.contains(team).then(|| logs.join(team));
        if let Some(team) = &self.which.team {
            return of(team).with_context(|| {
                format!("the team `{team}` has no logs in {}{}", logs.display(), also(&teams))
            });
        }
        let eisen_dir = logs.parent().unwrap_or(logs);
        let environment = environment(global, eisen_dir);
        match Target::find(&environment, eisen_dir, None, global.port) {
            Ok(target) => {
                let folder = logs.join(target.team());
                if !folder.is_dir() {
                    note(format_args!("no agent of the team `{}` has a log yet", target.team()));
                    if self.follow {
                        folder_made(&folder)?;
                    }
                }
                return Ok(folder);
            }
            Err(ClientError::NoTeam) => {}
            Err(ClientError::NotHere { here, .. }) => {
                let logged: Vec<_> = here.into_iter().filter(|team| teams.contains(team)).collect();
                if let [team] = &logged[..] {
                    return Ok(logs.join(team));
                }
            }
            Err(error) => return Err(error.into()),
        }
        // What a run left is found by its id.
        let of_teams: BTreeSet<_> = teams.iter().filter(|it| !is_of_run(it)).cloned().collect();
        let teams = if of_teams.is_empty() { teams } else { of_teams };
        match teams.len() {
            0 => bail!("there are no logs in {}", logs.display()),
            1 => Ok(logs.join(teams.first().map_or("", String::as_str))),
            _ => {
                let teams = teams.into_iter().collect::<Vec<_>>().join(", ");
                bail!("no team is running, and several have logs: select one with --team: {teams}")
            }
        }
    }

    /// The agents whose logs are shown.
    fn agents(&self, folder: &Path) -> anyhow::Result<Vec<String>> {
        let all = logged(folder);
        if self.agents.is_empty() {
            return Ok(all.into_iter().collect());
        }
        for agent in &self.agents {
            if all.contains(agent) {
                continue;
            }
            if !self.follow || agent.contains('/') {
                bail!("the agent `{agent}` has no log in {}{}", folder.display(), also(&all));
            }
            note(format_args!("waiting for `{agent}`, which has no log yet{}", also(&all)));
        }
        let mut seen = BTreeSet::new();
        Ok(self.agents.iter().filter(|agent| seen.insert(*agent)).cloned().collect())
    }
}

/// Watches a folder for changes.
struct FolderWatch {
    watcher: notify::RecommendedWatcher,
    changes: mpsc::Receiver<()>,
}

impl FolderWatch {
    fn of(folder: &Path) -> anyhow::Result<Self> {
        let (sender, changes) = mpsc::channel();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Our own reads are reported, too; reacting to them would loop forever.
            if event.map_or(true, |event| !event.kind.is_access()) {
                let _ = sender.send(());
            }
        })?;
        let mut watch = Self { watcher, changes };
        watch.also(folder)?;
        Ok(watch)
    }

    /// Watches another folder, too.
    fn also(&mut self, folder: &Path) -> anyhow::Result<()> {
        let watched = self.watcher.watch(folder, RecursiveMode::NonRecursive);
        watched.with_context(|| format!("cannot follow {}", folder.display()))
    }

    /// Waits for a change, or until the time is up.
    fn wait_for(&self, time: Duration) {
        let _ = self.changes.recv_timeout(time);
        while self.changes.try_recv().is_ok() {}
    }

    fn wait(&self) {
        let _ = self.changes.recv();
        // Drain: one read covers all changes so far.
        while self.changes.try_recv().is_ok() {}
    }
}

/// How lines are shown.
#[derive(Clone, Copy)]
struct LogFormat {
    raw: bool,
    json: bool,
}

/// A line of a log: `[2026-01-31T12:00:00Z 4711] text`. Earlier versions wrote no stamp.
struct LogLine<'a> {
    stamp: Option<(&'a str, &'a str)>,
    text: &'a [u8],
}

impl<'a> LogLine<'a> {
    fn of(line: &'a [u8]) -> Self {
        let stamped = || {
            let end = memchr::memchr(b']', line.get(..LONGEST_STAMP).unwrap_or(line))?;
            let stamp = str::from_utf8(line.get(1..end)?).ok()?;
            let (time, run) = stamp.split_once(' ')?;
            let valid = line[0] == b'[' && time.len() == TIME && time.ends_with('Z');
            let valid = valid && !run.is_empty() && run.bytes().all(|byte| byte.is_ascii_digit());
            let text = line[end + 1..].strip_prefix(b" ")?;
            valid.then_some(Self { stamp: Some((time, run)), text })
        };
        stamped().unwrap_or(Self { stamp: None, text: line })
    }
}

/// Length of a time: `2026-01-31T12:00:00Z`.
const TIME: usize = 20;
/// Maximum length of a stamp.
const LONGEST_STAMP: usize = 40;

/// Writes log lines to standard output, with the agent's id in front if there are several.
struct LogWriter {
    format: LogFormat,
    terminal: bool,
    prefixed: bool,
    width: usize,
    agents: Vec<String>,
}

impl LogWriter {
    fn new(agents: &[String], named: bool, format: LogFormat) -> Self {
        let width = agents.iter().map(String::len).max().unwrap_or(0);
        let prefixed = agents.len() > 1 || !named;
        let terminal = io::stdout().is_terminal();
        Self { format, terminal, prefixed, width, agents: agents.to_vec() }
    }

    fn add(&mut self, agent: &str) {
        self.width = self.width.max(agent.len());
        self.agents.push(agent.to_owned());
    }

    fn line(&self, agent: &str, line: &[u8]) -> Result<(), Failure> {
        self.write(agent, line).map_err(output::failure)
    }

    fn write(&self, agent: &str, line: &[u8]) -> io::Result<()> {
        let LogLine { stamp, text } = LogLine::of(line);
        let mut out = anstream::stdout().lock();
        if self.format.json {
            let (time, run) = stamp.unzip();
            let run = run.and_then(|run| run.parse::<u64>().ok());
            let line = String::from_utf8_lossy(text);
            let object = json!({ "agent": agent, "time": time, "run": run, "line": line });
            return writeln!(out, "{object}");
        }
        let prefix = self.prefix(agent, stamp.filter(|_| !self.format.raw));
        if self.terminal {
            let at = self.agents.iter().position(|other| other == agent).unwrap_or(0);
            let color: Style = COLORS[at % COLORS.len()].on_default();
            // An agent's output must not control the terminal.
            let text = escape_controls(&String::from_utf8_lossy(text));
            return writeln!(out, "{color}{prefix}{color:#}{text}");
        }
        drop(out);
        let mut out = io::stdout().lock();
        out.write_all(prefix.as_bytes())?;
        out.write_all(text)?;
        out.write_all(b"\n")
    }

    /// The agent and the stamp before a line.
    fn prefix(&self, agent: &str, stamp: Option<(&str, &str)>) -> String {
        let width = self.width;
        let agent = self.prefixed.then(|| format!("{agent:width$}"));
        let stamp = stamp.map(|(time, run)| format!("{time} {run}"));
        let parts: Vec<_> = agent.into_iter().chain(stamp).collect();
        if parts.is_empty() { String::new() } else { format!("{} | ", parts.join(" ")) }
    }
}

fn folder_made(folder: &Path) -> anyhow::Result<()> {
    make_folder(folder).with_context(|| format!("cannot make {}", folder.display()))
}

fn unreadable(tail: &Tail, error: io::Error) -> Failure {
    let path = tail.path().display().to_string();
    Failure::Run(anyhow::Error::new(error).context(format!("cannot read {path}")))
}

/// The agents that have a log, by name.
fn logged(folder: &Path) -> BTreeSet<String> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let agents = files.filter_map(|file| {
        let name = file.file_name().into_string().ok()?;
        let name = name.strip_suffix(".1").unwrap_or(&name);
        Some(name.strip_suffix(".log")?.to_owned())
    });
    agents.collect()
}

fn folders(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    folders.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn also(names: &BTreeSet<String>) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!("; there are {}", names.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
}
