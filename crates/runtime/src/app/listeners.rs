//! The listeners of a team: its port, and the tools over HTTP.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use tokio::net::TcpListener;

use crate::app::team::Supervised;
use crate::bus::Bus;
use crate::config::{self, Config};
use crate::serve::{self, Handles, Limits, Server, Tokens};

/// The addresses of a team.
pub(super) struct Listeners {
    port: TcpListener,
    /// Where the tools are served over HTTP, if any agent may have them.
    tools: Option<TcpListener>,
}

impl Listeners {
    pub(super) async fn bind(
        config: &Config,
        port: Option<u16>,
        eisen_dir: &Path,
    ) -> anyhow::Result<Self> {
        let mut listen = config.team.listen;
        listen.set_port(port.unwrap_or(listen.port()));
        let may_move = config.team.any_port && port.is_none();
        let port = match serve::bind(listen, eisen_dir).await {
            Err(_) if may_move => serve::bind((listen.ip(), 0).into(), eisen_dir).await?,
            bound => bound?,
        };
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

    /// The server behind them, which does not run yet.
    pub(super) fn server(
        self,
        bus: &Bus,
        sources: Handles,
        team: &Arc<Supervised>,
        tokens: Tokens,
        limits: Limits,
    ) -> anyhow::Result<Server> {
        let (sources, team) = (Arc::new(sources), Arc::<Supervised>::clone(team));
        let server = Server::new(self.port, bus.clone(), sources, team, tokens, limits)?;
        Ok(server.with_tools(self.tools))
    }
}
