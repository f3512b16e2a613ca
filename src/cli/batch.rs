//! `batch`: the tasks of a file, each a run; a table of what became of them.

mod progress;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::{Number, Value, json};

use self::progress::BatchProgress;
use super::exit_codes::NOT_STARTED;
use super::format;
use super::output::{plain, print};
use super::run::{self, repository};
use super::table::{Cell, Table};
use crate::config::ConfigErrors;
use crate::config::batch::{BatchAgent, BatchFile, BatchTask};
use crate::home;
use crate::jobs;
use crate::jobs::{BatchEnd, BatchJob, BatchOptions, JobEnd, JobOutcome, PlannedJob};
use crate::model::BudgetLimits;
use crate::program;
use crate::program::Failure;
use crate::providers::withdraw_keys;
use crate::runs::{RunBudget, RunSpec, RunState};
use crate::team_file;

/// Run the tasks of a file, each by one agent
///
/// Each task is a run of its own, which starts once the tasks that it waits for have succeeded, and gets
/// their results behind its prompt. The same command goes on with a batch that was interrupted or killed:
/// what has succeeded is not done again, unless its text has changed. docs/batch.md describes the file.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core runs batch tasks.toml --dry-run
  eisen-core runs batch tasks.toml
  eisen-core runs batch tasks.toml --json | jq -r '.tasks[] | select(.status != \"succeeded\") | .id'

Exit codes: 0 all tasks succeeded, 1 one did not, 2 wrong usage, a mistake in the file, or another batch
performs it, 7 with --strict-exit: something was refused, 124 all that did not succeed ran out of time, 125 no agent is installed, 130 interrupted,
137 ended by another signal.")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(super) struct BatchArgs {
    /// The file with the tasks
    file: PathBuf,
    /// Show what would be done, in order
    #[arg(long)]
    dry_run: bool,
    /// Start nothing more once a task did not succeed; those that run go on to their end
    #[arg(long)]
    fail_fast: bool,
    /// Run all tasks again, also those that have succeeded
    #[arg(long)]
    restart: bool,
    /// Exit with 7 if a write, command or connection that an agent intended was refused
    #[arg(long)]
    strict_exit: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

impl BatchArgs {
    pub(super) async fn run(self, cwd: Option<PathBuf>) -> Result<u8, Failure> {
        if home::team_above()?.is_some() {
            let why = "an agent performs no batch: it starts single runs, by `eisen-core run`";
            return Err(Failure::Usage(anyhow!(why)));
        }
        let file = super::in_folder(cwd.clone(), &self.file);
        let real = file.canonicalize().with_context(|| format!("no file {}", file.display()));
        let file = real.map_err(Failure::Usage)?;
        let workspace = repository(cwd.as_deref()).map_err(Failure::Usage)?;
        withdraw_keys(&team_file::shared_config(&workspace)?)?;
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let batch = BatchFile::read(&file, &eisen_dir).map_err(program::config_errors)?;
        let mut jobs = Vec::new();
        for task in batch.tasks {
            let Some(job) = job(task, &file, cwd.as_deref(), self.strict_exit)? else {
                return Ok(NOT_STARTED);
            };
            jobs.push(job);
        }
        let progress = BatchProgress::start(jobs.len());
        let options = BatchOptions {
            file: file.clone(),
            workspace,
            jobs,
            max_running: batch.max_running,
            fail_fast: self.fail_fast,
            restart: self.restart,
            is_watched: progress.is_drawn(),
        };
        if self.dry_run {
            progress.end();
            let planned = jobs::plan(options)?;
            show_plan(&planned, self.json)?;
            return Ok(0);
        }
        // It is large, and there is one.
        let end = Box::pin(jobs::batch(options, &mut |news| progress.tell(&news))).await;
        progress.end();
        let end = end?;
        if self.json {
            print(json(&end, &file, self.strict_exit))?;
        } else {
            print(table(&end).lines(None).join("\n"))?;
        }
        Ok(end.exit_code(self.strict_exit))
    }
}

/// The job that a task asks for; None: there is no agent.
fn job(
    task: BatchTask,
    file: &Path,
    cwd: Option<&Path>,
    strict_exit: bool,
) -> Result<Option<BatchJob>, Failure> {
    let place = |failure| match failure {
        Failure::Usage(error) => Failure::Usage(placed(&error, &task, file)),
        Failure::Run(error) => Failure::Run(error),
    };
    let spec = spec(&task, strict_exit);
    let content = spec.content();
    let Some(options) = run::options(spec, cwd).map_err(place)? else { return Ok(None) };
    jobs::check_run(&options).map_err(place)?;
    Ok(Some(BatchJob { id: task.id, after: task.after, content, options }))
}

fn spec(task: &BatchTask, strict_exit: bool) -> RunSpec {
    let BatchAgent { profile, tier, model, zone, deny, timeout_s, budget } = task.agent.clone();
    let BudgetLimits { tokens, cost, turns, minutes } = budget;
    let minutes = minutes.map(Number::from);
    RunSpec {
        task: task.prompt.clone(),
        profile,
        tier,
        model,
        zone,
        deny,
        timeout_s,
        budget: RunBudget { tokens, cost, turns, minutes },
        branch: task.branch.clone(),
        strict_exit,
        ..RunSpec::default()
    }
}

/// A mistake in what a task asks for, with the place of the task.
fn placed(error: &anyhow::Error, task: &BatchTask, file: &Path) -> anyhow::Error {
    let mistakes = match error.downcast_ref::<ConfigErrors>() {
        // Their places are in a file that nobody knows.
        Some(errors) => {
            let told = errors.list().into_iter().map(|error| match error.help {
                Some(help) => format!("{}: {help}", error.message),
                None => error.message,
            });
            told.collect::<Vec<_>>().join("; ")
        }
        None => format!("{error:#}"),
    };
    anyhow!("{}:{}: the task `{}`: {mistakes}", file.display(), task.line, task.id)
}

fn show_plan(planned: &[PlannedJob], is_json: bool) -> Result<(), Failure> {
    if is_json {
        let job = |job: &PlannedJob| json!({ "id": job.id, "after": job.after, "agent": job.agent, "plan": job.plan });
        return print(json!({ "tasks": planned.iter().map(job).collect::<Vec<_>>() }));
    }
    let mut table = Table::new(&["TASK", "AFTER", "AGENT", "PLAN"]);
    for job in planned {
        let after = if job.after.is_empty() { "-".to_owned() } else { job.after.join(", ") };
        table.row(vec![
            job.id.clone().into(),
            after.into(),
            plain(&job.agent).into(),
            plain(&job.plan).into(),
        ]);
    }
    print(table.lines(None).join("\n"))
}

fn table(end: &BatchEnd) -> Table {
    let mut table =
        Table::new(&["TASK", "RUN", "STATE", "AGENT", ">TOOK", ">TOKENS", ">COST", "REASON"]);
    for job in &end.jobs {
        let state = ran(job);
        let or_none = |text: Option<String>| Cell::from(text.unwrap_or_else(|| "-".to_owned()));
        let costs = state.map(|state| {
            let costs = state.cost.iter().map(|(currency, cost)| format::money(*cost, currency));
            costs.collect::<Vec<_>>().join(", ")
        });
        let reason = job.reason().filter(|_| !job.has_succeeded());
        table.row(vec![
            job.id.clone().into(),
            or_none(state.map(|state| state.id.clone())),
            Cell::styled(job.status(), style(job)),
            or_none(state.map(|state| plain(&agent(state)))),
            or_none(state.and_then(took).map(format::duration)),
            or_none(state.and_then(|state| state.tokens).map(format::tokens)),
            or_none(costs.filter(|costs| !costs.is_empty())),
            plain(reason.unwrap_or_default()).into(),
        ]);
    }
    table
}

fn json(end: &BatchEnd, file: &Path, is_strict: bool) -> Value {
    let task = |job: &JobEnd| {
        let state = ran(job);
        json!({
            "id": job.id,
            "status": job.status(),
            "earlier": job.earlier,
            "run": state.map(|state| &state.id),
            "exit_code": state.and_then(|state| state.exit_code),
            "reason": job.reason(),
            "profile": state.and_then(|state| state.profile.as_ref()),
            "model": state.and_then(|state| state.model.as_ref()),
            "tier": state.and_then(|state| state.tier.as_ref()),
            "seconds": state.and_then(took).map(|took| took.as_secs_f64()),
            "tokens": state.and_then(|state| state.tokens),
            "cost": state.map(|state| &state.cost),
        })
    };
    let tasks: Vec<_> = end.jobs.iter().map(task).collect();
    json!({ "file": file, "exit_code": end.exit_code(is_strict), "tasks": tasks })
}

fn ran(job: &JobEnd) -> Option<&RunState> {
    match &job.outcome {
        JobOutcome::Ran(state) => Some(state),
        JobOutcome::NotStarted(_) | JobOutcome::Skipped(_) => None,
    }
}

fn agent(state: &RunState) -> String {
    let named = state.profile.as_ref().or(state.command.first());
    named.cloned().unwrap_or_default()
}

fn took(state: &RunState) -> Option<Duration> {
    let ended = state.ended_at_ms?;
    Some(Duration::from_millis(ended.saturating_sub(state.started_at_ms)))
}

fn style(job: &JobEnd) -> Style {
    match &job.outcome {
        _ if job.has_succeeded() => AnsiColor::Green.on_default(),
        JobOutcome::Skipped(_) => AnsiColor::Yellow.on_default(),
        JobOutcome::Ran(_) | JobOutcome::NotStarted(_) => AnsiColor::Red.on_default(),
    }
}
