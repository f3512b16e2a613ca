//! The file that the console of a detached team is written to. Knows no line.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Bytes of a console's file past which it becomes `FILE.1`, in place of the one before.
const LARGEST: u64 = 8 << 20;

/// Standard output and standard error of this process.
pub(in crate::app) struct ConsoleFile {
    path: PathBuf,
}

impl ConsoleFile {
    pub(in crate::app) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where the console of a detached team is kept.
    pub(in crate::app) fn path(eisen_dir: &Path, team: &str) -> PathBuf {
        eisen_dir.join("logs").join(format!("{team}.console"))
    }

    /// Opens the file for a process that is to write to it, behind what is there.
    pub(in crate::app) fn open(path: &Path) -> io::Result<File> {
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        OpenOptions::new().create(true).append(true).mode(0o600).open(path)
    }

    /// Begins a new file if this one is large. Best effort: a console that can't be kept short is
    /// still a console.
    pub(super) fn keep_short(&self) {
        if fs::metadata(&self.path).is_ok_and(|file| file.len() > LARGEST) {
            let _ = self.begin_anew();
        }
    }

    fn begin_anew(&self) -> io::Result<()> {
        let mut old = self.path.clone().into_os_string();
        old.push(".1");
        fs::rename(&self.path, old)?;
        let file = Self::open(&self.path)?;
        nix::unistd::dup2_stdout(&file)?;
        nix::unistd::dup2_stderr(&file)?;
        Ok(())
    }
}
