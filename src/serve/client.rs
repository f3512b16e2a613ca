//! The other end of the port: how the command line finds a running team and asks it something.
//! Knows nothing of the server but the wire.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::run_file::{RunInfo, live_teams};

pub mod resolve;

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// A running team, and the right to steer it.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// Tried one after the other.
    addresses: Vec<SocketAddr>,
    token: String,
}

/// What `EISEN_TEAM`, `EISEN_PORT` and `EISEN_TOKEN` say: the last is there for the orchestrator
/// agent and what it starts.
#[derive(Clone, Default)]
pub struct Environment {
    pub team: Option<String>,
    pub port: Option<String>,
    pub token: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no team is running; start one with `eisen-core up`")]
    NoTeam,
    #[error("no team listens on port {0}")]
    NoTeamOn(u16),
    #[error("no team `{wanted}` is running{}", also(.running))]
    NotRunning { wanted: String, running: Vec<String> },
    #[error("several teams are running: say which with --team: {}", .0.join(", "))]
    SeveralTeams(Vec<String>),
    #[error("EISEN_PORT is `{0}`, which is no port")]
    Port(String),
    #[error("cannot read the run files: {0}")]
    RunFiles(io::Error),
    #[error("cannot connect to the team at {address}: {cause}")]
    Connect { address: SocketAddr, cause: io::Error },
    #[error("the connection to the team broke: {0}")]
    Broken(io::Error),
    #[error("the team closed the connection before it answered")]
    Closed,
    #[error("{message} (code {code})")]
    Refused { code: u16, message: String },
}

impl Environment {
    pub fn of_process() -> Self {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            team: variable("EISEN_TEAM"),
            port: variable("EISEN_PORT"),
            token: variable("EISEN_TOKEN"),
        }
    }
}

impl Target {
    /// Finds the team to talk to: the one whose orchestrator this process works for, else the one
    /// that runs, or of several the one called `team`, or that on `port`.
    pub fn find(
        environment: &Environment,
        eisen_dir: &Path,
        team: Option<&str>,
        port: Option<u16>,
    ) -> Result<Self, ClientError> {
        if let (Some(own), Some(token)) = (&environment.port, &environment.token)
            && team.is_none_or(|team| environment.team.as_deref() == Some(team))
            && port.is_none_or(|port| *own == port.to_string())
        {
            let port = own.parse().map_err(|_| ClientError::Port(own.clone()))?;
            let addresses =
                vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()];
            return Ok(Self { addresses, token: token.clone() });
        }
        let mut running = live_teams(eisen_dir).map_err(ClientError::RunFiles)?;
        if let Some(port) = port {
            running.retain(|info| info.port == port);
            if running.is_empty() {
                return Err(ClientError::NoTeamOn(port));
            }
        }
        if let Some(team) = team
            && let Some(at) = running.iter().position(|info| info.team == team)
        {
            return Ok(running.swap_remove(at).into());
        }
        let mut names: Vec<_> = running.iter().map(|info| info.team.clone()).collect();
        match (team, running.pop()) {
            (Some(team), _) => {
                Err(ClientError::NotRunning { wanted: team.to_owned(), running: names })
            }
            (None, None) => Err(ClientError::NoTeam),
            (None, Some(only)) if running.is_empty() => Ok(only.into()),
            (None, Some(_)) => {
                names.sort();
                Err(ClientError::SeveralTeams(names))
            }
        }
    }
}

impl From<RunInfo> for Target {
    fn from(info: RunInfo) -> Self {
        let mut address = info.address;
        // What listens everywhere listens here.
        if address.ip().is_unspecified() {
            address.set_ip(match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        Self { addresses: vec![address], token: info.token }
    }
}

/// Asks a team one thing and waits for the answer, as long as that takes.
pub async fn call(target: &Target, method: &str, params: &Value) -> Result<Value, ClientError> {
    let stream = connect(&target.addresses).await?;
    let (read, mut write) = stream.into_split();
    let auth = json!({ "type": "auth", "token": target.token });
    let request = json!({ "type": "rpc", "id": 1, "method": method, "params": params });
    let request = format!("{auth}\n{request}\n");
    // Both at once: a large request and a large first snapshot would wait for each other.
    let ask = async {
        // A team that does not take the request says why, or the reading ends too.
        let _ = write.write_all(request.as_bytes()).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answer = read_answer(BufReader::new(read)) => answer,
        () = ask => Err(ClientError::Closed),
    }
}

/// Skips the stream up to the answer.
async fn read_answer(
    mut lines: impl tokio::io::AsyncBufRead + Unpin,
) -> Result<Value, ClientError> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line).await.map_err(ClientError::Broken)? == 0 {
            return Err(ClientError::Closed);
        }
        match serde_json::from_slice(&line) {
            Ok(Answer::RpcResult { id: Some(1), result }) => return Ok(result),
            // One without an id is about the connection or the token.
            Ok(Answer::RpcError { id: None | Some(1), error }) => {
                return Err(ClientError::Refused { code: error.code, message: error.message });
            }
            // Another line, of this version or a later one.
            Ok(_) | Err(_) => {}
        }
    }
}

async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, ClientError> {
    let mut first = None;
    for &address in addresses {
        let cause = match timeout(CONNECT_DEADLINE, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(cause)) => cause,
            Err(elapsed) => elapsed.into(),
        };
        first.get_or_insert(ClientError::Connect { address, cause });
    }
    Err(first.unwrap_or(ClientError::NoTeam))
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Answer {
    RpcResult {
        id: Option<u64>,
        result: Value,
    },
    RpcError {
        id: Option<u64>,
        error: Refusal,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Refusal {
    code: u16,
    message: String,
}

fn also(running: &[String]) -> String {
    if running.is_empty() { String::new() } else { format!("; there are {}", running.join(", ")) }
}

#[cfg(test)]
mod tests;
