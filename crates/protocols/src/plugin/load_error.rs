//! Owns the errors of loading a plugin, and the check of a file's owner.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use eisen_plugin::abi;

/// Why a file can't be used as a plugin.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("it can't be read: {0}")]
    Unreadable(#[from] std::io::Error),
    #[error("it is not a regular file")]
    NoFile,
    #[error("user {0} owns it and could change it: it must belong to you or to root")]
    OthersOwn(u32),
    #[error("other users can write to it (mode {:o}): run `chmod go-w` on it", .0 & 0o7777)]
    OthersWrite(u32),
    #[error("it has changed since it was approved: review it, then run `eisen-core dev plugin trust {}`",
            .0.display())]
    Changed(PathBuf),
    #[error("it can't be loaded as a library: {0}")]
    NoLibrary(String),
    #[error("it is not a plugin: it does not export `{}`", abi::ENTRY)]
    NoEntry,
    #[error("its entry returned no table")]
    NoTable,
    #[error("it is made for version {theirs} of the plugin interface, and this program has version \
             {}: it needs {}", abi::ABI, if *theirs < abi::ABI {
                 "a plugin that was built with a newer eisen_plugin.h"
             } else {
                 "a newer eisen-core, or a plugin that was built with an older eisen_plugin.h"
             })]
    OtherVersion { theirs: u32 },
    #[error("its table ends after {size} bytes, before the end of what every plugin must have")]
    Truncated { size: u32 },
    #[error("its table has no `{0}`")]
    Lacks(&'static str),
    #[error("it can't describe itself: {0}")]
    NoDescription(String),
}

/// Refuses files that other users may have written.
pub(super) fn owned(file: &File) -> Result<(), LoadError> {
    let found = file.metadata()?;
    let own = nix::unistd::geteuid().as_raw();
    if !found.is_file() {
        return Err(LoadError::NoFile);
    }
    if found.uid() != own && found.uid() != 0 {
        return Err(LoadError::OthersOwn(found.uid()));
    }
    if found.mode() & 0o022 != 0 {
        return Err(LoadError::OthersWrite(found.mode()));
    }
    Ok(())
}
