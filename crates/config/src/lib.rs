//! Owns the configuration of a team: reading, checking, profiles, templates; and zones that are learned.
//!
//! Must not know the port, running agents.

pub mod config;
pub mod learn;

use eisen_base::{ignored, kept, model};
use eisen_sandbox::zone;
