//! How a command waits for its work.

use std::pin::Pin;

use tokio::runtime::Builder;

use crate::program::Failure;

/// Does the work of a command.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    run_on(&mut Builder::new_multi_thread(), work)
}

/// Like [`block_on`], on this thread alone: a byte that is passed on wakes no other.
pub(super) fn pass_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    run_on(&mut Builder::new_current_thread(), work)
}

fn run_on<T>(
    runtime: &mut Builder,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    // In a box, so that the runtime is compiled once for all commands.
    let work: Pin<Box<dyn Future<Output = _> + '_>> = Box::pin(work);
    let runtime = runtime.enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Run(error.into()))?;
    let done = runtime.block_on(work);
    // A pending read of standard input must not delay the exit.
    runtime.shutdown_background();
    done
}
