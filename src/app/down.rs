//! `down`: stops teams that run, and cleans up after one that was killed.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::leftovers;
use crate::process;
use crate::serve::client::{ClientError, is_observed};
use crate::serve::{RunInfo, live_teams, stale_runs};

/// How often is looked whether a team has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a team that was asked a second time, or killed, may take to end.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Which teams are to end, and how.
pub struct Down {
    /// None: the one that runs.
    pub team: Option<String>,
    /// Only one that listens there.
    pub port: Option<u16>,
    pub all: bool,
    /// How long an orderly stop may take; then the team is killed.
    pub timeout: Duration,
    /// Kill it at once.
    pub kill: bool,
}

/// How a team ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Downed {
    Stopped,
    Killed,
    /// It had been killed before, and its remains were cleaned up.
    Cleaned,
}

/// Ends teams; returns how each ended. Blocks until they have.
pub fn down(eisen_dir: &Path, order: &Down) -> anyhow::Result<Vec<(String, Downed)>> {
    let mut running = live_teams(eisen_dir).map_err(ClientError::RunFiles)?;
    running.retain(|info| !is_observed(info) && order.port.is_none_or(|port| port == info.port));
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
            return Err(nothing(order, running).into());
        }
        if chosen.is_empty() {
            return Ok(cleaned);
        }
    }
    let signal = if order.kill { Signal::SIGKILL } else { Signal::SIGTERM };
    for info in &chosen {
        send(info, signal)?;
    }
    let deadline = Instant::now() + if order.kill { LAST_WAIT } else { order.timeout };
    let mut downed = Vec::new();
    for info in chosen {
        let how = finish(eisen_dir, &info, deadline)?;
        downed.push((info.team, how));
    }
    Ok(downed)
}

/// Waits for the end of a team that was asked to stop, and kills it if that takes too long.
fn finish(eisen_dir: &Path, info: &RunInfo, deadline: Instant) -> anyhow::Result<Downed> {
    if has_ended(eisen_dir, info, deadline) {
        return Ok(clean_after(eisen_dir, info));
    }
    // Asked a second time, a team kills what still runs.
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        send(info, signal)?;
        if has_ended(eisen_dir, info, Instant::now() + LAST_WAIT) {
            clean_after(eisen_dir, info);
            return Ok(Downed::Killed);
        }
    }
    bail!("the team `{}` (pid {}) does not end, not even by SIGKILL", info.team, info.pid)
}

/// Cleans up after a team that has ended; one that was killed has left its run file.
fn clean_after(eisen_dir: &Path, info: &RunInfo) -> Downed {
    let stale = stale_runs(eisen_dir).unwrap_or_default();
    let is_killed =
        stale.iter().any(|run| (run.info.pid, &run.info.team) == (info.pid, &info.team));
    // It is locked as long as this is there.
    drop(stale);
    if !is_killed {
        return Downed::Stopped;
    }
    leftovers::clean(eisen_dir);
    Downed::Killed
}

/// Cleans up after teams that were killed; returns those that are meant.
fn clean(eisen_dir: &Path, order: &Down) -> anyhow::Result<Vec<(String, Downed)>> {
    let stale = stale_runs(eisen_dir).context("cannot read the run files")?;
    let is_meant = |info: &RunInfo| {
        order.team.as_ref().is_none_or(|team| info.team == *team)
            && order.port.is_none_or(|port| info.port == port)
    };
    let meant = stale.iter().filter(|run| is_meant(&run.info));
    let cleaned: Vec<_> = meant.map(|run| (run.info.team.clone(), Downed::Cleaned)).collect();
    // They are locked as long as these are there.
    drop(stale);
    if !cleaned.is_empty() {
        leftovers::clean(eisen_dir);
    }
    Ok(cleaned)
}

fn nothing(order: &Down, running: Vec<RunInfo>) -> ClientError {
    match (&order.team, order.port) {
        (Some(team), _) => ClientError::NotRunning {
            wanted: team.clone(),
            running: running.into_iter().map(|info| info.team).collect(),
        },
        (None, Some(port)) => ClientError::NoTeamOn(port),
        (None, None) => ClientError::NoTeam,
    }
}

fn send(info: &RunInfo, signal: Signal) -> anyhow::Result<()> {
    match kill(Pid::from_raw(info.pid.cast_signed()), signal) {
        // It ended by itself meanwhile.
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(errno) => Err(errno)
            .with_context(|| format!("cannot stop the team `{}` (pid {})", info.team, info.pid)),
    }
}

/// Waits until a team has ended: nobody holds its run file, and its process is gone.
fn has_ended(eisen_dir: &Path, info: &RunInfo, deadline: Instant) -> bool {
    loop {
        let teams = live_teams(eisen_dir).unwrap_or_default();
        let is_listed = teams.iter().any(|team| (team.pid, &team.team) == (info.pid, &info.team));
        if !is_listed && !is_there(info) {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Whether the very process that runs a team is there.
fn is_there(info: &RunInfo) -> bool {
    let started = info.remains.started;
    started != 0 && process::start_of(info.pid) == Some(started)
}
