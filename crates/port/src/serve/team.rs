//! The interface by which the port steers the team, and what it asks for.

use std::pin::Pin;

use tokio::io::DuplexStream;
use tokio::sync::watch;

use crate::client_host::{
    Cancelled, Continuation, Forking, PromptOutcome, Said, SessionChoices, WaitingPrompt,
};
use crate::model::{
    AgentId, AgentStatus, BudgetLimits, BudgetReport, DecidedBy, How, Order, SessionId, SessionKey,
    StreamReplay, StreamReport, WebScope,
};
use crate::runs::RunSpec;
use crate::undo;
use crate::wire::{
    BranchList, BranchReview, CheckedBranch, CommentParams, GetReviewParams, MergeBranchParams,
    MergedBranch, OpenPullRequestParams, PullRequest, Reloaded, ReviewHunkParams, TeamReport,
};

use super::{
    AgentDetails, HelperEnd, NewHelper, NewMember, OpenedOnWeb, Refused, StartedHelper, StartedRun,
    WebLink, WebToken,
};

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The interface by which the port steers the team.
pub trait Team: Send + Sync + 'static {
    /// Every agent, in the configuration's order.
    fn agents(&self) -> Vec<AgentStatus>;

    /// Every agent with its details.
    fn details(&self) -> BoxFuture<'_, Vec<AgentDetails>>;

    /// The person who answers for an agent.
    fn owner(&self, _agent: &AgentId) -> Option<String> {
        None
    }

    /// Whether the team records the sessions of an agent in the registry.
    fn keeps(&self, agent: &AgentId) -> bool;

    /// The error of a method that the team does not implement.
    fn refusal(&self) -> Refused {
        Refused::new(409, "this team can't be controlled over the port")
    }

    /// The budgets that have limits, the team's first.
    fn budgets(&self) -> Vec<BudgetReport> {
        Vec::new()
    }

    /// Sets new totals of an agent's budget, or of the team's; those that are None stay.
    fn raise_budget(
        &self,
        _agent: Option<&AgentId>,
        _totals: BudgetLimits,
    ) -> Result<BudgetReport, Refused> {
        Err(self.refusal())
    }

    /// Lists the branches of tasks of the team's repository. `agents`: what those of the team do now.
    fn branches<'a>(
        &'a self,
        _agents: TeamReport<'a>,
    ) -> BoxFuture<'a, Result<BranchList, Refused>> {
        refuse(self)
    }

    /// Merges a branch into another, or tries that. It goes on even if the returned future is dropped.
    fn merge_branch(
        &self,
        _params: MergeBranchParams,
    ) -> BoxFuture<'_, Result<MergedBranch, Refused>> {
        refuse(self)
    }

    /// Runs the checks in the worktree of a branch. It goes on even if the returned future is dropped.
    fn check_branch(&self, _branch: String) -> BoxFuture<'_, Result<CheckedBranch, Refused>> {
        refuse(self)
    }

    /// Pushes a branch and opens a pull request. It goes on even if the returned future is dropped.
    fn open_pull_request(
        &self,
        _params: OpenPullRequestParams,
    ) -> BoxFuture<'_, Result<PullRequest, Refused>> {
        refuse(self)
    }

    /// Looks at a branch that has a worktree, or acts on it as a person said.
    fn review(&self, _request: ReviewRequest) -> BoxFuture<'_, Result<BranchReview, Refused>> {
        Box::pin(async { Err(self.refusal()) })
    }

    /// Answers once the turn has ended and its lines are on the bus. Dropping the future withdraws
    /// a prompt that was not sent yet. Prompts are queued in the order of the futures' first polls.
    fn prompt(&self, _prompt: Prompt) -> BoxFuture<'_, Result<PromptOutcome, Refused>> {
        refuse(self)
    }

    /// Cancels the running turn, and with `queued` the prompts behind it.
    fn cancel(
        &self,
        _agent: AgentId,
        _session: Option<SessionId>,
        _queued: bool,
    ) -> BoxFuture<'_, Result<Cancelled, Refused>> {
        refuse(self)
    }

    /// Lists the prompts that wait and can be changed, of one session or of all.
    fn waiting(
        &self,
        _agent: AgentId,
        _session: Option<SessionId>,
    ) -> BoxFuture<'_, Result<Vec<WaitingPrompt>, Refused>> {
        refuse(self)
    }

    /// Gives a prompt that waits another text.
    fn edit_prompt(
        &self,
        _agent: AgentId,
        _id: String,
        _text: String,
    ) -> BoxFuture<'_, Result<WaitingPrompt, Refused>> {
        refuse(self)
    }

    /// Takes back a prompt that waits.
    fn withdraw_prompt(
        &self,
        _agent: AgentId,
        _id: String,
    ) -> BoxFuture<'_, Result<WaitingPrompt, Refused>> {
        refuse(self)
    }

    /// Lists what an agent offers to choose in a session, and what is chosen.
    fn session_options(
        &self,
        _agent: AgentId,
        _session: Option<SessionId>,
    ) -> BoxFuture<'_, Result<SessionChoices, Refused>> {
        refuse(self)
    }

    /// Has an agent choose a value. It goes on even if the returned future is dropped.
    fn set_session_option(
        &self,
        _agent: AgentId,
        _session: Option<SessionId>,
        _option: String,
        _value: String,
    ) -> BoxFuture<'_, Result<SessionChoices, Refused>> {
        refuse(self)
    }

    fn new_session(&self, _agent: AgentId) -> BoxFuture<'_, Result<SessionId, Refused>> {
        refuse(self)
    }

    /// Opens a session in which an agent is asked beside its work: no prompt goes there by default.
    fn session_beside(&self, _agent: AgentId) -> BoxFuture<'_, Result<SessionId, Refused>> {
        refuse(self)
    }

    /// Opens a session that begins as a fork, and answers once its fork is on the bus.
    fn fork(&self, _fork: Fork) -> BoxFuture<'_, Result<(SessionId, How), Refused>> {
        refuse(self)
    }

    /// Sets a session back by its `commit`; true if its agent goes on with a session that gets the
    /// conversation as a document.
    fn rewind(&self, _rewind: Rewind) -> BoxFuture<'_, Result<bool, Refused>> {
        refuse(self)
    }

    /// Attaches an editor to an agent that is ready; the stream carries ACP. The end of either
    /// direction is the editor's or the agent's.
    fn attach(&self, _agent: AgentId) -> BoxFuture<'_, Result<DuplexStream, Refused>> {
        refuse(self)
    }

    /// Starts, stops or restarts the agent; answers with its state once that is under way.
    fn order(&self, _agent: AgentId, _order: Order) -> BoxFuture<'_, Result<AgentStatus, Refused>> {
        refuse(self)
    }

    /// Applies the changes of the configuration.
    fn reload(&self) -> BoxFuture<'_, Result<Reloaded, Refused>> {
        refuse(self)
    }

    /// Adds an agent by an `[[agents]]` table of the configuration, and keeps it over a restart of
    /// the team; answers with its state once its start is under way.
    fn add_agent(
        &self,
        _config: serde_json::Map<String, serde_json::Value>,
    ) -> BoxFuture<'_, Result<AgentStatus, Refused>> {
        refuse(self)
    }

    /// Undoes or redoes. It goes on even if the returned future is dropped.
    fn undo(&self, _request: undo::UndoRequest) -> BoxFuture<'_, Result<undo::Outcome, Refused>> {
        refuse(self)
    }

    /// Starts a helper; answers once its start is under way. It is gone after a restart of the team.
    fn start_helper(&self, _helper: NewHelper) -> BoxFuture<'_, Result<StartedHelper, Refused>> {
        refuse(self)
    }

    /// Ends a helper, and those that it started.
    fn end_helper(&self, _end: HelperEnd) -> BoxFuture<'_, Result<(), Refused>> {
        refuse(self)
    }

    /// Starts a run of an agent; answers once its start is under way.
    fn start_run(
        &self,
        _parent: AgentId,
        _spec: RunSpec,
    ) -> BoxFuture<'_, Result<StartedRun, Refused>> {
        refuse(self)
    }

    /// Adds an agent within what the orchestrator may add.
    fn add_member(&self, _member: NewMember) -> BoxFuture<'_, Result<AgentStatus, Refused>> {
        refuse(self)
    }

    /// Removes an agent that the orchestrator added; returns its last state.
    fn remove_member(&self, _agent: AgentId) -> BoxFuture<'_, Result<AgentStatus, Refused>> {
        refuse(self)
    }

    /// Waits until a starting agent takes prompts; an error is why it does not.
    fn ready(&self, _agent: AgentId) -> BoxFuture<'_, Result<(), Refused>> {
        refuse(self)
    }

    /// The streams, those of the configuration first.
    fn streams(&self) -> Vec<StreamReport> {
        Vec::new()
    }

    /// Adds a stream by a `[[streams]]` table of the configuration, and keeps it over a restart of the
    /// team. A name alone is that of a stream of the configuration that was detached.
    fn attach_stream(
        &self,
        _config: serde_json::Map<String, serde_json::Value>,
    ) -> BoxFuture<'_, Result<StreamReport, Refused>> {
        refuse(self)
    }

    /// Ends a stream, also over a restart of the team; returns how it stood.
    fn detach_stream(&self, _name: String) -> BoxFuture<'_, Result<StreamReport, Refused>> {
        refuse(self)
    }

    /// Delivers a session to a stream once more; answers once that is done.
    fn replay_to_stream(
        &self,
        _session: String,
        _stream: String,
    ) -> BoxFuture<'_, Result<StreamReplay, Refused>> {
        refuse(self)
    }

    /// Makes a link to the web page that is good once; serves the page from then on.
    fn web_link(&self, _opens: OpenedOnWeb) -> BoxFuture<'_, Result<WebLink, Refused>> {
        refuse(self)
    }

    /// Makes a token for programs that use the web server.
    fn web_token(&self, _scope: WebScope) -> BoxFuture<'_, Result<WebToken, Refused>> {
        refuse(self)
    }

    /// Revokes a token of the web by its id, or all credentials of the web; returns how many.
    fn web_revoke(&self, _id: Option<String>) -> BoxFuture<'_, Result<usize, Refused>> {
        refuse(self)
    }

    /// Removes an agent, also over a restart of the team; returns its last state.
    fn remove_agent(&self, _agent: AgentId) -> BoxFuture<'_, Result<AgentStatus, Refused>> {
        refuse(self)
    }
}

fn refuse<T: Send + 'static>(team: &(impl Team + ?Sized)) -> BoxFuture<'_, Result<T, Refused>> {
    Box::pin(std::future::ready(Err(team.refusal())))
}

#[derive(Debug)]
pub struct Prompt {
    pub agent: AgentId,
    pub session: Option<SessionId>,
    /// ACP content blocks.
    pub blocks: Vec<serde_json::Value>,
    /// The sender; None: the team itself.
    pub by: Option<DecidedBy>,
    /// The caller showed the orchestrator's token.
    pub by_orchestrator: bool,
    /// Receives the text of the turn as it grows.
    pub said: watch::Sender<Said>,
}

/// A session to open that continues another.
#[derive(Debug)]
pub struct Fork {
    pub agent: AgentId,
    pub forking: Forking,
}

/// A session to set back.
pub struct Rewind {
    /// The session may be one that no agent has open.
    pub key: SessionKey,
    pub continuation: Continuation,
    /// Records the rewind; its success sets the session back.
    pub commit: BoxFuture<'static, Result<(), Refused>>,
}

/// The call of a person in a review.
#[derive(Clone, Debug)]
pub enum ReviewRequest {
    Look(GetReviewParams),
    Decide(ReviewHunkParams),
    Comment(CommentParams),
}
