//! Starts the installed agents as far as `initialize`, without a session: what `--version` says of a program is
//! not whether it runs as an agent.

use std::time::Instant;

use anstream::adapter::strip_str;
use futures_util::stream::{self, StreamExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;

use crate::acp::{self, AgentIntroduction};
use crate::care::doctor::Finding;
use crate::care::doctor::agents::Environment;
use crate::care::doctor::version::Probe;
use crate::client_host::PROTOCOL_VERSION;
use crate::config::installed::{Installed, installed};
use crate::model::one_line;
use crate::process::{Command, Stdio};

/// Agents that start at the same time: each may load hundreds of megabytes.
const AT_ONCE: usize = 2;
/// Bytes of what an agent writes before it has answered.
const MOST_SAID: u64 = 1 << 20;
/// Characters of the line that says why an agent ended.
const LONGEST_QUOTE: usize = 300;

/// A finding for each agent.
pub(super) async fn starts(environment: &Environment, probe: &Probe) -> Vec<Finding> {
    let agents = installed(&environment.path, &environment.variable);
    let starts = agents.iter().map(|agent| start(agent, probe));
    stream::iter(starts).buffered(AT_ONCE).collect().await
}

async fn start(agent: &Installed, probe: &Probe) -> Finding {
    let check = format!("start/{}", agent.name);
    let command = Command {
        program: agent.program.clone().into_os_string(),
        args: agent.args().iter().map(Into::into).collect(),
        cwd: probe.folder.clone(),
        env: agent.env().clone(),
    };
    let begun = Instant::now();
    let (process, stdio) = match probe.launcher.spawn(&command).await {
        Ok(started) => started,
        Err(error) => return Finding::warning(check, error.to_string()).mended_by(agent.install),
    };
    let answer = timeout(probe.limit, initialize(stdio)).await;
    process.kill().await;
    let title = agent.title;
    match answer {
        Ok(Ok(version)) => {
            let seconds = begun.elapsed().as_secs_f64();
            Finding::ok(
                check,
                format!("{title} has answered `initialize` in {seconds:.1} s{version}"),
            )
        }
        Ok(Err(why)) => Finding::warning(check, format!("{title} {why}")).mended_by(agent.install),
        Err(_) => {
            let seconds = probe.limit.as_secs();
            let message = format!("{title} has not answered `initialize` for {seconds} s");
            Finding::warning(check, message)
        }
    }
}

/// An answer, with any JSON in it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct InitializeAnswer {
    id: Value,
    result: Value,
    error: Value,
}

/// Asks for the agent's own description; returns its version, or why there is no answer.
async fn initialize(stdio: Stdio) -> Result<String, String> {
    let Stdio { mut stdin, stdout, mut stderr } = stdio;
    let request = json!({
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": { "protocolVersion": PROTOCOL_VERSION, "clientCapabilities": {} },
    });
    // One that has ended already says why.
    let _ = stdin.write_all(format!("{request}\n").as_bytes()).await;
    let (mut said, mut errors) = (None, Vec::new());
    let mut lines = BufReader::new(stdout.take(MOST_SAID));
    let answered = async {
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).await.is_ok_and(|count| count > 0) {
            match serde_json::from_slice::<Value>(&line).map(|line| acp::read(&line)) {
                Ok(answer @ InitializeAnswer { .. }) if answer.id == 0 => return Some(answer),
                Ok(_) => {}
                Err(_) => said = quote(&line).or(said.take()),
            }
            line.clear();
        }
        None
    };
    let read_errors = async {
        // Beyond the bound nobody reads, and the agent waits.
        let _ = (&mut stderr).take(MOST_SAID).read_to_end(&mut errors).await;
        std::future::pending::<()>().await;
    };
    let answer = tokio::select! {
        answer = answered => answer,
        () = read_errors => None,
    };
    match answer {
        Some(answer) if answer.result.is_object() => {
            let AgentIntroduction { agent_info, .. } = acp::read(&answer.result);
            let version = agent_info.version;
            Ok(version
                .map(|version| format!(", as version {}", one_line(&version)))
                .unwrap_or_default())
        }
        Some(answer) => {
            Err(format!("has answered `initialize` with {}", one_line(&answer.error.to_string())))
        }
        None => {
            let _ = (&mut stderr).take(MOST_SAID).read_to_end(&mut errors).await;
            let last = errors.split(|byte| *byte == b'\n').rev().find_map(quote).or(said);
            let last = last.map_or_else(
                || "it said nothing".to_owned(),
                |last| format!("its last line: {last}"),
            );
            Err(format!("has ended before it had answered `initialize`; {last}"))
        }
    }
}

/// A line for a message; None if it is empty.
fn quote(line: &[u8]) -> Option<String> {
    let text = strip_str(&String::from_utf8_lossy(line)).to_string();
    let line: String = one_line(text.trim()).chars().take(LONGEST_QUOTE).collect();
    Some(line).filter(|line| !line.is_empty())
}
