//! Bearer tokens that outlast the team, on disk: only their hashes, so the file opens nothing.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::credential::{Credential, SecretHash, ShownBy};
use crate::model::WebScope;
use crate::serve::OpenedOnWeb;

/// Bytes of the file that are read.
const LONGEST: u64 = 1 << 20;

/// The file of one team's tokens.
#[derive(Clone, Debug)]
pub(super) struct TokenFile(PathBuf);

#[derive(Serialize, Deserialize)]
struct Content {
    tokens: Vec<KeptToken>,
}

#[derive(Serialize, Deserialize)]
struct KeptToken {
    hash: String,
    scope: String,
}

impl TokenFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Reads the tokens; one that can't be read opens nothing.
    pub(super) fn read(&self) -> io::Result<Vec<Credential>> {
        let text = match std::fs::metadata(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
            Ok(file) if file.len() > LONGEST => return Err(io::ErrorKind::FileTooLarge.into()),
            Ok(_) => std::fs::read_to_string(&self.0)?,
        };
        let content: Content = serde_json::from_str(&text)?;
        let kept = content.tokens.into_iter().filter_map(|token| {
            let scope = WebScope::ALL.into_iter().find(|scope| scope.as_str() == token.scope)?;
            let opens = OpenedOnWeb::Scope(scope);
            Some(Credential::new(SecretHash::from_hex(&token.hash)?, ShownBy::Bearer, opens))
        });
        Ok(kept.collect())
    }

    /// Replaces the file, if need be with its folder.
    pub(super) fn write<'a>(&self, tokens: impl Iterator<Item = &'a Credential>) -> io::Result<()> {
        let tokens = tokens.map(|token| KeptToken {
            hash: token.secret.to_hex(),
            scope: token.scope().as_str().to_owned(),
        });
        let content = serde_json::to_vec(&Content { tokens: tokens.collect() })?;
        let folder = self.0.parent().unwrap_or(Path::new("."));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.as_file().set_permissions(std::fs::Permissions::from_mode(0o600))?;
        io::Write::write_all(&mut new, &content)?;
        new.as_file().sync_all()?;
        new.persist(&self.0).map_err(|error| error.error)?;
        Ok(())
    }
}
