//! Credentials of the web, as a person gets them.

use std::time::Duration;

use crate::model::WebScope;
use crate::tokens::TokenHolder;

/// The rights of a credential of the web.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OpenedOnWeb {
    /// The scope's rights, as a person.
    Scope(WebScope),
    /// The rights of one of the team's tokens with a scope, as its holder, while the token is good.
    Holder(TokenHolder),
}

/// A link to the web page that is good once.
#[derive(Debug)]
pub struct WebLink {
    pub url: String,
    /// How long it is good.
    pub lasts: Duration,
}

/// A token for programs that use the web server.
#[derive(Debug)]
pub struct WebToken {
    pub token: String,
    /// Names it when it is revoked.
    pub id: String,
    /// The address of the web server, if it runs.
    pub url: Option<String>,
}
