//! Finds the team that a command is for, and the token to steer it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use super::ClientError;
use crate::serve::run_file::{RunInfo, live_teams};

/// A running team, with the token to steer it.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    pub(super) team: String,
    /// Tried in turn.
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) token: String,
    /// Whether the team accepts a proof instead of the token.
    pub(super) proves: bool,
}

/// The variables by which a command finds the team of the agent that runs it.
#[derive(Clone, Default)]
pub struct Environment {
    pub team: Option<String>,
    pub port: Option<String>,
    pub address: Option<String>,
    pub token: Option<String>,
    /// `EISEN_TOOL_TOKEN`, which an agent's client gives to `eisen-core team mcp`.
    pub tool_token: Option<String>,
    /// The teams of the current folder, running or gone; empty if it is of none, or if it does not count.
    pub here: Vec<String>,
}

impl Environment {
    pub fn of_process() -> Self {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            team: variable("EISEN_TEAM"),
            port: variable("EISEN_PORT"),
            address: variable("EISEN_ADDRESS"),
            token: variable("EISEN_TOKEN"),
            tool_token: variable("EISEN_TOOL_TOKEN"),
            here: Vec::new(),
        }
    }

    /// The addresses of the environment's team.
    fn addresses(&self, port: &str) -> Result<Vec<SocketAddr>, ClientError> {
        if let Some(address) = &self.address {
            let parsed = address.parse().map_err(|_| ClientError::Address(address.clone()))?;
            return Ok(vec![parsed]);
        }
        let port = port.parse().map_err(|_| ClientError::Port(port.to_owned()))?;
        Ok(vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()])
    }
}

impl Target {
    /// Finds the team `team`, or the one on `port`. Without both: the team whose orchestrator
    /// started this process, else `EISEN_TEAM` if it runs, else the running team of the current folder.
    /// In a folder of no team it is the only running team; runs of `observe` and `replay` count only
    /// where no team runs.
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
            let team = environment.team.clone().unwrap_or_default();
            let addresses = environment.addresses(own)?;
            // The parent process is of this version or a later one, and so is a team with such tokens.
            return Ok(Self { team, addresses, token: token.clone(), proves: true });
        }
        let mut running = live_teams(eisen_dir).map_err(ClientError::RunFiles)?;
        if let Some(port) = port {
            running.retain(|info| info.port == port);
            if running.is_empty() {
                return Err(ClientError::NoTeamOn(port));
            }
        }
        let named = team.or(environment.team.as_deref());
        if let Some(at) = running.iter().position(|info| Some(info.team.as_str()) == named) {
            return Ok(running.swap_remove(at).into());
        }
        if let Some(wanted) = team {
            let running = running.into_iter().map(|info| info.team).collect();
            return Err(ClientError::NotRunning { wanted: wanted.to_owned(), running });
        }
        if port.is_none() && !environment.here.is_empty() {
            let here = environment.here.clone();
            let (of_here, others): (Vec<_>, Vec<_>) =
                running.into_iter().partition(|info| here.contains(&info.team));
            if of_here.is_empty() {
                let running = others.into_iter().filter(|info| !is_aside(info));
                let running = running.map(|info| info.team).collect();
                return Err(ClientError::NotHere { here, running });
            }
            running = of_here;
        }
        if running.iter().any(|info| !is_aside(info)) {
            running.retain(|info| !is_aside(info));
        }
        match running.pop() {
            None => Err(ClientError::NoTeam),
            Some(only) if running.is_empty() => Ok(only.into()),
            Some(last) => {
                let all = running.into_iter().chain([last]);
                Err(ClientError::SeveralTeams(all.map(|info| info.team).collect()))
            }
        }
    }

    /// Returns the team of the agent that runs this process, by the agent's own token; None without one.
    pub fn of_agent(environment: &Environment) -> Result<Option<Self>, ClientError> {
        let Some(token) = environment.token.clone() else { return Ok(None) };
        if environment.address.is_none() && environment.port.is_none() {
            return Ok(None);
        }
        let addresses = environment.addresses(environment.port.as_deref().unwrap_or_default())?;
        let team = environment.team.clone().unwrap_or_default();
        Ok(Some(Self { team, addresses, token, proves: true }))
    }

    /// Returns the team whose tools the environment is for, if it is for any.
    pub fn of_tools(environment: &Environment) -> Result<Option<Self>, ClientError> {
        let Some(token) = environment.tool_token.clone() else { return Ok(None) };
        let port = environment.port.as_deref().unwrap_or_default();
        let addresses = environment.addresses(port)?;
        let team = environment.team.clone().unwrap_or_default();
        Ok(Some(Self { team, addresses, token, proves: true }))
    }

    /// The same team, as the holder of another token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: token.to_owned(), proves: true, ..self.clone() }
    }

    pub fn team(&self) -> &str {
        &self.team
    }
}

impl From<RunInfo> for Target {
    fn from(info: RunInfo) -> Self {
        let RunInfo { team, address, token, challenge, .. } = info;
        Self { team, addresses: vec![reachable(address)], token, proves: challenge }
    }
}

/// Returns the local address of a listener on `address`: an unspecified address becomes loopback.
pub fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// Whether it is the team of `eisen-core run`, `observe` or `replay`.
pub fn is_aside(info: &RunInfo) -> bool {
    let is_run = crate::runs::is_of_run(&info.team);
    is_run || ["observe", "replay"].iter().any(|kind| info.team == format!("{kind}-{}", info.pid))
}
