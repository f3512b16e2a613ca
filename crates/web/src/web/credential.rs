//! One credential of the web, and the secrets that it is made of. Only hashes of secrets are kept.

use std::fmt;

use subtle::ConstantTimeEq as _;
use tokio_util::sync::CancellationToken;

use crate::model::WebScope;
use crate::serve::OpenedOnWeb;
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

/// A credential that is valid until it is revoked; one of a token with a scope also ends with that.
#[derive(Clone, Debug)]
pub(super) struct Credential {
    /// The hash of the cookie, or of the bearer token.
    pub(super) secret: SecretHash,
    pub(super) shown: ShownBy,
    pub(super) opens: OpenedOnWeb,
    /// Ends the connections that were opened with it.
    pub(super) revoked: CancellationToken,
}

impl Credential {
    pub(super) fn new(secret: SecretHash, shown: ShownBy, opens: OpenedOnWeb) -> Self {
        let revoked = match &opens {
            OpenedOnWeb::Scope(_) => CancellationToken::new(),
            // What ends this credential does not end the token.
            OpenedOnWeb::Holder(holder) => holder.revoked().child_token(),
        };
        Self { secret, shown, opens, revoked }
    }

    /// Stands for one of the team's tokens with a scope, for one request.
    pub(super) fn of_holder(token: &str, holder: TokenHolder) -> Self {
        Self::new(SecretHash::of(token), ShownBy::Bearer, OpenedOnWeb::Holder(holder))
    }

    /// The holder of a token with a scope that it stands for.
    pub(super) fn holder(&self) -> Option<&TokenHolder> {
        holder(&self.opens)
    }

    /// Whether it may do all that a person may, or less.
    pub(super) fn scope(&self) -> WebScope {
        match &self.opens {
            OpenedOnWeb::Scope(scope) => *scope,
            OpenedOnWeb::Holder(holder) if holder.may(TokenRight::Control) => WebScope::Control,
            OpenedOnWeb::Holder(_) => WebScope::Read,
        }
    }

    pub(super) fn is_good(&self) -> bool {
        !self.revoked.is_cancelled() && is_good(&self.opens)
    }

    /// Counts its connections: all that stand for one token with a scope are counted together.
    pub(super) fn counted_as(&self) -> SecretHash {
        self.holder().map_or(self.secret, |holder| SecretHash::of(&holder.id))
    }

    /// The rights that a token opens beside the credential: all of the credential's, or none.
    pub(super) fn opened_by(&self, token: &str) -> Option<OpenedOnWeb> {
        let wanted = match &self.shown {
            ShownBy::Cookie { token } => token,
            ShownBy::Bearer => &self.secret,
        };
        (self.is_good() && wanted.is_of(token)).then(|| self.opens.clone())
    }
}

/// Whether what a credential or a link opens is still there.
pub(super) fn is_good(opens: &OpenedOnWeb) -> bool {
    holder(opens).is_none_or(TokenHolder::is_good)
}

/// Whether two are of the same token with a scope, or both of persons.
pub(super) fn is_same_holder(one: &OpenedOnWeb, other: &OpenedOnWeb) -> bool {
    holder(one) == holder(other)
}

fn holder(opens: &OpenedOnWeb) -> Option<&TokenHolder> {
    match opens {
        OpenedOnWeb::Scope(_) => None,
        OpenedOnWeb::Holder(holder) => Some(holder),
    }
}
