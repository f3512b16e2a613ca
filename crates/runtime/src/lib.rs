//! Owns starting, running and ending teams, runs and batches; and looking after what they leave.
//!
//! Must not know commands and what they print.

pub mod access;
pub mod app;
pub mod branches;
pub mod care;
pub mod console;
pub mod failover;
pub mod helpers;
pub mod home;
pub mod jobs;
pub mod kernel;
pub mod learned_zones;
pub mod notes;
pub mod program;
pub mod providers;
pub mod team_file;
pub mod team_state;
pub mod tiers;
pub mod turn;

use eisen_agents::{agent, client_host, proxy, slots, supervisor};
use eisen_base::{acp, bus, ignored, kept, line, model};
use eisen_config::{config, learn};
use eisen_export::{alert, metrics, streams, telemetry};
use eisen_graph::{graph, watch};
use eisen_memory::{changes, journal, session, undo};
use eisen_port::{replay, serve};
use eisen_protocols::{extract, plugin, remote};
use eisen_providers::{counting, endpoint, provider};
use eisen_sandbox::{confine, process, sandbox, zone};
use eisen_team::{budget, capture, conflicts, routing, tasks, tracker};
#[cfg(test)]
use eisen_testing as tests;
use eisen_trees::{landing, lifecycle, recovery, repository, review, tree};
use eisen_web::{hub, web};
use eisen_wire::{runs, tokens, wire};
