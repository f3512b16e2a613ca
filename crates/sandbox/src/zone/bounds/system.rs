//! The parts of the machine that every confined process may access.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::model::{Action, KERNEL_FOLDERS, SYSTEM_FOLDERS, within};
use crate::zone::real::real;

pub(super) const DEV: &str = "/dev";

/// Links of `/etc` that are read by all, and lead elsewhere on some systems.
const LINKS: [&str; 3] = ["/etc/resolv.conf", "/etc/localtime", "/etc/machine-id"];

/// Folders of devices and memory that come and go, each no one's but the user's.
const FOLDERS: [&str; 3] = ["shm", "mqueue", "hugepages"];

/// The lower ends of terminals: the doorbell knows the owner of each, path rules could not.
const TERMINALS: &str = "/dev/pts";

/// The devices that every program needs.
const BASIC: [&str; 7] = ["null", "zero", "full", "random", "urandom", "tty", "ptmx"];

/// Further devices that programs may use: accelerators, cameras, sound. All others give access to
/// memory, disks, networks or the keyboard past every path.
const USUAL: [&str; 9] = ["accel", "dri", "dxg", "kfd", "kvm", "nvidia", "snd", "video", "udmabuf"];

/// The usable entries of `/dev`.
#[derive(Debug)]
pub(super) struct Devices {
    /// With all below.
    folders: Vec<PathBuf>,
    single: BTreeSet<PathBuf>,
}

impl Devices {
    /// Lists the present `/dev`: a device that is plugged in later is not in it.
    pub(super) fn all() -> Self {
        let mut devices = Self::basic();
        let mut pending: Vec<_> = fs::read_dir(DEV).into_iter().flatten().flatten().collect();
        pending.retain(|entry| {
            let name = entry.file_name();
            USUAL.iter().any(|start| name.as_encoded_bytes().starts_with(start.as_bytes()))
        });
        while let Some(entry) = pending.pop() {
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                pending.extend(fs::read_dir(entry.path()).into_iter().flatten().flatten());
            } else if kind.is_char_device() {
                devices.single.insert(entry.path());
            }
        }
        devices
    }

    /// Only what a program needs.
    pub(super) fn basic() -> Self {
        let folders = FOLDERS.iter().map(|name| Path::new(DEV).join(name));
        Self {
            folders: folders.filter(|folder| folder.exists()).collect(),
            single: BASIC.iter().map(|name| Path::new(DEV).join(name)).collect(),
        }
    }

    pub(super) fn hold(&self, real: &Path) -> bool {
        self.single.contains(real)
            || real.starts_with(TERMINALS)
            || self.folders.iter().any(|folder| real.starts_with(folder))
    }

    /// Each folder and each single device.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.folders.iter().chain(&self.single).map(PathBuf::as_path)
    }
}

/// The real places that [`super::Confine::Strict`] lets be read: each once, none below another.
pub(super) fn readable() -> Vec<PathBuf> {
    let places = SYSTEM_FOLDERS.iter().chain(&LINKS).filter_map(|path| real(Path::new(path)));
    outermost(places.filter(|place| place.exists()))
}

/// Whether the kernel's own folders allow an access; None outside of them.
pub(super) fn may(action: Action, real: &Path) -> Option<bool> {
    let is_kernels = KERNEL_FOLDERS.iter().any(|folder| within(Path::new(folder), real).is_some());
    is_kernels.then_some(action == Action::Read)
}

/// Leaves out paths below others.
pub(super) fn outermost(places: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let sorted: BTreeSet<PathBuf> = places.collect();
    let mut outermost: Vec<PathBuf> = Vec::new();
    for place in sorted {
        // All that a folder holds comes right behind it: paths are sorted by their components.
        if !outermost.last().is_some_and(|folder| place.starts_with(folder)) {
            outermost.push(place);
        }
    }
    outermost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_others_are_left_out() {
        let all = ["/b/c", "/a/b", "/a", "/a-b/c", "/a/b/c", "/a-b", "/b/c/d", "/b/cd"];
        let outermost = outermost(all.into_iter().map(PathBuf::from));
        assert_eq!(outermost, ["/a", "/a-b", "/b/c", "/b/cd"].map(PathBuf::from));
    }
}
