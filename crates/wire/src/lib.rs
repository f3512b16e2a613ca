//! Owns the language of the port: a type for each line and method; tokens, runs, and what views make of lines.
//!
//! Must not know who serves it, who speaks it.

pub mod runs;
pub mod tokens;
pub mod view;
pub mod wire;

use eisen_base::{kept, model};
use eisen_sandbox::process;
