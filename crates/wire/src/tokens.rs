//! Tokens with a scope: whose they are, what they open, for which agents, and until when. Owns their file,
//! in which there are hashes only, and ends what was opened with one that is revoked.

mod file;
mod record;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use self::file::TokenFile;
pub use self::record::{NewToken, TokenHolder, TokenRecord, TokenRight, Visitor};
use crate::model::{KeptFiles, KeptForm, now_ms};

/// Hashes of tokens, and whose they are.
pub const KEPT: [KeptFiles; 1] =
    [KeptFiles::new("tokens", KeptForm::Fixed, &["teams/*/tokens.json*", "teams/*/tokens.lock"])];

/// The beginning of each token with a scope. An agent's token and the control token never begin so.
pub const PREFIX: &str = "eisen_";

/// Bytes of a token.
const LONGEST: usize = PREFIX.len() + 2 * blake3::OUT_LEN;

/// Tokens of a team; a further one is refused.
const MOST: usize = 256;

/// The tokens of one team. Clones share them.
#[derive(Clone, Debug)]
pub struct ScopedTokens(Arc<TeamTokens>);

#[derive(Debug)]
struct TeamTokens {
    file: TokenFile,
    known: Mutex<Vec<LiveToken>>,
}

/// The secret by which a client proves a token: the hash of a token with a scope, since a team knows
/// no more of it, else the token.
pub fn proving(token: &str) -> Cow<'_, str> {
    if token.starts_with(PREFIX) { record::hash(token).into() } else { token.into() }
}

/// A token that is good until it is revoked, or expires.
#[derive(Clone, Debug)]
struct LiveToken {
    record: TokenRecord,
    /// Ends what was opened with it.
    ended: CancellationToken,
}

#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    #[error("the system has no random numbers for a token: {0}")]
    Random(getrandom::Error),
    #[error("there are {MOST} tokens, which is the limit: revoke some first")]
    Full,
    #[error("there is no token `{0}`")]
    Unknown(String),
    #[error("cannot keep the tokens in {}: {cause}", .file.display())]
    File { file: PathBuf, cause: io::Error },
}

impl ScopedTokens {
    /// Opens the tokens of a team, which `folder` keeps for it.
    pub fn open(folder: &Path) -> Result<Self, TokensError> {
        let file = TokenFile::new(folder);
        let records = file.read().map_err(|cause| failed(&file, cause))?;
        let known = Mutex::new(records.into_iter().map(LiveToken::new).collect());
        Ok(Self(Arc::new(TeamTokens { file, known })))
    }

    /// Makes a token; returns it with what is kept of it.
    pub fn create(&self, new: NewToken) -> Result<(String, TokenRecord), TokensError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(TokensError::Random)?;
        let token = format!("{PREFIX}{}", blake3::Hash::from_bytes(bytes).to_hex());
        let record = TokenRecord::new(&token, new, now_ms());
        self.change(|records| {
            // Those that have expired make room.
            if records.len() >= MOST {
                let now = now_ms();
                records.retain(|record| !record.has_expired(now));
            }
            if records.len() >= MOST {
                return Err(TokensError::Full);
            }
            records.push(record.clone());
            Ok(())
        })?;
        Ok((token, record))
    }

    /// All tokens, the oldest first; also those that have expired.
    pub fn list(&self) -> Vec<TokenRecord> {
        self.0.known.lock().iter().map(|known| known.record.clone()).collect()
    }

    /// Revokes a token. What was opened with it ends at once.
    pub fn revoke(&self, id: &str) -> Result<TokenRecord, TokensError> {
        let mut revoked = None;
        self.change(|records| {
            let at = records.iter().position(|record| record.id() == id);
            let at = at.ok_or_else(|| TokensError::Unknown(id.to_owned()))?;
            revoked = Some(records.remove(at));
            Ok(())
        })?;
        revoked.ok_or_else(|| TokensError::Unknown(id.to_owned()))
    }

    /// Returns the holder of a token. Each of them is compared in constant time.
    pub fn holder(&self, presented: &str) -> Option<TokenHolder> {
        // A longer one would take time to hash.
        if !presented.starts_with(PREFIX) || presented.len() > LONGEST {
            return None;
        }
        let presented = record::hash(presented);
        self.find(|record| record.is_of(&presented))
    }

    /// Returns the holder of the token that a client has proved, by what [`proving`] makes of it.
    pub fn prover(&self, proves: impl Fn(&str) -> bool) -> Option<TokenHolder> {
        self.find(|record| record.proves(&proves))
    }

    fn find(&self, is_it: impl Fn(&TokenRecord) -> bool) -> Option<TokenHolder> {
        let now = now_ms();
        let known = self.0.known.lock();
        let mut found = None;
        for known in known.iter() {
            if is_it(&known.record) {
                found = Some(known);
            }
        }
        let found = found.filter(|known| !known.record.has_expired(now))?;
        Some(TokenHolder::new(&found.record, found.ended.clone()))
    }

    /// Changes the file, and then what is known; tokens that are gone end.
    fn change(
        &self,
        change: impl FnOnce(&mut Vec<TokenRecord>) -> Result<(), TokensError>,
    ) -> Result<(), TokensError> {
        let inner = &self.0;
        // One after the other in this process, too.
        let mut known = inner.known.lock();
        let io = |cause| failed(&inner.file, cause);
        let locked = inner.file.lock().map_err(io)?;
        // Another process may have changed it.
        let mut records = inner.file.read().map_err(io)?;
        let changed = change(&mut records);
        let kept = changed.and_then(|()| inner.file.replace(&records).map_err(io));
        if kept.is_err() {
            // What another process changed counts nevertheless, and what may not outlast a crash.
            records = inner.file.read().map_err(io)?;
        }
        drop(locked);
        let mut old = std::mem::take(&mut *known);
        for record in records {
            let at = old.iter().position(|known| known.record.id() == record.id());
            known.push(at.map_or_else(|| LiveToken::new(record), |at| old.swap_remove(at)));
        }
        for gone in old {
            gone.ended.cancel();
        }
        kept
    }
}

impl LiveToken {
    fn new(record: TokenRecord) -> Self {
        Self { record, ended: CancellationToken::new() }
    }
}

fn failed(file: &TokenFile, cause: io::Error) -> TokensError {
    TokensError::File { file: file.path().to_owned(), cause }
}
