//! Owns what scripts in TOML share, whoever plays them.
//!
//! Must not know any other crate.

pub mod script;
