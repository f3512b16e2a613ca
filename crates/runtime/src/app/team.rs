//! The port's interface to a team: of supervised agents (`up`), or of one observed agent.

use std::sync::Arc;

use tokio::io::DuplexStream;
use tokio::sync::{mpsc, oneshot};

use crate::agent::{self, AgentError, AgentHandle};
use crate::app;
use crate::app::members::Conditions;
use crate::app::rooms::Wiring;
use crate::app::streams::TeamStreams;
use crate::app::web_page::WebPage;
use crate::branches::port::TeamBranches;
use crate::branches::port::reviews::TeamReviews;
use crate::budget::Budgets;
use crate::client_host::{
    Cancelled, Continuation, HostError, PromptDraft, PromptOutcome, SessionChoices, WaitingPrompt,
};
use crate::config::{AgentTable, Config};
use crate::model::{
    AgentId, AgentState, AgentStatus, BudgetLimits, BudgetReport, How, Order, SessionId,
    StreamReplay, StreamReport, WebScope,
};
use crate::runs::{RunSpec, TeamRuns};
use crate::serve::{
    AgentDetails, BoxFuture, Fork, HelperEnd, NewHelper, NewMember, OpenedOnWeb, Prompt,
    RefusalKind, Refused, ReviewRequest, Rewind, StartedHelper, StartedRun, Team, WebLink,
    WebToken,
};
use crate::supervisor::Roster;
use crate::team_state::agent_owners::AgentOwners;
use crate::tracker::TrackerHandle;
use crate::turn::command;
use crate::turn::command::TeamCommand;
use crate::turn::nested::Workplace;
use crate::turn::{details, nested, retries};
use crate::undo::{self, Undoer};
use crate::wire::{
    BranchList, BranchReview, CheckedBranch, MergeBranchParams, MergedBranch,
    OpenPullRequestParams, PullRequest, Reloaded, TeamReport,
};

/// The agents of `up`.
pub(crate) struct Supervised {
    pub(crate) roster: Roster,
    pub(crate) tracker: TrackerHandle,
    pub(crate) owners: AgentOwners,
    pub(crate) changes: mpsc::Sender<TeamCommand>,
    /// None: no journal is kept.
    pub(crate) undoer: Option<Undoer>,
    pub(crate) budgets: Budgets,
    pub(crate) runs: TeamRuns,
    pub(crate) page: WebPage,
    pub(crate) streams: TeamStreams,
    pub(crate) reviews: TeamReviews,
    pub(crate) branches: TeamBranches,
}

/// The team as its port, its page and its lead act on it.
pub(crate) fn supervised(
    wiring: &Wiring,
    conditions: &Conditions,
    config: &Config,
    roster: Roster,
    changes: mpsc::Sender<TeamCommand>,
    undoer: Option<Undoer>,
    page: WebPage,
    streams: TeamStreams,
) -> Arc<Supervised> {
    conditions.providers.know(roster.clone());
    let (tracker, owners) = (wiring.tracker.clone(), wiring.owners.clone());
    let reviews = TeamReviews::of(config, &conditions.trees);
    let branches = TeamBranches::of(config, &conditions.trees);
    let (budgets, runs) = (conditions.budgets.clone(), conditions.runs.clone());
    Arc::new(Supervised {
        roster,
        tracker,
        owners,
        changes,
        undoer,
        budgets,
        runs,
        page,
        streams,
        reviews,
        branches,
    })
}

impl Supervised {
    fn agent(&self, id: &AgentId) -> Result<AgentHandle, Refused> {
        self.roster.get(id).ok_or_else(|| {
            let known: Vec<_> =
                self.roster.statuses().iter().map(|status| status.agent.to_string()).collect();
            let known = known.join(", ");
            Refused::new(404, format!("there is no agent `{id}`; there are: {known}"))
        })
    }

    /// Requests a change of the team. It is applied even if the returned future is dropped.
    async fn change<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, Refused>>) -> TeamCommand,
    ) -> Result<T, Refused> {
        command::request(&self.changes, command).await
    }
}

impl Team for Supervised {
    fn web_link(&self, opens: OpenedOnWeb) -> BoxFuture<'_, Result<WebLink, Refused>> {
        Box::pin(self.page.link(opens))
    }

    fn web_token(&self, scope: WebScope) -> BoxFuture<'_, Result<WebToken, Refused>> {
        Box::pin(self.page.token(scope))
    }

    fn web_revoke(&self, id: Option<String>) -> BoxFuture<'_, Result<usize, Refused>> {
        Box::pin(async move { self.page.revoke(id.as_deref()).await })
    }

    fn agents(&self) -> Vec<AgentStatus> {
        self.roster.statuses()
    }

    fn owner(&self, agent: &AgentId) -> Option<String> {
        self.owners.of(agent)
    }

    fn keeps(&self, agent: &AgentId) -> bool {
        self.roster.get(agent).is_some()
    }

    fn details(&self) -> BoxFuture<'_, Vec<AgentDetails>> {
        Box::pin(async {
            let mut all = details::of_supervised(self.roster.handles(), &self.tracker).await;
            for details in &mut all {
                details.owner = self.owners.of(&details.status.agent);
            }
            all
        })
    }

    fn streams(&self) -> Vec<StreamReport> {
        self.streams.reports()
    }

    fn attach_stream(&self, config: AgentTable) -> BoxFuture<'_, Result<StreamReport, Refused>> {
        Box::pin(self.streams.attach(config))
    }

    fn detach_stream(&self, name: String) -> BoxFuture<'_, Result<StreamReport, Refused>> {
        Box::pin(async move { self.streams.detach(&name).await })
    }

    fn replay_to_stream(
        &self,
        session: String,
        stream: String,
    ) -> BoxFuture<'_, Result<StreamReplay, Refused>> {
        Box::pin(async move { self.streams.replay(&session, &stream).await })
    }

    fn budgets(&self) -> Vec<BudgetReport> {
        self.budgets.reports()
    }

    fn raise_budget(
        &self,
        agent: Option<&AgentId>,
        totals: BudgetLimits,
    ) -> Result<BudgetReport, Refused> {
        if let Some(agent) = agent {
            self.agent(agent)?;
        }
        self.budgets
            .raise(agent, totals)
            .ok_or_else(|| Refused::new(404, "there is no such budget"))
    }

    fn review(&self, request: ReviewRequest) -> BoxFuture<'_, Result<BranchReview, Refused>> {
        Box::pin(self.reviews.perform(&self.roster, request))
    }

    fn branches<'a>(
        &'a self,
        agents: TeamReport<'a>,
    ) -> BoxFuture<'a, Result<BranchList, Refused>> {
        Box::pin(async move { self.branches.list(&agents).await })
    }

    fn merge_branch(
        &self,
        params: MergeBranchParams,
    ) -> BoxFuture<'_, Result<MergedBranch, Refused>> {
        Box::pin(self.branches.merge(params))
    }

    fn check_branch(&self, branch: String) -> BoxFuture<'_, Result<CheckedBranch, Refused>> {
        Box::pin(self.branches.check(branch))
    }

    fn open_pull_request(
        &self,
        params: OpenPullRequestParams,
    ) -> BoxFuture<'_, Result<PullRequest, Refused>> {
        Box::pin(self.branches.open_pull_request(params))
    }

    fn prompt(&self, prompt: Prompt) -> BoxFuture<'_, Result<PromptOutcome, Refused>> {
        Box::pin(async move {
            let agent = self.agent(&prompt.agent)?;
            let Prompt { session, blocks, by_orchestrator, by, said, .. } = prompt;
            let draft = PromptDraft::new(blocks, by);
            let prompt = agent::Prompt { session, draft, by_orchestrator, said };
            let turn = retries::prompt(&agent, &self.changes, prompt);
            turn.await.map_err(|error| refused(&error))
        })
    }

    fn cancel(
        &self,
        agent: AgentId,
        session: Option<SessionId>,
        queued: bool,
    ) -> BoxFuture<'_, Result<Cancelled, Refused>> {
        Box::pin(async move {
            self.agent(&agent)?.cancel(session, queued).await.map_err(|error| refused(&error))
        })
    }

    fn waiting(
        &self,
        agent: AgentId,
        session: Option<SessionId>,
    ) -> BoxFuture<'_, Result<Vec<WaitingPrompt>, Refused>> {
        Box::pin(async move {
            self.agent(&agent)?.waiting(session).await.map_err(|error| refused(&error))
        })
    }

    fn edit_prompt(
        &self,
        agent: AgentId,
        id: String,
        text: String,
    ) -> BoxFuture<'_, Result<WaitingPrompt, Refused>> {
        Box::pin(async move {
            self.agent(&agent)?.edit(id, text).await.map_err(|error| refused(&error))
        })
    }

    fn withdraw_prompt(
        &self,
        agent: AgentId,
        id: String,
    ) -> BoxFuture<'_, Result<WaitingPrompt, Refused>> {
        Box::pin(
            async move { self.agent(&agent)?.withdraw(id).await.map_err(|error| refused(&error)) },
        )
    }

    fn session_options(
        &self,
        agent: AgentId,
        session: Option<SessionId>,
    ) -> BoxFuture<'_, Result<SessionChoices, Refused>> {
        Box::pin(async move {
            self.agent(&agent)?.session_options(session).await.map_err(|error| refused(&error))
        })
    }

    fn set_session_option(
        &self,
        agent: AgentId,
        session: Option<SessionId>,
        option: String,
        value: String,
    ) -> BoxFuture<'_, Result<SessionChoices, Refused>> {
        Box::pin(async move {
            let chosen = self.agent(&agent)?.set_session_option(session, option, value).await;
            chosen.map_err(|error| match &error {
                AgentError::Host(HostError::NotOffered { .. }) => {
                    Refused::new(404, error.to_string())
                }
                error => refused(error),
            })
        })
    }

    fn new_session(&self, agent: AgentId) -> BoxFuture<'_, Result<SessionId, Refused>> {
        Box::pin(
            async move { self.agent(&agent)?.new_session().await.map_err(|error| refused(&error)) },
        )
    }

    fn session_beside(&self, agent: AgentId) -> BoxFuture<'_, Result<SessionId, Refused>> {
        Box::pin(async move {
            self.agent(&agent)?.session_beside().await.map_err(|error| refused(&error))
        })
    }

    fn fork(&self, fork: Fork) -> BoxFuture<'_, Result<(SessionId, How), Refused>> {
        Box::pin(async move {
            self.agent(&fork.agent)?.fork(fork.forking).await.map_err(|error| refused(&error))
        })
    }

    fn rewind(&self, rewind: Rewind) -> BoxFuture<'_, Result<bool, Refused>> {
        Box::pin(async move {
            let Rewind { key, continuation, commit } = rewind;
            let sessions = self.tracker.sessions().await.unwrap_or_default();
            let is_live = sessions.iter().any(|session| session.key == key);
            let agent = self.roster.get(&key.agent).filter(|_| is_live);
            // No agent has it open: only the journal changes.
            let Some(agent) = agent else { return commit.await.map(|()| false) };
            let is_open = agent
                .announced()
                .await
                .is_none_or(|(_, loads)| loads.iter().any(|load| load.session == key.session));
            if !is_open {
                return commit.await.map(|()| false);
            }
            let primes = matches!(continuation, Continuation::Anew(_));
            let rewound = agent.rewind(&key.session, continuation, commit).await;
            rewound.map_err(|error| refused(&error))?.map(|()| primes)
        })
    }

    fn attach(&self, agent: AgentId) -> BoxFuture<'_, Result<DuplexStream, Refused>> {
        Box::pin(async move { self.agent(&agent)?.attach().await.map_err(|error| refused(&error)) })
    }

    fn order(&self, agent: AgentId, order: Order) -> BoxFuture<'_, Result<AgentStatus, Refused>> {
        Box::pin(async move {
            let handle = self.agent(&agent)?;
            let is_out = |status: &AgentStatus| status.state == AgentState::Error;
            if order != Order::Stop && is_out(&handle.status()) {
                // An agent that has a tier takes the candidate that can work now.
                let _ = self.change(|reply| TeamCommand::TryAgain(agent, reply)).await;
                let status = handle.status();
                if !is_out(&status) {
                    return Ok(status);
                }
            }
            handle.order(order).await.map_err(|error| refused(&error))
        })
    }

    fn reload(&self) -> BoxFuture<'_, Result<Reloaded, Refused>> {
        Box::pin(self.change(TeamCommand::Reload))
    }

    fn add_agent(&self, config: AgentTable) -> BoxFuture<'_, Result<AgentStatus, Refused>> {
        Box::pin(self.change(|reply| TeamCommand::Add(config, reply)))
    }

    fn undo(&self, request: undo::UndoRequest) -> BoxFuture<'_, Result<undo::Outcome, Refused>> {
        Box::pin(async move {
            let Some(undoer) = &self.undoer else {
                let message = "the team keeps no journal: set `enabled = true` in `[journal]`";
                return Err(Refused::new(409, message));
            };
            undoer.run(request).await.map_err(|error| app::undo::refused(&error))
        })
    }

    fn start_helper(&self, helper: NewHelper) -> BoxFuture<'_, Result<StartedHelper, Refused>> {
        Box::pin(self.change(|reply| TeamCommand::StartHelper(helper, reply)))
    }

    fn end_helper(&self, end: HelperEnd) -> BoxFuture<'_, Result<(), Refused>> {
        Box::pin(command::end_helper(&self.roster, &self.changes, end))
    }

    fn start_run(
        &self,
        parent: AgentId,
        spec: RunSpec,
    ) -> BoxFuture<'_, Result<StartedRun, Refused>> {
        let place = Workplace {
            roster: self.roster.clone(),
            tracker: self.tracker.clone(),
            changes: self.changes.clone(),
            runs: self.runs.clone(),
        };
        Box::pin(nested::start(place, parent, spec))
    }

    fn add_member(&self, member: NewMember) -> BoxFuture<'_, Result<AgentStatus, Refused>> {
        Box::pin(self.change(|reply| TeamCommand::AddMember(member, reply)))
    }

    fn remove_member(&self, agent: AgentId) -> BoxFuture<'_, Result<AgentStatus, Refused>> {
        Box::pin(self.change(|reply| TeamCommand::RemoveMember(agent, reply)))
    }

    fn ready(&self, agent: AgentId) -> BoxFuture<'_, Result<(), Refused>> {
        Box::pin(async move {
            let mut status = self.agent(&agent)?.watch();
            let settled =
                status.wait_for(|it| it.state == AgentState::Ready || it.state.is_at_rest());
            let gone =
                || Refused { kind: RefusalKind::Gone, ..Refused::new(409, "the agent left") };
            let status = settled.await.map_err(|_| gone())?.clone();
            if status.state == AgentState::Ready {
                return Ok(());
            }
            let why = status.reason.unwrap_or_else(|| status.state.as_str().to_owned());
            Err(Refused::new(409, format!("agent `{agent}` did not start: {why}")))
        })
    }

    fn remove_agent(&self, agent: AgentId) -> BoxFuture<'_, Result<AgentStatus, Refused>> {
        Box::pin(self.change(|reply| TeamCommand::Remove(agent, reply)))
    }
}

fn refused(error: &AgentError) -> Refused {
    let code = match error {
        AgentError::Host(HostError::UnknownSession(_)) => 404,
        AgentError::NotReady { .. }
        | AgentError::Host(
            HostError::Withdrawn
            | HostError::Attached(_)
            | HostError::Editors(_)
            | HostError::Busy(_)
            | HostError::NoResume
            | HostError::Branches
            | HostError::NotWaiting(_)
            | HostError::Budget(_),
        )
        | AgentError::Stopping => 409,
        // The agent failed.
        AgentError::Host(_) => 500,
    };
    let kind = match error {
        AgentError::Host(HostError::Withdrawn) => RefusalKind::Withdrawn,
        AgentError::Host(HostError::Gone(_)) | AgentError::Stopping => RefusalKind::Gone,
        AgentError::NotReady { .. } | AgentError::Host(_) => RefusalKind::Other,
    };
    Refused { kind, ..Refused::new(code, error.to_string()) }
}
