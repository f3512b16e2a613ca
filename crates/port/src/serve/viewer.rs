//! Owns the outgoing half of a connection: its only writer, which decides the order of events and
//! answers.

mod readable;

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncWrite, DuplexStream, ReadHalf};
use tokio::sync::mpsc;
use tokio::task::yield_now;

use super::client_view::{ClientView, Delivery, EventSubject};
use super::command::ViewerCommand;
use super::outgoing::Outgoing;
use super::shared::Shared;
use super::sight::{Sight, UpdateSight};
use super::{Caller, attached, rights};
use crate::bus::{Received, Rendered, Subscriber};
use crate::model::{
    AgentStatus, BlockedAccess, BlockedStatus, Conflict, ConflictStatus, Event, SessionId,
    SessionKey, SessionMode, Snapshot, Topic, UsageReport,
};
use crate::serve::lines::GRAPH_IS_OFF;
use crate::serve::{Refused, lines};
use crate::tracker::Snapshots;
use crate::watch::GraphState;
use crate::wire::replayed;
use crate::wire::request::Filter;

pub(super) struct Viewer<W> {
    shared: Arc<Shared>,
    /// Whether the client must show a token before it joins.
    guarded: bool,
    outgoing: Outgoing<W>,
    commands: mpsc::Receiver<ViewerCommand>,
    /// None until the client has joined.
    events: Option<Subscriber>,
    filter: Filter,
    view: ClientView,
    /// The client's token, which opens the content of sessions.
    caller: Option<Caller>,
    /// The files whose contents it may see; as when it asked for what agents say.
    sight: UpdateSight,
    /// The agent that the client is attached to.
    attached: Option<ReadHalf<DuplexStream>>,
}

impl<W: AsyncWrite + Unpin> Viewer<W> {
    pub(super) fn new(
        shared: Arc<Shared>,
        guarded: bool,
        writer: W,
        commands: mpsc::Receiver<ViewerCommand>,
    ) -> Self {
        let outgoing =
            Outgoing::new(writer, shared.limits.write_deadline, shared.sources.is_replay());
        let (filter, view) = (Filter::default(), ClientView::default());
        let (events, caller, attached) = (None, None, None);
        let sight = UpdateSight::new(Sight::Nothing);
        Self { shared, guarded, outgoing, commands, events, filter, view, caller, sight, attached }
    }

    /// Sends until the reader is gone, then the waiting lines, then the end.
    pub(super) async fn run(mut self) -> io::Result<()> {
        if !self.guarded {
            self.join().await?;
        }
        loop {
            self.outgoing.flush().await?;
            tokio::select! {
                biased;
                command = self.commands.recv() => match command {
                    Some(command) => self.on_command(command).await?,
                    None => break,
                },
                received = next(&mut self.events) => self.take(received).await?,
            }
            self.gather().await?;
            if let Some(agent) = self.attached.take() {
                return attached::pass_on(self.outgoing, self.commands, agent).await;
            }
        }
        self.catch_up().await?;
        self.outgoing.close().await
    }

    /// Takes further ready lines, up to one write, and those that come while other tasks run: who
    /// publishes many would else wake this task for each.
    async fn gather(&mut self) -> io::Result<()> {
        let mut has_yielded = false;
        while !self.outgoing.is_full() {
            if let Some(received) = self.try_next() {
                self.take(received).await?;
            } else if let Ok(command) = self.commands.try_recv() {
                self.on_command(command).await?;
            } else if !std::mem::replace(&mut has_yielded, true) {
                yield_now().await;
                continue;
            } else {
                break;
            }
            has_yielded = false;
        }
        Ok(())
    }

    async fn on_command(&mut self, command: ViewerCommand) -> io::Result<()> {
        match command {
            ViewerCommand::Answer(line) => {
                // A turn's lines are on the bus before its answer.
                self.catch_up().await?;
                self.outgoing.push(line);
            }
            ViewerCommand::Replayed(event) => {
                let wants = |topic| self.events.as_ref().is_some_and(|events| events.wants(topic));
                if event.topic().is_none_or(wants) {
                    self.outgoing.push(replayed(event.line()));
                }
            }
            ViewerCommand::Snapshots(None) => {
                self.show_sessions().await?;
            }
            ViewerCommand::Snapshots(Some(session)) => self.show_session(session).await?,
            ViewerCommand::Filter(filter) => {
                self.filter = filter;
                self.refresh_sessions().await?;
            }
            ViewerCommand::Want(topic) => {
                if topic == Topic::SessionUpdate {
                    self.look().await;
                }
                if let Some(events) = &mut self.events {
                    events.want(topic);
                }
                if topic == Topic::Graph {
                    self.show_graph().await?;
                }
            }
            ViewerCommand::Known(caller) => {
                self.caller = Some(caller);
                self.look().await;
                let may_see = rights::may_see(self.caller.as_ref());
                if self.events.is_none() && may_see {
                    self.join().await?;
                } else if self.guarded && !may_see {
                    // An earlier token opened it.
                    self.events = None;
                }
            }
            ViewerCommand::Probe => {
                for status in self.shared.team.agents() {
                    self.show_agent(&status);
                }
                self.show_relayed();
            }
            ViewerCommand::Attach(answer, agent) => {
                self.outgoing.push(answer);
                (self.events, self.attached) = (None, Some(agent));
            }
        }
        Ok(())
    }

    async fn join(&mut self) -> io::Result<()> {
        // Subscribe before the snapshots: events in between come twice, and the view drops them.
        self.events = Some(self.shared.bus.subscribe());
        self.show_all().await
    }

    /// Takes all events that are on the bus now.
    async fn catch_up(&mut self) -> io::Result<()> {
        for _ in 0..self.events.as_ref().map_or(0, Subscriber::waiting) {
            let Some(received) = self.try_next() else { break };
            self.take(received).await?;
        }
        Ok(())
    }

    async fn take(&mut self, received: Received) -> io::Result<()> {
        match received {
            Received::Event(number, event) if self.passes(&event) => {
                let reduced = self.reduced(&event);
                let line = reduced.as_ref().unwrap_or_else(|| event.line());
                match self.view.judge(number, &event, line) {
                    Delivery::Send => self.outgoing.push(line.clone()),
                    Delivery::Drop => {}
                    Delivery::Resync => self.show_all().await?,
                }
            }
            Received::Event(..) => {}
            Received::Missed(missed) => {
                self.shared.traffic.lagged(missed);
                self.outgoing.push(lines::lagged(missed));
                self.show_all().await?;
                self.show_tasks();
            }
        }
        if self.outgoing.is_full() { self.outgoing.flush().await } else { Ok(()) }
    }

    /// Sends the client the whole state again.
    async fn show_all(&mut self) -> io::Result<()> {
        self.refresh_sessions().await?;
        let shared = Arc::clone(&self.shared);
        for status in shared.team.agents() {
            self.show_agent(&status);
        }
        let is_whole = self.sees_the_team();
        for report in shared.team.budgets() {
            if !rights::covers_event(self.caller.as_ref(), &Event::Budget(report.clone())) {
                continue;
            }
            let subject = EventSubject::Budget(report.agent.clone());
            self.send_state(subject, lines::budget(&report));
        }
        for report in shared.sources.usages().await {
            if self.filter.covers(&report.key, report.mode) {
                self.show_usage(&report);
            }
        }
        for access in shared.sources.blocked(Some(BlockedStatus::Pending)).await {
            if self.filter.covers_blocked(&access) {
                self.show_blocked(&access);
            }
        }
        let conflicts = shared.sources.conflicts();
        let waiting = conflicts.map(|it| it.list(Some(ConflictStatus::Pending)));
        for conflict in waiting.unwrap_or_default().into_iter().filter(|_| is_whole) {
            self.show_conflict(&conflict);
        }
        self.show_relayed();
        self.view.doubt(shared.bus.position());
        if self.events.as_ref().is_some_and(|events| events.wants(Topic::Graph)) {
            self.show_graph().await?;
        }
        Ok(())
    }

    /// Sends all sessions that the filter covers, and empty snapshots of those that ended.
    async fn refresh_sessions(&mut self) -> io::Result<()> {
        let live = self.show_sessions().await?;
        for snapshot in self.view.retain(&self.filter, live.iter()) {
            self.outgoing.push(lines::snapshot(&snapshot));
        }
        Ok(())
    }

    /// Sends all sessions that the filter covers, or an empty snapshot without any, since a
    /// client's first line and the answer to its request is always a snapshot.
    async fn show_sessions(&mut self) -> io::Result<Vec<SessionKey>> {
        let Snapshots { as_of, mut sessions } = self.shared.sources.snapshots().await;
        let covers = |key: &SessionKey| rights::covers(self.caller.as_ref(), &key.agent);
        sessions.retain(|snapshot| self.filter.covers(&snapshot.key, snapshot.mode));
        sessions.retain(|snapshot| covers(&snapshot.key));
        if sessions.is_empty() {
            let empty = match &self.filter {
                Filter::All => readable::unknown(SessionId::new(""), SessionMode::SingleAgent),
                Filter::Session(session) => self.not_live(session.clone()).await,
                Filter::Mode(mode) => readable::unknown(SessionId::new(""), *mode),
            };
            self.outgoing.push(lines::snapshot(&empty));
        }
        let mut live = Vec::with_capacity(sessions.len());
        for snapshot in sessions {
            live.push(snapshot.key.clone());
            self.show_snapshot(&snapshot, as_of).await?;
        }
        self.view.show_all(as_of);
        Ok(live)
    }

    /// Sends the sessions with that id, whatever the filter.
    async fn show_session(&mut self, session: SessionId) -> io::Result<()> {
        let Snapshots { as_of, mut sessions } = self.shared.sources.snapshots().await;
        sessions.retain(|snapshot| {
            let covers = rights::covers(self.caller.as_ref(), &snapshot.key.agent);
            covers && snapshot.key.session == session
        });
        if sessions.is_empty() {
            let empty = self.not_live(session).await;
            self.outgoing.push(lines::snapshot(&empty));
        }
        for snapshot in sessions {
            self.show_snapshot(&snapshot, as_of).await?;
        }
        Ok(())
    }

    /// Sends the code graph. An incomplete one is published on the bus later.
    async fn show_graph(&mut self) -> io::Result<()> {
        if !self.sees_the_team() {
            return Ok(());
        }
        match self.shared.sources.graph(false).await {
            GraphState::There { as_of, graph } => {
                self.view.show_graph(graph.seq, as_of);
                self.outgoing.push(graph.line(lines::graph).clone());
            }
            GraphState::Coming => {}
            GraphState::Off => {
                let error = Refused::new(404, GRAPH_IS_OFF);
                self.outgoing.push(lines::answer(None, Err(&error)));
            }
        }
        if self.outgoing.is_full() { self.outgoing.flush().await } else { Ok(()) }
    }

    async fn show_snapshot(&mut self, snapshot: &Rendered<Snapshot>, as_of: u64) -> io::Result<()> {
        self.view.show(snapshot, as_of);
        self.outgoing.push(snapshot.line(lines::snapshot).clone());
        // Flush, so that large maps don't pile up; deltas meanwhile wait on the bus.
        if self.outgoing.is_full() { self.outgoing.flush().await } else { Ok(()) }
    }

    /// Sends the tasks that were not acknowledged, if the client follows tasks.
    fn show_tasks(&mut self) {
        let shared = Arc::clone(&self.shared);
        let is_wanted = self.events.as_ref().is_some_and(|events| events.wants(Topic::Task));
        let Some(tasks) = shared.tasks.as_ref().filter(|_| is_wanted) else { return };
        for task in tasks.list(None, &[]).map(|found| found.tasks).unwrap_or_default() {
            if !rights::covers(self.caller.as_ref(), &task.agent) {
                continue;
            }
            self.outgoing.push(lines::task(&rights::shown_task(self.caller.as_ref(), &task)));
        }
    }

    fn show_agent(&mut self, status: &AgentStatus) {
        if !rights::covers(self.caller.as_ref(), &status.agent) {
            return;
        }
        self.send_state(EventSubject::Agent(status.agent.clone()), lines::agent(status));
    }

    fn show_usage(&mut self, report: &UsageReport) {
        if !rights::covers(self.caller.as_ref(), &report.key.agent) {
            return;
        }
        self.send_state(EventSubject::Usage(report.key.clone()), lines::usage(report));
    }

    fn show_blocked(&mut self, access: &BlockedAccess) {
        if !rights::covers(self.caller.as_ref(), &access.key.agent) {
            return;
        }
        let line = self.without_reason(access).unwrap_or_else(|| lines::blocked(access));
        self.send_state(EventSubject::Blocked(access.id.clone()), line);
    }

    /// Sends the state of teams elsewhere.
    fn show_relayed(&mut self) {
        let Some(teams) = self.shared.sources.elsewhere() else { return };
        for relayed in teams.standing() {
            let event = Event::Relayed(relayed);
            let Event::Relayed(relayed) = &event else { continue };
            let Some(subject) = relayed.subject.clone().filter(|_| self.passes(&event)) else {
                continue;
            };
            let line = self.reduced_line(relayed);
            let line = line.unwrap_or_else(|| Bytes::copy_from_slice(relayed.line.as_bytes()));
            self.send_state(EventSubject::Relayed(subject), line);
        }
    }

    fn show_conflict(&mut self, conflict: &Conflict) {
        let line = lines::conflict(conflict);
        self.send_state(EventSubject::Conflict(conflict.id.clone()), line);
    }

    fn send_state(&mut self, subject: EventSubject, line: Bytes) {
        self.view.record(subject, line.clone());
        self.outgoing.push(line);
    }

    fn try_next(&mut self) -> Option<Received> {
        self.events.as_mut()?.try_recv()
    }
}

/// Waits for the next event; for ever without a subscription.
async fn next(events: &mut Option<Subscriber>) -> Received {
    if let Some(events) = events
        && let Some(received) = events.recv().await
    {
        return received;
    }
    std::future::pending().await
}
