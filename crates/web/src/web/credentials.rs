//! The credentials for the web server: one-time links, browsers' sessions and bearer tokens.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::attempts::Attempts;
use super::credential::{Credential, Secret, SecretHash, ShownBy, is_good, is_same_holder};
use super::kept::TokenFile;
use crate::model::WebScope;
use crate::serve::OpenedOnWeb;

/// How long a link is good.
const LINK_LASTS: Duration = Duration::from_secs(5 * 60);

/// Links that are good at once, of persons, and of each token with a scope; a further one replaces the oldest
/// of these.
const MOST_LINKS: usize = 16;
const MOST_LINKS_OF_TOKEN: usize = 4;

/// Browsers at once, of persons, and of each token with a scope; a further one replaces the oldest of these.
const MOST_SESSIONS: usize = 64;
const MOST_SESSIONS_OF_TOKEN: usize = 8;

/// Bearer tokens at once; a further one is refused.
const MOST_TOKENS: usize = 64;

/// The credentials of one team's web server.
#[derive(Debug)]
pub struct Credentials {
    /// The name of the cookie, one for each team.
    cookie: String,
    folder: String,
    file: TokenFile,
    state: Mutex<AllCredentials>,
}

#[derive(Default, Debug)]
struct AllCredentials {
    links: VecDeque<OpenLink>,
    sessions: VecDeque<Credential>,
    tokens: Vec<Credential>,
    attempts: Attempts,
}

#[derive(Debug)]
struct OpenLink {
    code: SecretHash,
    opens: OpenedOnWeb,
    until: Instant,
}

/// The secret of a link that is good once.
#[derive(Debug)]
pub struct Link {
    pub code: String,
    pub lasts: Duration,
}

/// The credentials that a browser gets for a link.
#[derive(Debug)]
pub(super) struct Entered {
    pub(super) cookie: String,
    pub(super) token: String,
    pub(super) opens: OpenedOnWeb,
}

#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    #[error("the system has no random numbers for a credential: {0}")]
    Random(getrandom::Error),
    #[error("there are {MOST_TOKENS} tokens, which is the limit: revoke some first")]
    Full,
    #[error("there is no credential `{0}`")]
    Unknown(String),
    #[error("cannot keep the tokens of the web page in {}: {cause}", .file.display())]
    File { file: PathBuf, cause: io::Error },
}

impl Credentials {
    /// Opens the credentials of a team; `place` names the team among all of this machine, `file` keeps
    /// its bearer tokens.
    pub fn open(place: &str, file: PathBuf) -> Result<Self, CredentialError> {
        let kept = TokenFile::new(file.clone());
        let tokens = kept.read().map_err(|cause| CredentialError::File { file, cause })?;
        let cookie = format!("eisen-{}", SecretHash::of(place).id());
        let folder = Secret::generate().map_err(CredentialError::Random)?.into_text();
        let state = AllCredentials { tokens, ..AllCredentials::default() };
        Ok(Self { cookie, folder, file: kept, state: Mutex::new(state) })
    }

    /// The name of the cookie.
    pub(super) fn cookie(&self) -> &str {
        &self.cookie
    }

    /// The folder in which the page names its scripts and styles, another at each start: what another program
    /// left in a browser has none of these addresses.
    pub(super) fn folder(&self) -> &str {
        &self.folder
    }

    /// Makes a link that is good once.
    pub fn link(&self, opens: OpenedOnWeb) -> Result<Link, CredentialError> {
        let code = Secret::generate().map_err(CredentialError::Random)?;
        let mut state = self.state();
        let now = Instant::now();
        state.links.retain(|link| link.is_good(now));
        let most = most(&opens, MOST_LINKS, MOST_LINKS_OF_TOKEN);
        oldest_beyond(&mut state.links, most, |link| is_same_holder(&link.opens, &opens));
        state.links.push_back(OpenLink { code: code.hash(), opens, until: now + LINK_LASTS });
        Ok(Link { code: code.into_text(), lasts: LINK_LASTS })
    }

    /// Uses up a link; None if it is not good, or no longer.
    pub(super) fn enter(&self, code: &str) -> Result<Option<Entered>, CredentialError> {
        let secret = || Secret::generate().map_err(CredentialError::Random);
        let (cookie, token) = (secret()?, secret()?);
        let mut state = self.state();
        let now = Instant::now();
        state.links.retain(|link| link.is_good(now));
        state.sessions.retain(Credential::is_good);
        let Some(at) = state.links.iter().position(|link| link.code.is_of(code)) else {
            return Ok(None);
        };
        let Some(OpenLink { opens, .. }) = state.links.remove(at) else { return Ok(None) };
        let most = most(&opens, MOST_SESSIONS, MOST_SESSIONS_OF_TOKEN);
        let is_same = |it: &Credential| is_same_holder(&it.opens, &opens);
        if let Some(oldest) = oldest_beyond(&mut state.sessions, most, is_same) {
            oldest.revoked.cancel();
        }
        let shown = ShownBy::Cookie { token: token.hash() };
        state.sessions.push_back(Credential::new(cookie.hash(), shown, opens.clone()));
        Ok(Some(Entered { cookie: cookie.into_text(), token: token.into_text(), opens }))
    }

    /// Takes a link back; false if there is none with this code.
    pub(super) fn withdraw(&self, code: &str) -> bool {
        let mut state = self.state();
        let before = state.links.len();
        state.links.retain(|link| !link.code.is_of(code));
        state.links.len() < before
    }

    /// Makes a bearer token, which lasts until it is revoked; returns it with its id.
    pub fn token(&self, scope: WebScope) -> Result<(String, String), CredentialError> {
        let secret = Secret::generate().map_err(CredentialError::Random)?;
        let mut state = self.state();
        if state.tokens.len() >= MOST_TOKENS {
            return Err(CredentialError::Full);
        }
        let id = secret.hash().id();
        let opens = OpenedOnWeb::Scope(scope);
        state.tokens.push(Credential::new(secret.hash(), ShownBy::Bearer, opens));
        if let Err(error) = self.keep(&state) {
            state.tokens.pop();
            return Err(error);
        }
        Ok((secret.into_text(), id))
    }

    /// Revokes the token with an id, or every credential and every link; returns how many. What was
    /// opened with them is closed at once.
    pub fn revoke(&self, id: Option<&str>) -> Result<usize, CredentialError> {
        let mut state = self.state();
        let is_meant = |it: &Credential| id.is_none_or(|id| it.secret.id() == id);
        let mut revoked: Vec<Credential> = Vec::new();
        revoked.extend(state.tokens.extract_if(.., |it| is_meant(it)));
        let (gone, stay): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut state.sessions).into_iter().partition(is_meant);
        state.sessions = stay;
        revoked.extend(gone);
        let mut number = revoked.len();
        if id.is_none() {
            number += state.links.len();
            state.links.clear();
        }
        for credential in &revoked {
            credential.revoked.cancel();
        }
        // Also if nothing was there: an earlier try may have failed here.
        self.keep(&state)?;
        match id {
            Some(id) if revoked.is_empty() => Err(CredentialError::Unknown(id.to_owned())),
            _ => Ok(number),
        }
    }

    /// Revokes one credential.
    pub(super) fn leave(&self, credential: &Credential) {
        credential.revoked.cancel();
        self.state().sessions.retain(|it| it.secret != credential.secret);
    }

    pub(super) fn by_cookie(&self, cookie: &str) -> Option<Credential> {
        let state = self.state();
        let found = state.sessions.iter().find(|it| it.secret.is_of(cookie));
        found.filter(|it| it.is_good()).cloned()
    }

    pub(super) fn by_bearer(&self, token: &str) -> Option<Credential> {
        self.state().tokens.iter().find(|it| it.secret.is_of(token)).cloned()
    }

    /// Counts a failed attempt; true if there were too many before it.
    pub(super) fn failed(&self) -> bool {
        self.state().attempts.failed(Instant::now())
    }

    fn keep(&self, state: &AllCredentials) -> Result<(), CredentialError> {
        let written = self.file.write(state.tokens.iter());
        written.map_err(|cause| CredentialError::File { file: self.file.path().to_owned(), cause })
    }

    fn state(&self) -> MutexGuard<'_, AllCredentials> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenLink {
    fn is_good(&self, now: Instant) -> bool {
        self.until > now && is_good(&self.opens)
    }
}

/// How many there may be of persons, or of one token.
fn most(opens: &OpenedOnWeb, of_persons: usize, of_token: usize) -> usize {
    match opens {
        OpenedOnWeb::Scope(_) => of_persons,
        OpenedOnWeb::Holder(_) => of_token,
    }
}

/// Makes room for one more of those that are meant: the oldest of them goes if there are `most`.
fn oldest_beyond<T>(
    all: &mut VecDeque<T>,
    most: usize,
    is_meant: impl Fn(&T) -> bool,
) -> Option<T> {
    if all.iter().filter(|it| is_meant(it)).count() < most {
        return None;
    }
    let at = all.iter().position(is_meant)?;
    all.remove(at)
}

#[cfg(test)]
mod tests;
