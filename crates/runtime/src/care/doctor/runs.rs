//! The teams that run, what killed ones left, and what `gc` would remove.

use std::path::Path;

use crate::care::doctor::{Finding, command};
use crate::care::garbage::unfinished_runs;
use crate::care::{Garbage, garbage};
use crate::home::environment::shell_word;
use crate::home::leftovers;
use crate::model::now_ms;
use crate::process;
use crate::serve::{self, RunInfo};
use crate::tiers::Cooldowns;

/// Bytes that are nobody's past which it is worth a warning.
const MUCH: u64 = 1 << 30;

pub(super) async fn teams(eisen_dir: &Path) -> Vec<Finding> {
    let running = match serve::live_teams(eisen_dir) {
        Ok(running) => running,
        Err(error) => {
            let message = format!("cannot find out which teams run: {error}");
            return vec![Finding::error("teams", message)];
        }
    };
    if running.is_empty() {
        return vec![Finding::ok("teams", "no team runs")];
    }
    futures_util::future::join_all(running.iter().map(team)).await
}

async fn team(info: &RunInfo) -> Finding {
    let RunInfo { team, pid, address, .. } = info;
    let check = format!("team/{team}");
    let since = process::age_of(*pid).map(|age| format!(" for {} s", age.as_secs()));
    let since = since.unwrap_or_default();
    let workspace = info.remains.workspace.as_ref();
    let place = workspace.map(|place| format!(", in {}", place.display())).unwrap_or_default();
    let message = format!("runs{since} (pid {pid}) at {address}{place}");
    if serve::answers(*address).await {
        return Finding::ok(check, message);
    }
    Finding::warning(check, format!("{message}, but its port does not answer"))
        .mended_by(command(&format!("down --team {} --kill", shell_word(team))))
}

/// Finds the runs that were killed; with `fix` ends what is left of them.
pub(super) fn stale(eisen_dir: &Path, fix: bool) -> Vec<Finding> {
    let runs = match serve::stale_runs(eisen_dir) {
        Ok(runs) => runs,
        Err(error) => {
            let message = format!("cannot look for what killed runs left: {error}");
            return vec![Finding::error("stale-runs", message)];
        }
    };
    if runs.is_empty() {
        return vec![Finding::ok("stale-runs", "no killed run left anything")];
    }
    let mut found = Vec::new();
    for run in runs {
        let (team, pid) = (run.info.team.clone(), run.info.pid);
        let folders = run.info.remains.folders.iter().filter(|folder| folder.exists()).count();
        let message = format!(
            "the team `{team}` (pid {pid}) was killed: its run file and {folders} temporary folders \
             are left"
        );
        let finding = Finding::warning(format!("stale-runs/{team}"), message);
        if fix {
            leftovers::clean_after(run);
            found.push(finding.mended("what it had left is removed, with its processes"));
        } else {
            found.push(finding.mended_by(command("doctor --fix")));
        }
    }
    if fix {
        still_there(eisen_dir, &mut found);
    }
    found
}

/// Takes back what was said of runs that were left alone: their processes run, without a lock.
fn still_there(eisen_dir: &Path, found: &mut [Finding]) {
    for run in serve::stale_runs(eisen_dir).unwrap_or_default() {
        let (team, pid) = (&run.info.team, run.info.pid);
        let check = format!("stale-runs/{team}");
        for finding in found.iter_mut().filter(|finding| finding.check == check) {
            let message =
                format!("the team `{team}` (pid {pid}) runs, but lost the lock of its run");
            *finding = Finding::warning(&*check, message).mended_by(format!("kill {pid}"));
        }
    }
}

/// Finds the one-shot runs whose supervisor left no final state; with `fix` they get one.
pub(super) async fn unfinished(eisen_dir: &Path, fix: bool) -> Option<Finding> {
    // What can't be looked for is a finding of `nobodys`.
    let runs = unfinished_runs(eisen_dir).unwrap_or_default();
    let message = format!("{} runs have ended without a final state", runs.len());
    let finding = (!runs.is_empty()).then(|| Finding::warning("runs", message))?;
    if !fix {
        return Some(finding.mended_by(command("doctor --fix")));
    }
    for run in runs {
        if let Err(error) = run.remove(eisen_dir).await {
            return Some(Finding::error("runs", format!("{error:#}")));
        }
    }
    Some(finding.mended("they are `lost` now, with the answers that they had"))
}

/// Finds cool-downs that can't be read; without it all can.
pub(super) fn cooldowns(eisen_dir: &Path) -> Option<Finding> {
    let error = Cooldowns::new(eisen_dir).read(now_ms()).err()?;
    let message = format!("the cool-downs of agents can't be read, so none counts: {error}");
    Some(Finding::warning("cooldowns", message).mended_by(command("gc")))
}

pub(super) async fn nobodys(eisen_dir: &Path) -> Finding {
    let all = match garbage(eisen_dir, None).await {
        Ok(all) => all,
        Err(error) => {
            return Finding::error(
                "garbage",
                format!("cannot look for what is nobody's: {error:#}"),
            );
        }
    };
    // Killed runs have findings of their own.
    let has_own = |garbage: &&Garbage| garbage.is_of_killed_run() || garbage.is_repair();
    let all: Vec<_> = all.iter().filter(|garbage| !has_own(garbage)).collect();
    if all.is_empty() {
        return Finding::ok("garbage", "`gc` finds nothing to remove");
    }
    let bytes: u64 = all.iter().map(|garbage| garbage.bytes).sum();
    let message = format!("{} MiB in {} places are nobody's", bytes.div_ceil(1 << 20), all.len());
    let finding = match bytes {
        MUCH.. => Finding::warning("garbage", message),
        _ => Finding::ok("garbage", message),
    };
    finding.mended_by(command("gc --dry-run"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::care::doctor::Health;
    use crate::runs::{RunFolder, RunId, RunState, RunStatus};
    use crate::serve::RunFile;

    fn killed(eisen_dir: &Path, folder: &Path) {
        std::fs::create_dir_all(eisen_dir.join("run")).unwrap();
        let run = serde_json::json!({
            "team": "shop", "pid": 1_999_999_999, "port": 4711, "address": "127.0.0.1:4711",
            "token": "t", "remains": { "folders": [folder] },
        });
        std::fs::write(eisen_dir.join("run/shop.json"), run.to_string()).unwrap();
    }

    #[test]
    fn what_a_killed_run_left_is_found_and_removed() {
        let place = tempfile::tempdir().unwrap();
        let left = tempfile::Builder::new().prefix(leftovers::PREFIX).tempdir().unwrap();
        assert_eq!(stale(place.path(), false)[0].state, Health::Ok);
        killed(place.path(), left.path());
        for _ in 0..2 {
            let found = stale(place.path(), false);
            assert_eq!(found.len(), 1);
            assert_eq!((&*found[0].check, found[0].state), ("stale-runs/shop", Health::Warning));
            assert!(found[0].message.contains("1 temporary folders"), "{}", found[0].message);
            assert!(found[0].fix.as_ref().unwrap().ends_with(" doctor --fix"));
        }
        let found = stale(place.path(), true);
        assert_eq!(found[0].state, Health::Ok, "{found:?}");
        assert!(found[0].fixed.is_some() && !left.path().exists());
        assert_eq!(std::fs::read_dir(place.path().join("run")).unwrap().count(), 0);
        assert_eq!(stale(place.path(), true)[0].check, "stale-runs");
    }

    #[tokio::test]
    async fn a_team_whose_port_is_silent_is_a_warning() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(teams(place.path()).await[0].message, "no team runs");
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        let _run = RunFile::create(place.path(), "shop", address, "secret").unwrap();
        let found = teams(place.path()).await;
        assert_eq!((&*found[0].check, found[0].state), ("team/shop", Health::Warning));
        assert!(found[0].fix.as_ref().unwrap().ends_with("down --team shop --kill"));
        assert!(!format!("{found:?}").contains("secret"));
    }

    #[tokio::test]
    async fn a_run_without_a_final_state_gets_one() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(unfinished(place.path(), false).await, None);
        let run = RunFolder::create(place.path(), RunId::generate()).unwrap();
        let state = RunState { status: RunStatus::Running, pid: 1_999_999_999, ..run.lost(7) };
        run.keep(&state).unwrap();
        for fix in [false, true] {
            assert_eq!(run.kept().unwrap().status, RunStatus::Running);
            let finding = unfinished(place.path(), fix).await.unwrap();
            assert!(finding.message.starts_with("1 runs"), "{finding:?}");
            assert_eq!((finding.fix.is_some(), finding.fixed.is_some()), (!fix, fix));
        }
        assert_eq!(run.kept().unwrap().status, RunStatus::Lost);
        assert_eq!(unfinished(place.path(), false).await, None);
    }

    #[test]
    fn cool_downs_that_cannot_be_read_are_named() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(cooldowns(place.path()), None);
        let folder = place.path().join("cooldowns");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("state.json"), "{").unwrap();
        let finding = cooldowns(place.path()).unwrap();
        assert_eq!((&*finding.check, finding.state), ("cooldowns", Health::Warning));
        assert!(finding.fix.unwrap().ends_with(" gc"));
    }

    #[tokio::test]
    async fn what_is_nobodys_is_counted_and_stays() {
        let place = tempfile::tempdir().unwrap();
        let finding = nobodys(place.path()).await;
        assert_eq!((finding.state, finding.fix), (Health::Ok, None));
        let team = place.path().join("teams/shop");
        std::fs::create_dir_all(&team).unwrap();
        std::fs::write(team.join("workspace"), "/nonexistent/shop").unwrap();
        std::fs::write(team.join("journal.db"), "x").unwrap();
        let finding = nobodys(place.path()).await;
        assert!(finding.message.starts_with("1 MiB in 1 places"), "{}", finding.message);
        assert!(finding.fix.unwrap().ends_with("gc --dry-run") && team.exists());
    }
}
