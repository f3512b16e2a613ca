//! Owns the graph of a code base, and how it follows the files.
//!
//! Must not know agents, the port.

#![warn(missing_docs)]

pub mod graph;
pub mod watch;

use eisen_base::{bus, ignored, model};
