//! Owns what belongs to the process that runs a team: why it fails, what stops it, its standard error, and its port.

mod failure;
pub(crate) mod outlet;
mod port;
mod signals;

pub use failure::{Failure, config_errors};
pub use outlet::{Outlet, stderr};
pub(crate) use port::{OWN_DESCRIPTORS, announce_port, bind, limits, note};
pub use signals::StopSignal;
pub(crate) use signals::StopSignals;
