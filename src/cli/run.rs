//! `run`: one agent for one task; its answer on standard output.

mod request;
mod status;
mod task;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::json;
use tokio::sync::watch;
use toml::Table;

use self::status::StatusLine;
use super::exit_codes::{NOT_STARTED, exit_code};
use super::output::{escape_controls, is_terminal, note, plain, print, write};
use super::{format, nested};
use crate::app::{self, Failure, RunEnd, RunOptions};
use crate::config::AgentTier;
use crate::config::installed::installed_profile;
use crate::config::one_agent::OneAgent;
use crate::runs::{EarlierSession, RunStatus};

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
  eisen-core run --session last \"And now the tests\"
  eisen-core run --schema count.json \"Count the modules\" | jq .count

Exit codes: 0 it succeeded, 1 the agent failed or gave no answer, 2 wrong usage, 3 max_tokens,
4 max_turn_requests, 5 refusal, 6 another stop reason, 124 its time was up, 125 the agent could not be
started, 130 interrupted, 137 killed.")]
pub(super) struct RunArgs {
    /// The prompt; `-` reads it from standard input
    #[arg(value_name = "PROMPT", required_unless_present = "prepared")]
    prompt: Option<String>,
    /// Launch profile of the agent [default: the first agent of a profile that is installed]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Take an agent of this tier that can work now, and the next one where that fails
    #[arg(long, value_name = "NAME", conflicts_with_all = ["profile", "model", "command"])]
    tier: Option<String>,
    /// With --tier: try only the first agent that can be taken
    #[arg(long, requires = "tier")]
    no_failover: bool,
    /// Files the agent may access: a glob relative to the repository (repeatable) [default: all]
    #[arg(long, value_name = "PATTERN")]
    zone: Vec<String>,
    /// Files it may not access, even if --zone allows them (repeatable)
    #[arg(long, value_name = "PATTERN")]
    deny: Vec<String>,
    /// Model, by the agent's own name for it
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Go on with the session of an earlier run: its id, the run's, a beginning of either, or `last`
    #[arg(long, value_name = "ID", conflicts_with_all = ["fork", "tier"])]
    session: Option<String>,
    /// Begin with a copy of such a session, which stays as it is
    #[arg(long, value_name = "ID", conflicts_with = "tier")]
    fork: Option<String>,
    /// A file that goes with the prompt: text, an image or another one that the agent takes (repeatable)
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// A JSON Schema that the answer has to fit; the agent has two tries
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Seconds from the start to the end of the turn
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    #[command(flatten)]
    waiting: WaitingArgs,
    /// A limit of `[agents.budget]`, such as `tokens=200000` or `cost=1.50` (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = budget)]
    budget: Vec<Table>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Run in the background, and print the run's id; `wait` and `result` take it
    #[arg(short, long, conflicts_with = "json")]
    detach: bool,
    /// Perform a run that was detached
    #[arg(long, value_name = "ID", hide = true, exclusive = true)]
    prepared: Option<String>,
    /// The agent's command and arguments, instead of a profile's
    #[arg(last = true, value_name = "CMD ARGS")]
    command: Vec<String>,
}

/// How long a run may wait until it starts.
#[derive(Args, Default, Debug)]
struct WaitingArgs {
    /// Seconds to wait at most for a slot, the session and memory [default: as long as it takes]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    slot_timeout: Option<u64>,
    /// Fail instead of waiting for a slot, the session or memory
    #[arg(long, conflicts_with = "slot_timeout")]
    no_wait: bool,
}

impl WaitingArgs {
    fn longest(&self) -> Option<Duration> {
        let seconds = if self.no_wait { Some(0) } else { self.slot_timeout };
        seconds.map(Duration::from_secs)
    }
}

impl RunArgs {
    pub(super) async fn run(self, cwd: Option<PathBuf>) -> Result<u8, Failure> {
        let above = app::team_above()?;
        if let Some(id) = &self.prepared {
            if above.is_some() {
                return Err(Failure::Usage(anyhow!("an agent performs no run that was prepared")));
            }
            return app::run_prepared(id).await.map(|end| exit_code(&end.state));
        }
        let prompt = request::prompt(self.prompt.as_deref().unwrap_or_default());
        let prompt = prompt.map_err(Failure::Usage)?;
        if let Some(team) = above {
            let is_json = self.json;
            let asked = self.below_an_agent(&prompt).map_err(Failure::Usage)?;
            return nested::run(&team, asked, |end| report(end, is_json)).await;
        }
        let (is_json, is_detached) = (self.json, self.detach);
        let Some(options) = self.options(prompt, cwd.as_deref())? else { return Ok(NOT_STARTED) };
        if is_detached {
            print(app::run_detached(options, |_| Ok(()))?)?;
            return Ok(0);
        }
        let progress = watch::Sender::default();
        let status = StatusLine::start(progress.subscribe());
        let end = app::run(options, progress).await;
        drop(status);
        let end = end?;
        report(&end, is_json)?;
        Ok(exit_code(&end.state))
    }

    /// What is to be run; None: there is no agent.
    pub(super) fn options(
        mut self,
        prompt: String,
        cwd: Option<&Path>,
    ) -> Result<Option<RunOptions>, Failure> {
        let workspace = repository(cwd).map_err(Failure::Usage)?;
        let attachments = request::attachments(&self.file).map_err(Failure::Usage)?;
        let schema = self.schema.as_deref().map(request::schema).transpose();
        let schema = schema.map_err(Failure::Usage)?;
        let begins_with = self.take_earlier(&workspace).map_err(Failure::Usage)?;
        let shared = app::shared_config(&folder(cwd).map_err(Failure::Usage)?)?;
        let (known, first) = match &self.tier {
            Some(name) => {
                let tier = shared.tier(name).ok_or_else(|| no_tier(name, &shared.tiers))?;
                (shared.known_with(tier), tier.candidates.first())
            }
            None => (shared.known(), None),
        };
        let named = self.profile.clone().or_else(|| Some(first?.profile.clone()));
        let profile = named.or_else(|| {
            let path =
                self.command.is_empty().then(|| std::env::var("PATH").unwrap_or_default())?;
            installed_profile(&path).map(str::to_owned)
        });
        if profile.is_none() && self.command.is_empty() {
            note(
                "no agent of a known profile is installed: docs/profiles.md has the list; or name a command after `--`",
            );
            return Ok(None);
        }
        let id = profile.clone().unwrap_or_else(|| "agent".to_owned());
        let agent = OneAgent {
            team: String::new(),
            workspace,
            id,
            profile,
            command: self.command,
            model: self.model,
            thinking: None,
            allowed: self.zone,
            denied: self.deny,
            budget: self.budget.into_iter().flatten().collect(),
            without_session: false,
            known,
        };
        let timeout = self.timeout.map(Duration::from_secs);
        let (tier, no_failover) = (self.tier, self.no_failover);
        Ok(Some(RunOptions {
            agent,
            tier,
            no_failover,
            prompt,
            attachments,
            schema,
            begins_with,
            timeout,
            slot_timeout: self.waiting.longest(),
        }))
    }

    /// The session that --session or --fork names. The run gets its agent.
    fn take_earlier(&mut self, workspace: &Path) -> anyhow::Result<Option<EarlierSession>> {
        let is_fork = self.fork.is_some();
        let Some(wanted) = self.session.take().or(self.fork.take()) else { return Ok(None) };
        let named = (self.profile.as_deref(), !self.command.is_empty());
        let earlier = request::earlier(&wanted, named, workspace)?;
        self.profile = earlier.profile;
        if self.command.is_empty() {
            self.command = earlier.command;
        }
        self.model = self.model.take().or(earlier.model);
        Ok(Some(EarlierSession { is_fork, ..earlier.session }))
    }

    /// What an agent asks its team for.
    fn below_an_agent(self, prompt: &str) -> anyhow::Result<serde_json::Value> {
        // All are named: what is new can be had from the team, or is refused here.
        let Self {
            prompt: _,
            profile,
            tier,
            no_failover,
            zone,
            deny,
            model,
            session,
            fork,
            file,
            schema,
            timeout,
            waiting,
            budget,
            json: _,
            detach,
            prepared: _,
            command,
        } = self;
        let options =
            [("--slot-timeout", waiting.slot_timeout.is_some()), ("--no-wait", waiting.no_wait)];
        if let Some((option, _)) = options.into_iter().find(|(_, is_given)| *is_given) {
            anyhow::bail!("the team of this agent gives its runs no {option}: leave it out");
        }
        // Read by this process, which can read no more than its agent.
        let files = request::attachments(&file)?;
        let schema = schema.as_deref().map(request::schema).transpose()?;
        Ok(json!({
            "task": prompt,
            "zone": zone,
            "deny": deny,
            "profile": profile,
            "command": command,
            "model": model,
            "tier": tier,
            "no_failover": no_failover,
            "budget": budget.into_iter().flatten().collect::<Table>(),
            "timeout_s": timeout,
            "files": files,
            "schema": schema,
            "session": session,
            "fork": fork,
            "wait": !detach,
        }))
    }
}

fn report(end: &RunEnd, is_json: bool) -> Result<(), Failure> {
    if is_json { print(json(end)) } else { show(end) }
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
    let tokens = state.tokens.map(|tokens| format!("{} tokens", format::tokens(tokens)));
    let costs = state.cost.iter().map(|(currency, cost)| format::money(*cost, currency));
    let took = format::duration(end.took);
    let parts: Vec<_> = tokens.into_iter().chain(costs).chain([took]).collect();
    note(format_args!("run {}: {}", state.id, plain(&parts.join(", "))));
    Ok(())
}

fn json(end: &RunEnd) -> serde_json::Value {
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
        "profile": state.profile,
        "model": state.model,
        "tier": state.tier,
        "attempts": state.attempts,
        "tokens": state.tokens,
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

/// Reads a limit of a budget.
fn budget(text: &str) -> Result<Table, String> {
    const KEYS: [&str; 4] = ["tokens", "cost", "turns", "minutes"];
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, such as `tokens=200000`")?;
    if !KEYS.contains(&key) {
        return Err(format!("there is no limit `{key}`; there are {}", KEYS.join(", ")));
    }
    let number: toml::Value = match value.parse::<i64>() {
        Ok(number) if key != "cost" => number.into(),
        _ => value.parse::<f64>().map_err(|_| format!("`{value}` is no number"))?.into(),
    };
    Ok(Table::from_iter([(key.to_owned(), number)]))
}
