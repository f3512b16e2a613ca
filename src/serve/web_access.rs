//! Credentials of the web, as a person gets them.

use std::time::Duration;

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
