//! The status of an observed agent, published on the bus and for `list_agents`.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::agent::{STALL_AFTER, watch_over};
use crate::bus::Bus;
use crate::model::{AgentId, AgentState, AgentStatus, Event, now_ms};
use crate::process::{Exit, Family};
use crate::proxy::Vitals;

/// The agent's status; each change is published.
#[derive(Clone)]
pub(super) struct ObservedStatus(watch::Sender<AgentStatus>, Bus);

impl ObservedStatus {
    pub(super) fn new(agent: &AgentId, pid: u32, bus: Bus) -> Self {
        let status = AgentStatus {
            agent: agent.clone(),
            state: AgentState::Ready,
            pid: Some(pid),
            reason: None,
            restarts: 0,
            candidate: None,
            timestamp_ms: now_ms(),
        };
        bus.publish(Event::Agent(status.clone()));
        Self(watch::Sender::new(status), bus)
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<AgentStatus> {
        self.0.subscribe()
    }

    /// Logs and publishes stalls of the agent and problems of its plugin.
    pub(super) async fn log_problems(
        self,
        vitals: Arc<Vitals>,
        family: Family,
        mut plugin: watch::Receiver<Option<String>>,
        cancel: CancellationToken,
    ) {
        let (stalled, mut stall) = watch::channel(None);
        let cpu_ms = move || family.usage().cpu_ms;
        let watching = watch_over(vitals, STALL_AFTER, cpu_ms, stalled);
        let publishing = async {
            loop {
                tokio::select! {
                    Ok(()) = stall.changed() => {}
                    Ok(()) = plugin.changed() => {}
                    else => return,
                }
                let stall: Option<String> = stall.borrow_and_update().clone();
                let reason = plugin.borrow_and_update().clone().or(stall);
                if let Some(reason) = &reason {
                    tracing::warn!(reason, "the agent has a problem");
                }
                self.set_reason(reason);
            }
        };
        tokio::select! {
            () = cancel.cancelled() => {}
            ((), ()) = async { tokio::join!(watching, publishing) } => {}
        }
    }

    fn set_reason(&self, reason: Option<String>) {
        let runs = self.0.send_if_modified(|status| {
            if status.pid.is_some() {
                status.reason = reason;
                status.timestamp_ms = now_ms();
            }
            status.pid.is_some()
        });
        if runs {
            self.1.publish(Event::Agent(self.0.borrow().clone()));
        }
    }

    /// `failed` is a failure of the plugin, for which the agent was stopped. The last event: the bus ends
    /// once nothing else holds it.
    pub(super) fn ended(self, exit: Exit, failed: Option<String>) {
        let is_good = exit.success() && failed.is_none();
        self.0.send_modify(|status| {
            status.state = if is_good { AgentState::Stopped } else { AgentState::Error };
            status.pid = None;
            status.reason = Some(failed.unwrap_or_else(|| exit.to_string()));
            status.timestamp_ms = now_ms();
        });
        self.1.publish(Event::Agent(self.0.borrow().clone()));
    }
}
