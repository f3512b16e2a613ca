//! Owns the worktrees of git that tasks have: made, kept and cleaned without a loss, and merged.
//!
//! Must not know agents, teams, the configuration, the port.

pub mod landing;
pub mod lifecycle;
pub mod recovery;
pub mod repository;
pub mod review;
pub mod tree;

use eisen_base::{kept, model};

#[cfg(test)]
mod tests;
