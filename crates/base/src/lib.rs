//! Owns what everything stands on: the model of a team, lines of JSON-RPC, small files that are kept, the bus.
//!
//! Must not know any other crate.

#![warn(missing_docs)]

pub mod acp;
pub mod bus;
pub mod ignored;
pub mod kept;
pub mod line;
pub mod model;
pub mod task;
