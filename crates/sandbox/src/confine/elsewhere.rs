//! Stands in for this room on systems other than Linux, where nothing can be confined.

mod doorkeeper;
mod step;

use std::convert::Infallible;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use nix::errno::Errno;

pub use self::doorkeeper::{Attempt, Doorkeeper, FileCall};
pub use self::step::SetupStep;
use crate::zone::{Bounds, Rule};

/// There is none.
#[derive(Clone, Copy, Debug)]
pub struct Confinement(Infallible);

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{NEEDED}")]
pub struct ConfineError;

/// There is none.
#[derive(Debug)]
pub struct Doorbell;

/// There is none.
#[derive(Debug)]
pub struct Entrance(Infallible);

/// No feature of confinement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Support;

const NEEDED: &str = "the kernel of Linux";

pub fn rings(_: i64) -> bool {
    false
}

impl Confinement {
    pub fn build(_: &Bounds, _: &Path, _: Arc<dyn Doorkeeper>) -> Result<Self, ConfineError> {
        Err(ConfineError)
    }

    pub fn behind(_: &[Rule], _: &Path, _: Arc<dyn Doorkeeper>) -> Result<Self, ConfineError> {
        Err(ConfineError)
    }

    pub fn ruleset(&self) -> BorrowedFd<'_> {
        match self.0 {}
    }

    pub fn canary(&self) -> &Path {
        match self.0 {}
    }
}

impl Doorbell {
    pub fn attend(_: OwnedFd, confinement: Arc<Confinement>) -> io::Result<()> {
        match confinement.0 {}
    }
}

impl Entrance {
    pub fn new(_: OwnedFd, _: &Path) -> Result<Self, (SetupStep, Errno)> {
        Err((Step::Wall, Errno::ENOSYS))
    }

    pub fn enter(&self, _: BorrowedFd<'_>) -> Result<(), Errno> {
        match self.0 {}
    }
}

pub fn receive(_: BorrowedFd<'_>) -> io::Result<Option<Result<OwnedFd, (SetupStep, Errno)>>> {
    Ok(None)
}

impl Support {
    pub fn of_this_kernel() -> Self {
        Self
    }

    pub fn lacking(&self) -> Vec<&'static str> {
        vec![NEEDED]
    }

    pub fn missing(&self) -> Vec<&'static str> {
        self.lacking()
    }
}
