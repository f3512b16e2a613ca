//! The agent's open requests, each in a task of its own.

use std::collections::HashMap;
use std::sync::Arc;

use agent_client_protocol_schema::v1::Error;
use eisen_base::task::TaskSet;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, Id};

use super::answer_line::AnswerLine;
use super::rpc;
use super::terminals::Started;
use crate::model::code;

/// Open requests; one more is answered with an error at once. (If the host stopped reading instead,
/// the `terminal/kill` that would end one could stay unread.)
const MAX_RUNNING: usize = 1024;

/// Bytes of open requests; above that the host reads no further line until one completes. Only
/// writes count, which complete without the agent's help.
const MAX_BYTES: usize = 256 << 20;

/// Large answers that are created or queued at once; more wait.
const MAX_BULKY: usize = 4;

#[derive(Debug)]
pub(super) struct Requests {
    tasks: TaskSet<RequestResult>,
    running: HashMap<Id, RunningRequest>,
    bytes: usize,
    bulky: Arc<Semaphore>,
}

#[derive(Debug)]
struct RunningRequest {
    id: Box<RawValue>,
    bytes: usize,
    abort: AbortHandle,
}

pub(super) type RequestResult = Result<Completed, Error>;

/// The result of a request's task.
#[derive(Debug)]
pub(super) enum Completed {
    Result(Box<RawValue>),
    /// The permit is released when the line has been written.
    Bulky(AnswerLine, OwnedSemaphorePermit),
    Terminal(Started),
}

impl Requests {
    pub(super) fn new() -> Self {
        Self {
            tasks: TaskSet::default(),
            running: HashMap::new(),
            bytes: 0,
            bulky: Arc::new(Semaphore::new(MAX_BULKY)),
        }
    }

    /// Checks whether another task may start.
    pub(super) fn admit(&self) -> Result<(), Error> {
        if self.running.len() < MAX_RUNNING {
            Ok(())
        } else {
            Err(rpc::failure(
                code::INTERNAL_ERROR,
                format!("More than {MAX_RUNNING} requests at once"),
            ))
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.bytes < MAX_BYTES
    }

    /// Starts a request's task, which holds `bytes` until it completes.
    pub(super) fn start<F>(&mut self, id: &RawValue, bytes: usize, task: F)
    where
        F: Future<Output = RequestResult> + Send + 'static,
    {
        let abort = self.tasks.spawn(task);
        self.bytes += bytes;
        self.running.insert(abort.id(), RunningRequest { id: id.to_owned(), bytes, abort });
    }

    /// Starts a task whose answer may be large.
    pub(super) fn start_bulky<F>(&mut self, id: &RawValue, task: F)
    where
        F: Future<Output = Result<AnswerLine, Error>> + Send + 'static,
    {
        let bulky = Arc::clone(&self.bulky);
        self.start(id, 0, async move {
            let Ok(place) = bulky.acquire_owned().await else {
                return Err(rpc::failure(code::INTERNAL_ERROR, "Internal error: the client ends"));
            };
            Ok(Completed::Bulky(task.await?, place))
        });
    }

    /// Waits for the next task to complete; None without tasks.
    pub(super) async fn next(&mut self) -> Option<(Box<RawValue>, RequestResult)> {
        loop {
            let (task, outcome) = match self.tasks.join_next_with_id().await? {
                Ok(done) => done,
                // An aborted task is no longer in the table, so this one panicked.
                Err(error) => {
                    (error.id(), Err(rpc::failure(code::INTERNAL_ERROR, "Internal error")))
                }
            };
            if let Some(running) = self.running.remove(&task) {
                self.bytes -= running.bytes;
                return Some((running.id, outcome));
            }
        }
    }

    /// Aborts an open request; returns whether there was one. The id is compared as raw JSON.
    pub(super) fn cancel(&mut self, id: &RawValue) -> bool {
        let found = self.running.iter().find(|(_, running)| running.id.get() == id.get());
        let Some(task) = found.map(|(task, _)| *task) else { return false };
        if let Some(running) = self.running.remove(&task) {
            self.bytes -= running.bytes;
            running.abort.abort();
        }
        true
    }

    /// Aborts all tasks and waits for them.
    pub(super) async fn end(&mut self) {
        self.running.clear();
        self.tasks.shutdown().await;
    }
}
