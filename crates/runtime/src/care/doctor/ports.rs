//! The ports of a team and of its page: free, or taken by whom.

use std::net::SocketAddr;
use std::path::Path;

use crate::care::doctor::listener::listener;
use crate::care::doctor::{Finding, command};
use crate::config::{Config, LISTEN, WEB_LISTEN};
use crate::serve::{self, BindError, RunInfo};

/// A port that `up` will want.
struct Wanted<'a> {
    address: SocketAddr,
    /// The port of what, and how to take another one.
    what: &'static str,
    option: &'static str,
    /// The team that will want it; None without a configuration.
    team: Option<&'a str>,
}

pub(super) async fn ports(config: Option<&Config>, eisen_dir: &Path) -> Vec<Finding> {
    let team = config.map(|config| config.team.name.as_str());
    let web = config.and_then(|config| config.web.as_ref());
    let port = Wanted {
        address: config.map_or(LISTEN, |config| config.team.listen),
        what: "teams",
        option: "up --port 0",
        team,
    };
    let page = Wanted {
        address: web.map_or(WEB_LISTEN, |web| web.listen),
        what: "the web page",
        option: "up --web=127.0.0.1:0",
        team,
    };
    let running = serve::live_teams(eisen_dir).unwrap_or_default();
    let mut found = Vec::new();
    // Port 0 is any free one.
    for wanted in [port, page].iter().filter(|wanted| wanted.address.port() != 0) {
        found.push(wanted.finding(eisen_dir, &running).await);
    }
    found
}

impl Wanted<'_> {
    async fn finding(&self, eisen_dir: &Path, running: &[RunInfo]) -> Finding {
        let (address, what) = (self.address, self.what);
        let check = format!("port/{}", address.port());
        let Err(error) = serve::bind(address, eisen_dir).await else {
            return Finding::ok(check, format!("{address} is free for {what}"));
        };
        let holder = match &error {
            BindError::Team { team, pid, .. } => Some((*pid, team.clone())),
            BindError::Failed { cause, .. } => {
                let message = format!("cannot listen on {address} for {what}: {cause}");
                return Finding::error(check, message).mended_by(command(self.option));
            }
            BindError::OthersTeam { .. } | BindError::Taken { .. } => None,
        };
        let holder = holder.or_else(|| {
            let (pid, name) = listener(address.port())?;
            let team = running.iter().find(|info| info.pid == pid);
            Some((pid, team.map_or(name, |info| info.team.clone())))
        });
        let team = holder.as_ref().and_then(|(pid, _)| running.iter().find(|it| it.pid == *pid));
        let by = match (&holder, team, &error) {
            (Some((pid, name)), Some(_), _) => format!("the team `{name}` (pid {pid})"),
            (Some((pid, name)), None, _) => format!("the program `{name}` (pid {pid})"),
            (None, _, BindError::OthersTeam { .. }) => {
                "a team of another EISEN_DIR or user".to_owned()
            }
            (None, _, _) => "a program of another user".to_owned(),
        };
        let message = format!("{address}, for {what}, is taken by {by}");
        // The team of this folder is meant to have it; so is any team if none is configured here.
        let is_meant = team.is_some_and(|info| self.team.is_none_or(|own| own == info.team));
        if is_meant {
            return Finding::ok(check, message);
        }
        Finding::warning(check, message).mended_by(command(self.option))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::care::doctor::Health;
    use crate::serve::RunFile;

    fn wanted(address: SocketAddr, team: Option<&str>) -> Wanted<'_> {
        Wanted { address, what: "teams", option: "up --port 0", team }
    }

    #[tokio::test]
    async fn a_port_is_free_or_taken_by_somebody() {
        let place = tempfile::tempdir().unwrap();
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let finding = wanted(address, None).finding(place.path(), &[]).await;
        assert_eq!(finding.state, Health::Warning);
        assert_eq!(finding.check, format!("port/{}", address.port()));
        assert!(finding.fix.unwrap().ends_with("up --port 0"));
        if cfg!(target_os = "linux") {
            let pid = format!("(pid {})", std::process::id());
            assert!(finding.message.ends_with(&pid), "{}", finding.message);
        }

        let _run = RunFile::create(place.path(), "shop", address, "secret").unwrap();
        let running = serve::live_teams(place.path()).unwrap();
        for (team, state) in
            [(None, Health::Ok), (Some("shop"), Health::Ok), (Some("api"), Health::Warning)]
        {
            let finding = wanted(address, team).finding(place.path(), &running).await;
            assert_eq!(finding.state, state, "{team:?}: {finding:?}");
            assert!(finding.message.contains("by the team `shop`"), "{}", finding.message);
        }
        drop(taken);
        let finding = wanted(address, None).finding(place.path(), &running).await;
        assert_eq!(finding.state, Health::Ok);
        assert!(finding.message.contains("is free"), "{}", finding.message);
    }
}
