//! What a user would notice, tried on real processes.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod attach;
mod check;
mod cli;
mod confinement;
mod confining;
mod conformance;
mod demo;
mod deny;
mod ending;
mod examples;
mod guide;
mod harness;
mod hold;
mod init;
mod lifecycle;
mod limits;
mod observe;
mod orchestrator;
mod permissions;
mod plugins;
mod port;
mod process;
mod recordings;
mod registry;
mod reload;
mod restoring;
mod stalls;
mod starting;
mod stream;
mod survivors;
mod terminals;
mod tidy;
mod tracking;
mod violations;
