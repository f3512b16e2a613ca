//! Stands at the doorbell of one agent: what the kernel let pass becomes activity, what it stopped
//! a blocked access. Knows what the agent does at the moment, and tells what was asked for by name
//! from what was only swept along.

mod passing;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use self::passing::Passing;
use crate::confine::{Attempt, Doorkeeper};
use crate::extract::Workspace;
use crate::model::{Action, AgentId, SessionKey, Via};
use crate::proxy::{Moment, Place, Rules, Running};
use crate::routing::{Request, RoutingHandle, Settlement};
use crate::tracker::TrackerHandle;
use crate::zone::Bounds;

/// The line of a tool call may come a little after what the call does: how long what nobody named
/// waits for it, and how often at most.
const LATE: Duration = Duration::from_millis(25);
const LATE_EVERY: Duration = Duration::from_secs(1);

/// What a doorkeeper is made of.
pub struct Door {
    pub agent: AgentId,
    /// Those that the agent was started with; they hold where the rules name none any more.
    pub bounds: Arc<Bounds>,
    /// They may change while it runs.
    pub rules: watch::Receiver<Rules>,
    pub routing: RoutingHandle,
    pub tracker: TrackerHandle,
    /// The same that the agent's relay was given.
    pub running: Arc<Running>,
    /// Which files are kept out of the map.
    pub workspace: Arc<dyn Workspace>,
    /// Report what the agent opens.
    pub observe_files: bool,
    /// The doorbell's threads know no runtime.
    pub handle: Handle,
}

/// The doorkeeper of one run of an agent, and of all terminals of that run.
pub struct Keeper {
    desk: Arc<Desk>,
    passing: Option<Passing>,
    handle: Handle,
}

struct Desk {
    agent: AgentId,
    bounds: Arc<Bounds>,
    rules: watch::Receiver<Rules>,
    routing: RoutingHandle,
    running: Arc<Running>,
    /// When a late line was last waited for.
    waited: Mutex<Option<Instant>>,
}

impl Keeper {
    pub fn new(door: Door) -> Arc<Self> {
        let Door { agent, bounds, rules, routing, tracker, running, workspace, .. } = door;
        let passing = door.observe_files.then(|| {
            let (passing, task) = Passing::new(agent.clone(), tracker, running.clone(), workspace);
            door.handle.spawn(task);
            passing
        });
        let desk = Desk { agent, bounds, rules, routing, running, waited: Mutex::default() };
        Arc::new(Self { desk: Arc::new(desk), passing, handle: door.handle })
    }
}

impl Doorkeeper for Keeper {
    fn bounds(&self) -> Arc<Bounds> {
        self.desk.bounds()
    }

    fn passed(&self, path: Arc<str>, action: Action) {
        if let Some(passing) = &self.passing {
            passing.passed(path, action);
        }
    }

    fn blocked(&self, attempt: Attempt, reply: oneshot::Sender<bool>) {
        let moment = self.desk.running.moment();
        self.handle.spawn(Arc::clone(&self.desk).decide(attempt, moment, reply));
    }
}

impl Desk {
    fn bounds(&self) -> Arc<Bounds> {
        self.rules.borrow().bounds.clone().unwrap_or_else(|| Arc::clone(&self.bounds))
    }

    /// Says what becomes of an attempt. Dropping `reply` denies it.
    async fn decide(
        self: Arc<Self>,
        attempt: Attempt,
        moment: Moment,
        mut reply: oneshot::Sender<bool>,
    ) {
        let meant = attempt.named || self.is_named(&attempt, &moment, &mut reply).await;
        let request = Request {
            key: SessionKey::new(self.agent.clone(), moment.session.clone()),
            path: attempt.path,
            action: attempt.action,
            via: Via::Kernel,
            hold: false,
            may_wait: attempt.may_wait,
            grantable: attempt.grantable,
            caller: Some(attempt.pid),
        };
        let allowed = if meant {
            self.ask(request, &moment, &mut reply).await
        } else {
            self.routing.swept(request, moment.turn).await
        };
        let _ = reply.send(allowed);
    }

    /// Whether a running tool call names what was tried, or does so in a moment.
    async fn is_named(
        &self,
        attempt: &Attempt,
        moment: &Moment,
        reply: &mut oneshot::Sender<bool>,
    ) -> bool {
        let mut news = self.running.news();
        let names = || {
            let bounds = self.bounds();
            let workspace = bounds.zone().workspace();
            self.running.names(Place { wire: &attempt.path, workspace })
        };
        if names() {
            return true;
        }
        // Without a turn there are no calls to wait for.
        if !moment.is_busy() || !self.may_wait_for_news() {
            return false;
        }
        let deadline = Instant::now() + LATE;
        loop {
            tokio::select! {
                changed = news.changed() => match changed {
                    Ok(()) if names() => return true,
                    Ok(()) => {}
                    Err(_) => return false,
                },
                () = tokio::time::sleep_until(deadline) => return false,
                () = moment.over() => return false,
                () = reply.closed() => return false,
            }
        }
    }

    /// A sweep is many accesses: only the first of them waits.
    fn may_wait_for_news(&self) -> bool {
        let now = Instant::now();
        let mut waited = self.waited.lock().unwrap_or_else(PoisonError::into_inner);
        let may = waited.is_none_or(|last| now.duration_since(last) >= LATE_EVERY);
        if may {
            *waited = Some(now);
        }
        may
    }

    /// Has an access decided, for as long as anybody waits for it.
    async fn ask(
        &self,
        request: Request,
        moment: &Moment,
        reply: &mut oneshot::Sender<bool>,
    ) -> bool {
        let settlement = self.routing.request(request);
        tokio::pin!(settlement);
        let settled = tokio::select! {
            settled = &mut settlement => settled,
            () = let_go(moment, reply) => {
                // What is denied at once is: it only has to be taken in.
                tokio::select! {
                    biased;
                    settled = &mut settlement => settled,
                    () = self.routing.settled() => None,
                }
            }
        };
        settled == Some(Settlement::Allowed)
    }
}

/// Waits until nobody waits for the reply any more.
async fn let_go(moment: &Moment, reply: &mut oneshot::Sender<bool>) {
    tokio::select! {
        () = moment.over() => {}
        () = reply.closed() => {}
    }
}
