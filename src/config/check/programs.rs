//! Where a command's program is.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The file that `program` starts, looked up as a spawn would; None if there is none.
pub(super) fn find(program: &str, path: Option<&str>) -> Option<PathBuf> {
    if program.contains('/') {
        return is_program(Path::new(program)).then(|| PathBuf::from(program));
    }
    let path = path.map(Into::into).or_else(|| std::env::var_os("PATH"))?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
