//! Serves the team on the web: the page, a WebSocket that carries the port's lines, the gateway, and `/metrics`.
//! Owns the credentials of the web; what they open is decided in `serve`. Knows nothing of agents.

mod acp;
mod assets;
mod attempts;
mod bounded_writes;
mod connection;
mod credential;
mod credentials;
#[cfg(test)]
mod design;
mod guard;
mod kept;
mod known_places;
mod routes;
mod served;
mod server;
mod site;
mod socket;
mod tls;
mod upgrade;

pub use credentials::{CredentialError, Credentials, Link};
pub use routes::ENTER;
pub use served::Served;
pub use server::WebServer;
pub use site::WebSite;
pub use tls::TlsError;

use crate::model::{KeptFiles, KeptForm};

/// Hashes of credentials, and the last link that was opened.
pub const KEPT: [KeptFiles; 1] = [KeptFiles::new(
    "credentials of the web",
    KeptForm::Fixed,
    &["teams/*/web.json*", "web-link.html"],
)];
