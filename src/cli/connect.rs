//! `connect`: an agent that runs elsewhere, on standard input and output.

use std::collections::BTreeMap;

use anyhow::{Context as _, anyhow};
use clap::Args;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::stdio;
use crate::program::Failure;
use crate::remote::{self, OpenCodeEnd, RemoteEnd, RemoteError};

/// Memory that the command may take, in bytes: the other end decides how much it says and how fast it
/// listens.
const MOST_MEMORY: u64 = 2 << 30;

/// Be an agent that runs elsewhere, on standard input and output
///
/// Connects to an agent that speaks the Agent Client Protocol over HTTP (https://, http://) or a
/// WebSocket (wss://, ws://), and passes on what client and agent say; or, with `--protocol opencode`, to
/// OpenCode's own server, as `opencode serve` starts it. A team does so itself for an
/// agent with `url` or `base_url`; the command is for editors, scripts and `observe`. Headers, such as a token, come
/// from the variable `EISEN_CONNECT_HEADERS`, where no other user sees them. docs/remote.md describes it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core team connect wss://agents.example/acp
  EISEN_CONNECT_HEADERS='{\"authorization\": \"Bearer …\"}' eisen-core team connect https://agents.example/acp
  eisen-core team connect --protocol opencode http://127.0.0.1:4096
  eisen-core observe --zone 'src/**' -- eisen-core team connect wss://agents.example/acp

Exit codes: 0 the client disconnected, 1 the agent can't be reached, or ended, 2 wrong usage.")]
pub(super) struct Connect {
    /// The agent's address
    #[arg(value_name = "URL")]
    url: String,
    /// The agent's protocol
    #[arg(long, value_name = "PROTOCOL", default_value = ACP, value_parser = [ACP, "opencode"])]
    protocol: String,
}

const ACP: &str = "acp";

impl Connect {
    pub(super) async fn run(self) -> Result<(), Failure> {
        let headers = headers().map_err(Failure::Usage)?;
        bound_memory();
        let wrong = |error: RemoteError| Failure::Usage(error.into());
        let (input, output) = (stdio::input(), stdio::output());
        let ended = if self.protocol == ACP {
            let end = RemoteEnd::new(&self.url, &headers).map_err(wrong)?;
            end.connect(input, output).await
        } else {
            let end = OpenCodeEnd::new(&self.url, &headers).map_err(wrong)?;
            end.connect(input, output).await
        };
        ended.map_err(|error: RemoteError| Failure::Run(error.into()))
    }
}

fn headers() -> anyhow::Result<BTreeMap<String, String>> {
    let name = remote::HEADERS;
    let Some(text) = std::env::var_os(name) else { return Ok(BTreeMap::new()) };
    let text = text.into_string().map_err(|_| anyhow!("{name} is not UTF-8"))?;
    serde_json::from_str(&text).with_context(|| {
        format!("{name} is no JSON object of strings, as {{\"authorization\": \"…\"}}")
    })
}

/// Past it the command ends, and its client sees that.
fn bound_memory() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_DATA) {
        let _ = setrlimit(Resource::RLIMIT_DATA, soft.min(MOST_MEMORY), hard);
    }
}
