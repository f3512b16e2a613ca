//! Owns what is performed to its end: a run of one agent for one turn, a batch of runs, and a team without a terminal.

mod batch;
mod detached;
mod run;

pub use batch::{
    BatchEnd, BatchJob, BatchNews, BatchOptions, JobEnd, JobOutcome, PlannedJob, batch, plan,
};
pub(crate) use batch::{folder_of_batches, runs_of};
pub use detached::{Detached, up_detached};
pub use run::{RunEnd, check_run, run, run_detached, run_prepared};
