//! The folder of all state: its owner and its mode. Journals, logs and tokens lie in it.

use std::fs::{Permissions, metadata, set_permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use nix::unistd::{AccessFlags, access, geteuid};

use crate::care::doctor::Finding;
use crate::home::environment::shell_word;

const CHECK: &str = "eisen-dir";

/// Modes: all of the owner's, what others may do, writing by others, and the bit that marks a folder
/// that everybody shares.
const PRIVATE: u32 = 0o700;
const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Folders that `up` makes in it.
const OURS: [&str; 3] = ["run", "teams", "logs"];

/// Looks at the folder; with `fix` its mode becomes [`PRIVATE`] if it is surely ours.
pub(super) fn folder(eisen_dir: &Path, home: Option<&Path>, fix: bool) -> Finding {
    let place = eisen_dir.display();
    let folder = match metadata(eisen_dir) {
        Ok(folder) => folder,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Finding::ok(CHECK, format!("{place} is not there yet: `up` makes it"));
        }
        Err(error) => return unusable(format!("{place} can't be opened: {error}")),
    };
    if folder.uid() != geteuid().as_raw() {
        return unusable(format!("{place} is owned by another user, uid {}", folder.uid()));
    }
    let mode = folder.mode() & 0o7777;
    if mode & PRIVATE != PRIVATE || mode & OTHERS != 0 {
        return loose(eisen_dir, home, mode, fix);
    }
    match access(eisen_dir, AccessFlags::W_OK | AccessFlags::X_OK) {
        Ok(()) => Finding::ok(CHECK, format!("only its owner can read {place}")),
        Err(errno) => unusable(format!("{place} can't be written: {}", errno.desc())),
    }
}

fn unusable(message: String) -> Finding {
    Finding::error(CHECK, message).mended_by("set EISEN_DIR to a folder of yours")
}

fn loose(eisen_dir: &Path, home: Option<&Path>, mode: u32, fix: bool) -> Finding {
    let place = eisen_dir.display();
    let message = format!("{place} has the mode {mode:04o}");
    let finding = if mode & OTHERS_WRITE != 0 {
        Finding::error(CHECK, format!("{message}: other users can change what is in it"))
    } else if mode & OTHERS != 0 {
        Finding::warning(CHECK, format!("{message}: other users can look into it"))
    } else {
        Finding::error(CHECK, format!("{message}: its owner can't use it"))
    };
    // A variable that names a shared folder must not close it to everybody.
    if !is_ours(eisen_dir, home, mode) {
        return finding.mended_by("set EISEN_DIR to a folder that is used for nothing else");
    }
    let command = format!("chmod 700 {}", shell_word(&place.to_string()));
    if !fix {
        return finding.mended_by(command);
    }
    match set_permissions(eisen_dir, Permissions::from_mode(PRIVATE)) {
        Ok(()) => finding.mended(format!("its mode is {PRIVATE:04o} now")),
        Err(error) => finding.mended_by(format!("{command} (it failed now: {error})")),
    }
}

/// Whether a folder is used for our state, and not for something else, too.
fn is_ours(eisen_dir: &Path, home: Option<&Path>, mode: u32) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    let is_home = home.is_some_and(|home| real(home) == real(eisen_dir));
    let holds_state = OURS.iter().any(|name| eisen_dir.join(name).is_dir());
    let is_empty = std::fs::read_dir(eisen_dir).is_ok_and(|mut entries| entries.next().is_none());
    // Without the owner's rights nobody can look.
    let is_closed = mode & PRIVATE != PRIVATE;
    let is_hidden = eisen_dir.file_name().is_some_and(|name| name == ".eisen");
    mode & STICKY == 0
        && !is_home
        && eisen_dir.parent().is_some()
        && (holds_state || is_empty || is_closed && is_hidden)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs::create_dir;
    use std::path::PathBuf;

    use super::*;
    use crate::care::doctor::Health;

    fn made(mode: u32) -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("eisen");
        create_dir(&folder).unwrap();
        create_dir(folder.join("run")).unwrap();
        set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        (place, folder)
    }

    fn mode(folder: &Path) -> u32 {
        metadata(folder).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_loose_mode_is_found_and_mended() {
        for (loose, state) in
            [(0o755, Health::Warning), (0o750, Health::Warning), (0o777, Health::Error)]
        {
            let (_place, folder) = made(loose);
            let found = super::folder(&folder, None, false);
            assert_eq!((found.state, mode(&folder)), (state, loose), "{found:?}");
            assert_eq!(found.fix.unwrap(), format!("chmod 700 {}", folder.display()));
            let found = super::folder(&folder, None, true);
            assert_eq!((found.state, mode(&folder)), (Health::Ok, 0o700), "{found:?}");
            assert!(found.fixed.is_some());
            let found = super::folder(&folder, None, true);
            assert_eq!((found.state, found.fixed), (Health::Ok, None));
        }
    }

    #[test]
    fn a_folder_that_is_not_only_ours_keeps_its_mode() {
        let (_place, shared) = made(0o1777);
        let (_place, home) = made(0o755);
        let (_place, other) = made(0o755);
        std::fs::rename(other.join("run"), other.join("Documents")).unwrap();
        for (folder, home) in [(&shared, None), (&home, Some(&*home)), (&other, None)] {
            let before = mode(folder);
            let found = super::folder(folder, home, true);
            assert_eq!((mode(folder), found.fixed), (before, None), "{}", folder.display());
            assert!(found.state > Health::Ok && found.fix.unwrap().contains("EISEN_DIR"));
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_no_trouble() {
        let found = super::folder(Path::new("/nonexistent/eisen"), None, true);
        assert_eq!(found.state, Health::Ok);
        let file = tempfile::NamedTempFile::new().unwrap();
        let found = super::folder(&file.path().join("eisen"), None, true);
        assert_eq!(found.state, Health::Error, "{found:?}");
    }
}
