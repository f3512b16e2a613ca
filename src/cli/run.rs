//! `run`: one agent for one task; its answer on standard output.

mod request;
mod status;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::{Number, json};
use tokio::sync::watch;

use self::status::StatusLine;
use super::exit_codes::{NOT_STARTED, exit_code};
use super::format::counted;
use super::output::{escape_controls, is_terminal, note, plain, print, write};
use super::prompt::ended::{tell_changed, tell_refused};
use super::report::ErrorReport;
use super::{format, nested};
use crate::branches;
use crate::config::AgentTier;
use crate::config::installed::installed_profile;
use crate::home;
use crate::jobs;
use crate::jobs::RunEnd;
use crate::program::Failure;
use crate::providers::withdraw_keys;
use crate::runs::{RunBudget, RunSpec, RunStatus};
use crate::team_file;
use crate::team_file::RunOptions;
use crate::tree::{Worktree, Worktrees, standing};

/// Run one agent for one task and print its answer
///
/// Starts an agent in the git repository of the current folder, confined to its zone as an agent of a
/// team is, gives it the prompt, and ends it after its turn. Standard output gets the agent's last
/// message, which is what it says after its last tool call, and nothing else; standard error gets one
/// line with the usage. It needs no configuration.
#[derive(Args, Default, Debug)]
#[command(after_help = "\
Examples:
  eisen-core run \"Which tests cover the cart?\"
  eisen-core run --tier smart \"Which tests cover the cart?\"
  eisen-core run --profile codex --zone 'src/cart/**' \"Fix the rounding of totals\"
  git diff | eisen-core run --deny '**/.env' --timeout 300 - > review.md
  eisen-core run \"Say hello\" -- opencode acp
  eisen-core run --branch fix/cart \"Fix the rounding of totals\"   then: eisen-core merge fix/cart
  eisen-core run --session last \"And now the tests\"
  eisen-core run --schema count.json \"Count the modules\" | jq .count

Exit codes: 0 it succeeded, 1 the agent failed or gave no answer, 2 wrong usage, 3 max_tokens,
4 max_turn_requests, 5 refusal, 6 another stop reason, 7 with --strict-exit: something was refused, 124 its time was up, 125 the agent could not be
started, 130 interrupted, 137 killed.")]
pub(super) struct RunArgs {
    /// The prompt; `-` reads it from standard input
    #[arg(value_name = "PROMPT", required_unless_present = "prepared")]
    prompt: Option<String>,
    #[command(flatten)]
    spec: RunSpec,
    /// A file that goes with the prompt: text, an image or another one that the agent takes (repeatable)
    #[arg(long, value_name = "FILE", display_order = 90)]
    file: Vec<PathBuf>,
    /// A JSON Schema that the answer has to fit; the agent has two tries
    #[arg(long, value_name = "FILE", display_order = 100)]
    schema: Option<PathBuf>,
    /// A limit of `[agents.budget]`, such as `tokens=200000` or `cost=1.50` (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = RunBudget::limit, display_order = 140)]
    budget: Vec<(String, Number)>,
    /// Print the result as JSON
    #[arg(long, display_order = 150)]
    json: bool,
    /// Run in the background, and print the run's id; `runs wait` and `runs show` take it
    #[arg(short, long, conflicts_with = "json", display_order = 160)]
    detach: bool,
    /// Perform a run that was detached
    #[arg(long, value_name = "ID", hide = true, exclusive = true)]
    prepared: Option<String>,
}

impl RunArgs {
    pub(super) async fn run(self, cwd: Option<PathBuf>) -> Result<u8, Failure> {
        let above = home::team_above()?;
        if let Some(id) = &self.prepared {
            if above.is_some() {
                return Err(Failure::Usage(anyhow!("an agent performs no run that was prepared")));
            }
            return jobs::run_prepared(id).await.map(|end| exit_code(&end.state));
        }
        let is_json = self.json;
        if above.is_none() {
            // Before standard input is read.
            let folder = folder(cwd.as_deref()).map_err(Failure::Usage)?;
            withdraw_keys(&team_file::shared_config(&folder)?)?;
        }
        let spec = self.spec().map_err(Failure::Usage)?;
        if let Some(team) = above {
            return nested::run(&team, &spec, |end| report(end, None, is_json)).await;
        }
        let waits = spec.wait;
        let Some((options, branch)) = on_branch(spec, cwd.as_deref()).await? else {
            return Ok(NOT_STARTED);
        };
        if !waits {
            print(jobs::run_detached(options, |_| Ok(()))?)?;
            return Ok(0);
        }
        let progress = watch::Sender::default();
        let status = StatusLine::start(progress.subscribe());
        let end = jobs::run(options, progress).await;
        drop(status);
        let end = end?;
        report(&end, branch.as_ref(), is_json)?;
        Ok(exit_code(&end.state))
    }

    /// The run that is asked for. Files are read here: below an agent by a process that can read no more than it.
    fn spec(self) -> anyhow::Result<RunSpec> {
        let Self { prompt, spec, file, schema, budget, json: _, detach, prepared: _ } = self;
        Ok(RunSpec {
            task: request::prompt(prompt.as_deref().unwrap_or_default())?,
            files: request::attachments(&file)?,
            schema: schema.as_deref().map(request::schema).transpose()?,
            budget: RunBudget::of(budget).context("--budget")?,
            wait: !detach,
            ..spec
        })
    }
}

/// A run with its surroundings; None: there is no agent.
pub(super) fn options(spec: RunSpec, cwd: Option<&Path>) -> Result<Option<RunOptions>, Failure> {
    options_in(spec, repository(cwd).map_err(Failure::Usage)?, cwd)
}

fn options_in(
    mut spec: RunSpec,
    workspace: PathBuf,
    cwd: Option<&Path>,
) -> Result<Option<RunOptions>, Failure> {
    let begins_with = request::earlier(&mut spec, &workspace).map_err(Failure::Usage)?;
    let shared = team_file::shared_config(&folder(cwd).map_err(Failure::Usage)?)?;
    let (known, first) = match &spec.tier {
        Some(name) => {
            let tier = shared.tier(name).ok_or_else(|| no_tier(name, &shared.tiers))?;
            (shared.known_with(tier), tier.candidates.first())
        }
        None => (shared.known(), None),
    };
    if spec.tier.is_none() && spec.profile.is_none() && spec.command.is_empty() {
        let path = std::env::var("PATH").unwrap_or_default();
        spec.profile = installed_profile(&path).map(str::to_owned);
    }
    let candidate = first.cloned();
    let profile = spec.profile.clone().or_else(|| Some(first?.profile.clone()));
    if profile.is_none() && spec.command.is_empty() {
        note(ErrorReport(team_file::nobody_installed(&workspace).error()));
        return Ok(None);
    }
    let worktree = Worktrees::new(&home::eisen_dir().map_err(Failure::Usage)?).around(&workspace);
    let worktree = worktree.map(|tree| tree.variables());
    Ok(Some(RunOptions { spec, workspace, profile, candidate, begins_with, known, worktree }))
}

/// A run in the worktree that it asks for, which is made ready; says what a person should know of it. None: there is no
/// agent.
async fn on_branch(
    spec: RunSpec,
    cwd: Option<&Path>,
) -> Result<Option<(RunOptions, Option<Worktree>)>, Failure> {
    let folder = folder(cwd).map_err(Failure::Usage)?;
    let shared = team_file::shared_config(&folder)?;
    let Some(mut given) = branches::give(&spec, &folder, &shared)? else {
        return Ok(options(spec, cwd)?.map(|options| (options, None)));
    };
    let options = match options_in(spec, given.held.tree.path.clone(), cwd) {
        Ok(Some(options)) => options,
        none => {
            given.take_back()?;
            return none.map(|_| None);
        }
    };
    given.belongs_to(&options)?;
    for sentence in &given.notes {
        note(plain(sentence));
    }
    branches::set_up(&mut given, &mut |line| note(plain(line))).await?;
    Ok(Some((options, Some(given.held.tree))))
}

fn report(end: &RunEnd, branch: Option<&Worktree>, is_json: bool) -> Result<(), Failure> {
    if is_json {
        return print(json(end, branch));
    }
    show(end)?;
    let stands = branch.and_then(|tree| Some((tree, standing(tree, None).ok()?)));
    if let Some((tree, stands)) = stands {
        let (program, branch) = (home::own_command(), plain(&tree.branch));
        let commits = counted(stands.ahead, "commit");
        let left = match stands.uncommitted {
            0 => String::new(),
            1 => ", 1 file not committed".to_owned(),
            count => format!(", {count} files not committed"),
        };
        let flag = if stands.uncommitted > 0 { " --commit" } else { "" };
        let next = match tree.is_settled() {
            Ok(()) => format!("{program} merge {branch}{flag}"),
            Err(why) => plain(&why),
        };
        note(format_args!("branch {branch}: {commits}{left}: {next}"));
    }
    Ok(())
}

/// Prints the answer, then what the run came to.
fn show(end: &RunEnd) -> Result<(), Failure> {
    // What an agent had said that was killed is no answer.
    if !end.answer.is_empty() && end.state.status != RunStatus::Killed {
        let answer = format!("{}\n", end.answer);
        let answer = if is_terminal() { escape_controls(&answer) } else { answer };
        write(answer.as_bytes())?;
    }
    let state = &end.state;
    if state.status != RunStatus::Succeeded {
        let reason = state.reason.as_deref().unwrap_or("no reason is known");
        note(format_args!("{}: {}", state.status.as_str(), escape_controls(reason)));
    }
    if !state.background.is_empty() {
        let ended = state.background.join(", ");
        note(format_args!("ended with the run, since its agent left it behind: {}", plain(&ended)));
    }
    let program = home::own_command();
    tell_changed(state.changed, &format!("{program} diff --run {}", state.id));
    let refused = format!("{program} history --run {} --type blocked", state.id);
    tell_refused(&state.blocked, &refused);
    let mark = if state.tokens_estimated { "~" } else { "" };
    let tokens = state.tokens.map(|tokens| format!("{mark}{} tokens", format::tokens(tokens)));
    let costs = state.cost.iter().map(|(currency, cost)| format::money(*cost, currency));
    let took = format::duration(end.took);
    let parts: Vec<_> = tokens.into_iter().chain(costs).chain([took]).collect();
    note(format_args!("run {}: {}", state.id, plain(&parts.join(", "))));
    Ok(())
}

fn json(end: &RunEnd, branch: Option<&Worktree>) -> serde_json::Value {
    let state = &end.state;
    json!({
        "id": state.id,
        "status": state.status,
        "exit_code": state.exit_code,
        "text": end.answer,
        "stop_reason": end.stop_reason,
        "reason": state.reason,
        "session_id": state.session_id,
        "background": state.background,
        "changed": state.changed,
        "blocked": state.blocked,
        "profile": state.profile,
        "model": state.model,
        "tier": state.tier,
        "attempts": state.attempts,
        "branch": branch.map(|tree| &tree.branch),
        "worktree": branch.map(|tree| &tree.path),
        "tokens": state.tokens,
        "tokens_estimated": state.tokens_estimated,
        "cost": state.cost,
        "seconds": end.took.as_secs_f64(),
    })
}

/// The error of a tier that is not there.
fn no_tier(name: &str, tiers: &[AgentTier]) -> Failure {
    let known: Vec<_> = tiers.iter().map(|tier| tier.name.as_str()).collect();
    let known = match &known[..] {
        [] => "there is none: write `[[tiers]]` into $EISEN_DIR/config.toml".to_owned(),
        known => format!("there are {}", known.join(", ")),
    };
    Failure::Usage(anyhow!("there is no tier `{}`; {known}", plain(name)))
}

/// The folder that a command works in.
pub(super) fn folder(cwd: Option<&Path>) -> anyhow::Result<PathBuf> {
    let folder = match cwd {
        Some(folder) => folder.to_owned(),
        None => std::env::current_dir().context("there is no current folder")?,
    };
    folder.canonicalize().with_context(|| format!("no folder {}", folder.display()))
}

/// The git repository around a folder.
pub(super) fn repository(cwd: Option<&Path>) -> anyhow::Result<PathBuf> {
    let folder = folder(cwd)?;
    let top = folder.ancestors().find(|folder| folder.join(".git").exists());
    top.map(Path::to_owned).ok_or_else(|| {
        anyhow!(
            "{} is in no git repository: run it in one, or make one by `git init`",
            folder.display()
        )
    })
}
