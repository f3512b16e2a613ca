//! Holds the folder of a run while its state is changed: no other process mends or removes it.

use std::time::Duration;

use anyhow::{Context as _, anyhow};
use tokio::time::sleep;

use crate::program::Failure;
use crate::runs::{RunFolder, RunHold};

/// `gc` holds a run for moments; who performs it, to its end.
const TRIES: u32 = 100;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// Holds a run, unless another process goes on doing so.
pub(super) async fn hold(run: &RunFolder) -> Result<RunHold, Failure> {
    for _ in 0..TRIES {
        let held = run.try_hold().context("cannot hold the run").map_err(Failure::Run)?;
        match held {
            Some(held) => return Ok(held),
            None => sleep(BETWEEN_TRIES).await,
        }
    }
    Err(Failure::Usage(anyhow!("another process performs the run {}", run.id())))
}
