//! Owns the team as one: heat, budgets, tasks, and the routing of accesses and conflicts.
//!
//! Must not know protocols, the port, the configuration.

pub mod budget;
pub mod capture;
pub mod conflicts;
pub mod preview;
pub mod routing;
pub mod tasks;
pub mod tracker;

use eisen_base::{bus, ignored, kept, model};
use eisen_memory::{changes, journal};
use eisen_sandbox::zone;
#[cfg(test)]
use eisen_testing as tests;
use eisen_wire::runs;
