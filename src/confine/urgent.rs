//! The priority of threads that receive calls. A call that nobody has received yet is interrupted by
//! each signal, so who receives is not to wait for a processor. Judging a call may take long, and has
//! the priority of others.

use std::cell::Cell;

use super::raw;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Urgency {
    Never,
    Relaxed,
    Urgent,
}

thread_local! {
    static NOW: Cell<Urgency> = const { Cell::new(Urgency::Never) };
}

/// Makes this thread one that receives calls; returns whether its priority is raised for that.
pub(super) fn begin() -> bool {
    NOW.set(Urgency::Relaxed);
    hurry();
    let may_be = NOW.get() == Urgency::Urgent;
    if !may_be {
        NOW.set(Urgency::Never);
    }
    may_be
}

/// A call was received, and is to be judged.
pub(super) fn relax() {
    if NOW.get() == Urgency::Urgent && raw::set_urgent(false).is_ok() {
        NOW.set(Urgency::Relaxed);
    }
}

/// The call is answered next: its caller may make another at once.
pub(super) fn hurry() {
    if NOW.get() == Urgency::Relaxed && raw::set_urgent(true).is_ok() {
        NOW.set(Urgency::Urgent);
    }
}
