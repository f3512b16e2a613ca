//! The code graph and the heat map.

mod graph;
mod snapshot;
mod tracking;
