//! The relay: one task that passes each line on between an agent and its client, once the gate let
//! it through, and hands what it means to the tracker.

mod activities;
mod holding;
mod violations;

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{Abortable, BoxFuture};
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{unconstrained, yield_now};
use tokio::time::Instant;

use self::violations::{Turns, Violation};
use super::gatekeeper::{GateAction, HeldRequests};
use super::handle::{RelayHandle, RelayMsg};
use super::inlet::Inlet;
use super::outlet::Outlet;
use super::prevented::Hearsay;
use super::{Proxy, ProxyError, Streams, Waits};
use crate::extract::{Gate, Refusal};
use crate::line::{Direction, content, lines};
use crate::model::{Activity, Repeats, SessionId};
use crate::routing::Settlement;

/// Bytes of replies that may wait for an agent that does not read; past that the relay breaks off.
const MAX_STUFFED: usize = 64 * 1024 * 1024;

/// Bytes of lines after which others on this thread come first. The runtime counts reads, and one
/// read may hold thirty thousand lines: two agents that flood would keep the port waiting.
const MUCH: usize = 8 * 1024;

/// What a dead agent left and its client has not read: as much as its pipe may have held.
const LAST_WORDS: usize = 1024 * 1024;

/// How long what a dead agent left in its pipe is read. Its end is there as soon as all that it
/// started is dead too, unless a process that is not its descendant holds the pipe.
const DRAIN: Duration = Duration::from_secs(2);

/// How long an agent may live on after it closed its output: nothing can come of it any more.
const EXIT_GRACE: Duration = Duration::from_secs(5);

pub(super) fn start<AR, AW, CR, CW>(
    proxy: Proxy,
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
        proxy,
        to_agent: Outlet::new(streams.to_agent),
        to_client: Outlet::new(streams.to_client),
        waiting: HeldRequests::default(),
        hearsay: Hearsay::default(),
        decisions: FuturesUnordered::new(),
        cancelled: HashSet::new(),
        turns: Turns::default(),
        waits: None,
        activities: Vec::new(),
        dropped: Repeats::default(),
        news: Vec::new(),
    };
    (RelayHandle { mailbox }, relay.run(streams.from_agent, streams.from_client, messages, ended))
}

/// Owns everything between one agent and its client; one task, so that nothing is locked and the
/// order of lines is the order of reading.
struct Relay<AW, CW> {
    proxy: Proxy,
    to_agent: Outlet<AW>,
    to_client: Outlet<CW>,
    waiting: HeldRequests,
    hearsay: Hearsay,
    decisions: FuturesUnordered<Abortable<BoxFuture<'static, Decided>>>,
    /// Sessions whose turn the client cancelled: what they still ask for is not held.
    cancelled: HashSet<SessionId>,
    turns: Turns,
    /// While the agent waits for a decision, or for its client.
    waits: Option<Waits>,
    /// Reused between lines.
    activities: Vec<Activity>,
    dropped: Repeats,
    /// What the tracker is to hear once all lines that came together are read.
    news: Vec<Activity>,
}

/// What a relay waits for beside its streams.
enum Decided {
    Settled(u64, Settlement),
    /// Nobody awaits these any more; those that were denied at once are not among them by now.
    LetGo(Vec<u64>),
    /// What a tool call reported to have done; None if it may have.
    Observed(Option<Violation>),
}

impl<AW, CW> Relay<AW, CW>
where
    AW: AsyncWrite + Unpin + Send,
    CW: AsyncWrite + Unpin + Send,
{
    fn on_message(&mut self, message: RelayMsg) {
        match message {
            RelayMsg::Settle(settled) => {
                let _ = settled.send(());
            }
            RelayMsg::Reason { session, reply } => {
                let _ = reply.send(self.turns.reason(&session));
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
        let mut gone: Option<String> = None;
        let drained = tokio::time::sleep(Duration::MAX);
        tokio::pin!(drained);
        let result = loop {
            // Either the agent is dead and all it said is read, or nobody is left to hear it.
            if !agent.is_open() && gone.is_some() || !client.is_open() && self.to_client.is_broken()
            {
                break Ok(());
            }
            let done = tokio::select! {
                read = holding::after(self.release_excess(), from_agent.read_buf(agent.space())),
                    if agent.is_open() && self.to_client.has_room(if gone.is_some() { LAST_WORDS } else { 0 }) =>
                {
                    let is_much = read.as_ref().is_ok_and(|read| *read > MUCH);
                    let done = self.on_agent(&mut agent, read);
                    if is_much {
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
                // One that the runtime's budget puts off would come behind those that let go of it.
                Some(decision) = unconstrained(self.decisions.next()),
                    if !self.decisions.is_empty() =>
                {
                    decision.map_or(Ok(()), |decided| self.decided(decided))
                }
                Some(message) = messages.recv() => {
                    self.on_message(message);
                    Ok(())
                }
                reason = &mut ended, if gone.is_none() => {
                    gone = Some(reason.unwrap_or_else(|_| "the agent ended".to_owned()));
                    drained.as_mut().reset(Instant::now() + DRAIN);
                    Ok(())
                }
                () = &mut drained, if gone.is_some() || !agent.is_open() => {
                    break if gone.is_some() { Ok(()) } else { Err(ProxyError::Mute) };
                }
            };
            if done.is_err() {
                break done;
            }
            let waits = !self.waiting.is_empty() || self.proxy.extractor.awaits();
            if waits != self.waits.is_some() {
                self.waits = waits.then(|| self.proxy.vitals.wait());
            }
            self.flush_to_tracker();
            if !agent.is_open() && gone.is_none() && !waits_for_exit {
                waits_for_exit = true;
                drained.as_mut().reset(Instant::now() + EXIT_GRACE);
            }
        };
        let result = self.finish(result, gone).await;
        (result, (self.to_agent, from_agent))
    }

    /// Takes in what was read of the agent.
    fn on_agent(&mut self, agent: &mut Inlet, read: io::Result<usize>) -> Result<(), ProxyError> {
        if read.as_ref().is_ok_and(|read| *read > 0) {
            self.proxy.vitals.record_activity();
        }
        let block = agent.whole_lines(read)?;
        self.relay_to_client(block);
        match self.to_agent.queued() {
            queued if queued > MAX_STUFFED => Err(ProxyError::Stuffed { queued }),
            _ => Ok(()),
        }
    }

    /// Takes in what was read of the client; its end is the end of the agent's input.
    fn on_client(&mut self, client: &mut Inlet, read: io::Result<usize>) -> Result<(), ProxyError> {
        let block = client.whole_lines(read)?;
        self.relay_to_agent(block);
        if !client.is_open() {
            self.to_agent.close();
        }
        Ok(())
    }

    /// Settles what still waits, and writes what the client has yet to get.
    async fn finish(
        &mut self,
        result: Result<(), ProxyError>,
        gone: Option<String>,
    ) -> Result<(), ProxyError> {
        let result = result.and(self.decide_the_last().await);
        while self.to_client.has_work() {
            self.to_client.flush().await;
        }
        let reason = match (&result, gone) {
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

    /// Relays what the client said. Nothing here needs a verdict.
    fn relay_to_agent(&mut self, block: Option<Bytes>) {
        let Some(block) = block else { return };
        if !self.to_agent.is_open() {
            // It was not sent, so it tells nothing.
            return;
        }
        let block = self.proxy.extractor.without_late(block);
        self.to_agent.push(block.clone());
        for line in lines(&block) {
            self.observe(Direction::ToAgent, line);
        }
    }

    /// Relays what the agent said, save what the gate keeps back.
    fn relay_to_client(&mut self, block: Option<Bytes>) {
        let Some(block) = block else { return };
        self.proxy.extractor.report_updates(self.proxy.tracker.wants_updates());
        if self.proxy.gate.is_none() {
            self.to_client.push(block.clone());
            self.observe_all(&block);
            return;
        }
        // Those that pass one after the other are written as one.
        let (mut passed, mut end) = (0, 0);
        for line in lines(&block) {
            let start = end;
            end += line.len();
            // Line by line, since what one tells is what the next is judged by.
            let Some(kept_back) = self.keep_back(content(line), || block.slice(start..end)) else {
                self.on_activities();
                continue;
            };
            self.to_client.push(block.slice(passed..start));
            passed = end;
            self.flush_to_tracker();
            self.follow(*kept_back);
        }
        self.to_client.push(block.slice(passed..));
    }

    /// Returns what becomes of a line that does not pass as it is; reads along with one that does.
    fn keep_back(&mut self, line: &[u8], whole: impl Fn() -> Bytes) -> Option<Box<GateAction>> {
        let Proxy { extractor, gate, running, .. } = &mut self.proxy;
        let turns = &self.turns;
        let mut kept_back = None;
        let mut passes = |asked| {
            let verdict = match (asked, &gate) {
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
                        (verdict, _) => verdict,
                    }
                }
            };
            let passes = matches!(verdict, GateAction::Pass(_));
            kept_back = (!passes).then(|| Box::new(verdict));
            passes
        };
        extractor.gate_and_observe(line, &mut passes, &mut self.activities);
        kept_back
    }

    fn decided(&mut self, decided: Decided) -> Result<(), ProxyError> {
        match decided {
            Decided::LetGo(numbers) => self.release(&numbers),
            Decided::Observed(violation) => {
                return violation.map_or(Ok(()), |it| self.violated(it));
            }
            Decided::Settled(number, settlement) => {
                if let Some(held) = self.waiting.take(number) {
                    self.settled(held, settlement);
                }
            }
        }
        Ok(())
    }

    fn follow(&mut self, verdict: GateAction) {
        match verdict {
            GateAction::Pass(line) => {
                self.to_client.push(line.clone());
                self.observe(Direction::ToClient, &line);
            }
            GateAction::Drop { why, line, replies } => {
                if let Some(count) = self.dropped.count(why) {
                    let (agent, start) = (&self.proxy.agent, String::from_utf8_lossy(&line));
                    tracing::warn!(%agent, why, ?start, count, "dropped a line");
                }
                for reply in replies {
                    self.to_agent.push(reply);
                }
            }
            GateAction::Refuse(ask, refusal) => self.refuse(&ask, &refusal),
            GateAction::Hold(held) => self.hold(held),
        }
    }
}
