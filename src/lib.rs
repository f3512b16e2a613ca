//! Runs a team of AI coding agents on one code base, each inside its own zone.
//!
//! ```text
//! agent process ─▶ line ─▶ proxy ─────────────────────────▶ client (editor · built-in client host)
//!                           │ asks zone: Permit | Denied ─▶ routing (owns blocked accesses) ─▶ orchestrator
//!                           └ copy of the line ─▶ extract ─▶ activity ─▶ tracker ─▶ bus ─▶ serve (tcp)
//! ```
//!
//! Data flows one way, left to right, through bounded channels. Only answers and verdicts flow
//! back, each on its own reply channel. The rooms of all crates are handed on here, but for those of programs
//! without a team (`sandbox` and `folder`) and of tests; `docs/architecture.md` describes what each of them
//! owns and must not know.

pub use eisen_agents::{agent, client_host, proxy, slots, supervisor};
pub use eisen_base::{acp, bus, ignored, kept, line, model, task};
pub use eisen_config::{config, learn};
pub use eisen_export::{alert, metrics, otlp, post, streams, telemetry};
pub use eisen_graph::{graph, watch};
pub use eisen_memory::{changes, journal, session, undo};
pub use eisen_port::{gateway, mcp, replay, serve};
pub use eisen_protocols::{extract, plugin, remote, scripted};
pub use eisen_providers::{counting, endpoint, model_server, provider};
pub use eisen_runtime::{
    access, app, branches, care, failover, home, jobs, kernel, learned_zones, program, providers,
    team_file, team_state, tiers, turn,
};
pub use eisen_sandbox::{confine, process, zone};
pub use eisen_scripts::script;
pub use eisen_team::{budget, capture, conflicts, preview, routing, tasks, tracker};
pub use eisen_trees::{landing, lifecycle, recovery, repository, review, tree};
pub use eisen_web::{hub, web};
pub use eisen_wire::{runs, tokens, view, wire};

pub mod cli;
