//! Owns questions of agents that take longer than a request may: the same request later goes on
//! with the same question.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use crate::model::AgentId;
use crate::serve::wire::RpcError;

/// Questions that are remembered; beyond that the oldest answered one is forgotten, or a new one is
/// refused if none is answered.
const MOST: usize = 1000;

/// Open questions of one agent.
const MOST_OF_ONE: usize = 16;

/// How long an answer stays that its agent does not fetch. After that it may be out of date.
const KEPT: Duration = Duration::from_secs(120);

/// The identity of a question: its agent, its method and its texts.
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

/// The result of a wait.
pub(super) struct Waited {
    pub(super) id: String,
    /// None if the question is still open.
    pub(super) answer: Option<Value>,
}

impl Ongoing {
    /// Waits until `deadline` for the answer to an open question; None if it is not open.
    pub(super) async fn go_on(&self, question: &Question, deadline: Instant) -> Option<Waited> {
        let open = self.all(|all| all.get(question).cloned())?;
        Some(self.wait(question, open, deadline).await)
    }

    /// Opens a question, and waits for its answer until `deadline`. It stays open even if the
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
            let is_open = |(of, open): &(&Question, &Open)| {
                of.0 == question.0 && open.answer.borrow().is_none()
            };
            if all.iter().filter(is_open).count() >= MOST_OF_ONE {
                let message =
                    format!("{MOST_OF_ONE} questions of yours are open: wait for the answers");
                return Err(RpcError::new(409, message));
            }
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
        let (this, of, id) = (self.clone(), question.clone(), open.id.clone());
        tokio::spawn(async move {
            send.send_replace(Some(answering.await));
            sleep(KEPT).await;
            this.forget(&of, &id);
        });
        Ok(self.wait(question, open, deadline).await)
    }

    async fn wait(&self, question: &Question, open: Open, deadline: Instant) -> Waited {
        let Open { id, mut answer } = open;
        let answered = timeout_at(deadline, answer.wait_for(Option::is_some)).await;
        let answer = answered.ok().and_then(|it| it.ok()?.clone());
        if answer.is_some() {
            self.forget(question, &id);
        }
        Waited { id, answer }
    }

    fn forget(&self, question: &Question, id: &str) {
        self.all(|all| {
            // A newer question may have the same words.
            if all.get(question).is_some_and(|open| open.id == id) {
                all.shift_remove(question);
            }
        });
    }

    fn all<T>(&self, change: impl FnOnce(&mut IndexMap<Question, Open>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::future::{pending, ready};

    use serde_json::json;

    use super::*;

    fn question(by: &str, words: &str) -> Question {
        (AgentId::new(by), "ask_owner", vec![words.to_owned()])
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_comes_for_is_forgotten() {
        let ongoing = Ongoing::default();
        let (slow, asked) = (tokio::sync::oneshot::channel::<()>(), question("ui", "a"));
        let answering = async {
            let _ = slow.1.await;
            json!("no")
        };
        let first = ongoing.open(&asked, "1".to_owned(), answering, Instant::now()).await;
        assert_eq!(first.unwrap().answer, None);
        drop(slow.0);
        sleep(KEPT / 2).await;
        assert!(ongoing.all(|all| all.contains_key(&asked)));
        sleep(KEPT).await;
        assert!(ongoing.go_on(&asked, Instant::now()).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn one_agents_questions_leave_room_for_those_of_others() {
        let ongoing = Ongoing::default();
        let now = Instant::now();
        for n in 0..MOST_OF_ONE {
            let asked = question("ui", &n.to_string());
            ongoing.open(&asked, n.to_string(), pending(), now).await.unwrap();
        }
        let more = ongoing.open(&question("ui", "more"), "m".to_owned(), pending(), now).await;
        assert_eq!(more.err().unwrap().code, 409);
        let other = ongoing.open(&question("api", "a"), "o".to_owned(), ready(json!(1)), now).await;
        assert!(other.is_ok());
    }
}
