//! Owns the one port: server and client, tools, gateway, replay.
//!
//! Must not know how teams are started, the web page.

pub mod gateway;
pub mod mcp;
pub mod replay;
pub mod serve;

use eisen_agents::client_host;
use eisen_base::{acp, bus, kept, line, model};
#[cfg(test)]
use eisen_config::config;
use eisen_graph::{graph, watch};
use eisen_memory::{changes, journal, session, undo};
use eisen_protocols::extract;
use eisen_sandbox::zone;
use eisen_team::{capture, conflicts, preview, routing, tasks, tracker};
#[cfg(test)]
use eisen_testing as tests;
use eisen_wire::{runs, tokens, view, wire};
