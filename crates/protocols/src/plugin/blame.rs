//! Owns the report that names the plugin in whose call this process crashes or exits. It does not
//! see `_exit`, nor crashes of threads that a plugin made.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::{Once, OnceLock};

use nix::libc::{self, c_int};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Signals that a fault raises.
const FATAL: [Signal; 5] =
    [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGILL, Signal::SIGFPE, Signal::SIGABRT];

/// Their handlers before ours.
static BEFORE: [OnceLock<SigAction>; 5] = [const { OnceLock::new() }; 5];

/// How long the report waits for standard error to be writable, in milliseconds.
const PATIENCE: c_int = 1000;

thread_local! {
    static CALL: Cell<Option<ActiveCall>> = const { Cell::new(None) };
}

#[derive(Clone, Copy)]
struct ActiveCall {
    /// Lives as long as the call.
    plugin: *const str,
    what: &'static str,
}

/// Makes a call, and names the plugin if the process ends in it.
pub(super) fn during<T>(plugin: &str, what: &'static str, call: impl FnOnce() -> T) -> T {
    static WATCH: Once = Once::new();
    WATCH.call_once(watch);
    let _around = Restored(CALL.replace(Some(ActiveCall { plugin, what })));
    call()
}

struct Restored(Option<ActiveCall>);

impl Drop for Restored {
    fn drop(&mut self) {
        CALL.set(self.0);
    }
}

fn watch() {
    for (signal, before) in FATAL.into_iter().zip(&BEFORE) {
        let handler = SigHandler::Handler(crashed);
        let action = SigAction::new(handler, SaFlags::SA_ONSTACK, SigSet::empty());
        // SAFETY: the handler calls only async-signal-safe functions.
        if let Ok(old) = unsafe { sigaction(signal, &action) } {
            let _ = before.set(old);
        }
    }
    // SAFETY: the function stays loaded until the process ends.
    unsafe { libc::atexit(exits) };
}

/// Reports the running call, and leaves the signal to the handler before ours.
extern "C" fn crashed(number: c_int) {
    let place = FATAL.iter().position(|signal| *signal as c_int == number);
    let Some(place) = place else { return };
    if let Some(call) = CALL.get() {
        report(call, &["crashed (", FATAL[place].as_str(), ")"]);
    }
    if let Some(before) = BEFORE[place].get() {
        // SAFETY: that action was in force before.
        let _ = unsafe { sigaction(FATAL[place], before) };
    }
    // SAFETY: it is delivered as this handler returns.
    unsafe { libc::raise(number) };
}

extern "C" fn exits() {
    if let Some(call) = CALL.get() {
        report(call, &["ended this process (exit)"]);
    }
}

/// Writes to standard error without locks or allocation.
fn report(call: ActiveCall, did: &[&str]) {
    // SAFETY: the caller of `during` holds it, and waits for the call.
    let plugin = unsafe { &*call.plugin };
    let (mut text, mut length) = ([0_u8; 512], 0);
    let parts = ["error: the plugin ", plugin, " "].into_iter().chain(did.iter().copied());
    let parts =
        parts.chain([" in `", call.what, "`, and takes the team with it: let it run with "]);
    for part in parts.chain(["isolation = \"process\"\n"]) {
        let room = &mut text[length..];
        let count = part.len().min(room.len());
        room[..count].copy_from_slice(&part.as_bytes()[..count]);
        length += count;
    }
    let mut ready = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: both get valid pointers with the lengths of their data.
    unsafe {
        if libc::poll(&raw mut ready, 1, PATIENCE) == 1 {
            libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), length);
        }
    }
}
