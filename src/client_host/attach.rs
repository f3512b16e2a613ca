//! Editors that are attached: each stands in the host's place for the sessions that it opens, and
//! everything it says and hears passes the relay with its gate like the host's own. Ids are
//! remapped both ways; what an editor lacks the host serves. Knows nothing of the port.

mod forward;
mod ownership;
mod serve;

use tokio::io::DuplexStream;

use super::messages::HostMsg;
use super::{HostError, HostHandle};

impl HostHandle {
    /// Attaches an editor, which speaks ACP to the agent over the stream that is returned. The end
    /// of what it says ends its part: its running turns are cancelled and its sessions fall to the
    /// host, and when what it asked before is answered the stream ends. With the agent the stream
    /// ends too, after an error for each request under way.
    pub async fn attach(&self) -> Result<DuplexStream, HostError> {
        self.ask(|reply| HostMsg::Attach { reply }).await
    }
}
