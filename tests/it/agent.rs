//! An agent and its processes: start, restart, stop, limits, stalls.

mod budgets;
mod ending;
mod lifecycle;
mod limits;
mod loops;
mod restoring;
mod stalls;
mod starting;
mod survivors;
