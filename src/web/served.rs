//! What all requests of the web server share.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::credentials::Credentials;
use super::site::WebSite;
use crate::serve::Gateway;

/// What all requests share.
pub(super) struct Served {
    pub(super) site: WebSite,
    pub(super) access: Arc<Credentials>,
    pub(super) gateway: Gateway,
    pub(super) cancel: CancellationToken,
}
