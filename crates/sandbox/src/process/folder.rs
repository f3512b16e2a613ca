//! Removes folders, including read-only ones.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat};

/// Removes a folder with its content, including folders without write permission (such as Go's
/// module cache). Links are not followed.
pub fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(folder)?;
            fs::remove_dir_all(folder)
        }
        removed => removed,
    }
}

/// Gives the owner all permissions on a folder and the folders below it.
fn make_writable(folder: &Path) -> io::Result<()> {
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let mode = fs::symlink_metadata(&folder)?.permissions().mode() | Mode::S_IRWXU.bits();
        let mode = Mode::from_bits_truncate(mode);
        fchmodat(AT_FDCWD, &folder, mode, FchmodatFlags::NoFollowSymlink)?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn folders_without_permissions_are_removed_too() {
        use nix::unistd::{Uid, setfsuid};

        // Permissions don't bind the superuser: run the thread as another user.
        let user = nix::unistd::geteuid();
        if user.is_root() {
            setfsuid(Uid::from_raw(65534));
        }
        let around = tempfile::tempdir().unwrap();
        let (folder, kept) = (around.path().join("run"), around.path().join("kept"));
        fs::create_dir_all(folder.join("cache/inner")).unwrap();
        fs::create_dir(folder.join("closed")).unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(folder.join("cache/inner/file"), "").unwrap();
        std::os::unix::fs::symlink(&kept, folder.join("cache/link")).unwrap();
        for (closed, mode) in
            [("closed", 0), ("cache/inner", 0o555), ("cache", 0o555), ("../kept", 0o555)]
        {
            fs::set_permissions(folder.join(closed), fs::Permissions::from_mode(mode)).unwrap();
        }
        assert!(fs::remove_dir_all(&folder).is_err());
        let removed = remove_folder(&folder);
        let kept = kept.metadata().unwrap().permissions().mode() & 0o777;
        drop(around);
        setfsuid(user);
        removed.unwrap();
        assert_eq!(kept, 0o555);
    }
}
