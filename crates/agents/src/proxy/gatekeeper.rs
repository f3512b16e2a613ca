//! The gate: judges an agent's requests by its zone, and keeps those that wait for a decision.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{AbortHandle, AbortRegistration};

use super::{Gatekeeping, LiveCalls, Rules};
use crate::conflicts::LockWait;
use crate::extract::{Access, Ask, Refusal, Target};
use crate::model::{
    Action, AgentId, AgentMemory, SessionId, SessionKey, UsedMemory, Via, fold, is_of_system,
    within,
};
use crate::routing::{AccessScope, Making, Request, Settlement};
use crate::zone::{Denied, Permit};

/// Requests that may wait for a decision at once, and the bytes of their lines; beyond either, or what the agent's
/// memory has room for, a further one is refused at once.
const MAX_HELD: usize = 65_536;
const MAX_HELD_BYTES: usize = 256 * 1024 * 1024;

/// A request that is held until it is decided.
pub(super) struct HeldRequest {
    pub(super) line: Bytes,
    pub(super) ask: Ask,
    /// The denied accesses that were granted to this request so far.
    granted: Vec<Denied>,
    /// The orchestrator approved the permission request.
    approved: bool,
    /// The access that is being decided.
    denied: Denied,
    /// The pattern of `denied` that matches the access.
    denied_by: Option<Arc<str>>,
    /// The zone allows it; it is held only for the orchestrator's approval.
    covered: bool,
    /// The access is a search of all below the path.
    searches: bool,
    /// The memory that its line takes while it waits.
    memory: Option<UsedMemory>,
}

impl HeldRequest {
    /// The path that is being decided.
    pub(super) fn path(&self) -> Arc<str> {
        self.denied.path.clone()
    }

    /// The request to routing for this access.
    pub(super) fn request(&self, agent: &AgentId) -> Request {
        Request {
            key: SessionKey::new(agent.clone(), self.ask.session.clone()),
            path: self.denied.path.clone(),
            action: self.denied.action,
            via: self.ask.via,
            scope: match (self.covered, self.searches) {
                (true, _) => AccessScope::Inside,
                (false, true) => AccessScope::Below,
                (false, false) => AccessScope::Path,
            },
            making: Making::Nothing,
            hold: self.covered,
            may_wait: true,
            grantable: self.denied.grantable,
            denied_by: self.denied_by.clone(),
            caller: None,
            call: None,
            patience: None,
            reason: None,
            wanted: None,
        }
    }
}

/// The result of gating a request.
pub(super) enum GateAction {
    Pass(Bytes),
    /// Parsers could read the line differently; `replies` inform the agent.
    Drop {
        why: &'static str,
        /// The beginning of the line, for the log.
        line: Bytes,
        replies: Vec<Bytes>,
    },
    Refuse(Ask, Refusal),
    Hold(HeldRequest),
    /// Another agent has the file locked.
    AwaitLock(HeldRequest, Box<LockWait>),
}

/// The requests that wait for a decision, each under a number.
#[derive(Default)]
pub(super) struct HeldRequests {
    held: HashMap<u64, (HeldRequest, AbortHandle)>,
    bytes: usize,
    last: u64,
}

impl Gatekeeping {
    /// Judges a request. Accesses that are left to the kernel are withheld by `running`.
    pub(super) fn judge(&self, line: Bytes, ask: Ask, running: Option<&LiveCalls>) -> GateAction {
        let held = HeldRequest {
            line,
            ask,
            granted: Vec::new(),
            approved: false,
            denied: Denied { path: "".into(), action: Action::Read, grantable: true },
            denied_by: None,
            covered: false,
            searches: false,
            memory: None,
        };
        self.judge_again(held, running)
    }

    /// Records that the access in question was allowed, and judges the others.
    pub(super) fn allowed(&self, mut held: HeldRequest, running: Option<&LiveCalls>) -> GateAction {
        if held.covered {
            held.approved = true;
        } else {
            held.granted.push(held.denied.clone());
        }
        self.judge_again(held, running)
    }

    /// Judges a request with what was granted to it so far.
    pub(super) fn judge_again(
        &self,
        mut held: HeldRequest,
        running: Option<&LiveCalls>,
    ) -> GateAction {
        let rules = self.rules.borrow().clone();
        if held.ask.via == Via::Terminal && !rules.zone.terminals() {
            return GateAction::Refuse(held.ask, Refusal::NoTerminals);
        }
        match permits(&rules, &held, running) {
            Err((denied, target)) => {
                held.denied_by = match target {
                    Target::Search => rules.zone.search_denied_by(&denied.path),
                    Target::File(_) | Target::Cwd => rules.zone.denied_by(&denied.path),
                };
                held.searches = matches!(target, Target::Search);
                (held.denied, held.covered) = (denied, false);
                GateAction::Hold(held)
            }
            Ok(granted) => {
                if held.ask.is_team_tool && rules.has_tools {
                    // The host grants it by this mark.
                    if let (Some(permits), Some(id)) = (&self.permits, &held.ask.id) {
                        permits.leave(id.get(), Vec::new());
                    }
                    return GateAction::Pass(held.line);
                }
                let asks_orchestrator = held.ask.via == Via::Permission
                    && rules.orchestrator_permits
                    && !self.asks_editor(&held.ask.session);
                if asks_orchestrator && !held.approved && held.granted.is_empty() {
                    held.denied = first_path(&held.ask, &granted, rules.zone.workspace());
                    (held.denied_by, held.covered) = (None, true);
                    return GateAction::Hold(held);
                }
                let held = match self.contend(held, &granted) {
                    Ok(held) => held,
                    Err(contended) => return *contended,
                };
                if let (Some(permits), Some(id)) = (&self.permits, &held.ask.id)
                    && held.ask.via != Via::Permission
                {
                    permits.leave(id.get(), granted);
                }
                GateAction::Pass(held.line)
            }
        }
    }

    /// Whether an access that the zone does not allow is one that neither the gate nor the kernel keeps a program
    /// from: the system's own places, and what the kernel leaves to all programs of the agent. What a tool call
    /// names that is no program, the gate would have denied.
    pub(super) fn is_let_pass(&self, denied: &Denied, by_program: bool) -> bool {
        let rules = self.rules.borrow();
        let path = Path::new(&*denied.path);
        if !path.is_absolute() || rules.zone.denied_by(&denied.path).is_some() {
            return false;
        }
        denied.action == Action::Read && is_of_system(path)
            || by_program
                && rules.bounds.as_ref().is_some_and(|it| it.judge(path, denied.action).is_ok())
    }

    fn asks_editor(&self, session: &SessionId) -> bool {
        self.permits.as_ref().is_some_and(|permits| permits.is_editors(session))
    }
}

/// Judges all accesses of a request; a denied one is returned with its target.
fn permits(
    rules: &Rules,
    held: &HeldRequest,
    running: Option<&LiveCalls>,
) -> Result<Vec<Permit>, (Denied, Target)> {
    let Rules { zone, bounds, .. } = rules;
    let judge = |access: &Access| {
        let granted = |denied: &Denied| {
            held.granted.contains(denied)
                || is_left_to_kernel(rules, &held.ask, access, denied, running)
        };
        match access.target {
            Target::File(action) => zone.check_granted(&access.path, action, &granted),
            // Where the kernel enforces the zone, a search skips the files that it must not read.
            Target::Search if bounds.is_none() => zone.check_search_granted(&access.path, &granted),
            Target::Cwd | Target::Search => zone.check_cwd_granted(&access.path, &granted),
        }
    };
    let judge = |access: &Access| judge(access).map_err(|denied| (denied, access.target));
    held.ask.accesses.iter().map(judge).collect()
}

/// Whether a command names a missing folder, and a file to write in it: the folder is part of the question about the
/// file. The kernel lets nothing but the folder be made there.
fn is_folder_for_another(ask: &Ask, folder: &Access) -> bool {
    let writes = |access: &Access| matches!(access.target, Target::File(Action::Write));
    let path = fold(&folder.path);
    let is_within = |other: &Access| {
        let other = fold(&other.path);
        other != path && within(&path, &other).is_some()
    };
    writes(folder)
        && path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
        && ask.accesses.iter().any(|other| writes(other) && is_within(other))
}

/// Whether a request is forwarded though the zone denies an access that it names: the kernel refuses
/// or holds the access itself. So are paths outside the workspace that the text of a terminal's command names,
/// and permission requests. Many agents end their turn on a denied permission, but all continue
/// after a file that cannot be opened.
fn is_left_to_kernel(
    rules: &Rules,
    ask: &Ask,
    asked: &Access,
    denied: &Denied,
    running: Option<&LiveCalls>,
) -> bool {
    let (Some(bounds), Some(running)) = (&rules.bounds, running) else { return false };
    let real = bounds.zone().workspace().join(&*denied.path);
    if ask.via == Via::Terminal {
        // The text names it, which a shell of the agent's own would not even show: a terminal is confined as that
        // is.
        return matches!(asked.target, Target::File(_)) && !bounds.is_inside(&real)
            || is_folder_for_another(ask, asked);
    }
    // The orchestrator decides permission requests itself.
    if ask.via != Via::Permission || rules.orchestrator_permits {
        return false;
    }
    match asked.target {
        _ if bounds.judge(&real, denied.action).is_err() => true,
        // Folders may be listed, and their files are judged one by one; outside the workspace only
        // files that the same request names.
        Target::Cwd | Target::Search => {
            let is_in_it = |access: &Access| {
                matches!(access.target, Target::File(_))
                    && access.path.parent() == Some(&*asked.path)
            };
            bounds.is_inside(&real) || ask.accesses.iter().any(is_in_it)
        }
        // Outside the workspace the wall allows more than the zone does.
        Target::File(action) => {
            let withhold = |action| running.withhold(&ask.session, &real, action);
            // An access judged as a write may be a read, since some agents don't say which.
            let may_read =
                action == Action::Read || bounds.zone().check(&real, Action::Read).is_ok();
            withhold(action) && (may_read || withhold(Action::Read))
        }
    }
}

impl HeldRequests {
    /// Keeps a request, or returns it if too many wait. The future that awaits its decision must
    /// use the registration: taking the request aborts it, and routing notices.
    pub(super) fn keep(
        &mut self,
        mut held: HeldRequest,
        memory: Option<&AgentMemory>,
    ) -> Result<(u64, AbortRegistration), Box<HeldRequest>> {
        let bytes = self.bytes + held.line.len();
        if self.held.len() >= MAX_HELD || bytes > MAX_HELD_BYTES {
            return Err(Box::new(held));
        }
        held.memory = match memory.map(|memory| memory.take(held.line.len() as u64)).transpose() {
            Ok(memory) => memory,
            Err(_) => return Err(Box::new(held)),
        };
        self.bytes = bytes;
        self.last += 1;
        // Copied, since a slice would keep its whole block in memory.
        held.line = Bytes::copy_from_slice(&held.line);
        let (abort, registration) = AbortHandle::new_pair();
        self.held.insert(self.last, (held, abort));
        Ok((self.last, registration))
    }

    pub(super) fn take(&mut self, number: u64) -> Option<HeldRequest> {
        let (held, abort) = self.held.remove(&number)?;
        abort.abort();
        self.bytes -= held.line.len();
        Some(held)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns the requests of a session.
    pub(super) fn of_session(&self, session: &SessionId) -> Vec<u64> {
        self.numbers(|held| held.ask.session == *session)
    }

    /// Returns the requests with this id, given as its JSON.
    pub(super) fn of_request(&self, id: &str) -> Vec<u64> {
        self.numbers(|held| held.ask.id.as_ref().is_some_and(|own| own.get() == id))
    }

    pub(super) fn all(&self) -> Vec<u64> {
        self.numbers(|_| true)
    }

    fn numbers(&self, which: impl Fn(&HeldRequest) -> bool) -> Vec<u64> {
        let mut numbers: Vec<_> = self
            .held
            .iter()
            .filter(|(_, (held, _))| which(held))
            .map(|(number, _)| *number)
            .collect();
        // In the order of arrival.
        numbers.sort_unstable();
        numbers
    }
}

/// The settlement of a request when routing has ended.
pub(super) fn orphaned() -> Settlement {
    Settlement::Denied {
        id: crate::model::BlockedId::new(""),
        owners: Vec::new(),
        message: Some("The team is stopping.".to_owned()),
    }
}

/// Returns the access that a permission request with no denied path stands for.
fn first_path(ask: &Ask, permits: &[Permit], workspace: &Path) -> Denied {
    let Some((access, permit)) = ask.accesses.iter().zip(permits).next() else {
        return Denied { path: "".into(), action: Action::Write, grantable: true };
    };
    let action = match access.target {
        Target::File(action) => action,
        Target::Cwd | Target::Search => Action::Read,
    };
    let path = crate::model::wire_real(workspace, &permit.real).into();
    Denied { path, action, grantable: true }
}
