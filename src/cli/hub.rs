//! `hub`: the port of the teams of several hosts.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::Global;
use crate::app::{self, HubOptions, WebWish};
use crate::program::Failure;

/// Show the teams of several hosts on one port
///
/// Teams with `[hub]` in their configuration publish what happens to a server of NATS, and take
/// requests from there. A hub has no agents of its own: its port has the lines of all teams, with
/// agents as HOST/AGENT, and takes the methods of a team's port. Commands such as `ps`, `prompt`
/// and `inbox` work with it as with a team called `hub`. docs/hub.md describes it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core team hub --nats nats://127.0.0.1:4222
  eisen-core team hub --listen 127.0.0.1:17330
  eisen-core team hub --web  with a page, which `eisen-core web --team hub` links to
  eisen-core ps --team hub
  eisen-core prompt --team hub a/ui \"Add a footer\"

Exit codes: 0 stopped by a signal, 1 the port is taken, 2 wrong usage.")]
pub(super) struct HubArgs {
    /// Address and port to listen on [default: 127.0.0.1:17320, or a free port if that is taken]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// The server of NATS [default: that of `[hub]` in the user's configuration]
    #[arg(long, value_name = "URL")]
    nats: Option<String>,
    /// Serve the web page of all teams [default address: 127.0.0.1:17321]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true)]
    #[expect(clippy::option_option, reason = "with and without an address")]
    web: Option<Option<SocketAddr>>,
    /// A configuration whose `[hub]` counts
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl HubArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let Self { listen, nats, web, config: file } = self;
        let web = web.map(|at| WebWish { at });
        app::hub(HubOptions { listen, port: global.port, nats, web, file }).await
    }
}
