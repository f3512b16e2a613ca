//! The current activity of a run: kept in its state, and told to everyone who watches.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::client_host::Said;
use crate::model::{AgentId, TokenKind};
use crate::runs::{RunFolder, RunState};
use crate::tracker::TrackerHandle;

/// Time between two changes of a state for what its agent does, and between two looks at its tokens. The
/// state of a run that ends sooner is not written once more for it.
const INTERVAL: Duration = Duration::from_secs(1);

/// The progress of a run's agent.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RunProgress {
    /// As in [`RunState::last_action`].
    pub last_action: Option<String>,
    /// The tokens of the agent that works now.
    pub tokens: Option<u64>,
}

/// Does the work of a run, and keeps meanwhile what its agent did last.
pub(crate) async fn recorded<T>(
    folder: &RunFolder,
    state: &mut RunState,
    mut progress: watch::Receiver<RunProgress>,
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    let mut not_before = Instant::now() + INTERVAL;
    let end = loop {
        let known = state.last_action.clone();
        let news = async {
            // Nobody tells any more: the work is about to end.
            let is_news = |now: &RunProgress| now.last_action != known;
            if progress.wait_for(is_news).await.is_err() {
                std::future::pending::<()>().await;
            }
            sleep_until(not_before).await;
        };
        tokio::select! {
            end = &mut work => break end,
            () = news => {}
        }
        state.last_action.clone_from(&progress.borrow().last_action);
        if let Err(error) = folder.keep(state) {
            tracing::warn!(%error, "the state of the run can't be kept");
        }
        not_before = Instant::now() + INTERVAL;
    };
    state.last_action.clone_from(&progress.borrow().last_action);
    end
}

/// Tells what an agent does in its turn.
pub(super) async fn follow(
    mut said: watch::Receiver<Said>,
    progress: &watch::Sender<RunProgress>,
) -> Infallible {
    while said.changed().await.is_ok() {
        let action = said.borrow_and_update().last_action.clone();
        progress.send_if_modified(|now| {
            let is_news = action.is_some() && now.last_action != action;
            if is_news {
                now.last_action = action;
            }
            is_news
        });
    }
    std::future::pending().await
}

/// Tells how many tokens an agent has used.
pub(crate) async fn count(
    tracker: &TrackerHandle,
    agent: &AgentId,
    progress: &watch::Sender<RunProgress>,
) -> Infallible {
    loop {
        sleep(INTERVAL).await;
        let sessions = tracker.sessions().await.unwrap_or_default();
        let own = sessions.iter().filter(|session| session.key.agent == *agent);
        let known = own.filter_map(|session| session.spent.tokens.get(TokenKind::Total).known);
        let tokens = known.reduce(u64::saturating_add);
        progress.send_if_modified(|now| std::mem::replace(&mut now.tokens, tokens) != tokens);
    }
}
