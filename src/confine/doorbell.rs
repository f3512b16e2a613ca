//! Answers what rings: one thread for each listener. What must be asked about or may take its time
//! is put aside, so that no call waits for another's answer.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, umask};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::call::{Later, Stop, Syscall, SyscallReply};
use super::caller::Caller;
use super::identity::Identity;
use super::listener::{Listener, Notice};
use super::{Attempt, Confinement, raw};
use crate::model::wire_real;
use crate::zone::Denied;

/// Calls of one process that may wait for a decision; a further one may not.
const HELD_MAX: usize = 2;

/// Calls of all processes behind one listener that are put aside; past that they fail.
const ASIDE_MAX: usize = 1024;

/// Of those, the ones that are done on a thread of their own: each takes descriptors too, of which
/// all agents share what the supervisor may have.
const LATER_MAX: usize = 64;

/// What threads are called that do what takes its time.
const ASIDE: &str = "aside";

/// How often is looked whether a call that waits was abandoned.
const STILL_THERE: Duration = Duration::from_millis(500);

/// How often a path may change what it means while its access is asked about.
const GRANTS_MAX: usize = 16;

/// Behind one listener.
#[derive(Debug)]
pub struct Doorbell {
    listener: Listener,
    confinement: Arc<Confinement>,
    runtime: Handle,
    /// Calls that were put aside, of each process.
    aside: Mutex<HashMap<u32, usize>>,
    /// One for each call that is done later.
    later: Arc<()>,
}

impl Doorbell {
    /// Attends a listener until no process is left that could ring. To be called in a runtime.
    pub fn attend(listener: OwnedFd, confinement: Arc<Confinement>) -> io::Result<()> {
        raw::may_be_interrupted()?;
        let doorbell = Arc::new(Self {
            listener: Listener::new(listener),
            confinement,
            runtime: Handle::current(),
            aside: Mutex::new(HashMap::new()),
            later: Arc::new(()),
        });
        thread::Builder::new().name("doorbell".to_owned()).spawn(move || doorbell.run())?;
        Ok(())
    }

    fn run(self: Arc<Self>) {
        if let Err(error) = own_umask() {
            tracing::error!(%error, "a doorbell cannot be attended: what rings it fails");
            return;
        }
        loop {
            match self.listener.receive() {
                Ok(Some(notice)) => self.ring(notice, Vec::new()),
                Ok(None) => return,
                Err(error) => {
                    tracing::error!(%error, "a doorbell broke: what rings it fails from now on");
                    return;
                }
            }
        }
    }

    fn ring(self: &Arc<Self>, notice: Notice, granted: Vec<Denied>) {
        let caller = Caller { notice, listener: &self.listener };
        match Syscall::new(caller, &self.confinement, &granted).handle() {
            Ok(SyscallReply::Later(act)) => self.later(notice, act),
            Ok(outcome) => self.answer(notice, Ok(outcome)),
            Err(Stop::Fails(errno)) => self.answer(notice, Err(errno)),
            Err(Stop::Outside { denied, real, spoken, draft }) => {
                let Ok(Identity { process: pid, .. }) = caller.identity() else {
                    return self.answer(notice, Err(Errno::EACCES));
                };
                let Denied { path, action, grantable } = denied.clone();
                let named = caller.names(&real, &spoken);
                let mut attempt =
                    Attempt { path, action, grantable, pid, named, draft, may_wait: true };
                if let Some(of) = draft.then(|| caller.names_beside(&real)).flatten() {
                    // That is the file which the caller means.
                    let bounds = self.confinement.keeper().bounds();
                    attempt.path = wire_real(bounds.zone().workspace(), &of).into();
                    attempt.named = true;
                }
                self.ask(notice, granted, denied, attempt);
            }
            // Only the superuser is stopped for its rights, and only once.
            Err(Stop::Rights(_)) => self.answer(notice, Err(Errno::EPERM)),
        }
    }

    fn answer(&self, notice: Notice, outcome: Result<SyscallReply, Errno>) {
        match outcome {
            Ok(SyscallReply::Continue) => self.listener.continue_syscall(notice.id),
            Ok(SyscallReply::AddFd { file, close_on_exec }) => {
                self.listener.add_fd(notice.id, &file, close_on_exec);
            }
            Ok(SyscallReply::Done | SyscallReply::Later(_)) => {
                self.listener.answer(notice.id, Ok(()));
            }
            Err(errno) => self.listener.answer(notice.id, Err(errno)),
        }
    }

    fn later(self: &Arc<Self>, notice: Notice, act: Later) {
        let caller = Caller { notice, listener: &self.listener };
        let count = Arc::clone(&self.later);
        let has_room = Arc::strong_count(&count) <= LATER_MAX + 1;
        let process = caller.identity().ok().filter(|_| has_room).map(|of| of.process);
        let Some(place) = process.and_then(|process| self.defer(process)) else {
            return self.answer(notice, Err(Errno::EAGAIN));
        };
        let doorbell = Arc::clone(self);
        let (done, ended) = oneshot::channel();
        let spawned = thread::Builder::new().name(ASIDE.to_owned()).spawn(move || {
            doorbell.answer(notice, act());
            drop((place, count, done));
        });
        match spawned {
            Ok(thread) => {
                drop(self.runtime.spawn(Arc::clone(self).attended(notice, thread, ended)));
            }
            Err(_) => self.answer(notice, Err(Errno::EAGAIN)),
        }
    }

    /// Breaks off what a thread waits for when its caller is gone.
    async fn attended(
        self: Arc<Self>,
        notice: Notice,
        thread: JoinHandle<()>,
        mut ended: oneshot::Receiver<()>,
    ) {
        loop {
            tokio::select! {
                _ = &mut ended => return,
                // It may not have begun to wait: then the next one meets it.
                () = tokio::time::sleep(STILL_THERE) => if !self.listener.waits(notice.id) {
                    raw::interrupt(&thread);
                },
            }
        }
    }

    /// Asks whether an access may pass; the call waits meanwhile, and nobody else does.
    fn ask(
        self: &Arc<Self>,
        notice: Notice,
        mut granted: Vec<Denied>,
        denied: Denied,
        mut attempt: Attempt,
    ) {
        let place = self.defer(attempt.pid).filter(|_| granted.len() < GRANTS_MAX);
        let Some(place) = place else {
            return self.answer(notice, Err(Errno::EACCES));
        };
        attempt.may_wait = place.number <= HELD_MAX;
        let (reply, decision) = oneshot::channel();
        self.confinement.keeper().blocked(attempt, reply);
        let doorbell = Arc::clone(self);
        self.runtime.spawn(async move {
            let passes = doorbell.decided(notice, decision).await;
            drop(place);
            if !passes {
                return doorbell.answer(notice, Err(Errno::EACCES));
            }
            granted.push(denied);
            let again = Arc::clone(&doorbell);
            let spawned = thread::Builder::new().spawn(move || {
                if own_umask().is_ok() {
                    again.ring(notice, granted);
                }
            });
            if spawned.is_err() {
                doorbell.answer(notice, Err(Errno::EAGAIN));
            }
        });
    }

    /// Waits for a decision while the call does.
    async fn decided(&self, notice: Notice, mut decision: oneshot::Receiver<bool>) -> bool {
        loop {
            tokio::select! {
                decided = &mut decision => return decided.unwrap_or(false),
                () = tokio::time::sleep(STILL_THERE) => if !self.listener.waits(notice.id) {
                    return false;
                },
            }
        }
    }

    fn defer(self: &Arc<Self>, process: u32) -> Option<DeferredCall> {
        let mut aside = self.deferred();
        if aside.values().sum::<usize>() >= ASIDE_MAX {
            return None;
        }
        let number = aside.entry(process).or_default();
        *number += 1;
        Some(DeferredCall { doorbell: Arc::clone(self), process, number: *number })
    }

    fn deferred(&self) -> MutexGuard<'_, HashMap<u32, usize>> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that was put aside, until dropped.
struct DeferredCall {
    doorbell: Arc<Doorbell>,
    process: u32,
    /// How many calls of its process are.
    number: usize,
}

impl Drop for DeferredCall {
    fn drop(&mut self) {
        let mut aside = self.doorbell.deferred();
        if let Some(number) = aside.get_mut(&self.process) {
            *number -= 1;
            if *number == 0 {
                aside.remove(&self.process);
            }
        }
    }
}

/// Gives this thread a umask of its own: none, since the caller's is reckoned in.
fn own_umask() -> io::Result<()> {
    unshare(CloneFlags::CLONE_FS)?;
    umask(Mode::empty());
    Ok(())
}
