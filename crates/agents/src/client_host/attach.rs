//! Attached editors: each acts as the client of the sessions that it opens, and its traffic passes
//! the relay with its gate like the host's own. Ids are remapped both ways; the host serves the
//! methods that an editor lacks.

mod forward;
mod ownership;
mod serve;

use tokio::io::DuplexStream;

use super::messages::HostMsg;
use super::{HostError, HostHandle};

impl HostHandle {
    /// Attaches an editor, which speaks ACP to the agent over the returned stream. When the editor
    /// ends its output, its running turns are cancelled, the host takes over its sessions, and the
    /// stream ends once the editor's earlier requests are answered. The stream also ends with the
    /// agent, after an error for each open request.
    pub async fn attach(&self) -> Result<DuplexStream, HostError> {
        self.ask(|reply| HostMsg::Attach { reply }).await
    }
}
