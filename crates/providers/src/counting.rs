//! The counts of a call: read from a copy of its answer, as the vendor reports it.

mod events;
mod keys;
mod report;
mod reported;
mod scan;
mod setback;
mod tally;

pub use report::{CallEnd, CallReport, CallTimes, RecordedCall};
pub use setback::{ProviderSetback, ProviderTrouble};
pub use tally::{AskedSizes, CallTally};

#[cfg(test)]
mod tests;
