//! Owns the way from agents to the providers of their models: keys that no agent sees, spending that is measured, calls
//! that are admitted before they are sent, and a server that plays the providers from a script.
//!
//! Must not know agents' processes, the configuration, the journal.

pub mod counting;
pub mod endpoint;
pub mod model_server;
pub mod provider;

use eisen_base::model;
use eisen_scripts::script;
