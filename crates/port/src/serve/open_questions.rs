//! Owns questions of agents that take longer than a request may: the same request later goes on
//! with the same question.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use eisen_base::task;
use indexmap::IndexMap;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::model::AgentId;
use crate::serve::Refused;
use crate::tasks::{WaitGuard, WaitKind, Waits};
use crate::wire::Answer;

/// Questions that are remembered; beyond that the oldest answered one is forgotten, or a new one is
/// refused if none is answered.
const MOST: usize = 1000;

/// Open questions of one agent.
const MOST_OF_ONE: usize = 16;

/// How long an answer stays that its agent does not fetch. After that it may be out of date.
const KEPT: Duration = Duration::from_secs(120);

/// How long a question stays open that no call waits for.
const UNATTENDED: Duration = Duration::from_secs(300);

/// The identity of a question: its agent, its method and its texts.
pub(super) type Question = (AgentId, &'static str, Vec<String>);

/// A question, and its answer once there is one.
#[derive(Clone, Debug)]
pub(super) struct OpenQuestion {
    id: String,
    /// The agent that is to answer, if an agent is.
    awaited: Option<(AgentId, WaitKind)>,
    answer: watch::Receiver<Option<Result<Answer, Refused>>>,
    /// When it is withdrawn, unless a call waits for it meanwhile.
    until: watch::Sender<Instant>,
}

/// The open questions of a team; cheap to clone.
#[derive(Clone, Default, Debug)]
pub(super) struct Ongoing(Arc<Mutex<IndexMap<Question, OpenQuestion>>>);

/// The result of a wait.
#[derive(Debug)]
pub(super) struct Waited {
    pub(super) id: String,
    /// None if the question is still open.
    pub(super) answer: Option<Answer>,
}

impl Ongoing {
    /// Returns a question that is open, or whose answer nobody came for.
    pub(super) fn find(&self, question: &Question) -> Option<OpenQuestion> {
        self.all(|all| all.get(question).cloned())
    }

    /// Opens a question, unless it is open. It stays so whatever becomes of the call; once no call
    /// has waited for it for long, the token that `answering` is made with is cancelled.
    pub(super) fn open<F>(
        &self,
        question: &Question,
        awaited: Option<(AgentId, WaitKind)>,
        answering: impl FnOnce(CancellationToken) -> F,
    ) -> Result<OpenQuestion, Refused>
    where
        F: Future<Output = Result<Answer, Refused>> + Send + 'static,
    {
        let (send, answer) = watch::channel(None);
        let id = format!("q-{:08x}", fastrand::u32(..));
        let until = watch::Sender::new(Instant::now() + UNATTENDED);
        let open = OpenQuestion { id, awaited, answer, until };
        let known = self.all(|all| -> Result<_, Refused> {
            if let Some(known) = all.get(question) {
                return Ok(Some(known.clone()));
            }
            make_room(all, &question.0)?;
            all.insert(question.clone(), open.clone());
            Ok(None)
        })?;
        if let Some(known) = known {
            return Ok(known);
        }
        let withdrawn = CancellationToken::new();
        let answering = answering(withdrawn.clone());
        let (this, of, id, until) =
            (self.clone(), question.clone(), open.id.clone(), open.until.subscribe());
        task::spawn(async move {
            tokio::pin!(answering);
            let answer = tokio::select! {
                biased;
                answer = &mut answering => answer,
                () = unattended(until) => {
                    withdrawn.cancel();
                    answering.await
                }
            };
            send.send_replace(Some(answer));
            sleep(KEPT).await;
            this.forget(&of, &id);
        });
        Ok(open)
    }

    /// Waits for the answer until `deadline`. Only meanwhile the asker waits for who is to answer.
    pub(super) async fn wait(
        &self,
        waits: &Waits,
        question: &Question,
        open: OpenQuestion,
        deadline: Instant,
    ) -> Result<Waited, Refused> {
        let OpenQuestion { id, awaited, mut answer, until } = open;
        until.send_modify(|until| *until = (*until).max(deadline + UNATTENDED));
        let is_open = answer.borrow().is_none();
        let _waits = begin(waits, &question.0, awaited.filter(|_| is_open))?;
        let answered = timeout_at(deadline, answer.wait_for(Option::is_some)).await;
        let answer = answered.ok().and_then(|it| it.ok()?.clone());
        if answer.is_some() {
            self.forget(question, &id);
        }
        Ok(Waited { id, answer: answer.transpose()? })
    }

    fn forget(&self, question: &Question, id: &str) {
        self.all(|all| {
            // A newer question may have the same words.
            if all.get(question).is_some_and(|open| open.id == id) {
                all.shift_remove(question);
            }
        });
    }

    fn all<T>(&self, change: impl FnOnce(&mut IndexMap<Question, OpenQuestion>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Has an agent wait for another one, if for any.
pub(super) fn begin(
    waits: &Waits,
    waiter: &AgentId,
    awaited: Option<(AgentId, WaitKind)>,
) -> Result<Option<WaitGuard>, Refused> {
    let Some((awaited, kind)) = awaited else { return Ok(None) };
    Ok(Some(waits.begin(waiter, &[awaited], kind)?))
}

/// Makes room for a question of `asker`.
fn make_room(all: &mut IndexMap<Question, OpenQuestion>, asker: &AgentId) -> Result<(), Refused> {
    let is_open =
        |(of, open): &(&Question, &OpenQuestion)| of.0 == *asker && open.answer.borrow().is_none();
    if all.iter().filter(is_open).count() >= MOST_OF_ONE {
        let message = format!("{MOST_OF_ONE} questions of yours are open: wait for the answers");
        return Err(Refused::new(409, message));
    }
    if all.len() >= MOST {
        let answered = all.iter().position(|(_, open)| open.answer.borrow().is_some());
        let Some(at) = answered else {
            let message = format!("{MOST} questions are open: wait for the answers");
            return Err(Refused::new(409, message));
        };
        all.shift_remove_index(at);
    }
    Ok(())
}

/// Ends once the time is over, also as it was put off meanwhile.
async fn unattended(until: watch::Receiver<Instant>) {
    loop {
        let at = *until.borrow();
        sleep_until(at).await;
        if *until.borrow() <= at {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::future::pending;

    use tokio::sync::oneshot;

    use super::*;
    use crate::wire::AnswerState;

    fn question(by: &str, words: &str) -> Question {
        (AgentId::new(by), "ask_owner", vec![words.to_owned()])
    }

    fn answer_of(words: &str) -> Answer {
        Answer::of(AnswerState::Answered, Some(words.to_owned()))
    }

    fn owner(name: &str) -> (AgentId, WaitKind) {
        (AgentId::new(name), WaitKind::Answer)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_comes_for_is_forgotten() {
        let (ongoing, asked) = (Ongoing::default(), question("ui", "a"));
        let (slow, answer) = oneshot::channel();
        let answering = |_| async move { Ok(answer.await.unwrap()) };
        let open = ongoing.open(&asked, None, answering).unwrap();
        let waits = Waits::default();
        let waited = ongoing.wait(&waits, &asked, open, Instant::now()).await.unwrap();
        assert_eq!(waited.answer, None);
        slow.send(answer_of("no")).unwrap();
        sleep(KEPT / 2).await;
        assert!(ongoing.find(&asked).is_some());
        sleep(KEPT).await;
        assert!(ongoing.find(&asked).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn one_agents_questions_leave_room_for_those_of_others() {
        let ongoing = Ongoing::default();
        let open = |by: &str, words: &str| {
            ongoing.open(&question(by, words), None, |_| pending()).map(drop)
        };
        for n in 0..MOST_OF_ONE {
            open("ui", &n.to_string()).unwrap();
        }
        assert_eq!(open("ui", "more").unwrap_err().code, 409);
        open("api", "a").unwrap();
        // The same question is no other one.
        open("ui", "1").unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_no_call_waits_for_is_withdrawn() {
        let (ongoing, asked) = (Ongoing::default(), question("ui", "a"));
        let answering = |withdrawn: CancellationToken| async move {
            withdrawn.cancelled().await;
            Ok(answer_of("withdrawn"))
        };
        let open = ongoing.open(&asked, None, answering).unwrap();
        let (waits, begun) = (Waits::default(), Instant::now());
        let wait = async |open, deadline| {
            ongoing.wait(&waits, &asked, open, deadline).await.unwrap().answer
        };
        for calls in 1..=10 {
            assert_eq!(wait(open.clone(), begun + calls * UNATTENDED / 2).await, None);
        }
        sleep(2 * UNATTENDED).await;
        assert_eq!(wait(open, Instant::now() + KEPT).await, Some(answer_of("withdrawn")));
    }

    #[tokio::test(start_paused = true)]
    async fn an_asker_waits_for_the_owner_only_while_its_call_does() {
        let (ongoing, waits) = (Ongoing::default(), Waits::default());
        let (asked, back) = (question("ui", "a"), question("api", "b"));
        let open = ongoing.open(&asked, Some(owner("api")), |_| pending()).unwrap();
        let other = ongoing.open(&back, Some(owner("ui")), |_| pending()).unwrap();
        let soon = Instant::now() + Duration::from_secs(1);
        let (waited, refused) = tokio::join!(
            ongoing.wait(&waits, &asked, open, soon),
            ongoing.wait(&waits, &back, other.clone(), soon),
        );
        assert_eq!(waited.unwrap().answer, None);
        assert_eq!(refused.unwrap_err().code, 409);
        assert_eq!(ongoing.wait(&waits, &back, other, soon).await.unwrap().answer, None);
    }
}
