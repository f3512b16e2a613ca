//! The relay task: forwards the lines between an agent and its client, applies the gate's
//! decisions, and sends the activities it extracts to the tracker.

mod activities;
mod budgets;
mod held_requests;
mod loops;
mod violations;

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{Abortable, BoxFuture};
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{unconstrained, yield_now};
use tokio::time::Instant;

use self::activities::MERGE_TIME;
use self::loops::Looping;
use self::violations::{RunningTurns, Violation};
use super::gatekeeper::{GateAction, HeldRequests};
use super::handle::{RelayHandle, RelayMsg};
use super::inlet::Inlet;
use super::outlet::Outlet;
use super::prevented::UnconfirmedAccesses;
use super::{Proxy, ProxyError, Streams, Waits};
use crate::budget::BudgetStanding;
use crate::conflicts::{Passage, Refused};
use crate::extract::{Gate, Refusal};
use crate::line::{Direction, content, lines};
use crate::model::{Activity, Repeats, SessionId};
use crate::routing::Settlement;

/// Bytes of replies that may wait for an agent that does not read; beyond this the relay fails.
const MAX_INPUT_BACKLOG: usize = 64 * 1024 * 1024;

/// Bytes of lines read at once after which the relay yields. The runtime's budget counts reads, and
/// one read can hold 30,000 lines, so flooding agents could starve the port.
const YIELD_AFTER: usize = 8 * 1024;

/// Bytes that may wait for the client while the output of a dead agent is read: at most what its
/// pipe held.
const REMAINING_OUTPUT: usize = 1024 * 1024;

/// How long the output of a dead agent is still read. The pipe ends with the agent's last
/// descendant, unless an unrelated process holds it open.
const DRAIN: Duration = Duration::from_secs(2);

/// How long an agent may live after it closed its output, when it can do nothing more.
const EXIT_GRACE: Duration = Duration::from_secs(5);

impl Proxy {
    /// Starts relaying. `ended` reports that the agent's process has ended, and why; the future
    /// then completes once the agent's remaining output is delivered. When the client's side ends,
    /// the agent's standard input is closed and its output is still relayed.
    ///
    /// The agent's streams are returned with the result: dropping them may end the agent, so the
    /// caller first reports why the relay failed.
    pub fn start<AR, AW, CR, CW>(
        self,
        streams: Streams<AR, AW, CR, CW>,
        ended: oneshot::Receiver<String>,
    ) -> (RelayHandle, impl Future<Output = (Result<(), ProxyError>, impl Send)> + Send)
    where
        AR: AsyncRead + Unpin + Send,
        AW: AsyncWrite + Unpin + Send,
        CR: AsyncRead + Unpin + Send,
        CW: AsyncWrite + Unpin + Send,
    {
        let (mailbox, messages) = mpsc::channel(16);
        let relay = Relay {
            proxy: self,
            to_agent: Outlet::new(streams.to_agent),
            to_client: Outlet::new(streams.to_client),
            waiting: HeldRequests::default(),
            unconfirmed: UnconfirmedAccesses::default(),
            decisions: FuturesUnordered::new(),
            cancelled: HashSet::new(),
            turns: RunningTurns::default(),
            waits: None,
            activities: Vec::new(),
            dropped: Repeats::default(),
            unsent: Vec::new(),
            standing: BudgetStanding::default(),
            to_cut: Vec::new(),
            looping: Looping::default(),
        };
        (
            RelayHandle { mailbox },
            relay.run(streams.from_agent, streams.from_client, messages, ended),
        )
    }
}

/// The state of one relay. A single task owns it, so nothing is locked and lines keep their order.
struct Relay<AW, CW> {
    proxy: Proxy,
    to_agent: Outlet<AW>,
    to_client: Outlet<CW>,
    waiting: HeldRequests,
    unconfirmed: UnconfirmedAccesses,
    decisions: FuturesUnordered<Abortable<BoxFuture<'static, Decided>>>,
    /// Sessions whose turn the client cancelled: their further requests are not held.
    cancelled: HashSet<SessionId>,
    turns: RunningTurns,
    /// How the agent stands with its budgets.
    standing: BudgetStanding,
    /// Sessions whose turn is to end, and why.
    to_cut: Vec<(SessionId, Arc<str>)>,
    looping: Looping,
    /// Held while the agent waits for a decision or for its client.
    waits: Option<Waits>,
    /// Reused between lines.
    activities: Vec<Activity>,
    dropped: Repeats,
    /// Activities to be sent to the tracker once a whole block of lines is read.
    unsent: Vec<Activity>,
}

/// The result of a future that a relay awaits beside its streams.
enum Decided {
    Settled(u64, Settlement),
    /// A write that waited for a lock has it, or is refused.
    Unlocked(u64, Result<Passage, Refused>),
    /// These requests were cancelled; those that routing denied at once are settled already.
    Released(Vec<u64>),
    /// A completed tool call that reached outside the zone; `None` if it was allowed.
    Observed(Option<Violation>),
}

impl<AW, CW> Relay<AW, CW>
where
    AW: AsyncWrite + Unpin + Send,
    CW: AsyncWrite + Unpin + Send,
{
    fn on_message(&mut self, message: RelayMsg) -> Result<(), ProxyError> {
        match message {
            RelayMsg::Stand(standing) => return self.stand(standing),
            RelayMsg::Overdue => return self.find_ignored(),
            RelayMsg::TakeNudge(reply) => {
                let _ = reply.send(self.looping.nudge.take());
            }
            RelayMsg::Settle(settled) => {
                self.flush_updates();
                let _ = settled.send(());
            }
            RelayMsg::TurnEnd { session, reply } => {
                let _ = reply.send(self.turns.end(&session));
            }
            RelayMsg::CloseAgent => {
                if let Some(running) = &self.proxy.running {
                    running.stop();
                }
                self.release(&self.waiting.all());
                self.to_agent.close();
            }
            RelayMsg::CatchUp => {
                self.proxy.extractor.catch_up(&mut self.activities);
                self.on_activities();
            }
        }
        Ok(())
    }

    async fn run<AR, CR>(
        mut self,
        mut from_agent: AR,
        mut from_client: CR,
        mut messages: mpsc::Receiver<RelayMsg>,
        mut ended: oneshot::Receiver<String>,
    ) -> (Result<(), ProxyError>, impl Send)
    where
        AR: AsyncRead + Unpin + Send,
        CR: AsyncRead + Unpin + Send,
    {
        let (mut agent, mut client) = (Inlet::new("the agent"), Inlet::new("the client"));
        let mut waits_for_exit = false;
        let mut exit_reason: Option<String> = None;
        let drained = tokio::time::sleep(Duration::MAX);
        let (mut merges, updates_due) = (false, tokio::time::sleep(MERGE_TIME));
        tokio::pin!(drained, updates_due);
        let result = loop {
            // The agent is dead and its output read, or the client is gone.
            if !agent.is_open() && exit_reason.is_some()
                || !client.is_open() && self.to_client.is_broken()
            {
                break Ok(());
            }
            let done = tokio::select! {
                read = held_requests::after(self.release_excess(), from_agent.read_buf(agent.space())),
                    if agent.is_open() && self.to_client.has_room(if exit_reason.is_some() { REMAINING_OUTPUT } else { 0 }) =>
                {
                    let should_yield = read.as_ref().is_ok_and(|read| *read > YIELD_AFTER);
                    let done = self.on_agent(&mut agent, read);
                    if should_yield {
                        yield_now().await;
                    }
                    done
                }
                read = from_client.read_buf(client.space()),
                    if client.is_open() && self.to_agent.has_room(0) =>
                {
                    self.on_client(&mut client, read)
                }
                () = self.to_client.flush(), if self.to_client.has_work() => Ok(()),
                () = self.to_agent.flush(), if self.to_agent.has_work() => Ok(()),
                // Unconstrained: a settlement that the runtime's budget delays would come after the
                // release of its request.
                Some(decision) = unconstrained(self.decisions.next()),
                    if !self.decisions.is_empty() =>
                {
                    decision.map_or(Ok(()), |decided| self.decided(decided))
                }
                Some(message) = messages.recv() => self.on_message(message),
                reason = &mut ended, if exit_reason.is_none() => {
                    exit_reason = Some(reason.unwrap_or_else(|_| "the agent ended".to_owned()));
                    drained.as_mut().reset(Instant::now() + DRAIN);
                    Ok(())
                }
                () = &mut updates_due, if merges => {
                    self.flush_updates();
                    Ok(())
                }
                () = &mut drained, if exit_reason.is_some() || !agent.is_open() => {
                    break if exit_reason.is_some() { Ok(()) } else { Err(ProxyError::OutputClosed) };
                }
            };
            if let Some(doom) = self.looping.doom.take() {
                break Err(doom);
            }
            if done.is_err() {
                break done;
            }
            if let Some(permits) = self.proxy.gate.as_ref().and_then(|gate| gate.permits.as_ref()) {
                let (to_agent, to_client) = (self.to_agent.queued(), self.to_client.queued());
                permits.memory().relays(to_agent + to_client + client.torn() + agent.torn());
            }
            let waits = !self.waiting.is_empty() || self.proxy.extractor.awaits();
            if waits != self.waits.is_some() {
                self.waits = waits.then(|| self.proxy.vitals.wait());
            }
            self.flush_to_tracker();
            if self.proxy.extractor.merges() && !merges {
                updates_due.as_mut().reset(Instant::now() + MERGE_TIME);
            }
            merges = self.proxy.extractor.merges();
            if !agent.is_open() && exit_reason.is_none() && !waits_for_exit {
                waits_for_exit = true;
                drained.as_mut().reset(Instant::now() + EXIT_GRACE);
            }
        };
        let result = self.finish(result, exit_reason).await;
        (result, (self.to_agent, from_agent))
    }

    /// Relays the lines that a read from the agent completed.
    fn on_agent(&mut self, agent: &mut Inlet, read: io::Result<usize>) -> Result<(), ProxyError> {
        let has_read = read.as_ref().is_ok_and(|read| *read > 0);
        let block = agent.whole_lines(read)?;
        let is_part = block.is_none();
        self.relay_to_client(block);
        if has_read && (is_part || self.proxy.extractor.take_progress()) {
            self.proxy.vitals.record_activity();
        }
        match self.to_agent.queued() {
            queued if queued > MAX_INPUT_BACKLOG => Err(ProxyError::InputBacklog { queued }),
            _ => Ok(()),
        }
    }

    /// Relays the lines that a read from the client completed; its end closes the agent's input.
    fn on_client(&mut self, client: &mut Inlet, read: io::Result<usize>) -> Result<(), ProxyError> {
        let block = client.whole_lines(read)?;
        self.relay_to_agent(block);
        if !client.is_open() {
            self.to_agent.close();
        }
        Ok(())
    }

    /// Settles the requests that still wait, and writes the client's remaining output.
    async fn finish(
        &mut self,
        result: Result<(), ProxyError>,
        exit_reason: Option<String>,
    ) -> Result<(), ProxyError> {
        let result = result.and(self.decide_the_last().await);
        while self.to_client.has_work() {
            self.to_client.flush().await;
        }
        let reason = match (&result, exit_reason) {
            (Err(error), _) => error.to_string(),
            (Ok(()), reason) => reason.unwrap_or_default(),
        };
        self.proxy.extractor.end(&reason, &mut self.activities);
        self.dispatch();
        self.flush_to_tracker();
        if let Some(running) = &self.proxy.running {
            running.stop();
        }
        result
    }

    /// Relays the client's lines, which need no decision.
    fn relay_to_agent(&mut self, block: Option<Bytes>) {
        let Some(block) = block else { return };
        if !self.to_agent.is_open() {
            // Lines that are not sent cause no activities.
            return;
        }
        let block = self.proxy.extractor.without_late(block);
        self.count(Direction::ToAgent, &block);
        // A turn is known before its agent gets the prompt, so that its writes belong to it.
        let may_begin_turn = self.proxy.files.is_some() && names_prompt(&block);
        if !may_begin_turn {
            self.send_to_agent(block.clone());
        }
        self.proxy.extractor.report_updates(self.proxy.tracker.update_detail());
        for line in lines(&block) {
            self.observe(Direction::ToAgent, line);
        }
        if may_begin_turn {
            self.send_to_agent(block);
        }
    }

    /// Relays the agent's lines, except those that the gate withholds.
    fn relay_to_client(&mut self, block: Option<Bytes>) {
        let Some(block) = block else { return };
        self.count(Direction::ToClient, &block);
        let block = self.named(block);
        self.proxy.extractor.report_updates(self.proxy.tracker.update_detail());
        if self.proxy.gate.is_none() {
            self.to_client.push(block.clone());
            self.observe_all(&block);
            return;
        }
        // Consecutive lines that pass are written as one slice.
        let (mut passed, mut end) = (0, 0);
        for line in lines(&block) {
            let start = end;
            end += line.len();
            // Line by line: the activities of one line affect how the next is judged.
            let Some(kept_back) = self.keep_back(content(line), || block.slice(start..end)) else {
                self.on_activities();
                continue;
            };
            self.to_client.push(block.slice(passed..start));
            passed = end;
            self.flush_to_tracker();
            self.apply(*kept_back);
        }
        self.to_client.push(block.slice(passed..));
    }

    /// Gates one line and extracts its activities; returns the action if it does not pass
    /// unchanged.
    fn keep_back(&mut self, line: &[u8], whole: impl Fn() -> Bytes) -> Option<Box<GateAction>> {
        let Proxy { extractor, gate, running, .. } = &mut self.proxy;
        let turns = &self.turns;
        let mut kept_back = None;
        let mut passes = |asked| {
            let action = match (asked, &gate) {
                (Gate::Pass, _) => return true,
                (Gate::Ambiguous { why, replies }, _) => {
                    let line = whole();
                    GateAction::Drop { why, line: line.slice(..line.len().min(120)), replies }
                }
                (Gate::Ask(ask), None) => GateAction::Refuse(ask, Refusal::Cancelled),
                (Gate::Ask(ask), Some(gatekeeping)) => {
                    let refused = turns.is_cut(&ask).then(|| ask.clone());
                    match (gatekeeping.judge(whole(), ask, running.as_deref()), refused) {
                        (GateAction::Pass(_), Some(ask)) => {
                            GateAction::Refuse(ask, Refusal::Cancelled)
                        }
                        (action, _) => action,
                    }
                }
            };
            let passes = matches!(action, GateAction::Pass(_));
            kept_back = (!passes).then(|| Box::new(action));
            passes
        };
        extractor.gate_and_observe(line, &mut passes, &mut self.activities);
        kept_back
    }
}

/// Whether a prompt may be among the lines.
fn names_prompt(block: &[u8]) -> bool {
    memchr::memmem::find(block, b"session/prompt").is_some()
}
