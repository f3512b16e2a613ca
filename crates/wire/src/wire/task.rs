//! Owns a task that an agent was given: its line, and the methods about it.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NameOf;
use super::method::method;
use super::names::{AgentName, Giver, TeamId};
use super::tools::{TASK, tool};
use crate::model::TaskState;
use crate::runs::RefusedAccess;

method! {
    DelegateTask = "delegate_task": DelegateParams => Delegated;
    port: Lead, web: Control, token: Prompt(Named("agent")), waits: false, lasts: false, hub: One
}

method! {
    CheckTasks = "check_tasks": CheckTasksParams => Tasks;
    port: Reader, web: Read, token: Read(Team), waits: false, lasts: false, hub: All(Joined)
}

method! {
    WaitForTasks = "wait_for_tasks": WaitForTasksParams => Tasks;
    port: Reader, web: Read, token: Read(Team), waits: true, lasts: true, hub: One
}

method! {
    TaskResult = "task_result": TaskResultParams => TaskOutcome;
    port: Reader, web: Read, token: Read(Team), waits: false, lasts: false, hub: One
}

method! {
    CancelTask = "cancel_task": CancelTaskParams => TaskRow;
    port: Reader, web: Control, token: Prompt(Team), waits: false, lasts: false, hub: One
}

/// A task that an agent was given; each change of its state is another line.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskLine<'a> {
    pub id: TeamId<'a>,
    /// The giver: an agent, or `orchestrator` for a program or a person.
    pub by: Giver<'a>,
    /// The person or group that answers for it; left out if nobody is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Cow<'a, str>>,
    /// Whose it is.
    pub agent_id: AgentName<'a>,
    /// The session of its turn, once that has begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    pub state: NameOf<TaskState>,
    /// Why it ended so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    #[serde(default)]
    pub timestamp_ms: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DelegateParams {
    #[schemars(extend("x-tool" = tool("Id of the agent, as team_status lists it")))]
    pub agent: AgentName<'static>,
    /// The prompt that the agent gets.
    #[schemars(extend("x-tool" = tool("What the agent is to do: it sees only this text").most(TASK)))]
    pub task: String,
    /// Files that it is about, named in the prompt.
    #[serde(default)]
    #[schemars(extend("x-tool" = tool("Paths that the task is about").most(200)))]
    pub files: Vec<String>,
    /// A branch on which a helper of the agent works on it, in a worktree of its own, with the agent's profile, zone and
    /// budget. None: the agent itself does it.
    #[serde(default, deserialize_with = "super::fields::name")]
    #[schemars(extend("x-tool" = tool("A new branch, or an earlier one of your team: a helper of the agent works there in a worktree of its own, and commits").most(200)))]
    pub branch: Option<String>,
    /// Makes a repeated request the same request.
    #[serde(default, deserialize_with = "super::fields::name")]
    #[schemars(extend("x-tool" = tool("A name of yours: a repeated call with it begins no second task").most(256)))]
    pub key: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Delegated {
    pub id: TeamId<'static>,
    pub agent: AgentName<'static>,
    pub state: String,
    /// With `start_helper`: places and `$VARIABLES` that the helper's profile has and its parent has not. It does
    /// not get them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckTasksParams {
    /// All tasks that were not acknowledged if left out.
    #[serde(default)]
    #[schemars(extend("x-tool" = tool("Ids of tasks; all that you gave if left out").most(1000)))]
    pub ids: Vec<TeamId<'static>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WaitForTasksParams {
    #[schemars(extend("x-tool" = tool("Ids of the tasks").most(1000)))]
    pub ids: Vec<TeamId<'static>>,
    /// Until all have ended, or the first.
    #[serde(default, skip_serializing_if = "WaitMode::is_usual")]
    #[schemars(extend("x-tool" = tool("Until all have ended (if left out), or the first")))]
    pub mode: WaitMode,
    /// As an earlier answer had it: what changed before does not end the wait.
    #[schemars(extend("x-tool" = tool("As returned before: what changed until then does not end the wait")))]
    pub cursor: Option<u64>,
    /// At most 45.
    #[schemars(extend("x-tool" = tool("Seconds to wait, at most 45")))]
    pub timeout_s: Option<f64>,
}

#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitMode {
    #[default]
    All,
    First,
}

impl WaitMode {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_usual(&self) -> bool {
        matches!(self, Self::All)
    }
}

/// Tasks at one moment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Tasks {
    pub tasks: Vec<TaskRow>,
    /// For the next wait.
    pub cursor: u64,
    /// The wait is not over; it can go on.
    pub timed_out: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Task")]
pub struct TaskRow {
    pub id: TeamId<'static>,
    pub agent: AgentName<'static>,
    /// The person or group that answers for it; left out if nobody is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    pub state: NameOf<TaskState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskResultParams {
    #[schemars(extend("x-tool" = tool("Id of the task").at(0)))]
    pub id: TeamId<'static>,
    /// The result was received, and need not be kept.
    #[serde(default)]
    #[schemars(extend("x-tool" = tool("You have the result: it need not be kept").at(2)))]
    pub ack: bool,
    /// From 1; without it there is only the summary.
    #[schemars(extend("x-tool" = tool("Which page of the whole text to show").range(1, 1_000_000).at(1)))]
    pub page: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TaskResult")]
pub struct TaskOutcome {
    #[serde(flatten)]
    pub task: TaskRow,
    /// The session of its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The end of what the agent said.
    pub summary: String,
    /// Bytes of what it said.
    pub bytes: usize,
    /// The page of the agent's text that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Pages of what is kept of it.
    pub pages: usize,
    /// Accesses of its turn that were blocked, and not allowed by its end: 100 at most, for who may read the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<RefusedAccess>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CancelTaskParams {
    #[schemars(extend("x-tool" = tool("Id of the task")))]
    pub id: TeamId<'static>,
}
