//! The console file of a detached team, and its rotation. Knows nothing of the lines in it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::kept::make_folder;

/// Bytes past which the file is renamed to `FILE.1`, replacing the previous one.
const LARGEST: u64 = 8 << 20;

/// The file that standard output and standard error of this process are redirected to.
pub(crate) struct ConsoleFile {
    path: PathBuf,
}

impl ConsoleFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The path of the console file of a team.
    pub(crate) fn path(eisen_dir: &Path, team: &str) -> PathBuf {
        eisen_dir.join("logs").join(format!("{team}.console"))
    }

    /// Opens the file for appending, and creates it if needed.
    pub(crate) fn open(path: &Path) -> io::Result<File> {
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        OpenOptions::new().create(true).append(true).mode(0o600).open(path)
    }

    /// Rotates a file that is too large. Errors are ignored: the console goes on in the old file.
    pub(crate) fn rotate_if_large(&self) {
        if fs::metadata(&self.path).is_ok_and(|file| file.len() > LARGEST) {
            let _ = self.rotate();
        }
    }

    fn rotate(&self) -> io::Result<()> {
        let mut old = self.path.clone().into_os_string();
        old.push(".1");
        fs::rename(&self.path, old)?;
        let file = Self::open(&self.path)?;
        nix::unistd::dup2_stdout(&file)?;
        nix::unistd::dup2_stderr(&file)?;
        Ok(())
    }
}
