//! Runs a team of AI coding agents on one code base, each inside its own zone.
//!
//! ```text
//! agent process ─▶ line ─▶ proxy ─────────────────────────▶ client (editor · built-in client host)
//!                           │ asks zone: Permit | Denied ─▶ routing (the life of a blocked access) ─▶ orchestrator
//!                           └ copy of the line ─▶ extract ─▶ activity ─▶ tracker ─▶ bus ─▶ serve (tcp)
//! ```
//!
//! Data goes one way, left to right, through bounded channels. Only answers and verdicts come back,
//! each on its own reply channel. The modules stand in the order in which a line meets them;
//! `docs/architecture.md` says what each owns and must not know.

pub mod model;

pub mod config;

#[cfg_attr(not(target_os = "linux"), path = "confine/elsewhere.rs")]
pub mod confine;

pub mod process;

pub mod line;

pub mod plugin;

pub mod proxy;

pub mod extract;

pub mod zone;

pub mod graph;

pub mod routing;

pub mod client_host;

pub mod tracker;

pub mod session;

pub mod bus;

pub mod watch;

pub mod serve;

pub mod agent;

pub mod supervisor;

pub mod alert;

pub mod scripted;

pub mod app;

pub mod cli;
