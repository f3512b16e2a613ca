//! The handle to a running relay, and the messages that it sends.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::budget::BudgetStanding;
use crate::model::SessionId;

/// Sends messages to a running relay.
#[derive(Clone, Debug)]
pub struct RelayHandle {
    pub(super) mailbox: mpsc::Sender<RelayMsg>,
}

/// How a turn ended.
#[derive(Clone, Debug)]
pub struct EndedTurn {
    pub stop_reason: Arc<str>,
    pub reason: Option<Arc<str>>,
}

#[derive(Debug)]
pub(super) enum RelayMsg {
    Settle(oneshot::Sender<()>),
    TurnEnd {
        session: SessionId,
        reply: oneshot::Sender<Option<EndedTurn>>,
    },
    CloseAgent,
    /// How the agent stands with its budgets.
    Stand(BudgetStanding),
    /// Time has passed since a turn was to end.
    Overdue,
    TakeNudge(oneshot::Sender<Option<String>>),
    CatchUp,
}

impl RelayHandle {
    /// Waits until the activities of all relayed lines are sent to the tracker.
    pub async fn settled(&self) {
        let (reply, done) = oneshot::channel();
        if self.mailbox.send(RelayMsg::Settle(reply)).await.is_ok() {
            // A relay that ended has sent everything.
            let _ = done.await;
        }
    }

    /// How the session's last turn ended, if none has begun since.
    pub async fn turn_end(&self, session: SessionId) -> Option<EndedTurn> {
        let (reply, end) = oneshot::channel();
        self.mailbox.send(RelayMsg::TurnEnd { session, reply }).await.ok()?;
        end.await.ok().flatten()
    }

    /// Tells it how the agent stands with its budgets: its turns may have to end.
    pub async fn stand(&self, standing: BudgetStanding) {
        let _ = self.mailbox.send(RelayMsg::Stand(standing)).await;
    }

    /// Takes what the agent's next prompt is to say of a loop that it went in.
    pub async fn take_nudge(&self) -> Option<String> {
        let (reply, nudge) = oneshot::channel();
        self.mailbox.send(RelayMsg::TakeNudge(reply)).await.ok()?;
        nudge.await.ok().flatten()
    }

    /// Has it look whether the agent ignores the end of a turn.
    pub async fn overdue(&self) {
        let _ = self.mailbox.send(RelayMsg::Overdue).await;
    }

    /// Handles the activities that the extractor has found since the last line.
    pub async fn catch_up(&self) {
        let _ = self.mailbox.send(RelayMsg::CatchUp).await;
    }

    /// Waits until the relay has ended.
    pub async fn closed(&self) {
        self.mailbox.closed().await;
    }

    /// Closes the agent's standard input once its queue is written. The agent's output is still
    /// relayed.
    pub async fn close_agent(&self) {
        let _ = self.mailbox.send(RelayMsg::CloseAgent).await;
    }
}
