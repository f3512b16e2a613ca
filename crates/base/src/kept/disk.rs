//! The steps on the disk that a kept file is made of. In tests each is recorded, for `power_cut`.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

use tempfile::NamedTempFile;

use super::power_cut::{DiskStep, record};

/// The mode of a kept file, and of the folders that are made for it.
pub(super) const OF_FILE: u32 = 0o600;
const OF_FOLDER: u32 = 0o700;

/// Makes a folder, and those above it that are missing, with mode 0700 whatever the umask.
pub fn make_folder(path: &Path) -> io::Result<()> {
    make(path, false)
}

/// As [`make_folder`]; a folder that is there gets the mode, too.
pub fn make_private(path: &Path) -> io::Result<()> {
    make_folder(path)?;
    fs::set_permissions(path, Permissions::from_mode(OF_FOLDER))
}

/// As [`make_folder`]; with `sync` their names are on the disk afterwards.
pub(super) fn make(path: &Path, sync: bool) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let above = folder_of(path);
    if above != path {
        make(above, sync)?;
    }
    match DirBuilder::new().mode(OF_FOLDER).create(path) {
        // Another process was first.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {}
        made => made?,
    }
    record(|| DiskStep::Made(path.to_owned()));
    let made = fs::metadata(path)?.permissions();
    if made.mode() & 0o777 != OF_FOLDER {
        fs::set_permissions(path, Permissions::from_mode(OF_FOLDER))?;
    }
    if sync { sync_folder(above) } else { Ok(()) }
}

/// Sets the mode of a new file, if the umask took something of it.
pub(super) fn with_mode_of_file(file: File) -> io::Result<File> {
    if file.metadata()?.permissions().mode() & 0o777 != OF_FILE {
        file.set_permissions(Permissions::from_mode(OF_FILE))?;
    }
    Ok(file)
}

/// The folder of a path; of a plain name the working directory.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(super) fn write(draft: &mut NamedTempFile, content: &[u8]) -> io::Result<()> {
    draft.write_all(content)?;
    record(|| DiskStep::Wrote(draft.path().to_owned(), content.to_owned()));
    Ok(())
}

pub(super) fn sync_file(draft: &NamedTempFile) -> io::Result<()> {
    draft.as_file().sync_all()?;
    record(|| DiskStep::SyncedFile(draft.path().to_owned()));
    Ok(())
}

/// Gives a draft its name, and returns its file. Without `replaces` a file of this name is an error.
pub(super) fn rename(draft: NamedTempFile, path: &Path, replaces: bool) -> io::Result<File> {
    let from = draft.path().to_owned();
    let renamed = if replaces { draft.persist(path) } else { draft.persist_noclobber(path) };
    let file = renamed.map_err(|error| error.error)?;
    record(|| DiskStep::Renamed(from, path.to_owned()));
    Ok(file)
}

/// Removes a file; returns whether it was there.
pub(super) fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        removed => removed?,
    }
    record(|| DiskStep::Removed(path.to_owned()));
    Ok(true)
}

pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // Some file systems don't sync folders; their names last as they do.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {}
        synced => synced?,
    }
    record(|| DiskStep::SyncedFolder(folder.to_owned()));
    Ok(())
}
