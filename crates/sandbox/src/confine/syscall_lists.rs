//! Lists of the system calls that are stopped for the doorbell or refused.

use nix::libc;

/// Calls that are stopped for the doorbell. Their path is an argument in memory, or a descriptor
/// that may refer to any file.
#[rustfmt::skip]
pub(super) const NOTIFIED: &[libc::c_long] = &[
    libc::SYS_openat, libc::SYS_openat2,
    libc::SYS_mkdirat, libc::SYS_mknodat, libc::SYS_symlinkat, libc::SYS_linkat,
    libc::SYS_unlinkat, libc::SYS_renameat2,
    libc::SYS_truncate,
    libc::SYS_fchmodat, SYS_FCHMODAT2, libc::SYS_fchmod,
    libc::SYS_fchownat, libc::SYS_fchown,
    libc::SYS_utimensat,
    libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr,
    libc::SYS_removexattr, libc::SYS_lremovexattr, libc::SYS_fremovexattr,
    libc::SYS_connect, libc::SYS_bind,
    #[cfg(target_arch = "x86_64")] libc::SYS_open,
    #[cfg(target_arch = "x86_64")] libc::SYS_creat,
    #[cfg(target_arch = "x86_64")] libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")] libc::SYS_mknod,
    #[cfg(target_arch = "x86_64")] libc::SYS_symlink,
    #[cfg(target_arch = "x86_64")] libc::SYS_link,
    #[cfg(target_arch = "x86_64")] libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")] libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")] libc::SYS_rename,
    #[cfg(target_arch = "x86_64")] libc::SYS_renameat,
    #[cfg(target_arch = "x86_64")] libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")] libc::SYS_chown,
    #[cfg(target_arch = "x86_64")] libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")] libc::SYS_utime,
    #[cfg(target_arch = "x86_64")] libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")] libc::SYS_futimesat,
    #[cfg(target_arch = "aarch64")] libc::SYS_renameat,
];

/// Calls that fail with EPERM: they reach files without a path, change the meaning of paths, or
/// access the kernel itself.
#[rustfmt::skip]
pub(super) const REFUSED: &[libc::c_long] = &[
    libc::SYS_open_by_handle_at,
    libc::SYS_chroot, libc::SYS_pivot_root,
    libc::SYS_mount, libc::SYS_umount2, libc::SYS_open_tree, libc::SYS_move_mount,
    libc::SYS_fsopen, libc::SYS_fsmount, libc::SYS_fspick, libc::SYS_mount_setattr,
    SYS_OPEN_TREE_ATTR,
    libc::SYS_setns,
    libc::SYS_swapon, libc::SYS_swapoff, libc::SYS_acct, libc::SYS_quotactl,
    SYS_QUOTACTL_FD,
    libc::SYS_kexec_load, libc::SYS_kexec_file_load,
    libc::SYS_init_module, libc::SYS_finit_module, libc::SYS_delete_module,
    libc::SYS_bpf, libc::SYS_fanotify_init,
    #[cfg(target_arch = "x86_64")] libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")] libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")] libc::SYS_ioperm,
];

/// Calls that fail with ENOSYS, which programs expect. (`io_uring` performs all of the above
/// without further calls.)
#[rustfmt::skip]
pub(super) const ABSENT: &[libc::c_long] = &[
    libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register,
    SYS_SETXATTRAT, SYS_REMOVEXATTRAT, SYS_FILE_SETATTR,
    // Its arguments in memory may put a child into another process group or namespace, which no
    // filter sees. C libraries then use `clone`.
    libc::SYS_clone3,
    // Keyrings are shared with other processes of the user.
    libc::SYS_add_key, libc::SYS_request_key, libc::SYS_keyctl,
];

/// The newest call that was reviewed. Later ones fail with ENOSYS: one may open a file, and
/// programs must do without it on older kernels.
pub(super) const NEWEST: libc::c_long = SYS_FILE_SETATTR;

/// Requests of `ioctl` that fail with EPERM: through a read-only descriptor they change flags,
/// project or version of a file, or copy whole folders; or they put input into a terminal or its
/// console.
pub(super) const REFUSED_REQUESTS: &[u32] = &[
    0x4008_6602, // FS_IOC_SETFLAGS
    0x4004_6602, // FS_IOC32_SETFLAGS
    0x401c_5820, // FS_IOC_FSSETXATTR
    0x4008_7602, // FS_IOC_SETVERSION
    0x4004_7602, // FS_IOC32_SETVERSION
    0x4008_6604, // EXT4_IOC_SETVERSION
    0x4004_6604, // EXT4_IOC32_SETVERSION
    0x4080_6685, // FS_IOC_ENABLE_VERITY
    0x800c_6613, // FS_IOC_SET_ENCRYPTION_POLICY
    0x4004_7211, // FAT_IOCTL_SET_ATTRIBUTES
    0x5000_9401, // BTRFS_IOC_SNAP_CREATE
    0x5000_9417, // BTRFS_IOC_SNAP_CREATE_V2
    0x5000_940e, // BTRFS_IOC_SUBVOL_CREATE
    0x5000_9418, // BTRFS_IOC_SUBVOL_CREATE_V2
    0x5000_940f, // BTRFS_IOC_SNAP_DESTROY
    0x5000_943f, // BTRFS_IOC_SNAP_DESTROY_V2
    0x4008_941a, // BTRFS_IOC_SUBVOL_SETFLAGS
    0xc0c8_9425, // BTRFS_IOC_SET_RECEIVED_SUBVOL
    0x4020_bc10, // BCH_IOCTL_SUBVOLUME_CREATE
    0x4020_bc11, // BCH_IOCTL_SUBVOLUME_DESTROY
    0x4018_6f04, // OCFS2_IOC_REFLINK
    0x5412,      // TIOCSTI
    0x541c,      // TIOCLINUX
];

/// Commands of `fcntl` that fail with EPERM: a lease delays others who open the file.
pub(super) const REFUSED_COMMANDS: &[u32] = &[libc::F_SETLEASE.cast_unsigned()];

// Newer than the crate; the numbers are those of every architecture.
pub(super) const SYS_FCHMODAT2: libc::c_long = 452;
pub(super) const SYS_QUOTACTL_FD: libc::c_long = 443;
pub(super) const SYS_SETXATTRAT: libc::c_long = 463;
pub(super) const SYS_REMOVEXATTRAT: libc::c_long = 466;
pub(super) const SYS_OPEN_TREE_ATTR: libc::c_long = 467;
pub(super) const SYS_FILE_SETATTR: libc::c_long = 469;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// Names of calls in a text, each with what stands behind it.
    fn calls(text: &str) -> impl Iterator<Item = (&str, &str)> {
        text.match_indices("SYS_").map(|(at, _)| {
            let name = &text[at..];
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = name.find(|c| !is_name(c)).unwrap_or(name.len());
            name.split_at(end)
        })
    }

    #[test]
    fn each_call_that_rings_has_an_arm_and_each_arm_rings() {
        let lists = include_str!("syscall_lists.rs");
        let (_, notified) = lists.split_once("const NOTIFIED").unwrap_or_default();
        let (notified, _) = notified.split_once("];").unwrap_or_default();
        let listed: BTreeSet<_> = calls(notified).map(|(name, _)| name).collect();
        let code = [include_str!("syscall.rs"), include_str!("syscall/attributes.rs")].concat();
        let arms: BTreeSet<_> = calls(&code)
            .filter(|(_, rest)| rest.starts_with(" =>"))
            .map(|(name, _)| name)
            .collect();
        assert!(listed.len() > 30, "{listed:?}");
        assert_eq!(listed, arms);
    }
}
