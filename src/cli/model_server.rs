//! `model-server`: plays the APIs of model providers from a script.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::output::print;
use super::{Global, in_folder};
use crate::model_server::{ExpectedKey, ModelScript, ModelServer, ModelServerSettings};
use crate::program::Failure;

/// Play a script as a model provider: for tests and trials of agents without a model
///
/// Answers as Anthropic (messages), OpenAI (chat completions and responses) and Gemini do, on 127.0.0.1. Without
/// a script it says "done" to everything. The first line of the output is the address, for the agent's base URL;
/// the last one is the count of what was reported, which is at /_count meanwhile. docs/model-server.md describes
/// scripts.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core dev model-server                       says \"done\", and reports fixed usage
  eisen-core dev model-server --port 4010 cuts.toml --log requests.jsonl
  KEY=sk-test eisen-core dev model-server --key-env KEY  refuses other keys
  curl -s http://127.0.0.1:4010/_count | jq .usage

Exit codes: 0 stopped by a signal, 1 the port is taken, 2 wrong usage or script.")]
pub(super) struct ModelServerArgs {
    /// The script file
    script: Option<PathBuf>,
    /// The port on 127.0.0.1 [default: any free one]
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Append a line of JSON for each request: its messages, and of keys only a fingerprint
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Answer only requests with the key that this environment variable has
    #[arg(long, value_name = "VARIABLE")]
    key_env: Option<String>,
}

impl ModelServerArgs {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let in_cwd = |file| in_folder(global.cwd.clone(), file);
        let script = match &self.script {
            Some(file) => ModelScript::load(&in_cwd(file)),
            None => Ok(ModelScript::default()),
        };
        let settings = ModelServerSettings {
            script: script.map_err(|error| Failure::Usage(error.into()))?,
            port: self.port.unwrap_or(0),
            log: self.log.as_deref().map(in_cwd),
            key: self.key_env.as_deref().map(expected_key).transpose()?,
        };
        let fault = |error: std::io::Error| Failure::Run(error.into());
        // From here on a signal ends the server with its count.
        let ends = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
        let [Ok(mut terminated), Ok(mut hung_up), Ok(mut interrupted)] = ends.map(signal) else {
            return Err(Failure::Run(anyhow!("cannot wait for signals")));
        };
        let server = ModelServer::bind(settings).await.map_err(fault)?;
        print(server.url())?;
        let stop = async {
            tokio::select! {
                _ = terminated.recv() => {}
                _ = hung_up.recv() => {}
                _ = interrupted.recv() => {}
            }
        };
        let count = server.run(stop).await;
        let count = serde_json::to_string(&count).map_err(|error| Failure::Run(error.into()))?;
        print(count)
    }
}

fn expected_key(variable: &str) -> Result<ExpectedKey, Failure> {
    match std::env::var(variable) {
        Ok(key) if !key.is_empty() => Ok(ExpectedKey::new(&key)),
        _ => Err(Failure::Usage(anyhow!("--key-env: the variable {variable} has no key"))),
    }
}
