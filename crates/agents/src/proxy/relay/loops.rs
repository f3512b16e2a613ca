//! Looks for loops in the steps of a session, and does what `on_loop` says.

use std::sync::Arc;

use tokio::io::AsyncWrite;

use super::Relay;
use crate::model::{Activity, ActivityKind, OnLoop, SessionId, SessionStep};
use crate::proxy::ProxyError;
use crate::proxy::loops::Loops;

/// The loops of the agent, and what is to follow.
#[derive(Default)]
pub(super) struct Looping {
    loops: Loops,
    /// The text about a loop for the next prompt.
    pub(super) nudge: Option<String>,
    /// Why the agent is to be stopped.
    pub(super) doom: Option<ProxyError>,
}

impl<AW, CW> Relay<AW, CW>
where
    AW: AsyncWrite + Unpin + Send,
    CW: AsyncWrite + Unpin + Send,
{
    /// Takes in a step; returns what is reported of it.
    pub(super) fn step(&mut self, session: &SessionId, step: &SessionStep) -> Option<Activity> {
        let (mut found, is_acted_on) = self.looping.loops.step(session, step)?;
        let gate = self.proxy.gate.as_ref();
        let on_loop = gate.map_or(OnLoop::Report, |gate| gate.rules.borrow().on_loop);
        let (agent, what) = (&self.proxy.agent, found.describe());
        tracing::warn!(%agent, %session, what, is_acted_on, "the agent goes in a loop");
        if is_acted_on {
            found.action = Some(on_loop);
            self.act(session, on_loop, &what);
        }
        Some(Activity { session: session.clone(), kind: ActivityKind::Looped(found) })
    }

    fn act(&mut self, session: &SessionId, on_loop: OnLoop, what: &str) {
        let reason: Arc<str> = format!("it goes in a loop: {what}").into();
        match on_loop {
            OnLoop::Off | OnLoop::Report => {}
            OnLoop::Nudge => {
                self.looping.nudge = Some(format!(
                    "You went in a loop in your last turn: {what}. Nothing new came of it: do it in \
                     another way, or say what you need.\n"
                ));
            }
            OnLoop::Cancel => self.to_cut.push((session.clone(), reason)),
            OnLoop::Stop => self.looping.doom = Some(ProxyError::Loop(what.into())),
        }
    }
}
