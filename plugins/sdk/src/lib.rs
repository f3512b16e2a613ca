//! Extractor plugins for eisen-core, which runs teams of coding agents: an agent that doesn't speak
//! the Agent Client Protocol joins a team by a shared library that reads its lines.
//!
//! A plugin is a type that implements [`Extractor`], exported from a `cdylib`:
//!
//! ```
//! use eisen_plugin::{Description, Direction, Extractor, Records, export_extractor};
//!
//! #[derive(Default)]
//! struct Notes;
//!
//! impl Extractor for Notes {
//!     const DESCRIPTION: Description = Description {
//!         name: "notes",
//!         version: env!("CARGO_PKG_VERSION"),
//!         protocols: &["notes"],
//!     };
//!
//!     fn create(_config: &str) -> Result<Self, String> {
//!         Ok(Self)
//!     }
//!
//!     /// `read src/main.rs`, a line each.
//!     fn observe(
//!         &mut self,
//!         direction: Direction,
//!         line: &[u8],
//!         records: &mut Records<'_>,
//!     ) -> Result<(), String> {
//!         let line = str::from_utf8(line).map_err(|error| error.to_string())?;
//!         if let (Direction::ToClient, Some(path)) = (direction, line.strip_prefix("read ")) {
//!             records.touched("read", path, "");
//!         }
//!         Ok(())
//!     }
//! }
//!
//! export_extractor!(Notes);
//! # fn main() {
//! eisen_plugin::assert_transcript!(Notes, "{}", "< read src/main.rs\ntouched read src/main.rs\n");
//! # }
//! ```
//!
//! The interface itself is C: `include/eisen_plugin.h` describes it, [`abi`] is the same in Rust.

pub mod abi;
mod border;
mod extractor;
mod record;
mod records;
pub mod testing;

#[doc(hidden)]
pub use border::Border;
pub use extractor::{Description, Direction, Extractor};
pub use record::{Malformed, Record, Usage, records};
pub use records::Records;
