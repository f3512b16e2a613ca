//! Owns questions of agents that take longer than a request may: the same request later goes on
//! with the same question.

use std::sync::{Arc, Mutex, PoisonError};

use indexmap::IndexMap;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::model::AgentId;
use crate::serve::wire::RpcError;

/// Questions that are remembered; beyond that the oldest answered one is forgotten, and a new one
/// is refused where none is answered.
const MOST: usize = 1000;

/// What makes two requests the same question: who asks, by which method, and what.
pub(super) type Question = (AgentId, &'static str, Vec<String>);

/// A question's id, and its answer once there is one.
#[derive(Clone, Debug)]
struct Open {
    id: String,
    answer: watch::Receiver<Option<Value>>,
}

/// The open questions of a team; cheap to clone.
#[derive(Clone, Default, Debug)]
pub(super) struct Ongoing(Arc<Mutex<IndexMap<Question, Open>>>);

/// What a wait found.
pub(super) struct Waited {
    pub(super) id: String,
    /// None: it is still open.
    pub(super) answer: Option<Value>,
}

impl Ongoing {
    /// Waits until `deadline` for the answer to a question that is open; None if it is not.
    pub(super) async fn go_on(&self, question: &Question, deadline: Instant) -> Option<Waited> {
        let open = self.all(|all| all.get(question).cloned())?;
        Some(self.wait(question, open, deadline).await)
    }

    /// Opens a question, and waits for its answer until `deadline`. It stays open also if the
    /// returned future is dropped.
    pub(super) async fn open(
        &self,
        question: &Question,
        id: String,
        answering: impl Future<Output = Value> + Send + 'static,
        deadline: Instant,
    ) -> Result<Waited, RpcError> {
        let (send, answer) = watch::channel(None);
        let open = Open { id, answer };
        self.all(|all| {
            if all.len() >= MOST {
                let answered = all.iter().position(|(_, open)| open.answer.borrow().is_some());
                let Some(at) = answered else {
                    let message = format!("{MOST} questions are open: wait for the answers");
                    return Err(RpcError::new(409, message));
                };
                all.shift_remove_index(at);
            }
            all.insert(question.clone(), open.clone());
            Ok(())
        })?;
        tokio::spawn(async move { send.send_replace(Some(answering.await)) });
        Ok(self.wait(question, open, deadline).await)
    }

    async fn wait(&self, question: &Question, open: Open, deadline: Instant) -> Waited {
        let Open { id, mut answer } = open;
        let answered = timeout_at(deadline, answer.wait_for(Option::is_some)).await;
        let answer = answered.ok().and_then(|it| it.ok()?.clone());
        if answer.is_some() {
            self.all(|all| {
                // Another question may have the same words by now.
                if all.get(question).is_some_and(|open| open.id == id) {
                    all.shift_remove(question);
                }
            });
        }
        Waited { id, answer }
    }

    fn all<T>(&self, change: impl FnOnce(&mut IndexMap<Question, Open>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
