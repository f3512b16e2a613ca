//! Answers stopped calls, on a few threads for each listener, of which one waits for the next call: a
//! call that nobody has received is interrupted by each signal. A call that needs a decision or may
//! block is deferred, so that it delays no other.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, umask};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::calling_process::CallingProcess;
use super::identity::Identity;
use super::listener::{Listener, Notice};
use super::syscall::{Later, Stop, Syscall, SyscallReply};
use super::{Attempt, Confinement, PathMeaning, raw, words};
use crate::zone::Denied;

/// Calls of one process that may wait for a decision; further ones are denied at once.
const HELD_MAX: usize = 2;

/// Deferred calls of all processes behind one listener; further ones fail.
const DEFERRED_MAX: usize = 1024;

/// Deferred calls with a thread of their own: each also takes descriptors, which all agents share.
const LATER_MAX: usize = 64;

/// The name of threads that perform blocking calls.
const DEFERRED_THREAD: &str = "deferred";

/// How often a waiting call is checked for being abandoned.
const CHECK_CALLER: Duration = Duration::from_millis(500);

/// How often a path may change its meaning while its access is decided.
const GRANTS_MAX: usize = 16;

/// The doorbell behind one listener.
#[derive(Debug)]
pub struct Doorbell {
    listener: Listener,
    confinement: Arc<Confinement>,
    runtime: Handle,
    /// The number of deferred calls of each process.
    deferred: Mutex<HashMap<u32, usize>>,
    /// Cloned for each call with a thread of its own, to count them.
    later: Arc<()>,
    receivers: Mutex<Receivers>,
}

/// The threads that receive and answer calls.
#[derive(Debug, Default)]
struct Receivers {
    all: usize,
    /// Receivers that wait for a call.
    waiting: usize,
}

impl Doorbell {
    /// Serves a listener until no process is left under its filter. Must be called in a runtime.
    pub fn attend(listener: OwnedFd, confinement: Arc<Confinement>) -> io::Result<()> {
        raw::may_be_interrupted()?;
        let doorbell = Arc::new(Self {
            listener: Listener::new(listener),
            confinement,
            runtime: Handle::current(),
            deferred: Mutex::new(HashMap::new()),
            later: Arc::new(()),
            receivers: Mutex::default(),
        });
        doorbell.add_receiver()
    }

    fn add_receiver(self: &Arc<Self>) -> io::Result<()> {
        let doorbell = Arc::clone(self);
        self.receivers.lock().all += 1;
        let spawned =
            thread::Builder::new().name("doorbell".to_owned()).spawn(move || doorbell.run());
        if spawned.is_err() {
            self.receivers.lock().all -= 1;
        }
        spawned.map(drop)
    }

    fn run(self: Arc<Self>) {
        if let Err(error) = own_umask() {
            tracing::error!(%error, "a doorbell cannot be served: the calls that it stops fail");
            return;
        }
        let most = self.listener.receivers();
        loop {
            self.receivers.lock().waiting += 1;
            let received = self.listener.receive();
            let is_alone = {
                let mut receivers = self.receivers.lock();
                receivers.waiting -= 1;
                receivers.waiting == 0 && receivers.all < most
            };
            match received {
                Ok(Some(notice)) => {
                    if is_alone {
                        // Without another one the next call is received after this is answered.
                        let _ = self.add_receiver();
                    }
                    self.timed(notice);
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::error!(%error, "a doorbell failed: the calls that it stops fail from now on");
                    return;
                }
            }
        }
    }

    fn timed(self: &Arc<Self>, notice: Notice) {
        let keeper = self.confinement.keeper();
        let began = keeper.times_calls().then(Instant::now);
        self.ring(notice, Vec::new());
        if let Some(began) = began {
            keeper.took(began.elapsed());
        }
    }

    fn ring(self: &Arc<Self>, notice: Notice, granted: Vec<Denied>) {
        let caller = CallingProcess { notice, listener: &self.listener };
        match Syscall::new(caller, &self.confinement, &granted).handle() {
            Ok(SyscallReply::Later(act)) => self.later(notice, act),
            Ok(outcome) => self.answer(notice, Ok(outcome)),
            Err(Stop::Fails(errno)) => self.answer(notice, Err(errno)),
            Err(Stop::Outside { denied, real, arg, meaning, to_server }) => {
                let Ok(Identity { process: pid, .. }) = caller.identity() else {
                    return self.answer(notice, Err(Errno::EACCES));
                };
                let Denied { path, action, grantable } = denied.clone();
                let named = caller.names(&real, &arg);
                let may_wait = true;
                let mut attempt =
                    Attempt { path, action, grantable, pid, named, meaning, may_wait, to_server };
                let bounds = self.confinement.keeper().bounds();
                let meant = match meaning {
                    PathMeaning::Itself | PathMeaning::Above => None,
                    PathMeaning::Draft => caller.names_beside(&real),
                    PathMeaning::NewFolder => caller.names_below(&real),
                };
                if let Some(file) = meant {
                    attempt.named |= attempt.becomes(&file, &bounds);
                }
                let words = bounds.zone().advice(&real, denied.action);
                self.ask(notice, granted, denied, attempt, words);
            }
            // `Syscall::handle` has already retried with the caller's rights.
            Err(Stop::Rights(_)) => self.answer(notice, Err(Errno::EPERM)),
            // It has become `Stop::Outside`.
            Err(Stop::Elsewhere(_)) => self.answer(notice, Err(Errno::EACCES)),
        }
    }

    fn answer(&self, notice: Notice, outcome: Result<SyscallReply, Errno>) {
        match outcome {
            Ok(SyscallReply::Continue) => self.listener.continue_syscall(notice.id),
            Ok(SyscallReply::AddFd { file, close_on_exec }) => {
                self.listener.add_fd(notice.id, file, close_on_exec);
            }
            Ok(SyscallReply::Done | SyscallReply::Later(_)) => {
                self.listener.answer(notice.id, Ok(()));
            }
            Err(errno) => self.listener.answer(notice.id, Err(errno)),
        }
    }

    fn later(self: &Arc<Self>, notice: Notice, act: Later) {
        let caller = CallingProcess { notice, listener: &self.listener };
        let count = Arc::clone(&self.later);
        let has_room = Arc::strong_count(&count) <= LATER_MAX + 1;
        let process = caller.identity().ok().filter(|_| has_room).map(|of| of.process);
        let Some(deferred_call) = process.and_then(|process| self.defer(process)) else {
            return self.answer(notice, Err(Errno::EAGAIN));
        };
        let doorbell = Arc::clone(self);
        let (done, ended) = oneshot::channel();
        let spawned = thread::Builder::new().name(DEFERRED_THREAD.to_owned()).spawn(move || {
            doorbell.answer(notice, act());
            drop((deferred_call, count, done));
        });
        match spawned {
            Ok(thread) => {
                drop(
                    self.runtime
                        .spawn(Arc::clone(self).interrupt_if_abandoned(notice, thread, ended)),
                );
            }
            Err(_) => self.answer(notice, Err(Errno::EAGAIN)),
        }
    }

    /// Interrupts a thread whose caller is gone.
    async fn interrupt_if_abandoned(
        self: Arc<Self>,
        notice: Notice,
        thread: JoinHandle<()>,
        mut ended: oneshot::Receiver<()>,
    ) {
        loop {
            tokio::select! {
                _ = &mut ended => return,
                // A thread that does not block yet is interrupted the next time.
                () = tokio::time::sleep(CHECK_CALLER) => if !self.listener.waits(notice.id) {
                    raw::interrupt(&thread);
                },
            }
        }
    }

    /// Asks the doorkeeper about an access; only this call waits meanwhile. `words` are for the program that is denied it.
    fn ask(
        self: &Arc<Self>,
        notice: Notice,
        mut granted: Vec<Denied>,
        denied: Denied,
        mut attempt: Attempt,
        words: Option<String>,
    ) {
        let deferred_call = self.defer(attempt.pid).filter(|_| granted.len() < GRANTS_MAX);
        let Some(deferred_call) = deferred_call else {
            return self.answer(notice, Err(Errno::EACCES));
        };
        attempt.may_wait = deferred_call.number <= HELD_MAX;
        let (reply, decision) = oneshot::channel();
        self.confinement.keeper().blocked(attempt, reply);
        let doorbell = Arc::clone(self);
        self.runtime.spawn(async move {
            let passes = doorbell.decided(notice, decision).await;
            if !passes {
                return doorbell.refuse(notice, words, deferred_call);
            }
            drop(deferred_call);
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

    /// Refuses a call, behind words for its program: on a thread of their own, since a file may block.
    fn refuse(self: Arc<Self>, notice: Notice, words: Option<String>, of: DeferredCall) {
        let count = Arc::clone(&self.later);
        let has_room = Arc::strong_count(&count) <= LATER_MAX + 1;
        let doorbell = Arc::clone(&self);
        let spawned = words.filter(|_| has_room).map(|words| {
            thread::Builder::new().name(DEFERRED_THREAD.to_owned()).spawn(move || {
                words::tell(CallingProcess { notice, listener: &doorbell.listener }, &words);
                drop(of);
                doorbell.answer(notice, Err(Errno::EACCES));
                drop(count);
            })
        });
        if !matches!(spawned, Some(Ok(_))) {
            self.answer(notice, Err(Errno::EACCES));
        }
    }

    /// Waits for a decision as long as the call does.
    async fn decided(&self, notice: Notice, mut decision: oneshot::Receiver<bool>) -> bool {
        loop {
            tokio::select! {
                decided = &mut decision => return decided.unwrap_or(false),
                () = tokio::time::sleep(CHECK_CALLER) => if !self.listener.waits(notice.id) {
                    return false;
                },
            }
        }
    }

    fn defer(self: &Arc<Self>, process: u32) -> Option<DeferredCall> {
        let mut deferred = self.deferred.lock();
        if deferred.values().sum::<usize>() >= DEFERRED_MAX {
            return None;
        }
        let number = deferred.entry(process).or_default();
        *number += 1;
        Some(DeferredCall { doorbell: Arc::clone(self), process, number: *number })
    }
}

/// Counts a call as deferred until dropped.
struct DeferredCall {
    doorbell: Arc<Doorbell>,
    process: u32,
    /// The number of deferred calls of its process, with this one.
    number: usize,
}

impl Drop for DeferredCall {
    fn drop(&mut self) {
        let mut deferred = self.doorbell.deferred.lock();
        if let Some(number) = deferred.get_mut(&self.process) {
            *number -= 1;
            if *number == 0 {
                deferred.remove(&self.process);
            }
        }
    }
}

/// Gives this thread its own empty umask, since the caller's is applied explicitly.
fn own_umask() -> io::Result<()> {
    unshare(CloneFlags::CLONE_FS)?;
    umask(Mode::empty());
    Ok(())
}
