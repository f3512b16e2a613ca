//! `conflicts`: lists conflicts of writes, and decides those that wait for a person.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde_json::{Value, json};

use super::output::{plain, print, style};
use super::table::{Cell, Table};
use super::team::{Which, failed};
use super::{Global, format};
use crate::app::Failure;
use crate::serve::client::Connection;

/// Show writes of several agents to one file
///
/// Shows the last 10,000 conflicts, oldest first: lost updates, and writes that were held, denied or
/// merged since another agent had the file locked. A team looks for them if its configuration has
/// `[conflicts]`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core conflicts                      all conflicts
  eisen-core conflicts --status pending     writes that wait for a lock, or for a decision
  eisen-core conflicts --locks              the locks that are held
  eisen-core conflicts --allow c3           let a write that waits go on
  eisen-core conflicts --deny c3 --message \"wait for api\"

Exit codes: 0 done, 1 refused or no such team, 2 wrong usage.")]
pub(super) struct ConflictsArgs {
    /// Only conflicts with this status
    #[arg(long, value_name = "STATUS")]
    status: Option<Status>,
    /// Show the locks that are held instead
    #[arg(long, conflicts_with = "status")]
    locks: bool,
    /// Let the write of this conflict go on
    #[arg(long, value_name = "ID", conflicts_with_all = ["status", "locks", "deny"])]
    allow: Option<String>,
    /// Deny the write of this conflict
    #[arg(long, value_name = "ID", conflicts_with_all = ["status", "locks"])]
    deny: Option<String>,
    /// With --deny: what the agent is told
    #[arg(long, value_name = "TEXT", requires = "deny")]
    message: Option<String>,
    /// Print JSON: an object with the strategy, the conflicts and the locks; with --allow and --deny
    /// the conflict
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Status {
    /// The write waits
    Pending,
    /// The write went on
    Allowed,
    /// The agent got an error
    Denied,
    /// The turn, request or agent ended first
    Expired,
    /// Detected after the write took place
    Observed,
}

#[derive(Deserialize)]
struct ListedConflicts {
    strategy: Option<String>,
    conflicts: Vec<Conflict>,
    locks: Vec<Lock>,
}

#[derive(Deserialize)]
pub(super) struct Conflict {
    pub(super) id: String,
    path: String,
    kind: String,
    agents: Vec<String>,
    pub(super) status: String,
    message: String,
    #[serde(default)]
    decided_by: Option<String>,
    #[serde(default)]
    timestamp_ms: u64,
}

#[derive(Deserialize)]
struct Lock {
    path: String,
    agent_id: String,
    fence: u64,
    claimed: bool,
    pid: Option<u32>,
}

impl ConflictsArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let target = self.which.find(global)?;
        let mut team = Connection::open(&target).await.map_err(failed)?;
        let decided = match (&self.allow, &self.deny) {
            (Some(id), _) => Some(json!({ "id": id, "decision": "allow" })),
            (None, Some(id)) => {
                Some(json!({ "id": id, "decision": "deny", "message": self.message }))
            }
            (None, None) => None,
        };
        if let Some(decision) = decided {
            let conflict = team.call("resolve_conflict", &decision).await.map_err(failed)?;
            return if self.json { print(conflict) } else { print(describe(&read(&conflict)?)) };
        }
        let status = self.status.map(Status::name);
        let list = team.call("list_conflicts", &json!({ "status": status })).await;
        let list = list.map_err(failed)?;
        if self.json {
            return print(list);
        }
        let listed: ListedConflicts = read(&list)?;
        if listed.strategy.is_none() {
            return print("The team looks for no conflicts: its configuration has no [conflicts].");
        }
        let table = if self.locks { of_locks(&listed.locks) } else { of(&listed.conflicts) };
        // Paths are never truncated.
        print(table.lines(None).join("\n"))
    }
}

fn of(conflicts: &[Conflict]) -> Table {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let mut table = Table::new(&["ID", ">AGE", "KIND", "STATUS", "AGENTS", "PATH"]);
    for conflict in conflicts {
        let age = now.saturating_sub(Duration::from_millis(conflict.timestamp_ms));
        table.row(vec![
            plain(&conflict.id).into(),
            format::duration(age).into(),
            plain(&conflict.kind).into(),
            Cell::styled(&plain(&conflict.status), style(&conflict.status)),
            plain(&conflict.agents.join(",")).into(),
            plain(&conflict.path).into(),
        ]);
    }
    table
}

fn of_locks(locks: &[Lock]) -> Table {
    let mut table = Table::new(&[">FENCE", "AGENT", ">PID", "KIND", "PATH"]);
    for lock in locks {
        table.row(vec![
            lock.fence.to_string().into(),
            plain(&lock.agent_id).into(),
            lock.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string()).into(),
            if lock.claimed { "claim" } else { "write" }.into(),
            plain(&lock.path).into(),
        ]);
    }
    table
}

pub(super) fn describe(conflict: &Conflict) -> String {
    let color = style(&conflict.status);
    let Conflict { id, status, message, decided_by, .. } = conflict;
    let by = match decided_by.as_deref() {
        Some("person") => " by a person".to_owned(),
        Some("web") => " by a person on the web".to_owned(),
        Some(by) => format!(" by {}", plain(by.strip_prefix("token:").unwrap_or(by))),
        None => String::new(),
    };
    format!("{}: {color}{}{color:#}{by}: {}", plain(id), plain(status), plain(message))
}

fn read<T: for<'de> Deserialize<'de>>(value: &Value) -> Result<T, Failure> {
    T::deserialize(value).map_err(|error| Failure::Run(error.into()))
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Observed => "observed",
        }
    }
}
