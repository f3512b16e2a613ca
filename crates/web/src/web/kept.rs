//! Bearer tokens that outlast the team, on disk: only their hashes, so the file opens nothing.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::credential::{Credential, SecretHash, ShownBy};
use crate::kept::{Durable, KeptFile};
use crate::model::WebScope;
use crate::serve::OpenedOnWeb;

/// Bytes of the file that are read.
const LONGEST: u64 = 1 << 20;

/// The file of one team's tokens. A revoked one does not come back with a crash.
#[derive(Clone, Debug)]
pub(super) struct TokenFile(KeptFile<Durable>);

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
        Self(KeptFile::new(path, LONGEST))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Reads the tokens; one that can't be read opens nothing.
    pub(super) fn read(&self) -> io::Result<Vec<Credential>> {
        let Some(Content { tokens }) = self.0.read_json()? else { return Ok(Vec::new()) };
        let kept = tokens.into_iter().filter_map(|token| {
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
        self.0.replace(&serde_json::to_vec(&Content { tokens: tokens.collect() })?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::kept::power_cut::survives;

    #[test]
    fn a_revoked_token_does_not_come_back_with_a_power_cut() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(folder.path().join("shop/web.json"));
        assert!(file.read().unwrap().is_empty());
        let token = |secret: &str, scope| {
            let opens = OpenedOnWeb::Scope(scope);
            Credential::new(SecretHash::of(secret), ShownBy::Bearer, opens)
        };
        let all = [token("one", WebScope::Read), token("other", WebScope::Decide)];
        survives(file.path(), || file.write(all.iter()).unwrap());
        survives(file.path(), || file.write(all[..1].iter()).unwrap());
        let kept = file.read().unwrap();
        assert_eq!(kept.iter().map(Credential::scope).collect::<Vec<_>>(), [WebScope::Read]);
    }
}
