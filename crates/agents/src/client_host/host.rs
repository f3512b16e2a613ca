//! The state of one agent run, and the sending of requests to the agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use eisen_base::task::TaskSet;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::guests::Guests;
use super::messages::{HostMsg, PendingAnswer};
use super::offers::Offers;
use super::requests::Requests;
use super::sessions::HostSessions;
use super::terminals::{Launch, Terminals};
use super::transport::{MAX_LINE, Outbox};
use super::{HostError, Shared, rpc};
use crate::line::LineReader;
use crate::model::Repeats;
use crate::proxy::Permits;

pub(super) const CLOSED_INPUT: &str = "it closed its input";

/// The client's state of one agent run: `actor` runs it; `dispatch`, `turns` and `attach` handle
/// the messages.
#[derive(Debug)]
pub(super) struct Host<R, W> {
    pub(super) shared: Arc<Shared>,
    pub(super) permits: Arc<Permits>,
    pub(super) mailbox: mpsc::Receiver<HostMsg>,
    /// For tasks of its own that ask it for something; its handles keep the mailbox open.
    pub(super) sender: mpsc::WeakSender<HostMsg>,
    pub(super) lines: LineReader<R>,
    pub(super) out: Outbox<W>,
    next_id: u64,
    pub(super) pending: BTreeMap<u64, PendingAnswer>,
    pub(super) sessions: HostSessions,
    /// The options of its own sessions.
    pub(super) offers: Offers,
    /// Prompt contents that are being created, each for the session whose turn has begun.
    pub(super) contents: TaskSet<Result<Vec<Value>, HostError>>,
    pub(super) requests: Requests,
    pub(super) guests: Guests,
    pub(super) terminals: Terminals,
    /// Messages of the agent that could not be used.
    pub(super) unusable: Repeats,
}

impl<R, W> Host<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    pub(super) fn new(
        shared: Arc<Shared>,
        launcher: Arc<dyn Launch>,
        permits: Arc<Permits>,
        (mailbox, sender): (mpsc::Receiver<HostMsg>, mpsc::WeakSender<HostMsg>),
        (reader, writer): (R, W),
    ) -> Self {
        let memory = permits.memory().clone();
        let terminals = Terminals::new(launcher, shared.settings.env.clone(), memory);
        let guests = Guests::new(Arc::clone(&permits));
        let sessions = HostSessions::new(shared.settings.answers.clone());
        Self {
            shared,
            permits,
            mailbox,
            sender,
            lines: LineReader::new(reader, MAX_LINE),
            out: Outbox::new(writer),
            next_id: 0,
            pending: BTreeMap::new(),
            sessions,
            offers: Offers::default(),
            contents: TaskSet::default(),
            requests: Requests::new(),
            guests,
            terminals,
            unusable: Repeats::default(),
        }
    }

    /// Sends a request; returns its id.
    pub(super) fn call(&mut self, method: &str, params: &Value, pending: PendingAnswer) -> u64 {
        // Drops calls whose caller is gone, except the latest few.
        self.pending.retain(|_, pending| match pending {
            PendingAnswer::Call { reply, .. } => !reply.is_closed(),
            PendingAnswer::Turn(_) | PendingAnswer::Forwarded(_) => true,
        });
        let id = self.next_id();
        self.pending.insert(id, pending);
        self.out.push(rpc::request(id, method, params));
        id
    }

    /// Returns the id of the next request to the agent, of any origin.
    pub(super) fn next_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }
}

pub(super) fn closed_input() -> HostError {
    HostError::Gone(CLOSED_INPUT.to_owned())
}
