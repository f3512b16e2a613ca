//! Owns what agents speak: ACP as it is read along, extractor plugins, remote agents, scripted agents.
//!
//! Must not know the team, the port.

pub mod extract;
pub mod plugin;
pub mod remote;
pub mod scripted;

use eisen_base::{acp, ignored, kept, line, model};
use eisen_sandbox::process;
use eisen_scripts::script;
use eisen_wire::wire;
