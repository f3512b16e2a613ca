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

pub use eisen_base::{acp, bus, ignored, kept, line, model, post};
pub use eisen_config::{config, learn};
pub use eisen_graph::{graph, watch};
pub use eisen_memory::{changes, journal, session, undo};
pub use eisen_sandbox::{confine, process, zone};

pub mod plugin;

pub mod proxy;

pub mod extract;

pub mod budget;

pub mod showing;

pub mod routing;

pub mod client_host;

pub mod tracker;

pub mod metrics;

pub mod capture;

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

pub mod otlp;

pub mod alert;

pub mod telemetry;

pub mod streams;

pub mod scripted;

pub mod view;

pub mod wire;

pub mod app;

pub mod cli;

#[cfg(test)]
use eisen_testing as tests;
