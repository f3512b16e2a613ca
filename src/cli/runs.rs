//! `runs`, `wait`, `result`, `kill`: the runs of `eisen-core run`, by their ids.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use clap::Args;
use nix::sys::signal::Signal;
use serde::Serialize;
use serde_json::json;

use super::exit_codes::{TIMED_OUT, exit_code};
use super::output::{escape_controls, is_terminal, note, plain, print, write};
use super::table::{Cell, Table};
use super::team::failed;
use super::{format, nested};
use crate::home;
use crate::model::now_ms;
use crate::program::Failure;
use crate::runs::tree::{Branch, BranchNode, below, tree};
use crate::runs::{RunFolder, RunState, RunStatus, all_runs, find_run};
use crate::serve::client::{Environment, Target};

/// How often the state of a run is read by those who wait for its end.
const POLL_INTERVAL: Duration = Duration::from_millis(40);

/// How long a run may take to end after SIGTERM: its agents have their own time to end.
const KILL_PATIENCE: Duration = Duration::from_secs(30);

/// The columns that each run has.
const COLUMNS: usize = 7;

/// How the sentence begins that says what a run waits for.
const WAITS: &str = "waits for ";

/// Ended runs that are listed without `--all`.
const SHOWN: usize = 10;

/// List runs
///
/// Shows the runs that have not ended, and the last ten that have. A run whose supervisor is gone
/// without a word is `lost`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core runs
  eisen-core runs --tree  what agents started, below them
  eisen-core runs --all --json | jq -r '.[] | select(.status == \"lost\") | .id'

Exit codes: 0 done, 2 wrong usage.")]
pub(super) struct RunsArgs {
    /// All runs
    #[arg(short, long)]
    all: bool,
    /// Show each below the run or the agent that started it
    #[arg(long, conflicts_with = "json")]
    tree: bool,
    /// Print them as a JSON array
    #[arg(long)]
    json: bool,
}

/// A run with its answer.
#[derive(Serialize)]
struct EndedRun<'a> {
    #[serde(flatten)]
    state: &'a RunState,
    text: &'a str,
}

impl RunsArgs {
    pub(super) fn run(self) -> Result<(), Failure> {
        let mut states = match home::team_above()? {
            Some(team) => super::block_on(nested::list(&team))?,
            None => states(&eisen_dir()?)?,
        };
        if !self.all {
            let ended = states.iter().filter(|state| state.status.is_final()).count();
            let mut left_out = ended.saturating_sub(SHOWN);
            states.retain(|state| {
                let is_old = state.status.is_final() && left_out > 0;
                left_out -= usize::from(is_old);
                !is_old
            });
        }
        if self.json {
            let states = serde_json::to_string(&states);
            return print(states.map_err(|error| Failure::Run(error.into()))?);
        }
        if states.is_empty() {
            note("there are no runs");
            return Ok(());
        }
        let titles: [_; COLUMNS] =
            ["ID", "STATUS", ">AGE", ">TOOK", ">TOKENS", "AGENT", "WORKSPACE"];
        let mut titles = titles.to_vec();
        if states.iter().any(|state| state.waits_for.is_some()) {
            titles.push("WAITS FOR");
        }
        let mut table = Table::new(&titles);
        let rows: Vec<_> = if self.tree {
            tree(&states).iter().map(branch_row).collect()
        } else {
            states.iter().map(row).collect()
        };
        for mut row in rows {
            row.resize_with(titles.len(), || Cell::from(""));
            table.row(row);
        }
        print(table.lines(None).join("\n"))
    }
}

fn branch_row(branch: &Branch<'_>) -> Vec<Cell> {
    let indented = |name: &str| Cell::from(format!("{}{name}", "  ".repeat(branch.level)));
    match branch.node {
        BranchNode::Run(state) => {
            let mut cells = row(state);
            cells[0] = indented(&state.id);
            cells
        }
        BranchNode::Starter(name) => {
            let rest = std::iter::repeat_n(Cell::from(""), COLUMNS - 1);
            std::iter::once(indented(&plain(name))).chain(rest).collect()
        }
    }
}

fn row(state: &RunState) -> Vec<Cell> {
    let since =
        |from: u64, to: u64| format::duration(Duration::from_millis(to.saturating_sub(from)));
    let took = state.ended_at_ms.map(|ended| since(state.started_at_ms, ended));
    let agent = state.profile.clone().or_else(|| state.command.first().cloned());
    let workspace = state.workspace.display().to_string();
    let mark = if state.tokens_estimated { "~" } else { "" };
    let tokens = state.tokens.map(|tokens| format!("{mark}{}", format::tokens(tokens)));
    let waits_for = state.waits_for.as_deref().map(|it| it.strip_prefix(WAITS).unwrap_or(it));
    let mut cells = vec![
        Cell::from(state.id.clone()),
        Cell::styled(state.status.as_str(), style(state.status)),
        since(state.started_at_ms, now_ms()).into(),
        took.unwrap_or_else(|| "-".to_owned()).into(),
        tokens.unwrap_or_else(|| "-".to_owned()).into(),
        plain(&agent.unwrap_or_default()).into(),
        plain(&workspace).into(),
    ];
    cells.extend(waits_for.map(|it| Cell::from(plain(it))));
    cells
}

fn style(status: RunStatus) -> Style {
    let color = match status {
        RunStatus::Succeeded => AnsiColor::Green,
        RunStatus::Waiting | RunStatus::Running => AnsiColor::Cyan,
        RunStatus::Failed | RunStatus::TimedOut | RunStatus::Killed | RunStatus::Lost => {
            AnsiColor::Red
        }
    };
    color.on_default()
}

/// Wait for the end of runs
///
/// Exits with the run's own code; of several runs, with the first code that is not 0, in the order of
/// the arguments. A run that has ended is not waited for: the answer stays the same.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  id=$(eisen-core run --detach \"Fix the rounding\"); eisen-core runs wait \"$id\" && eisen-core runs show \"$id\"
  eisen-core runs wait --any 01M8CH14 01M8CH16  prints the id of the first that ends

Exit codes: the run's own, 1 also for a lost run, 2 wrong usage, 124 the time is up.")]
pub(super) struct WaitArgs {
    /// Ids, or beginnings that no other run has
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Wait for the first end, and print its id
    #[arg(long)]
    any: bool,
    /// Wait no longer than this
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
}

impl WaitArgs {
    pub(super) fn run(self) -> Result<u8, Failure> {
        let wait = self.timeout.map(Duration::try_from_secs_f64).transpose();
        let wait = wait.map_err(|error| Failure::Usage(error.into()))?;
        let deadline = wait.and_then(|wait| Instant::now().checked_add(wait));
        if let Some(team) = home::team_above()? {
            return super::block_on(nested::wait(&team, &self.ids, self.any, deadline));
        }
        let eisen_dir = eisen_dir()?;
        let runs = self.ids.iter().map(|id| find_run(&eisen_dir, id));
        let runs = runs.collect::<Result<Vec<_>, _>>();
        let runs = runs.map_err(|error| Failure::Usage(error.into()))?;
        loop {
            let states = runs.iter().map(state).collect::<Result<Vec<_>, _>>()?;
            let mut ended = states.iter().filter(|state| state.status.is_final());
            if self.any {
                if let Some(first) = ended.next() {
                    print(&first.id)?;
                    return Ok(exit_code(first));
                }
            } else if ended.count() == states.len() {
                return Ok(states.iter().map(exit_code).find(|code| *code != 0).unwrap_or(0));
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(TIMED_OUT);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Print the answer of a run that has ended
///
/// Prints nothing for a run that has not ended, or was killed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core runs show 01M8CH14
  eisen-core runs show --json 01M8CH14 | jq -r .reason

Exit codes: the run's own, 1 also for a run that has not ended or is lost, 2 wrong usage.")]
pub(super) struct ResultArgs {
    /// The id, or a beginning that no other run has
    #[arg(value_name = "ID")]
    id: String,
    /// Print state and answer as JSON
    #[arg(long)]
    json: bool,
}

impl ResultArgs {
    pub(super) fn run(self) -> Result<u8, Failure> {
        if let Some(team) = home::team_above()? {
            let (state, text) = super::block_on(nested::one(&team, &self.id))?;
            return self.show(&state, || Ok(text.unwrap_or_default()));
        }
        let run = find_run(&eisen_dir()?, &self.id);
        let run = run.map_err(|error| Failure::Usage(error.into()))?;
        self.show(&state(&run)?, || run.answer())
    }

    fn show(
        &self,
        state: &RunState,
        answer: impl FnOnce() -> std::io::Result<String>,
    ) -> Result<u8, Failure> {
        if !state.status.is_final() {
            note(format_args!(
                "the run is {}: `eisen-core runs wait {}`",
                state.status.as_str(),
                state.id
            ));
            if let Some(waits_for) = &state.waits_for {
                note(plain(waits_for));
            }
            return Ok(1);
        }
        let answer = match answer() {
            Ok(answer) => answer,
            Err(_) if state.status == RunStatus::Lost => String::new(),
            Err(error) => {
                let error = anyhow::Error::new(error).context("cannot read the answer");
                return Err(Failure::Run(error));
            }
        };
        if self.json {
            print(json!(EndedRun { state, text: &answer }))?;
        } else if !answer.is_empty() && state.status != RunStatus::Killed {
            let text = format!("{answer}\n");
            let text = if is_terminal() { escape_controls(&text) } else { text };
            write(text.as_bytes())?;
        }
        if let Some(reason) = state.reason.as_deref().filter(|_| !self.json) {
            note(format_args!("{}: {}", state.status.as_str(), escape_controls(reason)));
        }
        Ok(exit_code(state))
    }
}

/// End runs
///
/// The agent of each is ended, with all that it has started, also runs. Returns once they have ended.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core runs stop 01M8CH14
  eisen-core runs stop --tree 01M8CH14  it and all that is below it

Exit codes: 0 all have ended, 1 one has not, 2 wrong usage.")]
pub(super) struct KillArgs {
    /// Ids, or beginnings that no other run has
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// Also what is below them in `runs --tree`, and wait for its end
    #[arg(long)]
    tree: bool,
}

impl KillArgs {
    pub(super) fn run(self) -> Result<u8, Failure> {
        if let Some(team) = home::team_above()? {
            return super::block_on(nested::end(&team, &self.ids)).map(|ended| u8::from(!ended));
        }
        let eisen_dir = eisen_dir()?;
        let runs = self.ids.iter().map(|id| find_run(&eisen_dir, id));
        let runs = runs.collect::<Result<Vec<_>, _>>();
        let mut runs = runs.map_err(|error| Failure::Usage(error.into()))?;
        if self.tree {
            let all = states(&eisen_dir)?;
            let named: Vec<_> = runs.iter().map(|run| run.id().to_owned()).collect();
            let found = named.iter().flat_map(|id| below(&all, id));
            let found = found.map(|state| find_run(&eisen_dir, &state.id));
            let found = found.collect::<Result<Vec<_>, _>>();
            runs.extend(found.map_err(|error| Failure::Usage(error.into()))?);
        }
        for run in &runs {
            end(&eisen_dir, &state(run)?);
        }
        let begun = Instant::now();
        let mut code = 0;
        for run in &runs {
            while !state(run)?.status.is_final() {
                if begun.elapsed() > KILL_PATIENCE {
                    // Its agents end with it.
                    state(run)?.signal(Signal::SIGKILL);
                    code = 1;
                    break;
                }
                std::thread::sleep(POLL_INTERVAL);
            }
        }
        Ok(code)
    }
}

/// Begins to end a run: its supervisor, or where that is a team's, by the team.
fn end(eisen_dir: &Path, state: &RunState) {
    if state.has_own_team() {
        return state.signal(Signal::SIGTERM);
    }
    if state.status.is_final() {
        return;
    }
    // The environment names no other team to whom a run does not belong.
    let team = Target::find(&Environment::default(), eisen_dir, Some(&state.team), None);
    let ids = [state.id.clone()];
    let ended = team.map_err(failed).and_then(|team| super::block_on(nested::end(&team, &ids)));
    if let Err(failure) = ended {
        // It may have ended meanwhile: its state says so.
        note(format_args!("{}: {}", state.id, escape_controls(&failure.error().to_string())));
    }
}

fn state(run: &RunFolder) -> Result<RunState, Failure> {
    run.state().map_err(|error| {
        Failure::Run(anyhow::Error::new(error).context(format!("cannot read the run {}", run.id())))
    })
}

fn states(eisen_dir: &Path) -> Result<Vec<RunState>, Failure> {
    let folders = all_runs(eisen_dir).map_err(|error| Failure::Run(error.into()))?;
    Ok(folders.iter().filter_map(|run| run.state().ok()).collect())
}

fn eisen_dir() -> Result<PathBuf, Failure> {
    home::eisen_dir().map_err(Failure::Usage)
}
