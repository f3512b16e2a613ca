//! Owns how a worktree of a task is made, cleaned and brought back, whatever is killed meanwhile.

mod bring;
mod clean;
mod copy;
mod make;
mod refresh;
mod restore;
mod settle;

pub use self::bring::Bringing;
pub use self::clean::{Cleaned, Survey, clean, survey};
pub use self::make::{Made, WorktreeRequest, make};
#[cfg(test)]
pub(crate) use self::restore::make_again;
pub use self::restore::{BroughtBack, restore};
pub use self::settle::{OF_CHECKS, settle_all};
