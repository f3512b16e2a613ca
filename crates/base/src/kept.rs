//! Owns how a small file is kept: read within a bound, replaced as a whole, locked, readable by its owner
//! only. Its type says how much of it a power cut may take back.

mod disk;
mod drafts;
mod durability;
mod file;
mod lock;
pub mod power_cut;
#[cfg(test)]
mod tests;

pub use disk::{make_folder, make_private};
pub use drafts::{dead_drafts, remove_draft};
pub use durability::{Durability, Durable, Volatile, Whole};
pub use file::KeptFile;
pub use lock::{HeldLock, LockAt, PATIENCE, is_locked, lock, try_lock};
