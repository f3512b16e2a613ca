//! Owns how teams and what they leave are looked after: `doctor`, `gc`, `down`, and taking a text out of files.

mod doctor;
mod down;
mod garbage;
mod purge;

pub use doctor::{Examination, Finding, Health, doctor};
pub use down::{Down, Downed, down};
pub use garbage::{Garbage, garbage, outside_contents};
pub use purge::{PurgedFile, purge_files, unregistered_files};
