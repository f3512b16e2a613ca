//! What of the machine every confined process may reach, whatever its zone.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::model::Action;
use crate::zone::real::real;

/// The folders of the kernel: what it shows there it guards itself, by who asks. So they may be
/// read as far as it lets the asking process, and nothing in them is opened in its stead.
pub(super) const KERNEL: [&str; 2] = ["/proc", "/sys"];

pub(super) const DEV: &str = "/dev";

/// What programs and their libraries are read from, how names are looked up, and which the user,
/// the time zone and the trusted certificates are: without these hardly a program starts.
#[rustfmt::skip]
const READABLE: &[&str] = &[
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
    "/etc", "/opt", "/nix", "/gnu/store", "/run/current-system", "/home/linuxbrew/.linuxbrew", "/snap",
    "/run/systemd/resolve", "/run/NetworkManager/resolv.conf", "/run/resolvconf", "/run/nscd",
    "/var/lib/sss/mc", "/var/lib/sss/pubconf", "/var/lib/dbus/machine-id", "/var/lib/ca-certificates",
    "/var/cache/fontconfig",
];

/// Links of `/etc` that are read by all, and lead elsewhere on some systems.
const LINKS: [&str; 3] = ["/etc/resolv.conf", "/etc/localtime", "/etc/machine-id"];

/// Folders of devices that come and go, each no one's but the user's.
const FOLDERS: [&str; 4] = ["pts", "shm", "mqueue", "hugepages"];

/// What a program needs of `/dev` to be one.
const BASIC: [&str; 7] = ["null", "zero", "full", "random", "urandom", "tty", "ptmx"];

/// Devices by which memory, disks, or the user's own keyboard are reached past every path: each
/// name that begins so. Block devices are left out whatever they are called.
#[rustfmt::skip]
const WITHHELD: &[&str] = &[
    "mem", "kmem", "port", "sg", "bsg", "nvme", "ng", "raw", "mtd", "ubi", "dax", "loop-control",
    "btrfs-control", "mapper", "snapshot", "nvram", "fuse", "cuse", "uinput", "uhid", "hidraw",
    "vfio", "megaraid", "mpt",
];

/// What `/dev` holds that may be used.
#[derive(Debug)]
pub(super) struct Devices {
    /// With all below.
    folders: Vec<PathBuf>,
    single: BTreeSet<PathBuf>,
}

impl Devices {
    /// Lists `/dev` as it is now: what is plugged in later is not among them.
    pub(super) fn all() -> Self {
        let mut devices = Self::folders();
        let mut pending = vec![PathBuf::from(DEV)];
        while let Some(folder) = pending.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let (name, path) = (entry.file_name(), entry.path());
                let Ok(kind) = entry.file_type() else { continue };
                let top = folder == Path::new(DEV);
                let begins = |start: &&str| name.as_encoded_bytes().starts_with(start.as_bytes());
                if kind.is_block_device() || kind.is_symlink() {
                    continue;
                }
                if top && WITHHELD.iter().any(begins) {
                    continue;
                }
                if !kind.is_dir() {
                    devices.single.insert(path);
                } else if !devices.folders.contains(&path) {
                    pending.push(path);
                }
            }
        }
        devices
    }

    /// Only what a program needs.
    pub(super) fn basic() -> Self {
        let mut devices = Self::folders();
        devices.folders.retain(|folder| folder.exists());
        devices.single = BASIC.iter().map(|name| Path::new(DEV).join(name)).collect();
        devices
    }

    fn folders() -> Self {
        let folders = FOLDERS.iter().map(|name| Path::new(DEV).join(name)).collect();
        Self { folders, single: BTreeSet::new() }
    }

    pub(super) fn hold(&self, real: &Path) -> bool {
        self.single.contains(real) || self.folders.iter().any(|folder| real.starts_with(folder))
    }

    /// Each folder and each single device.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.folders.iter().chain(&self.single).map(PathBuf::as_path)
    }
}

/// The real places that [`super::Confine::Strict`] lets be read: each once, none below another.
pub(super) fn readable() -> Vec<PathBuf> {
    let places = READABLE.iter().chain(&LINKS).filter_map(|path| real(Path::new(path)));
    outermost(places.filter(|place| place.exists()))
}

/// What the kernel's own folders allow.
pub(super) fn may(action: Action, real: &Path) -> Option<bool> {
    let is_kernels = KERNEL.iter().any(|folder| real.starts_with(folder));
    is_kernels.then_some(action == Action::Read)
}

/// Leaves out what lies below another.
pub(super) fn outermost(places: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let sorted: BTreeSet<PathBuf> = places.collect();
    let mut outermost: Vec<PathBuf> = Vec::new();
    for place in sorted {
        // A folder comes before all that it holds.
        if !outermost.iter().any(|other| place.starts_with(other)) {
            outermost.push(place);
        }
    }
    outermost
}
