//! Stands at the doorbell of one agent: what the kernel let pass becomes activity, what it stopped
//! a blocked access. Knows what the agent does at the moment, and tells what was asked for by name
//! from what was only swept along.

mod grace_period;
mod late;
mod passing;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use self::grace_period::GracePeriods;
use self::late::Late;
use self::passing::Passing;
use crate::confine::{Attempt, Doorkeeper};
use crate::extract::Workspace;
use crate::model::{
    Action, Activity, ActivityKind, AgentId, Lines, SessionKey, Source, Touch, Via, one_line,
    wire_real,
};
use crate::proxy::{CallText, LiveCalls, NamedPath, Rules, TurnContext, Vitals};
use crate::routing::{Request, RoutingHandle, Settlement};
use crate::tracker::TrackerHandle;
use crate::zone::Bounds;

/// What a doorkeeper is made of.
pub struct KernelAccessConfig {
    pub agent: AgentId,
    /// Those that the agent was started with; they hold where the rules name none any more.
    pub bounds: Arc<Bounds>,
    /// They may change while it runs.
    pub rules: watch::Receiver<Rules>,
    pub routing: RoutingHandle,
    pub tracker: TrackerHandle,
    /// The same that the agent's relay was given.
    pub running: Arc<LiveCalls>,
    pub vitals: Arc<Vitals>,
    /// Which files are kept out of the map.
    pub workspace: Arc<dyn Workspace>,
    /// Report what the agent opens.
    pub observe_files: bool,
    /// For how long a process has been there.
    pub age: fn(u32) -> Option<Duration>,
    /// The doorbell's threads know no runtime.
    pub handle: Handle,
}

/// The doorkeeper of one run of an agent, and of all terminals of that run.
pub struct KernelAccessHandler {
    desk: Arc<HandlerState>,
    passing: Option<Passing>,
    handle: Handle,
}

struct HandlerState {
    agent: AgentId,
    bounds: Arc<Bounds>,
    rules: watch::Receiver<Rules>,
    routing: RoutingHandle,
    running: Arc<LiveCalls>,
    tracker: TrackerHandle,
    workspace: Arc<dyn Workspace>,
    patience: GracePeriods,
    late: Late,
    vitals: Arc<Vitals>,
}

impl KernelAccessHandler {
    pub fn new(door: KernelAccessConfig) -> Arc<Self> {
        let KernelAccessConfig {
            agent,
            bounds,
            rules,
            routing,
            tracker,
            running,
            vitals,
            workspace,
            ..
        } = door;
        let passing = door.observe_files.then(|| {
            let (tracker, workspace) = (tracker.clone(), workspace.clone());
            let (passing, task) = Passing::new(agent.clone(), tracker, running.clone(), workspace);
            door.handle.spawn(task);
            passing
        });
        let news = running.news();
        let desk = Arc::new(HandlerState {
            agent,
            bounds,
            rules,
            routing,
            running,
            vitals,
            tracker,
            workspace,
            patience: GracePeriods::new(door.age),
            late: Late::default(),
        });
        door.handle.spawn(record_late_loop(Arc::downgrade(&desk), news));
        Arc::new(Self { desk, passing, handle: door.handle })
    }
}

impl Doorkeeper for KernelAccessHandler {
    fn bounds(&self) -> Arc<Bounds> {
        self.desk.bounds()
    }

    fn withholds(&self, real: &Path, action: Action) -> bool {
        self.desk.running.withholds(real, action)
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

impl HandlerState {
    fn bounds(&self) -> Arc<Bounds> {
        self.rules.borrow().bounds.clone().unwrap_or_else(|| Arc::clone(&self.bounds))
    }

    /// Says what becomes of an attempt. Dropping `reply` denies it.
    async fn decide(
        self: Arc<Self>,
        mut attempt: Attempt,
        moment: TurnContext,
        mut reply: oneshot::Sender<bool>,
    ) {
        let is_meant = attempt.named || self.is_named(&mut attempt, &moment, &mut reply).await;
        let request = Request {
            key: SessionKey::new(self.agent.clone(), moment.session.clone()),
            denied_by: self.bounds().zone().denied_by(&attempt.path),
            path: attempt.path,
            action: attempt.action,
            via: Via::Kernel,
            hold: false,
            may_wait: attempt.may_wait,
            grantable: attempt.grantable,
            caller: Some(attempt.pid),
        };
        if is_meant {
            let allowed = self.ask(request.clone(), &moment, &mut reply).await;
            if allowed {
                self.record(&request, Source::Tool);
            }
            let _ = reply.send(allowed);
            return;
        }
        let allowed = self.routing.record_incidental(request.clone(), moment.turn).await;
        let _ = reply.send(allowed);
        if allowed {
            self.record(&request, Source::Kernel);
        } else if moment.began.is_some() {
            // It may have been said meanwhile.
            if self.is_said(None, &request.path) {
                self.routing.record_intended(request).await;
            } else {
                self.late.note(request);
            }
        }
    }

    /// Tells of an access that was let through; only here it is known to happen.
    fn record(&self, request: &Request, source: Source) {
        if self.workspace.is_ignored(&self.workspace.root().join(&*request.path)) {
            return;
        }
        let touch = match request.action {
            Action::Read => Touch::Read,
            Action::Write => Touch::Write,
        };
        let (path, lines) = (Arc::clone(&request.path), Lines::default());
        let kind = ActivityKind::Touched { path, touch, source, lines };
        let session = request.key.session.clone();
        self.tracker.record(&self.agent, Activity { session, kind });
    }

    /// Whether a running tool call names what was tried, or does so in a moment. In place of a
    /// temporary file it is the file that the call names beside it.
    async fn is_named(
        &self,
        attempt: &mut Attempt,
        moment: &TurnContext,
        reply: &mut oneshot::Sender<bool>,
    ) -> bool {
        let mut news = self.running.news();
        if self.is_said_of(None, attempt) {
            return true;
        }
        // Without a turn there are no calls to wait for.
        let wait = moment.began.and_then(|began| self.patience.wait(attempt.pid, began));
        let Some(wait) = wait else { return false };
        let deadline = Instant::now() + wait;
        loop {
            let said = tokio::select! {
                said = news.recv() => said,
                () = tokio::time::sleep_until(deadline) => return false,
                () = release(moment, reply) => return false,
            };
            let is_named = match said {
                Ok(said) => self.is_said_of(Some(&said), attempt),
                Err(RecvError::Lagged(_)) => self.is_said_of(None, attempt),
                Err(RecvError::Closed) => return false,
            };
            if is_named {
                self.patience.reset(attempt.pid);
                return true;
            }
        }
    }

    fn is_said_of(&self, said: Option<&CallText>, attempt: &mut Attempt) -> bool {
        let bounds = self.bounds();
        let workspace = bounds.zone().workspace();
        if attempt.draft {
            let place = NamedPath { wire: &attempt.path, workspace };
            let of = said
                .map_or_else(|| self.running.names_beside(place), |said| said.names_beside(place));
            if let Some(of) = of {
                attempt.path = wire_real(workspace, &of).into();
                return true;
            }
        }
        self.is_said(said, &attempt.path)
    }

    /// Whether a path is named by what one call says, or by all that run.
    fn is_said(&self, said: Option<&CallText>, wire: &str) -> bool {
        let bounds = self.bounds();
        let place = NamedPath { wire, workspace: bounds.zone().workspace() };
        said.map_or_else(|| self.running.names(place), |said| said.names(place))
    }

    /// Tells of what was taken for swept and is named now: it was denied, and the next try like it
    /// may be granted.
    async fn record_late(&self, said: Option<&CallText>) {
        for request in self.late.take(|path| self.is_said(said, path)) {
            self.routing.record_intended(request).await;
        }
    }

    /// Has an access decided, for as long as anybody waits for it.
    async fn ask(
        &self,
        request: Request,
        moment: &TurnContext,
        reply: &mut oneshot::Sender<bool>,
    ) -> bool {
        let access = format!("{} {}", request.action, one_line(&request.path));
        let _waits = self.vitals.wait_for(&access);
        let settlement = self.routing.request(request);
        tokio::pin!(settlement);
        let settled = tokio::select! {
            settled = &mut settlement => settled,
            () = release(moment, reply) => {
                // What is denied at once is: it only has to be taken in.
                tokio::select! {
                    biased;
                    settled = &mut settlement => settled,
                    () = self.routing.settled(&self.agent) => None,
                }
            }
        };
        settled == Some(Settlement::Allowed)
    }
}

async fn record_late_loop(desk: Weak<HandlerState>, mut news: broadcast::Receiver<Arc<CallText>>) {
    loop {
        let said = match news.recv().await {
            Ok(said) => Some(said),
            Err(RecvError::Lagged(_)) => None,
            Err(RecvError::Closed) => return,
        };
        let Some(desk) = desk.upgrade() else { return };
        desk.record_late(said.as_deref()).await;
    }
}

/// Waits until nobody waits for the reply any more.
async fn release(moment: &TurnContext, reply: &mut oneshot::Sender<bool>) {
    tokio::select! {
        () = moment.over() => {}
        () = reply.closed() => {}
    }
}
