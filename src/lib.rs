//! Runs a team of AI coding agents on one code base, each inside its own zone.
//!
//! ```text
//! agent process ─▶ line ─▶ proxy ─────────────────────────▶ client (editor · built-in client host)
//!                           │ asks zone: Permit | Denied ─▶ routing (owns blocked accesses) ─▶ orchestrator
//!                           └ copy of the line ─▶ extract ─▶ activity ─▶ tracker ─▶ bus ─▶ serve (tcp)
//! ```
//!
//! Data flows one way, left to right, through bounded channels. Only answers and verdicts flow
//! back, each on its own reply channel. The modules are listed in the order in which a line passes
//! them; `docs/architecture.md` describes what each of them owns and must not know.

pub mod model;

pub mod kept;

pub mod config;

#[cfg_attr(not(target_os = "linux"), path = "confine/elsewhere.rs")]
pub mod confine;

pub mod process;

pub mod line;

pub mod acp;

pub mod ignored;

pub mod plugin;

pub mod proxy;

pub mod extract;

pub mod zone;

pub mod learn;

pub mod graph;

pub mod budget;

pub mod showing;

pub mod routing;

pub mod client_host;

pub mod tracker;

pub mod session;

pub mod bus;

pub mod metrics;

pub mod journal;

pub mod capture;

pub mod changes;

pub mod undo;

pub mod watch;

pub mod replay;

pub mod tasks;

pub mod conflicts;

pub mod tokens;

pub mod mcp;

pub mod gateway;

pub mod remote;

pub mod tiers;

pub mod runs;

pub mod slots;

pub mod serve;

pub mod hub;

pub mod web;

pub mod agent;

pub mod supervisor;

pub mod post;

pub mod alert;

pub mod telemetry;

pub mod streams;

pub mod scripted;

pub mod view;

pub mod wire;

pub mod app;

pub mod cli;

#[cfg(test)]
mod tests;
