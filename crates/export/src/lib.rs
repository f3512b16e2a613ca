//! Owns what leaves a team: metrics, telemetry, notices, streams.
//!
//! Must not know agents, the port.

pub mod alert;
pub mod metrics;
pub mod otlp;
pub mod post;
pub mod streams;
pub mod telemetry;

use eisen_base::{acp, bus, kept, line, model};
use eisen_memory::journal;
use eisen_sandbox::process;
#[cfg(test)]
use eisen_testing as tests;
use eisen_wire::wire;
