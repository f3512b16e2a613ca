//! Scripts in TOML that play what a person wrote down: tables whose errors have a place, patterns of prompts, and
//! names in braces.
//!
//! Owns what the scripts of agents and of model servers share. Knows neither what a step does, nor who plays it.

mod fields;
mod pattern;

pub use fields::{Fields, Invalid, Item};
pub use pattern::{Captures, PromptPattern, Vars};
