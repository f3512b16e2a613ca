//! The routing task: owns the blocked accesses of the team, decides which are denied, held or
//! granted, and publishes them.

mod briefings;
mod decisions;
mod kernel;
mod owners;
mod preview;
pub(super) mod questions;
mod queue;
mod requests;
mod story;
mod waiters;
mod widening;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::kernel::{Counts, Stopped};
use self::questions::AskingMsg;
use self::requests::{asks_orchestrator, decided_by_rule, until_ms};
use self::story::Stories;
use super::board::{Board, BoardEntry, Briefing, Waiter};
use super::briefing::BriefingDraft;
use super::grants::Grants;
use super::lanes::LanePermit;
use super::owners::OwnerQuestion;
use super::rates::Rates;
use super::team_grants::TeamGrants;
use super::wait::{EndedWait, until};
use super::{Decider, Decision, Queued, Request, ResolveError, Rules, Settings, Settlement};
use crate::bus::{Bus, Demand};
use crate::model::{
    AgentId, BlockedAccess, BlockedId, BlockedStatus, Decide, OwnerAnswer, SessionId, SessionKey,
    TeamGrant, Topic, now_ms,
};
use crate::preview::SeenContent;
use crate::tasks::WaitGuard;
use crate::tracker::TrackerHandle;

#[derive(Debug)]
pub(super) enum RoutingMsg {
    Request {
        request: Request,
        reply: oneshot::Sender<Settlement>,
    },
    /// The reply is dropped if the access is not listed.
    Observed {
        request: Request,
        reply: oneshot::Sender<BlockedId>,
    },
    Incidental {
        request: Request,
        turn: u64,
        is_harmless: bool,
        reply: oneshot::Sender<bool>,
    },
    Intended(Request),
    TurnOver(SessionKey),
    Story {
        key: SessionKey,
        reply: oneshot::Sender<Vec<BlockedAccess>>,
    },
    CallFailed {
        key: SessionKey,
        call: Arc<str>,
    },
    Resolve {
        id: BlockedId,
        decision: Decision,
        by: Decider,
        /// The content to be written, as the decider saw it.
        seen: Option<SeenContent>,
        reply: oneshot::Sender<Result<BlockedAccess, ResolveError>>,
    },
    Grants(oneshot::Sender<Vec<TeamGrant>>),
    Revoke {
        grant: String,
        reply: oneshot::Sender<Result<TeamGrant, ResolveError>>,
    },
    List {
        status: Option<BlockedStatus>,
        reply: oneshot::Sender<Vec<BlockedAccess>>,
    },
    BeginOrchestrated(AgentId),
    EndOrchestrated {
        agent: AgentId,
        reply: oneshot::Sender<Vec<BlockedId>>,
    },
    Briefing(oneshot::Sender<Option<BriefingDraft>>),
    Briefed,
    BriefAgain,
    Note {
        agent: AgentId,
        line: String,
    },
    Notes {
        agent: AgentId,
        reply: oneshot::Sender<Vec<String>>,
    },
    Settle(oneshot::Sender<()>),
    OrchestratorSession(SessionId),
    Change(Rules),
    Forget(AgentId),
    Asking(AskingMsg),
    OwnerAnswered {
        id: BlockedId,
        answer: Result<(OwnerAnswer, String), String>,
    },
}

/// Bytes of the longest blocked path that is put on the heat map.
const LONGEST_ON_MAP: usize = 1024;

/// A message, with the lane permit that its sender holds until it is handled.
#[derive(Debug)]
pub(super) struct Envelope {
    pub(super) message: RoutingMsg,
    pub(super) permit: LanePermit,
}

impl From<RoutingMsg> for Envelope {
    fn from(message: RoutingMsg) -> Self {
        Self { message, permit: None }
    }
}

/// The state of routing.
pub(super) struct Task {
    settings: Settings,
    /// Subscribers of records.
    records: Demand,
    bus: Bus,
    tracker: TrackerHandle,
    board: Board,
    grants: Grants,
    counts: Counts,
    rates: Rates,
    stopped: Stopped,
    stories: Stories,
    /// Agents that work for the orchestrator: their running prompts for it, and the ids of accesses
    /// denied meanwhile.
    orchestrated: HashMap<AgentId, (usize, Vec<BlockedId>)>,
    orchestrator_session: SessionId,
    /// Messages of decisions that are still to be delivered to agents.
    notes: HashMap<AgentId, VecDeque<String>>,
    pending: FuturesUnordered<BoxFuture<'static, EndedWait>>,
    /// The number of the last waiter.
    last_waiter: u64,
    nudge: watch::Sender<u64>,
    /// Accesses that a person decides by a rule.
    queue: watch::Sender<Arc<[Queued]>>,
    asked: mpsc::Sender<OwnerQuestion>,
    /// The state that accesses hold while an agent waits for them.
    held: HashMap<BlockedId, HeldAccess>,
}

/// The state that an access holds while an agent waits for its decision.
struct HeldAccess {
    /// None: it waits as long as it takes.
    deadline: watch::Sender<Option<Instant>>,
    /// Cancels the question to the owner when it is dropped.
    question: Option<DropGuard>,
    /// The agent waits for the orchestrator agent.
    wait: Option<WaitGuard>,
}

/// The channels on which routing tells others.
pub(super) struct Outputs {
    /// Counts the accesses that came to wait for the orchestrator agent.
    pub(super) nudge: watch::Sender<u64>,
    pub(super) queue: watch::Sender<Arc<[Queued]>>,
    pub(super) asked: mpsc::Sender<OwnerQuestion>,
}

impl Task {
    pub(super) fn new(
        settings: Settings,
        bus: Bus,
        tracker: TrackerHandle,
        outputs: Outputs,
    ) -> Self {
        let Outputs { nudge, queue, asked } = outputs;
        Self {
            settings,
            records: bus.demand(Topic::Record),
            bus,
            tracker,
            board: Board::default(),
            grants: Grants::default(),
            counts: Counts::default(),
            rates: Rates::default(),
            stopped: Stopped::default(),
            stories: Stories::default(),
            orchestrated: HashMap::new(),
            orchestrator_session: SessionId::new(""),
            notes: HashMap::new(),
            pending: FuturesUnordered::new(),
            last_waiter: 0,
            nudge,
            queue,
            asked,
            held: HashMap::new(),
        }
    }

    pub(super) async fn run(
        mut self,
        mut messages: mpsc::Receiver<Envelope>,
        cancel: CancellationToken,
    ) {
        let granted = std::mem::take(&mut self.settings.granted);
        self.grants.team = TeamGrants::new(granted, self.settings.store.clone());
        let queued = std::mem::take(&mut self.settings.queued);
        self.requeue(queued);
        loop {
            let sweeps_due = self.sweeps_due();
            tokio::select! {
                () = cancel.cancelled() => return,
                Some(ended) = self.pending.next(), if !self.pending.is_empty() => {
                    self.wait_ended(&ended);
                }
                () = until(sweeps_due) => self.publish_sweeps(),
                envelope = messages.recv() => match envelope {
                    Some(Envelope { message, permit: _permit }) => {
                        if self.will_hold(&message) {
                            // What the agent said and called before is published first: it says why.
                            self.tracker.settled().await;
                        }
                        self.handle(message);
                    }
                    None => return,
                },
            }
        }
    }

    /// Whether an access will wait for a decision.
    fn will_hold(&self, message: &RoutingMsg) -> bool {
        let RoutingMsg::Request { request, .. } = message else { return false };
        let rule = self.rule(request);
        self.holds(request, rule) && !self.is_open(request, rule)
    }

    fn handle(&mut self, message: RoutingMsg) {
        // A dropped receiver is no error.
        match message {
            RoutingMsg::Request { request, reply } => self.request(request, reply),
            RoutingMsg::Observed { request, reply } => {
                if let Some(id) = self.observed(request) {
                    let _ = reply.send(id);
                }
            }
            RoutingMsg::Incidental { request, turn, is_harmless, reply } => {
                let _ = reply.send(self.record_incidental(request, turn, is_harmless));
            }
            RoutingMsg::Intended(request) => {
                let rule = self.rule(&request);
                if self.tried_before(&request).is_none() && !self.is_open(&request, rule) {
                    self.deny(request);
                }
            }
            RoutingMsg::TurnOver(key) => {
                self.turn_over(&key);
                self.note_turn_over(&key);
                self.stories.turn_over(&key);
            }
            RoutingMsg::Story { key, reply } => drop(reply.send(self.take_story(&key))),
            RoutingMsg::CallFailed { key, call } => self.call_failed(&key, &call),
            RoutingMsg::Resolve { id, decision, by, seen, reply } => {
                let _ = reply.send(self.resolve(&id, &decision, &by, seen));
            }
            RoutingMsg::List { status, reply } => {
                let _ = reply.send(self.list(status));
            }
            RoutingMsg::Grants(reply) => {
                let _ = reply.send(self.grants.team.list().cloned().collect());
            }
            RoutingMsg::Revoke { grant, reply } => {
                let _ = reply.send(self.grants.team.revoke(&grant));
            }
            RoutingMsg::BeginOrchestrated(agent) => {
                self.orchestrated.entry(agent).or_default().0 += 1;
            }
            RoutingMsg::EndOrchestrated { agent, reply } => {
                let _ = reply.send(self.end_orchestrated(&agent));
            }
            RoutingMsg::Briefing(reply) => {
                let _ = reply.send(self.briefing());
            }
            RoutingMsg::Briefed => self.shift_briefings(Briefing::Prompting, Briefing::Prompted),
            RoutingMsg::BriefAgain => self.shift_briefings(Briefing::Prompting, Briefing::Waiting),
            RoutingMsg::Note { agent, line } => self.add_note(agent, &line),
            RoutingMsg::Notes { agent, reply } => {
                let _ = reply.send(self.notes.remove(&agent).unwrap_or_default().into());
            }
            RoutingMsg::Settle(reply) => {
                let _ = reply.send(());
            }
            RoutingMsg::Asking(message) => self.asking(message),
            RoutingMsg::OwnerAnswered { id, answer } => self.owner_answered(&id, answer),
            RoutingMsg::Change(rules) => self.settings.rules = rules,
            RoutingMsg::Forget(agent) => {
                self.grants.forget(&agent);
                self.rates.forget(&agent);
                self.notes.remove(&agent);
                self.board.forget(&agent, &self.bus);
                self.publish_queue();
                self.forget_kernel(&agent);
            }
            RoutingMsg::OrchestratorSession(session) => {
                self.orchestrator_session = session;
                // The last session ended before it was briefed.
                self.shift_briefings(Briefing::Prompting, Briefing::Waiting);
            }
        }
    }

    fn denial(&self, id: &BlockedId, message: Option<String>) -> Settlement {
        let owners = self.board.get(id).map(|entry| entry.access.owners.clone());
        Settlement::Denied { id: id.clone(), owners: owners.unwrap_or_default(), message }
    }

    /// Records a new blocked access and publishes it.
    fn block(
        &mut self,
        request: Request,
        status: BlockedStatus,
        waiter: Option<Waiter>,
    ) -> BlockedId {
        let id = self.board.next_id();
        let rule = self.rule(&request);
        let is_pending = status == BlockedStatus::Pending;
        let gives_up = request.patience.map(|patience| Instant::now() + patience);
        let until_ms = is_pending.then(|| until_ms(self.deadline(rule), gives_up)).flatten();
        let access = BlockedAccess {
            id: id.clone(),
            mode: self.mode(&request.key),
            owners: self.owners(&request.path),
            orchestrator: self.orchestrator().filter(|_| asks_orchestrator(rule)),
            key: request.key,
            path: request.path,
            action: request.action,
            via: request.via,
            status,
            sweep: None,
            harmless: false,
            denied_by: request.denied_by,
            rule,
            decided_by: (status == BlockedStatus::Denied).then(|| decided_by_rule(rule)).flatten(),
            message: None,
            owner_answer: None,
            reason: request.reason,
            tool_call: request.call,
            offered: None,
            until_ms,
            ended: None,
            completed: false,
            timestamp_ms: now_ms(),
        };
        self.add_to_story(&access.key, &id);
        // Longer paths would only fill the port's backlog.
        if access.path.len() <= LONGEST_ON_MAP {
            self.tracker.blocked(&access.key, access.path.clone());
        }
        self.put_on_board(BoardEntry {
            access,
            scope: request.scope,
            grantable: request.grantable,
            decided: false,
            sessions: Vec::new(),
            briefing: Briefing::None,
            gives_up,
            over: None,
            wanted: None,
            waiters: waiter.into_iter().collect(),
        });
        self.board.want(&id, request.wanted);
        self.publish_blocked(&id);
        if status == BlockedStatus::Pending && rule.is_some_and(|it| it.decide == Decide::Person) {
            self.publish_queue();
        }
        id
    }

    fn owners(&self, path: &str) -> Vec<AgentId> {
        let owners = self.settings.rules.owners.iter().filter(|(_, zone)| zone.owns(path));
        owners.map(|(agent, _)| agent.clone()).collect()
    }
}
