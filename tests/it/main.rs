//! Tests of whole programs: what a user would notice, on real processes.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod agent;
mod cli;
mod client_host;
mod config;
mod confine;
mod conflicts;
mod docs;
mod harness;
mod map;
mod notify;
mod plugins;
mod process;
mod providers;
mod proxy;
mod routing;
mod serve;
mod telemetry;
mod tidy;
mod web;
