//! One credential of the web, and the secrets that it is made of. Only hashes of secrets are kept.

use std::fmt;

use subtle::ConstantTimeEq as _;
use tokio_util::sync::CancellationToken;

use crate::model::WebScope;
use crate::tokens::{TokenHolder, TokenRight};

/// Bytes of a secret.
const BYTES: usize = 32;

/// Hexadecimal digits of a credential's id.
const ID_DIGITS: usize = 8;

/// A secret as its holder has it: 64 hexadecimal digits.
pub(super) struct Secret(String);

/// The hash of a secret, which says nothing of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct SecretHash([u8; BYTES]);

impl Secret {
    pub(super) fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(blake3::Hash::from_bytes(bytes).to_hex().to_string()))
    }

    pub(super) fn hash(&self) -> SecretHash {
        SecretHash::of(&self.0)
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl SecretHash {
    pub(super) fn of(shown: &str) -> Self {
        Self(blake3::derive_key("eisen-core 2026-11 secret of the web", shown.as_bytes()))
    }

    pub(super) fn is_of(&self, shown: &str) -> bool {
        Self::of(shown).0.ct_eq(&self.0).into()
    }

    pub(super) fn to_hex(self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }

    pub(super) fn from_hex(hex: &str) -> Option<Self> {
        blake3::Hash::from_hex(hex).ok().map(|hash| Self(*hash.as_bytes()))
    }

    /// The name of its credential, which opens nothing.
    pub(super) fn id(&self) -> String {
        let mut hex = self.to_hex();
        hex.truncate(ID_DIGITS);
        hex
    }
}

/// How a credential is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ShownBy {
    /// A browser's cookie. It shows the page's files and figures; the team itself takes the token
    /// that only the page knows: browsers send a cookie to all ports of a host, and a team's agents
    /// may listen on some.
    Cookie { token: SecretHash },
    /// In the header `Authorization`.
    Bearer,
}

/// A credential that is valid until it is revoked.
#[derive(Clone, Debug)]
pub(super) struct Credential {
    /// Of the cookie, or of the bearer token.
    pub(super) secret: SecretHash,
    pub(super) shown: ShownBy,
    pub(super) scope: WebScope,
    /// Ends the connections that were opened with it.
    pub(super) revoked: CancellationToken,
    /// Of one of the team's tokens with a scope.
    pub(super) holder: Option<TokenHolder>,
}

impl Credential {
    pub(super) fn new(secret: SecretHash, shown: ShownBy, scope: WebScope) -> Self {
        Self { secret, shown, scope, revoked: CancellationToken::new(), holder: None }
    }

    /// Stands for one of the team's tokens with a scope, for one request.
    pub(super) fn of_holder(token: &str, holder: TokenHolder) -> Self {
        let steers = holder.may(TokenRight::Control);
        let scope = if steers { WebScope::Control } else { WebScope::Read };
        let revoked = holder.revoked().clone();
        let secret = SecretHash::of(token);
        Self { secret, shown: ShownBy::Bearer, scope, revoked, holder: Some(holder) }
    }

    /// What a token opens that comes beside the credential: all of its scope, or nothing.
    pub(super) fn opened_by(&self, token: &str) -> Option<WebScope> {
        let wanted = match &self.shown {
            ShownBy::Cookie { token } => token,
            ShownBy::Bearer => &self.secret,
        };
        // The port itself knows the team's tokens, and holds them to their rights.
        if self.holder.is_some() {
            return None;
        }
        (!self.revoked.is_cancelled() && wanted.is_of(token)).then_some(self.scope)
    }
}
