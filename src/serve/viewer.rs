//! The outgoing half of a connection: the only one that writes, so the order of events and answers
//! is decided here. Knows nothing of how requests are read.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::AsyncWrite;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, mpsc};

use super::gate::{Gate, Subject, Verdict};
use super::outgoing::Outgoing;
use super::server::Shared;
use super::wire;
use crate::bus::Published;
use crate::model::{
    AgentId, AgentStatus, BlockedAccess, BlockedStatus, SessionId, SessionKey, SessionMode,
    Snapshot, UsageReport,
};

/// What the reading half wants sent.
#[derive(Debug)]
pub(super) enum Command {
    /// An answer; what was on the bus before it goes first.
    Answer(Bytes),
    /// Fresh snapshots: of the sessions with that id, of all if None.
    Snapshots(Option<SessionId>),
    /// The stream begins now: the client has shown its token.
    Join,
    /// Something harmless, to find out whether the client still reads.
    Probe,
}

type Events = broadcast::Receiver<Arc<Published>>;

pub(super) struct Viewer<W> {
    shared: Arc<Shared>,
    outgoing: Outgoing<W>,
    commands: mpsc::Receiver<Command>,
    /// None until the client has joined.
    events: Option<Events>,
    gate: Gate,
}

impl<W: AsyncWrite + Unpin> Viewer<W> {
    pub(super) fn new(shared: Arc<Shared>, writer: W, commands: mpsc::Receiver<Command>) -> Self {
        let outgoing = Outgoing::new(writer, shared.limits.write_deadline);
        Self { shared, outgoing, commands, events: None, gate: Gate::default() }
    }

    /// Sends until the reading half is gone, then what waits, then the end.
    pub(super) async fn run(mut self) -> io::Result<()> {
        if !self.shared.guarded {
            self.join().await?;
        }
        loop {
            self.outgoing.flush().await?;
            tokio::select! {
                biased;
                command = self.commands.recv() => match command {
                    Some(command) => self.obey(command).await?,
                    None => break,
                },
                event = next(&mut self.events) => self.take(event).await?,
            }
            self.gather().await?;
        }
        self.catch_up().await?;
        self.outgoing.close().await
    }

    /// Takes what else waits, as far as it is worth one write.
    async fn gather(&mut self) -> io::Result<()> {
        while !self.outgoing.is_full() {
            if let Ok(command) = self.commands.try_recv() {
                self.obey(command).await?;
            } else if let Some(event) = self.try_next() {
                self.take(event).await?;
            } else {
                break;
            }
        }
        Ok(())
    }

    async fn obey(&mut self, command: Command) -> io::Result<()> {
        match command {
            Command::Answer(line) => {
                // A turn's lines are on the bus before its answer is given.
                self.catch_up().await?;
                self.outgoing.push(line);
            }
            Command::Snapshots(session) => self.show_sessions(session).await?,
            Command::Join => self.join().await?,
            Command::Probe => {
                for status in self.shared.team.agents() {
                    self.show_agent(&status);
                }
            }
        }
        Ok(())
    }

    async fn join(&mut self) -> io::Result<()> {
        // First the subscription, then the state: what happens in between comes twice, and the
        // gate tells.
        self.events = Some(self.shared.bus.subscribe());
        self.show_all().await
    }

    /// Takes what is on the bus at this moment.
    async fn catch_up(&mut self) -> io::Result<()> {
        for _ in 0..self.waiting() {
            let Some(event) = self.try_next() else { break };
            self.take(event).await?;
        }
        Ok(())
    }

    async fn take(&mut self, event: Result<Arc<Published>, u64>) -> io::Result<()> {
        match event {
            Ok(published) => {
                // Encoded by whichever client comes first, and shared.
                let line = published.encoded.get_or_init(|| wire::event(&published.event));
                match self.gate.judge(&published.event, line) {
                    Verdict::Send => self.outgoing.push(line.clone()),
                    Verdict::Drop => {}
                    Verdict::Resync => self.show_all().await?,
                }
            }
            Err(missed) => {
                self.outgoing.push(wire::lagged(missed));
                self.show_all().await?;
            }
        }
        if self.outgoing.is_full() { self.outgoing.flush().await } else { Ok(()) }
    }

    /// Shows the client everything anew: after that it owes nothing to what it was sent before.
    async fn show_all(&mut self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let snapshots = shared.sources.snapshots().await;
        let gone = self.gate.retain(&snapshots);
        if snapshots.is_empty() {
            // The tracker ended; a client's first line is a snapshot all the same.
            self.outgoing.push(wire::snapshot(&unknown(SessionId::new(""))));
        }
        for snapshot in &snapshots {
            self.show_snapshot(snapshot).await?;
        }
        for snapshot in &gone {
            self.outgoing.push(wire::snapshot(snapshot));
        }
        for status in shared.team.agents() {
            self.show_agent(&status);
        }
        for report in shared.sources.usages().await {
            self.show_usage(&report);
        }
        for access in shared.sources.blocked(Some(BlockedStatus::Pending)).await {
            self.show_blocked(&access);
        }
        self.gate.doubt(self.waiting());
        Ok(())
    }

    async fn show_sessions(&mut self, session: Option<SessionId>) -> io::Result<()> {
        // No event is taken while the snapshots are: they are never older than what was sent.
        let mut snapshots = self.shared.sources.snapshots().await;
        if let Some(session) = session {
            snapshots.retain(|snapshot| snapshot.key.session == session);
            if snapshots.is_empty() {
                self.outgoing.push(wire::snapshot(&unknown(session)));
            }
        }
        for snapshot in &snapshots {
            self.show_snapshot(snapshot).await?;
        }
        self.gate.doubt(self.waiting());
        Ok(())
    }

    async fn show_snapshot(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        self.gate.show(snapshot);
        self.outgoing.push(wire::snapshot(snapshot));
        // Many large maps are not piled up; the deltas meanwhile wait on the bus.
        if self.outgoing.is_full() { self.outgoing.flush().await } else { Ok(()) }
    }

    fn show_agent(&mut self, status: &AgentStatus) {
        self.tell(Subject::Agent(status.agent.clone()), wire::agent(status));
    }

    fn show_usage(&mut self, report: &UsageReport) {
        self.tell(Subject::Usage(report.key.clone()), wire::usage(report));
    }

    fn show_blocked(&mut self, access: &BlockedAccess) {
        self.tell(Subject::Blocked(access.id.clone()), wire::blocked(access));
    }

    fn tell(&mut self, subject: Subject, line: Bytes) {
        self.gate.tell(subject, line.clone());
        self.outgoing.push(line);
    }

    fn waiting(&self) -> usize {
        self.events.as_ref().map_or(0, Events::len)
    }

    fn try_next(&mut self) -> Option<Result<Arc<Published>, u64>> {
        match self.events.as_mut()?.try_recv() {
            Ok(published) => Some(Ok(published)),
            Err(TryRecvError::Lagged(missed)) => Some(Err(missed)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}

/// Waits for the next event, or for how many were missed; forever if there can be none.
async fn next(events: &mut Option<Events>) -> Result<Arc<Published>, u64> {
    if let Some(events) = events {
        match events.recv().await {
            Ok(published) => return Ok(published),
            Err(RecvError::Lagged(missed)) => return Err(missed),
            Err(RecvError::Closed) => {}
        }
    }
    std::future::pending().await
}

/// Stands for a session that nobody knows.
fn unknown(session: SessionId) -> Snapshot {
    Snapshot {
        key: SessionKey::new(AgentId::new(""), session),
        mode: SessionMode::SingleAgent,
        seq: 0,
        nodes: Vec::new(),
    }
}
