//! Enforcement by the kernel: a *wall* of Landlock path rules around a process and its descendants,
//! and a *doorbell* of seccomp notifications for calls that path rules cannot decide. Knows zones
//! and processes, no agents.
//!
//! No race can get past the wall: it denies every access that it does not grant. The doorbell stops
//! each call that opens a file or changes a name or an attribute, judges its real path by the whole
//! zone, and lets it continue under the wall, performs it for the caller, or denies it. Its
//! handlers are threads of the supervisor, which is not confined.
//!
//! The way of a call: `filter` makes the kernel stop it → `listener` receives it for the thread of
//! `doorbell` → `caller` reads its arguments → `resolve` finds the real path in the caller's view →
//! `Bounds` judges → it continues, is performed here, or the [`Doorkeeper`] is asked.

mod calling_process;
mod doorbell;
mod doorkeeper;
mod enter;
mod filter;
mod identity;
mod listener;
mod lookup;
mod own;
mod place;
#[cfg(test)]
mod promises;
mod raw;
mod resolve;
mod ruleset;
mod step;
mod still;
mod support;
mod syscall;
mod syscall_lists;
mod words;

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use self::doorbell::Doorbell;
pub use self::doorkeeper::{Attempt, Doorkeeper, FileCall, PathMeaning};
pub use self::enter::{Entrance, receive};
use self::own::Own;
use self::ruleset::Ruleset;
pub use self::step::SetupStep;
pub use self::support::Support;
use crate::zone::{Bounds, Grant, Rule};

/// The confinement of one run of an agent: its process and all its terminals.
pub struct Confinement {
    ruleset: Ruleset,
    /// A file outside of all grants.
    canary: PathBuf,
    /// Temporary files through which editors save.
    drafts: Own,
    /// Terminals whose upper end the agent opened.
    terminals: Own,
    /// The bounds that the wall was compiled from.
    bounds: Option<Arc<Bounds>>,
    sockets: Arc<Own>,
    keeper: Arc<dyn Doorkeeper>,
}

/// Why confinement is impossible; the messages say what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// The kernel lacks features that the kernel tier needs; each text names one.
    #[error("the kernel lacks what confinement needs: {}", .0.join("; "))]
    Lacking(Vec<&'static str>),
    /// The canary can't be made: the file that each child behind a wall must fail to open.
    #[error(
        "cannot make `{}`, the file by which each wall is tried: {source}", .path.display()
    )]
    Canary {
        /// The path of the canary.
        path: PathBuf,
        /// The error as the system reports it.
        source: io::Error,
    },
    /// The kernel does not take the Landlock ruleset.
    #[error("cannot make a wall of {rules} path rules: {source}")]
    Wall {
        /// The number of its path rules.
        rules: usize,
        /// The error as the system reports it.
        source: io::Error,
    },
}

/// Whether a system call of this number is stopped for the doorbell.
pub fn rings(call: i64) -> bool {
    syscall_lists::NOTIFIED.contains(&call)
}

impl Confinement {
    /// Builds a wall from the present bounds; later changes of the bounds reach only the doorbell.
    /// `outside` is a folder without any grant, in which the file `canary` is created and left.
    /// Reads the disk.
    pub fn build(
        bounds: &Arc<Bounds>,
        outside: &Path,
        keeper: Arc<dyn Doorkeeper>,
    ) -> Result<Self, ConfineError> {
        let behind = Self::behind(&bounds.rules(), outside, keeper)?;
        Ok(Self { bounds: Some(Arc::clone(bounds)), ..behind })
    }

    /// Like [`Confinement::build`], from rules.
    pub fn behind(
        rules: &[Rule],
        outside: &Path,
        keeper: Arc<dyn Doorkeeper>,
    ) -> Result<Self, ConfineError> {
        let lacking = Support::of_this_kernel().lacking();
        if !lacking.is_empty() {
            return Err(ConfineError::Lacking(lacking));
        }
        let canary = canary(outside).map_err(|source| {
            let path = outside.join(CANARY);
            ConfineError::Canary { path, source }
        })?;
        let failed = |source| ConfineError::Wall { rules: rules.len(), source };
        let ruleset = Ruleset::new(rules).map_err(failed)?;
        let (drafts, terminals, sockets) = (Own::default(), Own::default(), own::sockets());
        Ok(Self { ruleset, canary, drafts, terminals, bounds: None, sockets, keeper })
    }

    /// The ruleset that a child enters.
    pub fn ruleset(&self) -> BorrowedFd<'_> {
        self.ruleset.fd()
    }

    /// The file that a child must not be able to open.
    pub fn canary(&self) -> &Path {
        &self.canary
    }

    fn covers(&self, real: &Path, grant: Grant, identity: (u64, u64)) -> bool {
        self.ruleset.covers(real, grant, identity)
    }

    /// Whether the wall was compiled from these bounds. A zone may change while its agent runs.
    fn is_of(&self, bounds: &Arc<Bounds>) -> bool {
        self.bounds.as_ref().is_some_and(|own| Arc::ptr_eq(own, bounds))
    }

    fn drafts(&self) -> &Own {
        &self.drafts
    }

    fn terminals(&self) -> &Own {
        &self.terminals
    }

    fn sockets(&self) -> &Own {
        &self.sockets
    }

    fn keeper(&self) -> &dyn Doorkeeper {
        &*self.keeper
    }
}

/// The name of the file that tests whether a wall holds.
const CANARY: &str = "canary";

/// Creates the empty file in `outside`, which all walls share.
fn canary(outside: &Path) -> io::Result<PathBuf> {
    std::fs::create_dir_all(outside)?;
    let path = outside.canonicalize()?.join(CANARY);
    File::options().create(true).append(true).mode(0o600).open(&path)?;
    Ok(path)
}

impl std::fmt::Debug for Confinement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Confinement").finish_non_exhaustive()
    }
}
