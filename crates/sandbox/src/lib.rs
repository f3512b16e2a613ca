//! Owns the zone and how the kernel holds it: patterns, the wall, the doorbell, processes and their wardens.
//!
//! Must not know agents, protocols, the port, configuration files.

#![warn(missing_docs)]

#[cfg_attr(not(target_os = "linux"), path = "confine/elsewhere.rs")]
pub mod confine;
pub mod process;
pub mod sandbox;
pub mod zone;

pub use sandbox::{Denial, Sandbox, SandboxError, Sandboxed, init};

use eisen_base::{kept, line, model};
