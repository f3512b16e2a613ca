//! Requests to the task that changes a running team, and its answers.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::config::AgentTable;
use crate::failover::setbacks::{Move, SetBackAt};
use crate::model::{AgentId, AgentStatus, Order, TimestampMs};
use crate::runs::{RunId, RunSpec, RunState};
use crate::serve::{self, HelperEnd, NewHelper, NewMember, Refused};
use crate::supervisor::Roster;
use crate::wire::Reloaded;

/// Capacity of the queue of changes; past that, senders wait.
pub(crate) const WAITING: usize = 16;

/// A change of the team requested over the port.
pub(crate) enum TeamCommand {
    Reload(Reply<Reloaded>),
    Add(AgentTable, Reply<AgentStatus>),
    Remove(AgentId, Reply<AgentStatus>),
    StartHelper(NewHelper, Reply<serve::StartedHelper>),
    /// With the run whose session it begins with.
    StartRun(RunId, AgentId, Box<RunSpec>, Option<Box<RunState>>, Reply<StartedHelper>),
    EndHelper(Box<HelperEnd>, Reply<()>),
    AddMember(NewMember, Reply<AgentStatus>),
    RemoveMember(AgentId, Reply<AgentStatus>),
    /// An agent rests, and is not restarted by itself.
    Rests(AgentId),
    /// The candidate of an agent that has a tier can't work.
    SetBack(Box<SetBack>, Option<Reply<Move>>),
    /// An agent that was set back has ended a turn in order.
    Works(AgentId),
    /// An agent of which no candidate could work is to try again. The answer says when the next one may.
    TryAgain(AgentId, Reply<Option<TimestampMs>>),
    /// How long an agent may show no progress; None: as long as it likes.
    Patience(AgentId, Reply<Option<Duration>>),
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, Refused>>;

/// Requests a change. It is applied even if the returned future is dropped.
pub(crate) async fn request<T>(
    changes: &mpsc::Sender<TeamCommand>,
    command: impl FnOnce(Reply<T>) -> TeamCommand,
) -> Result<T, Refused> {
    let (reply, answer) = oneshot::channel();
    let stopping = || Refused::new(409, "the team is stopping");
    changes.send(command(reply)).await.map_err(|_| stopping())?;
    answer.await.unwrap_or_else(|_| Err(stopping()))
}

/// Ends a helper. It is stopped first: other changes need not wait for that.
pub(crate) async fn end_helper(
    roster: &Roster,
    changes: &mpsc::Sender<TeamCommand>,
    end: HelperEnd,
) -> Result<(), Refused> {
    if let Some(helper) = roster.get(&end.agent) {
        let _ = helper.order(Order::Stop).await;
    }
    request(changes, |reply| TeamCommand::EndHelper(Box::new(end), reply)).await
}

/// A candidate could not work.
#[derive(Debug)]
pub(crate) struct SetBack {
    pub(crate) agent: AgentId,
    pub(crate) reason: String,
    pub(crate) of: SetBackAt,
}

/// The helper of a run.
pub(crate) struct StartedHelper {
    pub(crate) agent: AgentId,
    pub(crate) depth: u32,
    /// The run whose agent started it, or `TEAM/AGENT`.
    pub(crate) parent: Option<String>,
    pub(crate) command: Vec<String>,
    pub(crate) profile: Option<String>,
    pub(crate) model: Option<String>,
    /// The patterns of its zone.
    pub(crate) zone: Vec<String>,
    /// Patterns that were asked for, and reach out of its parent's zone.
    pub(crate) further: Vec<String>,
    /// The parts of its profile that its parent does not have.
    pub(crate) without: Vec<String>,
    pub(crate) workspace: PathBuf,
}
