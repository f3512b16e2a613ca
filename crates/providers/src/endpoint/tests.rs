#![allow(clippy::unwrap_used, clippy::expect_used)]
mod budgets;
mod cuts;
mod harness;
mod kept;
mod passing;
mod strangers;
