#![allow(clippy::unwrap_used, clippy::expect_used)]
mod budgets;
mod cuts;
mod harness;
mod passing;
mod strangers;
