//! `down`: stops running teams, and cleans up after teams that were killed.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::home::leftovers;
use crate::process;
use crate::serve::client::{ClientError, is_aside};
use crate::serve::{RunInfo, live_teams, stale_runs};

/// How often a stopping team is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long a team may take to end after a second SIGTERM, or after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Which teams to stop, and how.
pub struct Down {
    /// None: the team of the folder, else the only running one.
    pub team: Option<String>,
    /// The teams of the current folder; without `team`, `port` and `all` no other one is stopped.
    pub here: Vec<String>,
    /// Only a team that listens on this port.
    pub port: Option<u16>,
    pub all: bool,
    /// Time for an orderly stop before the team is killed.
    pub timeout: Duration,
    /// Kill at once.
    pub kill: bool,
}

/// How a team ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Downed {
    Stopped,
    Killed,
    /// The team had been killed before; its leftovers were cleaned up.
    Cleaned,
}

/// Stops teams; returns how each ended. Blocks until they have.
pub fn down(eisen_dir: &Path, order: &Down) -> anyhow::Result<Vec<(String, Downed)>> {
    let mut running = live_teams(eisen_dir).map_err(ClientError::RunFiles)?;
    running.retain(|info| !is_aside(info) && order.port.is_none_or(|port| port == info.port));
    let mut elsewhere = Vec::new();
    if order.is_of_folder() {
        let of_here = |info: &RunInfo| order.here.contains(&info.team);
        (running, elsewhere) = running.into_iter().partition(of_here);
    }
    let chosen = match &order.team {
        Some(team) => {
            let (chosen, others): (Vec<_>, Vec<_>) =
                running.into_iter().partition(|info| info.team == *team);
            running = others;
            chosen
        }
        None if order.all || running.len() < 2 => std::mem::take(&mut running),
        None => {
            let teams = running.into_iter().map(|info| info.team).collect();
            return Err(ClientError::SeveralTeams(teams).into());
        }
    };
    if chosen.is_empty() || order.all {
        let cleaned = clean(eisen_dir, order)?;
        if chosen.is_empty() && cleaned.is_empty() {
            running.extend(elsewhere);
            return Err(no_such_team(order, running).into());
        }
        if chosen.is_empty() {
            return Ok(cleaned);
        }
    }
    let signal = if order.kill { Signal::SIGKILL } else { Signal::SIGTERM };
    for info in &chosen {
        send(info, signal)?;
    }
    let deadline = Instant::now() + if order.kill { KILL_TIMEOUT } else { order.timeout };
    let mut downed = Vec::new();
    for info in chosen {
        let outcome = finish(eisen_dir, &info, deadline)?;
        downed.push((info.team, outcome));
    }
    Ok(downed)
}

/// Waits until a signalled team has ended, and kills it past the deadline.
fn finish(eisen_dir: &Path, info: &RunInfo, deadline: Instant) -> anyhow::Result<Downed> {
    if has_ended(eisen_dir, info, deadline) {
        return Ok(clean_after(eisen_dir, info));
    }
    // At a second SIGTERM, a team kills its agents.
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        send(info, signal)?;
        if has_ended(eisen_dir, info, Instant::now() + KILL_TIMEOUT) {
            clean_after(eisen_dir, info);
            return Ok(Downed::Killed);
        }
    }
    bail!("the team `{}` (pid {}) has not ended after SIGKILL", info.team, info.pid)
}

/// Cleans up after a team that has ended. A killed team has left its run file.
fn clean_after(eisen_dir: &Path, info: &RunInfo) -> Downed {
    let stale = stale_runs(eisen_dir).unwrap_or_default();
    let is_killed =
        stale.iter().any(|run| (run.info.pid, &run.info.team) == (info.pid, &info.team));
    // Releases the lock on the run file.
    drop(stale);
    if !is_killed {
        return Downed::Stopped;
    }
    leftovers::clean(eisen_dir);
    Downed::Killed
}

/// Cleans up after teams that were killed; returns those selected by `order`.
fn clean(eisen_dir: &Path, order: &Down) -> anyhow::Result<Vec<(String, Downed)>> {
    let stale = stale_runs(eisen_dir).context("cannot read the run files")?;
    let is_selected = |info: &RunInfo| {
        order.team.as_ref().is_none_or(|team| info.team == *team)
            && (!order.is_of_folder() || order.here.contains(&info.team))
            && order.port.is_none_or(|port| info.port == port)
    };
    let selected = stale.iter().filter(|run| is_selected(&run.info));
    let cleaned: Vec<_> = selected.map(|run| (run.info.team.clone(), Downed::Cleaned)).collect();
    // Releases the locks on the run files.
    drop(stale);
    if !cleaned.is_empty() {
        leftovers::clean(eisen_dir);
    }
    Ok(cleaned)
}

fn no_such_team(order: &Down, running: Vec<RunInfo>) -> ClientError {
    let running = running.into_iter().map(|info| info.team).collect();
    match (&order.team, order.port) {
        (Some(team), _) => ClientError::NotRunning { wanted: team.clone(), running },
        (None, Some(port)) => ClientError::NoTeamOn(port),
        (None, None) if order.is_of_folder() => {
            ClientError::NotHere { here: order.here.clone(), running }
        }
        (None, None) => ClientError::NoTeam,
    }
}

impl Down {
    /// Whether the folder says which team is meant.
    fn is_of_folder(&self) -> bool {
        self.team.is_none() && self.port.is_none() && !self.all && !self.here.is_empty()
    }
}

fn send(info: &RunInfo, signal: Signal) -> anyhow::Result<()> {
    match kill(Pid::from_raw(info.pid.cast_signed()), signal) {
        // ESRCH: it has ended in the meantime.
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(errno) => Err(errno)
            .with_context(|| format!("cannot stop the team `{}` (pid {})", info.team, info.pid)),
    }
}

/// Waits until a team has ended: its run file is unlocked, and its process is gone.
fn has_ended(eisen_dir: &Path, info: &RunInfo, deadline: Instant) -> bool {
    loop {
        let teams = live_teams(eisen_dir).unwrap_or_default();
        let is_listed = teams.iter().any(|team| (team.pid, &team.team) == (info.pid, &info.team));
        if !is_listed && !is_running(info) {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Whether the process of a team still runs; its start time excludes a reused pid.
fn is_running(info: &RunInfo) -> bool {
    let started = info.remains.started;
    started != 0 && process::start_of(info.pid) == Some(started)
}
