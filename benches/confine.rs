//! What confinement costs, against the same programs bare, started alike in the same run: opens as
//! the programs see them, `git status` and `cargo build`, and starts. Ratios, so that the machine
//! cancels out; starts also in milliseconds.
//!
//! `cargo bench -- confine opens` takes only one of `opens`, `writes`, `programs` and `starts`.

mod child;
mod measures;
mod place;

pub(crate) use measures::run;
