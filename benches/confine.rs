//! What confinement costs, against the same programs bare, started alike in the same run: opens as
//! the programs see them, `git status` and `cargo build`, and starts. Ratios, so that the machine
//! cancels out; starts also in milliseconds.
//!
//! `cargo bench --bench confine -- opens` takes only one of `opens`, `writes`, `programs` and `starts`.

#![allow(clippy::unwrap_used, reason = "a bench that cannot run is to say so")]

#[cfg(target_os = "linux")]
mod confine {
    pub(crate) mod child;
    pub(crate) mod measures;
    pub(crate) mod place;
}

fn main() {
    #[cfg(target_os = "linux")]
    confine::measures::run();
}
