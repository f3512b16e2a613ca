//! Owns the task by which a plugin reads along with an agent that has a client of its own. To the
//! relay it is an extractor like ACP's; a relay waits for the plugin only where a zone asks for
//! that.

mod extractor;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use bytes::Bytes;
use eisen_plugin::Record;
use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::sleep;

pub use self::extractor::PluginExtractor;
use super::consulted::{Consulted, unread};
use super::reader::{CallError, CallOutput, InstanceCall, RecordReader};
use super::translation::{Heard, Intent, Transcript};
use crate::extract::{Ask, Extractor, Gate, Refusal};
use crate::line::{self, Direction, content, lines};
use crate::model::{Activity, SessionId, UpdateDetail};

/// Requests taken at once, and bytes of their lines that are read as one block.
const BATCH: usize = 1024;
const BLOCK: usize = 256 * 1024;

/// How long ungated lines are gathered. Reading them as one block costs a tenth.
const GATHER: Duration = Duration::from_millis(10);

/// A request of the relay.
enum ExtractorRequest {
    /// A line was relayed.
    Line(Direction, Bytes),
    /// Judge a line of the agent before it is relayed.
    Gate(Bytes, SyncSender<Gate>),
    Refuse(Ask, Refusal, SyncSender<Option<Bytes>>),
    Cancel(SessionId, SyncSender<Bytes>),
    End(String, SyncSender<()>),
}

/// State that the task and the relay share.
#[derive(Default)]
struct Common {
    activities: Mutex<Vec<Activity>>,
    /// Notified when there are new activities.
    news: Notify,
    /// Bytes of memory of the lines that wait to be read.
    unread: AtomicUsize,
    /// Notified when the relay stops waiting for the last lines.
    over: Notify,
    /// The agent waits for its client.
    awaits: AtomicBool,
    wants_updates: AtomicBool,
}

/// The task that reads one agent's lines.
pub struct ExtractorHost {
    plugin: Consulted,
    transcript: Transcript,
    /// Reads the transcript.
    acp: Box<dyn Extractor>,
    requests: mpsc::UnboundedReceiver<ExtractorRequest>,
    common: Arc<Common>,
    gated: bool,
    /// Closes when the task ends.
    _lives: SyncSender<()>,
}

/// The agent whose lines are read.
#[derive(Debug)]
pub struct AgentInfo {
    /// The plugin's name.
    pub name: String,
    pub cwd: PathBuf,
    /// None: the agent's own id.
    pub session: Option<String>,
    /// Whether its lines wait until the plugin has judged them.
    pub gated: bool,
}

/// Waits for new activities of an agent's plugin.
pub struct News(Arc<Common>);

impl News {
    pub async fn next(&self) {
        self.0.news.notified().await;
    }
}

impl ExtractorHost {
    /// `acp` reads the ACP that the plugin's records are translated to.
    pub fn new(
        agent: AgentInfo,
        reader: Box<dyn RecordReader>,
        acp: Box<dyn Extractor>,
        concern: watch::Sender<Option<String>>,
    ) -> (Self, PluginExtractor, News) {
        let (requesting, requests) = mpsc::unbounded_channel();
        let common = Arc::<Common>::default();
        let (lives, over) = sync_channel(0);
        let AgentInfo { name, cwd, session, gated } = agent;
        let host = Self {
            plugin: Consulted::new(reader, name.clone(), concern),
            transcript: Transcript::new(name, cwd, session),
            acp,
            requests,
            common: Arc::clone(&common),
            gated,
            _lives: lives,
        };
        let extractor = PluginExtractor::new(requesting, Arc::clone(&common), gated, over);
        (host, extractor, News(common))
    }

    /// Serves the relay until it ends. The error says why the plugin is given up earlier.
    pub async fn run(mut self) -> Result<(), String> {
        let common = Arc::clone(&self.common);
        let outcome = tokio::select! {
            outcome = self.serve() => outcome,
            () = common.over.notified() => Err("its plugin did not read its last lines in time".to_owned()),
        };
        if let Err(why) = &outcome {
            self.ends(why);
        }
        outcome
    }

    async fn serve(&mut self) -> Result<(), String> {
        let mut batch = Vec::new();
        while self.requests.recv_many(&mut batch, BATCH).await > 0 {
            if !self.gated && batch.len() < BATCH {
                sleep(GATHER).await;
                self.requests.recv_many(&mut batch, BATCH).now_or_never();
            }
            let mut block = Vec::new();
            for request in batch.drain(..) {
                if let ExtractorRequest::Line(_, line) = &request {
                    self.common.unread.fetch_sub(weight(line), Ordering::Relaxed);
                }
                match request {
                    ExtractorRequest::Line(Direction::ToClient, line) if block.len() < BLOCK => {
                        block.extend_from_slice(&line);
                    }
                    request => {
                        self.read(&std::mem::take(&mut block)).await?;
                        self.answer(request).await?;
                    }
                }
            }
            self.read(&block).await?;
        }
        Ok(())
    }

    /// Answers the relay, which may have stopped waiting.
    async fn answer(&mut self, request: ExtractorRequest) -> Result<(), String> {
        match request {
            ExtractorRequest::Line(Direction::ToClient, line) => self.read(&line).await?,
            ExtractorRequest::Line(Direction::ToAgent, line) => self.sent(&line).await?,
            ExtractorRequest::Gate(line, reply) => {
                let _ = reply.send(self.gate(&line).await?);
            }
            ExtractorRequest::Refuse(ask, refusal, reply) => {
                let mut said = None;
                if let Some(refused) = self.acp.refuse(&ask, &refusal) {
                    let lines = self.translate(&refused).await?;
                    for line in line::lines(&lines) {
                        self.sent(line).await?;
                    }
                    said = Some(lines);
                }
                let _ = reply.send(said);
            }
            ExtractorRequest::Cancel(session, reply) => {
                let cancelled = self.acp.cancel(&session);
                let _ = reply.send(self.translate(&cancelled).await?);
            }
            ExtractorRequest::End(reason, reply) => {
                self.ends(&reason);
                let _ = reply.send(());
            }
        }
        Ok(())
    }

    /// Ends the running turn and its calls.
    fn ends(&mut self, reason: &str) {
        let (mut heard, mut activities) = (Heard::new(), Vec::new());
        self.transcript.ends(&mut heard);
        for (direction, line) in &heard {
            self.acp.observe(*direction, content(line), &mut activities);
        }
        self.acp.end(reason, &mut activities);
        self.publish(activities);
    }

    /// Has the plugin read relayed lines.
    async fn read(&mut self, block: &[u8]) -> Result<(), String> {
        let mut rest = block;
        while !rest.is_empty() {
            let mut answer = self.plugin.call(InstanceCall::Read { block: rest }).await;
            rest = unread(rest, &mut answer);
            self.take(answer)?;
        }
        Ok(())
    }

    async fn sent(&mut self, line: &[u8]) -> Result<(), String> {
        let answer = self.plugin.call(InstanceCall::Sent { line: content(line) }).await;
        self.take(answer).map(drop)
    }

    /// Has the plugin read a line that is not relayed yet, again with a new instance if the first
    /// is lost.
    async fn gate(&mut self, line: &[u8]) -> Result<Gate, String> {
        let (Taken { asked, asks, .. }, is_known) = loop {
            let mut answer = self.plugin.call(InstanceCall::Read { block: line }).await;
            let left = unread(line, &mut answer);
            let is_known = answer.as_ref().is_ok_and(|answer| !answer.ungated);
            let taken = self.take(answer)?;
            if left.is_empty() {
                break (taken, is_known);
            }
        };
        match &asks[..] {
            [] if is_known && asked == 0 => Ok(Gate::Pass),
            [Gate::Ask(ask)] if is_known && asked == 1 => Ok(Gate::Ask(ask.clone())),
            _ => self.refuse_all(asks).await,
        }
    }

    /// Refuses each request of an ambiguous line.
    async fn refuse_all(&mut self, asks: Vec<Gate>) -> Result<Gate, String> {
        let mut replies = Vec::new();
        for ask in asks {
            let refusals = match ask {
                Gate::Ask(ask) => self.acp.refuse(&ask, &Refusal::Cancelled).into_iter().collect(),
                Gate::Ambiguous { replies, .. } => replies,
                Gate::Pass => Vec::new(),
            };
            for refusal in refusals {
                replies.push(self.translate(&refusal).await?);
            }
        }
        Ok(Gate::Ambiguous { why: "its plugin is not certain what it asks for", replies })
    }

    /// Translates the client's ACP line into lines in the agent's protocol.
    async fn translate(&mut self, line: &[u8]) -> Result<Bytes, String> {
        let mut activities = Vec::new();
        self.acp.observe(Direction::ToAgent, content(line), &mut activities);
        self.publish(activities);
        let mut lines = Vec::new();
        for intent in self.transcript.on_client_line(content(line)) {
            let (call, what) = match &intent {
                Intent::Deny { ask, why } => {
                    (InstanceCall::Deny { id: ask, why }, "answer what it asked")
                }
                Intent::Cancel => (InstanceCall::Cancel, "cancel its turn"),
                Intent::Start { .. } | Intent::Prompt { .. } | Intent::Allow { .. } => continue,
            };
            let mut answer = self.plugin.call(call).await;
            if let Err(CallError::Died(why)) = &answer {
                self.plugin.on_failure(why)?;
                answer = self.plugin.call(call).await;
            }
            let failed = answer.as_ref().err().map(ToString::to_string);
            let Taken { to_agent, .. } = self.take(answer)?;
            if failed.is_some() || to_agent.is_empty() {
                let why = failed.unwrap_or_else(|| "it puts no line for that".to_owned());
                return Err(format!("its plugin {} can't {what}: {why}", self.plugin.name()));
            }
            for line in to_agent {
                lines.extend(line);
                lines.push(b'\n');
            }
        }
        Ok(lines.into())
    }

    /// Processes the output of a call, and publishes its activities.
    fn take(&mut self, answer: Result<CallOutput, CallError>) -> Result<Taken, String> {
        let Self { plugin, transcript, acp, common, .. } = self;
        let wanted = common.wants_updates.load(Ordering::Relaxed);
        acp.report_updates(if wanted { UpdateDetail::Each } else { UpdateDetail::None });
        let (mut taken, mut activities) = (Taken::default(), Vec::new());
        let outcome = plugin.take(answer, |record| {
            match &record {
                Record::Line { body } => taken.to_agent.push(body.to_vec()),
                Record::Ask { .. } => taken.asked += 1,
                _ => {}
            }
            let mut heard = Heard::new();
            let outcome = transcript.on_record(record, &mut heard);
            for (direction, block) in &heard {
                for line in lines(block).map(content) {
                    if *direction == Direction::ToClient {
                        taken.asks.extend(asked(acp.gate(line)));
                    }
                    acp.observe(*direction, line, &mut activities);
                }
            }
            outcome
        });
        self.publish(activities);
        outcome.map(|()| taken)
    }

    fn publish(&self, activities: Vec<Activity>) {
        self.common.awaits.store(self.acp.awaits(), Ordering::Relaxed);
        if !activities.is_empty() {
            self.common.activities.lock().extend(activities);
            self.common.news.notify_one();
        }
    }
}

/// The output of a call, activities left out.
#[derive(Default)]
struct Taken {
    /// Number of the agent's requests, and each that the gate does not pass.
    asked: usize,
    asks: Vec<Gate>,
    to_agent: Vec<Vec<u8>>,
}

fn asked(gate: Gate) -> Option<Gate> {
    (!matches!(gate, Gate::Pass)).then_some(gate)
}

/// Bytes of memory of a waiting line.
fn weight(line: &[u8]) -> usize {
    line.len() + size_of::<ExtractorRequest>()
}

#[cfg(test)]
mod tests;
