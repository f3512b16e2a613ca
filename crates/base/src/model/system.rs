//! The system's own places, which hold nothing of anybody: one list for all who judge what programs read. The gate
//! takes no command line for an access that reads there, the wall of a strictly confined process opens them, and no
//! report of such a read ends a turn.

use std::path::Path;

use super::path::{fold, goes_up, within};

/// The folders of programs, libraries, name lookup, users, time zone and certificates, without
/// which hardly a program starts.
#[rustfmt::skip]
pub const SYSTEM_FOLDERS: &[&str] = &[
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
    "/etc", "/opt", "/nix", "/gnu/store", "/run/current-system", "/home/linuxbrew/.linuxbrew", "/snap",
    "/run/systemd/resolve", "/run/NetworkManager/resolv.conf", "/run/resolvconf", "/run/nscd",
    "/var/lib/sss/mc", "/var/lib/sss/pubconf", "/var/lib/dbus/machine-id", "/var/lib/ca-certificates",
    "/var/cache/fontconfig",
    #[cfg(target_os = "macos")] "/System",
    #[cfg(target_os = "macos")] "/Library",
];

/// The kernel's folders. The kernel checks access to them by process, so they may be read as far as
/// it allows the caller, and nothing in them is opened for the caller.
pub const KERNEL_FOLDERS: [&str; 2] = ["/proc", "/sys"];

/// Whether a real path outside the workspace is the kernel's or a device's: no file that anybody keeps.
pub fn is_of_machine(workspace: &Path, real: &Path) -> bool {
    let below = |folder: &str| within(Path::new(folder), real).is_some();
    within(workspace, real).is_none()
        && (below("/dev") || KERNEL_FOLDERS.iter().any(|it| below(it)))
}

/// Whether an absolute path, as it is spelled, names something of the system itself. Behind a link, `..` leads
/// elsewhere; and `/proc` has links from each process to all other files.
pub fn is_of_system(path: &Path) -> bool {
    if goes_up(path) {
        return false;
    }
    let path = fold(path);
    let below = |folder: &str| within(Path::new(folder), &path);
    if let Some(inside) = below("/proc") {
        let first = inside.iter().next().and_then(|first| first.to_str()).unwrap_or_default();
        return !(first.ends_with("self") || first.starts_with(|c: char| c.is_ascii_digit()));
    }
    below("/sys").is_some() || SYSTEM_FOLDERS.iter().any(|folder| below(folder).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_in_a_folder_of_devices_is_no_device() {
        let is_of = |path: &str| is_of_machine(Path::new("/dev/shm/shop"), Path::new(path));
        assert!(["/dev/null", "/dev/shm/other", "/proc/1", "/sys"].iter().all(|path| is_of(path)));
        assert!(!["/dev/shm/shop", "/dev/shm/shop/a", "/home/a"].iter().any(|path| is_of(path)));
    }

    #[test]
    fn what_is_of_the_system_is_told_by_its_name() {
        for path in
            ["/etc/os-release", "/usr", "/proc/cpuinfo", "/proc/sys/kernel/osrelease", "/sys/block"]
        {
            assert!(is_of_system(Path::new(path)), "{path}");
        }
        let others = [
            "/",
            "/home/u/x",
            "/etcetera",
            "/usr/../home/u",
            "/proc/self/root/home",
            "/proc/1/cwd/x",
            "/proc/thread-self/fd/3",
            "/proc//self/root/x",
            "/proc/./1/root/x",
            "/tmp/x",
            "/var/lib/x",
            "usr/x",
        ];
        for path in others {
            assert!(!is_of_system(Path::new(path)), "{path}");
        }
    }
}
