//! The listeners of a team: its port, and the tools over HTTP.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::Context;
use tokio::net::TcpListener;

use crate::config::{self, Config};
use crate::serve;

/// The addresses of a team.
pub(super) struct Listeners {
    pub(super) port: TcpListener,
    /// Where the tools are served over HTTP, if any agent may have them.
    pub(super) tools: Option<TcpListener>,
}

impl Listeners {
    pub(super) async fn bind(
        config: &Config,
        port: Option<u16>,
        eisen_dir: &Path,
    ) -> anyhow::Result<Self> {
        let mut listen = config.team.listen;
        listen.set_port(port.unwrap_or(listen.port()));
        let port = serve::bind(listen, eisen_dir).await?;
        let has_tools = |agent: &config::Agent| agent.tools.unwrap_or(config.team.tools);
        let tools = if config.agents.iter().any(has_tools) {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
            Some(listener.context("cannot serve the tools of the team")?)
        } else {
            None
        };
        Ok(Self { port, tools })
    }

    pub(super) fn addresses(&self) -> std::io::Result<(SocketAddr, Option<SocketAddr>)> {
        let tools = self.tools.as_ref().map(TcpListener::local_addr).transpose()?;
        Ok((self.port.local_addr()?, tools))
    }
}
