//! The doorkeeper of one agent: reports accesses that the doorbell let through as activities,
//! routes the others as blocked accesses, and separates intended from incidental attempts.

mod contention;
mod grace_period;
mod late;
mod losses;
mod named_paths;
mod passes;
#[cfg(test)]
mod tests;
mod uses;

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::{oneshot, watch};

use self::contention::Contention;
use self::grace_period::GracePeriods;
use self::late::Late;
use self::passes::Passing;
use self::uses::Observing;
use crate::capture::{RunFiles, Stamp};
use crate::confine::{Attempt, Doorkeeper, FileCall, PathMeaning};
use crate::conflicts::AgentConflicts;
use crate::extract::Workspace;
use crate::metrics::Tally;
use crate::model::{
    Action, Activity, ActivityKind, AgentId, Lines, SERVER, SessionKey, Source, Touch, Via,
    one_line,
};
use crate::proxy::{CallText, LiveCalls, Rules, TurnContext, Vitals};
use crate::routing::{AccessScope, Making, Request, RoutingHandle, Settlement};
use crate::tracker::TrackerHandle;
use crate::zone::Bounds;

/// The parts of a [`AgentDoorkeeper`].
pub struct DoorkeeperConfig {
    pub agent: AgentId,
    /// The bounds at the agent's start, used where the rules have none.
    pub bounds: Arc<Bounds>,
    /// The rules in force; they may change during the run.
    pub rules: watch::Receiver<Rules>,
    pub routing: RoutingHandle,
    pub tracker: TrackerHandle,
    /// Shared with the agent's relay.
    pub running: Arc<LiveCalls>,
    pub vitals: Arc<Vitals>,
    /// Names the files that are kept out of the map.
    pub workspace: Arc<dyn Workspace>,
    /// Report the files that the agent opens.
    pub observe_files: bool,
    /// After this time the agent ends a shell command by itself.
    pub patience: Option<Duration>,
    /// Captures the files that it writes; None without a journal.
    pub files: Option<RunFiles>,
    /// Locks of files; None: conflicts are not looked for.
    pub conflicts: Option<AgentConflicts>,
    /// Counts the stopped calls, once somebody reads that.
    pub tally: Arc<Tally>,
    /// Returns the age of a process.
    pub age: fn(u32) -> Option<Duration>,
    /// The doorbell's threads run outside the runtime.
    pub handle: Handle,
}

/// The doorkeeper of one run of an agent and of its terminals.
pub struct AgentDoorkeeper {
    state: Arc<HandlerState>,
    passing: Option<Passing>,
    observing: Observing,
    files: Option<RunFiles>,
    tally: Arc<Tally>,
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
    grace: GracePeriods,
    patience: Option<Duration>,
    late: Late,
    vitals: Arc<Vitals>,
    contention: Option<Contention>,
    files: Option<RunFiles>,
}

impl AgentDoorkeeper {
    pub fn new(config: DoorkeeperConfig) -> Arc<Self> {
        let DoorkeeperConfig {
            agent,
            bounds,
            rules,
            routing,
            tracker,
            running,
            vitals,
            workspace,
            files,
            conflicts,
            tally,
            ..
        } = config;
        let contention = conflicts.map(|it| Contention::new(it, workspace.clone()));
        let passing = config.observe_files.then(|| {
            let (tracker, workspace) = (tracker.clone(), workspace.clone());
            let (passing, task) = Passing::new(agent.clone(), tracker, running.clone(), workspace);
            config.handle.spawn(task);
            passing
        });
        let (observing, uses) = Observing::new(agent.clone(), tracker.clone(), running.clone());
        config.handle.spawn(uses);
        let news = running.news();
        let state = Arc::new(HandlerState {
            agent,
            bounds,
            rules,
            routing,
            running,
            vitals,
            tracker,
            workspace,
            grace: GracePeriods::new(config.age),
            patience: config.patience,
            late: Late::default(),
            contention,
            files: files.clone(),
        });
        config.handle.spawn(record_late_loop(Arc::downgrade(&state), news));
        Arc::new(Self { state, passing, observing, files, tally, handle: config.handle })
    }
}

impl Doorkeeper for AgentDoorkeeper {
    fn bounds(&self) -> Arc<Bounds> {
        self.state.bounds()
    }

    fn withholds(&self, real: &Path, action: Action) -> bool {
        self.state.running.withholds(real, action)
            || action == Action::Write && self.state.is_locked(real)
            || self.state.loses(real, action)
    }

    fn passed(&self, path: Arc<str>, action: Action) {
        if let Some(contention) = self.state.contention.as_ref().filter(|_| action == Action::Read)
        {
            contention.read(&self.state.running.moment().session, &path);
        }
        if let Some(passing) = &self.passing {
            passing.passed(path, action);
        }
    }

    fn observes(&self) -> bool {
        self.state.rules.borrow().zone.written().is_some()
    }

    fn used(&self, process: u32, real: &Path, action: Action, is_named: &dyn Fn() -> bool) {
        let written = self.state.rules.borrow().zone.written().cloned();
        if let Some(written) = written {
            self.observing.used(&written, process, (real, action), is_named);
        }
    }

    fn changes(&self, process: u32, call: FileCall<'_>) {
        self.state.lock(call);
        let Some(files) = &self.files else { return };
        match call {
            FileCall::Write(path, stat) => files.writes(process, path, Some(Stamp::of(stat))),
            FileCall::Mode(path, stat) => files.marks(process, path, Stamp::of(stat)),
            FileCall::Name(path) => files.writes(process, path, None),
            FileCall::Link { of, name } => files.names(process, of, name),
            FileCall::Remove(path) => files.removes(process, path),
            FileCall::Rename { from, to, exchanges: false } => files.renames(process, from, to),
            FileCall::Rename { from, to, exchanges: true } => files.exchanges(process, from, to),
        }
    }

    fn times_calls(&self) -> bool {
        self.tally.is_read()
    }

    fn took(&self, time: Duration) {
        self.tally.rang(time);
    }

    fn blocked(&self, attempt: Attempt, reply: oneshot::Sender<bool>) {
        let context = self.state.running.moment();
        self.handle.spawn(Arc::clone(&self.state).decide(attempt, context, reply));
    }
}

impl HandlerState {
    fn bounds(&self) -> Arc<Bounds> {
        self.rules.borrow().bounds.clone().unwrap_or_else(|| Arc::clone(&self.bounds))
    }

    /// Decides an attempt. Dropping `reply` denies it.
    async fn decide(
        self: Arc<Self>,
        mut attempt: Attempt,
        context: TurnContext,
        mut reply: oneshot::Sender<bool>,
    ) {
        if !self.may_lose(&attempt, &context, &mut reply).await {
            let _ = reply.send(false);
            return;
        }
        if self.is_contended(&attempt) {
            let passes = self.contend(&attempt, &context, &mut reply).await;
            let _ = reply.send(passes);
            if passes {
                self.record_write(&context.session, &attempt.path);
            }
            return;
        }
        let is_intended = self.is_intended(&mut attempt, &context, &mut reply).await;
        let making = match attempt.meaning {
            PathMeaning::Itself | PathMeaning::Draft => Making::Nothing,
            PathMeaning::NewFolder => Making::Folder,
            PathMeaning::Above => Making::Parent,
        };
        let call = self.call_of(&context.session, &attempt.path);
        let request = Request {
            key: SessionKey::new(self.agent.clone(), context.session.clone()),
            denied_by: if attempt.to_server {
                Some(SERVER.into())
            } else {
                self.bounds().zone().denied_by(&attempt.path)
            },
            path: attempt.path,
            action: attempt.action,
            via: Via::Kernel,
            scope: AccessScope::Path,
            making,
            hold: false,
            may_wait: attempt.may_wait,
            grantable: attempt.grantable,
            caller: Some(attempt.pid),
            call,
            patience: None,
            reason: None,
            wanted: None,
        };
        if is_intended {
            let allowed = self.ask(request.clone(), &context, &mut reply).await;
            // The folder of a file is no access of its own.
            if allowed && making != Making::Parent {
                self.record(&request, Source::Tool);
            }
            let _ = reply.send(allowed);
            return;
        }
        let is_harmless = self.is_harmless(&request, &context);
        let turn = context.turn;
        let allowed = self.routing.record_incidental(request.clone(), turn, is_harmless).await;
        let _ = reply.send(allowed);
        if allowed {
            self.record(&request, Source::Kernel);
        } else if context.began.is_some() {
            // A call may have named the path meanwhile.
            if self.is_named_by(None, &request.path) {
                self.routing.record_intended(request).await;
            } else {
                self.late.note(request);
            }
        }
    }

    /// Records an access that was let through; no other code sees that it happens.
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

    /// Records attempts as intended that were denied as incidental and that a call names now. The
    /// next attempt may be granted.
    async fn record_late(&self, call: Option<&CallText>) {
        for request in self.late.take(|path| self.is_named_by(call, path)) {
            self.routing.record_intended(request).await;
        }
    }

    /// How long the agent waits at most for the shell command that makes an access. What the agent's own process
    /// does has no such limit.
    fn patience_left(&self, request: &Request, context: &TurnContext) -> Option<Duration> {
        let (patience, turn) = (self.patience?, context.began?);
        let since = self.grace.age_in(request.caller?, turn)?;
        let call = request.call.as_deref();
        let call = call.and_then(|call| self.running.since(&request.key.session, call));
        Some(patience.saturating_sub(call.map_or(since, |call| call.max(since))))
    }

    /// Requests a decision, and waits for as long as the caller does.
    async fn ask(
        &self,
        request: Request,
        context: &TurnContext,
        reply: &mut oneshot::Sender<bool>,
    ) -> bool {
        let request = Request { patience: self.patience_left(&request, context), ..request };
        let access = format!("{} {}", request.action, one_line(&request.path));
        let _waits = self.vitals.wait_for(&access);
        let settlement = self.routing.request(request);
        tokio::pin!(settlement);
        let settled = tokio::select! {
            settled = &mut settlement => settled,
            () = release(context, reply) => {
                // An immediate denial only needs the routing task to have handled the request.
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

async fn record_late_loop(state: Weak<HandlerState>, mut news: broadcast::Receiver<Arc<CallText>>) {
    loop {
        let call = match news.recv().await {
            Ok(call) => Some(call),
            Err(RecvError::Lagged(_)) => None,
            Err(RecvError::Closed) => return,
        };
        let Some(state) = state.upgrade() else { return };
        state.record_late(call.as_deref()).await;
    }
}

/// Waits until the turn is over or the caller has gone.
async fn release(context: &TurnContext, reply: &mut oneshot::Sender<bool>) {
    tokio::select! {
        () = context.over() => {}
        () = reply.closed() => {}
    }
}
