//! The interface through which a doorbell asks about an access: the agent's bounds, reports of
//! allowed accesses, and decisions about blocked ones.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::stat::FileStat;
use tokio::sync::oneshot;

use crate::model::{Action, wire_real};
use crate::zone::Bounds;

/// Decides for one agent behind a doorbell.
///
/// Called on the doorbell's threads: no method may block, but where it says so.
pub trait Doorkeeper: Send + Sync + 'static {
    /// The present bounds, which may be narrower or wider than the wall.
    fn bounds(&self) -> Arc<Bounds>;

    /// Whether an access to a real path is withheld for now though the bounds allow it.
    fn withholds(&self, _real: &Path, _action: Action) -> bool {
        false
    }

    /// Reports that the zone allowed opening a regular file of the workspace. `path` is the wire's
    /// form.
    fn passed(&self, path: Arc<str>, action: Action);

    /// Whether [`Doorkeeper::used`] is to be called.
    fn observes(&self) -> bool {
        false
    }

    /// Reports a process's access to a real path that the bounds allow, before its call goes on. `is_named`
    /// says whether the arguments of that process name the path.
    fn used(&self, _process: u32, _real: &Path, _action: Action, _is_named: &dyn Fn() -> bool) {}

    /// Prepares for a call of a process that is about to go on and may change files. Unlike the
    /// others it may read the disk.
    fn changes(&self, _process: u32, _call: FileCall<'_>) {}

    /// Whether to say how long calls take.
    fn times_calls(&self) -> bool {
        false
    }

    /// A call kept the doorbell's thread for a time.
    fn took(&self, _time: Duration) {}

    /// Reports an access outside the bounds. The call waits until `reply` is used (true allows it)
    /// or dropped. A closed `reply` means that the caller is gone.
    fn blocked(&self, attempt: Attempt, reply: oneshot::Sender<bool>);
}

/// The object that a call may change. Paths are real.
#[derive(Clone, Copy, Debug)]
pub enum FileCall<'a> {
    /// The content of an existing file.
    Write(&'a Path, &'a FileStat),
    /// The mode of an existing file.
    Mode(&'a Path, &'a FileStat),
    /// The entry at a path, which is made.
    Name(&'a Path),
    /// The entry at a path, which becomes another name of a file.
    Link {
        /// The path of the file by a name that it has.
        of: &'a Path,
        /// The path of the entry that is made.
        name: &'a Path,
    },
    /// The entry at a path, which is removed.
    Remove(&'a Path),
    /// The entry at a path, which is moved to another path.
    Rename {
        /// The path before.
        from: &'a Path,
        /// The path after. An entry there is replaced, or exchanged.
        to: &'a Path,
        /// The entries at both paths are exchanged.
        exchanges: bool,
    },
}

/// The meaning of an attempt's path for its call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathMeaning {
    /// The file itself.
    Itself,
    /// A new file whose temporary name does not show which file it replaces.
    Draft,
    /// A folder that the call makes, maybe for a file in it.
    NewFolder,
    /// A file for which the call makes a missing folder above it.
    Above,
}

/// An access outside the bounds.
#[expect(clippy::struct_excessive_bools, reason = "each is an independent property of the attempt")]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// In the wire's form.
    pub path: Arc<str>,
    /// `Write` also for changes of names and attributes, and for connections.
    pub action: Action,
    /// Whether a grant could allow it.
    pub grantable: bool,
    /// The process that made the call.
    pub pid: u32,
    /// Whether the arguments of that process name the path.
    pub named: bool,
    /// The relation of `path` to the file that the call is about.
    pub meaning: PathMeaning,
    /// Whether the call may be held; false if too many calls of the process are.
    pub may_wait: bool,
    /// Whether it connects to a socket of the zone whose server acts outside of it.
    pub to_server: bool,
}

impl Attempt {
    /// Makes this an access to the file that the call means by its path. False if that file is in the
    /// bounds, and the folder for it is not: the attempt stays as it is.
    pub fn becomes(&mut self, file: &Path, bounds: &Bounds) -> bool {
        let judged = bounds.judge(file, self.action);
        if matches!(self.meaning, PathMeaning::NewFolder | PathMeaning::Above) {
            if judged.is_ok() {
                return false;
            }
            self.meaning = PathMeaning::Above;
        }
        if let Err(denied) = judged {
            self.grantable &= denied.grantable;
        }
        self.path = wire_real(bounds.zone().workspace(), file).into();
        true
    }
}
