//! Owns what becomes of an access by the configuration and the grants of persons, before anything runs.

pub mod grants;
pub(crate) mod routes;

pub use routes::{Route, route};
