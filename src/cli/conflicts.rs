//! `conflicts`: lists conflicts of writes, and decides those that wait for a person.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::output::{plain, print, style};
use super::resolve::DecideArgs;
use super::table::{Cell, Table};
use super::team::{Which, failed, read};
use super::{Global, format};
use crate::model::ConflictStatus;
use crate::program::Failure;
use crate::serve::client::{ClientError, Connection, MethodAnswer};
use crate::wire::{
    AskedDecision, ConflictLine, Exact, ListConflicts, ListConflictsParams, LockRow,
    ResolveConflict, ResolveConflictParams,
};

/// Show writes of several agents to one file
///
/// Shows the last 10,000 conflicts, oldest first: lost updates, and writes that were held, denied or
/// merged since another agent had the file locked. A team looks for them if its configuration has
/// `[conflicts]`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core inbox conflicts                   all conflicts
  eisen-core inbox conflicts --status pending  writes that wait for a lock, or for a decision
  eisen-core inbox conflicts --locks           the locks that are held
  eisen-core inbox conflicts --allow c3        let a write that waits go on
  eisen-core inbox conflicts --deny c3 --message \"wait for api\"

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

impl ConflictsArgs {
    /// Lets the write of a conflict go on.
    pub(super) fn allowing(id: String, about: DecideArgs) -> Self {
        let DecideArgs { json, which, .. } = about;
        let (status, locks, deny, message) = (None, false, None, None);
        Self { status, locks, allow: Some(id), deny, message, json, which }
    }

    /// Denies the write of a conflict.
    pub(super) fn denying(id: String, message: Option<String>, about: DecideArgs) -> Self {
        Self { allow: None, deny: Some(id), message, ..Self::allowing(String::new(), about) }
    }

    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let target = self.which.find(global)?;
        let mut team = Connection::open(&target).await.map_err(failed)?;
        let allowed = self.allow.map(|id| (id, AskedDecision::Allow));
        if let Some((id, decision)) = allowed.or(self.deny.map(|id| (id, AskedDecision::Deny))) {
            let message = self.message;
            let decided = ResolveConflictParams { id: id.into(), decision, message, version: None };
            let conflict = team.ask::<ResolveConflict>(&decided).await.map_err(failed)?;
            return if self.json { print(conflict) } else { print(describe(&read(&conflict)?)) };
        }
        let params = ListConflictsParams { status: self.status.map(|it| Exact(it.known())) };
        let list = team.ask::<ListConflicts>(&params).await.map_err(failed)?;
        if self.json {
            return print(list);
        }
        let listed = read(&list)?;
        if listed.strategy.is_none() {
            return print("The team looks for no conflicts: its configuration has no [conflicts].");
        }
        let table = if self.locks { of_locks(&listed.locks) } else { of(&listed.conflicts) };
        // Paths are never truncated.
        print(table.lines(None).join("\n"))
    }
}

pub(super) fn of(conflicts: &[ConflictLine<'_>]) -> Table {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let mut table = Table::new(&["ID", ">AGE", "KIND", "STATUS", "AGENTS", "PATH"]);
    for conflict in conflicts {
        let age = now.saturating_sub(Duration::from_millis(conflict.timestamp_ms));
        table.row(vec![
            plain(&conflict.id).into(),
            format::duration(age).into(),
            plain(conflict.kind.as_str()).into(),
            Cell::styled(&plain(conflict.status.as_str()), style(conflict.status.as_str())),
            plain(&conflict.agents.join(",")).into(),
            plain(&conflict.path).into(),
        ]);
    }
    table
}

/// The conflicts that wait; None for those who may decide accesses alone.
pub(super) async fn pending(
    team: &mut Connection,
) -> Result<Option<MethodAnswer<ListConflicts>>, Failure> {
    let pending = ListConflictsParams { status: Some(Exact(ConflictStatus::Pending)) };
    match team.ask::<ListConflicts>(&pending).await {
        Err(ClientError::Refused { .. }) => Ok(None),
        list => list.map(Some).map_err(failed),
    }
}

fn of_locks(locks: &[LockRow]) -> Table {
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

pub(super) fn describe(conflict: &ConflictLine<'_>) -> String {
    let ConflictLine { id, status, message, decided_by, .. } = conflict;
    let (status, color) = (status.as_str(), style(status.as_str()));
    let by = match decided_by.as_deref() {
        Some("person") => " by a person".to_owned(),
        Some("web") => " by a person on the web".to_owned(),
        Some(by) => format!(" by {}", plain(by.strip_prefix("token:").unwrap_or(by))),
        None => String::new(),
    };
    format!("{}: {color}{}{color:#}{by}: {}", plain(id), plain(status), plain(message))
}

impl Status {
    fn known(self) -> ConflictStatus {
        match self {
            Self::Pending => ConflictStatus::Pending,
            Self::Allowed => ConflictStatus::Allowed,
            Self::Denied => ConflictStatus::Denied,
            Self::Expired => ConflictStatus::Expired,
            Self::Observed => ConflictStatus::Observed,
        }
    }
}
