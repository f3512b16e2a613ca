//! One attempt of a run: a team of one agent for a turn, which may be asked once more after a hint to wait.

use std::sync::Arc;
use std::time::Duration;

use eisen_base::task;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::app::team::Supervised;
use crate::app::up::{TeamStart, run_team};
use crate::client_host::Said;
use crate::model::{AgentId, AgentState, SessionId, now_ms};
use crate::program::StopSignals;
use crate::tiers::Setback;
use crate::turn::progress::count;
use crate::turn::request::RunRequest;
use crate::turn::{WorkEnd, one_turn, used};

/// How long it may take to find out what an agent used that is stopped by a signal.
const USAGE_PATIENCE: Duration = Duration::from_secs(2);

/// How long a candidate is waited for, where another one can take over.
pub(super) struct Patience<'a> {
    /// The longest hint that is waited out.
    pub(super) longest: Duration,
    /// How long it may show no progress; None: for ever.
    pub(super) silence: Option<Duration>,
    /// Tells how long it waits, and why.
    pub(super) tell: &'a (dyn Fn(&Setback, Duration) + Sync),
}

/// Runs the team until its agent's turn has ended, and tells `turn_ended` before the agent ends. The team closes
/// meanwhile.
pub(super) async fn work(
    mut start: TeamStart,
    request: &RunRequest,
    prompt: String,
    deadline: Option<Instant>,
    patience: Option<Patience<'_>>,
    turn_ended: impl FnOnce(&WorkEnd),
) -> (WorkEnd, Option<JoinHandle<()>>) {
    let agent = start.layered.config.agents[0].id.clone();
    // The first signal ends the turn, while what it used can still be asked. A second one ends the team.
    let mut signals = match StopSignals::listen_after_one() {
        Ok(later) => std::mem::replace(&mut start.stop, later),
        Err(error) => return (WorkEnd::not_started(error.to_string()), None),
    };
    let work = async |team: Arc<Supervised>| {
        let (sender, said) = watch::channel(Said::default());
        let mut end = tokio::select! {
            biased;
            signal = signals.next() => WorkEnd::stopped(signal).with(said.borrow().clone()),
            end = patiently(&team, &agent, request, prompt, sender, deadline, patience) => end,
            never = count(&team.tracker, &agent, &request.progress) => match never {},
        };
        let used = timeout(USAGE_PATIENCE, used(&team.roster, &team.tracker, &agent)).await;
        end.used = used.unwrap_or_default();
        turn_ended(&end);
        end
    };
    // It is large, and there is one.
    match Box::pin(run_team(start, work)).await {
        Ok((done, closing)) => (done.unwrap_or_else(WorkEnd::stopped), Some(task::spawn(closing))),
        Err(error) => (WorkEnd::not_started(format!("{error:#}")), None),
    }
}

/// Waits until a team has closed.
pub(super) async fn closed(closing: Option<JoinHandle<()>>) {
    if let Some(closing) = closing {
        let _ = closing.await;
    }
}

/// Prompts the agent, and after a hint to wait that is not too long once more.
async fn patiently(
    team: &Supervised,
    agent: &AgentId,
    request: &RunRequest,
    prompt: String,
    said: watch::Sender<Said>,
    deadline: Option<Instant>,
    patience: Option<Patience<'_>>,
) -> WorkEnd {
    let Some(handle) = team.roster.get(agent) else {
        return WorkEnd::not_started("the agent is gone".to_owned());
    };
    let silence = patience.as_ref().and_then(|patience| patience.silence);
    let first = one_turn(&handle, request, None, &prompt, said.clone(), deadline, silence).await;
    let wait = patience.and_then(|patience| {
        let setback = first.setback()?;
        let wait = setback.wait(now_ms(), patience.longest).filter(|_| first.began)?;
        (patience.tell)(&setback, wait);
        Some((setback, wait))
    });
    let Some((setback, wait)) = wait else { return first };
    let until = Instant::now() + wait;
    let is_late = deadline.is_some_and(|deadline| deadline <= until);
    sleep(deadline.filter(|_| is_late).unwrap_or(until).duration_since(Instant::now())).await;
    if is_late {
        return WorkEnd {
            session: first.session,
            answer: first.answer,
            ..WorkEnd::late(Said::default())
        };
    }
    if handle.status().state != AgentState::Ready {
        return first;
    }
    let again = format!(
        "Your last turn broke off: {}. What you did in it stands. Go on with the task from there.\n\n\
         {prompt}",
        setback.what
    );
    let session = first.session.map(SessionId::new);
    one_turn(&handle, request, session, &again, said, deadline, silence).await
}
