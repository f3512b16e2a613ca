//! The file of a team's tokens, which several processes may change: each under a lock, and as a whole.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use super::record::TokenRecord;

const NAME: &str = "tokens.json";

/// Bytes of the file that are read: 256 tokens have far fewer, each with a hundred agents.
const LONGEST: u64 = 4 << 20;

#[derive(Debug)]
pub(super) struct TokenFile(PathBuf);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptTokens {
    tokens: Vec<TokenRecord>,
}

impl TokenFile {
    pub(super) fn new(folder: &Path) -> Self {
        Self(folder.join(NAME))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Waits for the lock, which goes with what is returned.
    pub(super) fn lock(&self) -> io::Result<Flock<File>> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.folder())?;
        let path = self.0.with_extension("lock");
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error.into())
    }

    /// Reads all tokens; none without the file. A file with one that can't be read is an error: a token
    /// could mean more than it did.
    pub(super) fn read(&self) -> io::Result<Vec<TokenRecord>> {
        let bytes = match std::fs::metadata(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
            Ok(file) if !file.is_file() => return Err(io::ErrorKind::InvalidData.into()),
            Ok(file) if file.len() > LONGEST => return Err(io::ErrorKind::FileTooLarge.into()),
            Ok(_) => std::fs::read(&self.0)?,
        };
        let KeptTokens { tokens } = serde_json::from_slice(&bytes)?;
        if !tokens.iter().all(TokenRecord::is_whole) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "one of the hashes is none"));
        }
        Ok(tokens)
    }

    /// Replaces the file; [`Self::sync`] follows. Whoever calls it has the lock.
    pub(super) fn replace(&self, tokens: &[TokenRecord]) -> io::Result<()> {
        let content = serde_json::to_vec_pretty(&KeptTokens { tokens: tokens.to_vec() })?;
        let folder = self.folder();
        let mut new = tempfile::Builder::new()
            .prefix(".")
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(folder)?;
        new.write_all(&content)?;
        new.as_file().sync_all()?;
        new.persist(&self.0).map_err(|error| error.error)?;
        Ok(())
    }

    /// Syncs the folder, so that a revoked token does not come back with a crash.
    pub(super) fn sync(&self) -> io::Result<()> {
        File::open(self.folder())?.sync_all()
    }

    fn folder(&self) -> &Path {
        self.0.parent().unwrap_or(Path::new("."))
    }
}
