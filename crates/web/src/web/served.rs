//! The state that all requests of the web server share.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::credentials::Credentials;
use super::site::WebSite;
use crate::metrics::Metrics;
use crate::serve::Gateway;

/// The state that all requests share.
pub struct Served {
    pub site: WebSite,
    pub credentials: Arc<Credentials>,
    pub gateway: Gateway,
    /// None: the place has the gateway alone.
    pub metrics: Option<Metrics>,
    /// Cancelled when the team ends.
    pub cancel: CancellationToken,
}
