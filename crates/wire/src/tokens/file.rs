//! The file of a team's tokens, which several processes may change: each under a lock, and as a whole.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::record::TokenRecord;
use crate::kept::{Durable, HeldLock, KeptFile, PATIENCE};

const NAME: &str = "tokens.json";

/// Bytes of the file that are read: 256 tokens have far fewer, each with a hundred agents.
const LONGEST: u64 = 4 << 20;

/// A revoked token does not come back with a crash.
#[derive(Debug)]
pub(super) struct TokenFile(KeptFile<Durable>);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptTokens {
    tokens: Vec<TokenRecord>,
}

impl TokenFile {
    pub(super) fn new(folder: &Path) -> Self {
        Self(KeptFile::new(folder.join(NAME), LONGEST))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Waits for the lock, which goes with what is returned.
    pub(super) fn lock(&self) -> io::Result<HeldLock> {
        self.0.lock("tokens.lock", PATIENCE)
    }

    /// Reads all tokens; none without the file. A file with one that can't be read is an error: a token
    /// could mean more than it did.
    pub(super) fn read(&self) -> io::Result<Vec<TokenRecord>> {
        let Some(KeptTokens { tokens }) = self.0.read_json()? else { return Ok(Vec::new()) };
        if !tokens.iter().all(TokenRecord::is_whole) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "one of the hashes is none"));
        }
        Ok(tokens)
    }

    /// Replaces the file. Whoever calls it has the lock.
    pub(super) fn replace(&self, tokens: &[TokenRecord]) -> io::Result<()> {
        self.0.replace(&serde_json::to_vec_pretty(&KeptTokens { tokens: tokens.to_vec() })?)
    }
}
