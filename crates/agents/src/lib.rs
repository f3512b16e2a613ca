//! Owns an agent behind its proxy: relay, client host, life cycle, supervision, slots.
//!
//! Must not know the port, the configuration.

pub mod agent;
pub mod client_host;
pub mod proxy;
pub mod slots;
pub mod supervisor;

use eisen_base::{acp, bus, kept, line, model};
use eisen_export::metrics;
use eisen_protocols::{extract, plugin};
use eisen_sandbox::{confine, process, zone};
use eisen_team::{budget, capture, conflicts, preview, routing, tracker};
#[cfg(test)]
use eisen_testing as tests;
