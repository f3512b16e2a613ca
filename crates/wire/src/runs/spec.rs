//! Owns the request of a run. One type has the options of `run`, the
//! params of `start_run` and a task of a batch. Decides, one by one, which of them the port and a batch take.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{Attachment, RunBudget, bounds};

// A run as it is asked for. A comment describes a field for the port and, unless there is a `help`, for the
// command. `display_order` is for the help.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Args, Clone, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StartRunParams")]
pub struct RunSpec {
    /// The prompt that the agent gets.
    #[arg(skip)]
    pub task: String,
    /// Patterns, which are cut to the caller's zone; the caller's if left out.
    #[arg(
        long,
        value_name = "PATTERN",
        display_order = 40,
        help = "Files the agent may access: a glob relative to the repository (repeatable) [default: all]"
    )]
    #[serde(default)]
    pub zone: Vec<String>,
    /// Patterns that are denied, beside the caller's.
    #[arg(
        long,
        value_name = "PATTERN",
        display_order = 50,
        help = "Files it may not access, even if --zone allows them (repeatable)"
    )]
    #[serde(default)]
    pub deny: Vec<String>,
    /// The launch profile of its program; the caller's program if there is no `command` either.
    #[arg(
        long,
        value_name = "NAME",
        display_order = 10,
        help = "Launch profile of the agent [default: the first agent of a profile that is installed]"
    )]
    #[serde(default, deserialize_with = "name")]
    pub profile: Option<String>,
    /// Program and arguments, instead of the profile's.
    #[arg(
        last = true,
        value_name = "CMD ARGS",
        help = "The agent's command and arguments, instead of a profile's"
    )]
    #[serde(default)]
    pub command: Vec<String>,
    #[arg(
        long,
        value_name = "NAME",
        display_order = 60,
        help = "Model, by the agent's own name for it"
    )]
    #[serde(default, deserialize_with = "name")]
    pub model: Option<String>,
    /// The tier that its agent is taken from, instead of `profile`, `command` and `model`.
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["profile", "model", "command"],
        display_order = 20,
        help = "Take an agent of this tier that can work now, and the next one where that fails"
    )]
    #[serde(default, deserialize_with = "name")]
    pub tier: Option<String>,
    /// With `tier`: only the first candidate that can be taken.
    #[arg(
        long,
        requires = "tier",
        display_order = 30,
        help = "With --tier: try only the first agent that can be taken"
    )]
    #[serde(default)]
    pub no_failover: bool,
    /// Limits, within those of the caller.
    #[arg(skip)]
    #[serde(default)]
    pub budget: RunBudget,
    /// From now to the end of the turn.
    #[arg(
        long = "timeout",
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..),
        display_order = 110,
        help = "Seconds from the start to the end of the turn"
    )]
    pub timeout_s: Option<u64>,
    /// Files that go with the prompt, as the caller has read them.
    #[arg(skip)]
    #[serde(default)]
    pub files: Vec<Attachment>,
    /// A JSON Schema that the answer has to fit.
    #[arg(skip)]
    pub schema: Option<Value>,
    /// Go on with the session of a run below the caller that has ended: its id, that of the run, a
    /// beginning of either, or `last`.
    #[arg(
        long,
        value_name = "ID",
        conflicts_with_all = ["fork", "tier"],
        display_order = 70,
        help = "Go on with the session of an earlier run: its id, the run's, a beginning of either, or `last`"
    )]
    pub session: Option<String>,
    /// Begin with a copy of such a session.
    #[arg(
        long,
        value_name = "ID",
        conflicts_with = "tier",
        display_order = 80,
        help = "Begin with a copy of such a session, which stays as it is"
    )]
    pub fork: Option<String>,
    /// Work on this branch, in a worktree of its own beside the repository; both are made if need be
    #[arg(long, value_name = "NAME", conflicts_with = "worktree", display_order = 52)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// As --branch, with a name made from the prompt
    #[arg(long, display_order = 54)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worktree: bool,
    /// Where a new branch begins: a branch, a tag or a commit [default: where the repository is]
    #[arg(long, value_name = "COMMIT", display_order = 56)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// End with 7 where the turn ended well, and a write, a command or a connection that the agent meant was
    /// refused.
    #[arg(
        long,
        display_order = 135,
        help = "Exit with 7 if a write, command or connection that the agent intended was refused"
    )]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict_exit: bool,
    /// Answer once it has ended. If the caller leaves before, the run is ended.
    #[arg(skip)]
    #[serde(default)]
    pub wait: bool,
    /// Seconds to wait at most for a slot, the session and memory [default: as long as it takes]
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..),
        display_order = 120
    )]
    #[serde(skip)]
    pub slot_timeout: Option<u64>,
    /// Fail instead of waiting for a slot, the session or memory
    #[arg(long, conflicts_with = "slot_timeout", display_order = 130)]
    #[serde(skip)]
    pub no_wait: bool,
}

/// The session of an earlier run, as it is asked for.
#[derive(Clone, Debug)]
pub struct WantedSession {
    /// Its id, that of a run, a beginning of either, or `last`.
    pub name: String,
    pub is_fork: bool,
}

impl RunSpec {
    /// The session that the run begins with; None: a new one.
    pub fn earlier(&self) -> Option<WantedSession> {
        let is_fork = self.fork.is_some();
        let name = self.session.as_ref().or(self.fork.as_ref())?.clone();
        Some(WantedSession { name, is_fork })
    }

    /// Checks what an agent asks its team for; the error names the field, or the option that a team does not
    /// take.
    pub fn check_for_team(&self) -> Result<(), String> {
        let Self {
            task,
            zone,
            deny,
            profile,
            command,
            model,
            tier,
            no_failover,
            // The configuration of the helper bounds it.
            budget: _,
            timeout_s,
            files,
            schema,
            session,
            fork,
            strict_exit: _,
            wait: _,
            slot_timeout,
            no_wait,
            branch,
            worktree,
            base,
        } = self;
        let not_taken = [("--slot-timeout", slot_timeout.is_some()), ("--no-wait", *no_wait)];
        if let Some((option, _)) = not_taken.into_iter().find(|(_, is_given)| *is_given) {
            return Err(format!("an agent's team does not take {option}: leave it out"));
        }
        bounds::task(task)?;
        if base.is_some() && branch.is_none() && !worktree {
            return Err(
                "`base` says where a branch begins: it needs `branch` or `worktree`".to_owned()
            );
        }
        branch.iter().chain(base).try_for_each(|name| bounds::branch(name))?;
        bounds::patterns(zone, deny)?;
        bounds::command(command)?;
        let others = [profile, model, session, fork].into_iter().any(Option::is_some);
        match tier {
            Some(_) if others || !command.is_empty() => {
                let why = "`tier` can't be combined with profile, command, model, session or fork";
                return Err(why.to_owned());
            }
            None if *no_failover => {
                return Err("`no_failover` is for a run with a `tier`".to_owned());
            }
            _ => {}
        }
        if *timeout_s == Some(0) {
            return Err("`timeout_s` must be at least 1".to_owned());
        }
        bounds::files(files, task.len())?;
        schema.iter().try_for_each(bounds::schema)?;
        if session.is_some() && fork.is_some() {
            return Err("only one of `session` and `fork` can be given".to_owned());
        }
        session.iter().chain(fork).try_for_each(|name| bounds::session(name))
    }

    /// The content that the result of a task of a batch depends on, as a text: a task whose content has changed
    /// is another one. Fields that the file of a batch has no key for are no part of it.
    pub fn content(&self) -> String {
        let Self {
            task,
            zone,
            deny,
            profile,
            command: _,
            model,
            tier,
            no_failover: _,
            budget: _,
            timeout_s: _,
            files: _,
            schema: _,
            session: _,
            fork: _,
            strict_exit: _,
            wait: _,
            slot_timeout: _,
            no_wait: _,
            branch,
            worktree: _,
            base: _,
        } = self;
        let content = format!("{:?}", (task, profile, tier, model, zone, deny));
        // Of a task without one it is as before there were any.
        branch.iter().fold(content, |content, branch| content + branch)
    }
}

/// Reads an optional name; an empty one counts as missing.
fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.filter(|name| !name.is_empty()))
}

#[cfg(test)]
pub(super) mod tests;
