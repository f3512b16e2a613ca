//! The final state of a run that was left without one: what is still known of it.

use std::path::PathBuf;

use serde::Deserialize;
use ulid::Ulid;

use super::{RunFolder, RunSpec, RunState, RunStatus};

/// The facts about a run in the configuration of its team.
#[derive(Default, Deserialize)]
#[serde(default)]
struct KnownConfig {
    team: KnownTeam,
    agents: Vec<KnownAgent>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KnownTeam {
    workspace: PathBuf,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KnownAgent {
    command: Vec<String>,
    profile: Option<String>,
    model: Option<String>,
}

impl RunFolder {
    /// The state of a run that nobody performs any more: its own if that is final, else `lost`, with
    /// the answer that it has.
    pub fn lost(&self, ended_at_ms: u64) -> RunState {
        match self.kept() {
            Ok(state) if state.status.is_final() => state,
            Ok(state) => RunState {
                status: RunStatus::Lost,
                exit_code: Some(1),
                ended_at_ms: Some(ended_at_ms),
                reason: Some("its supervisor is gone".to_owned()),
                ..state
            },
            Err(_) => self.recovered(ended_at_ms),
        }
    }

    /// The state of a run whose own can't be read.
    fn recovered(&self, ended_at_ms: u64) -> RunState {
        let config = self.read("eisen.toml").ok();
        let config: Option<KnownConfig> = config.and_then(|text| toml::from_str(&text).ok());
        let KnownConfig { team, mut agents } = config.unwrap_or_default();
        let agent = if agents.is_empty() { KnownAgent::default() } else { agents.swap_remove(0) };
        let made = Ulid::from_string(self.id()).map_or(ended_at_ms, |id| id.timestamp_ms());
        RunState {
            status: RunStatus::Lost,
            // No process: nobody's.
            pid: 0,
            pid_start_time_ticks: None,
            command: agent.command,
            profile: agent.profile,
            model: agent.model,
            started_at_ms: made,
            ended_at_ms: Some(ended_at_ms),
            exit_code: Some(1),
            reason: Some("its state was lost".to_owned()),
            ..RunState::new(&RunSpec::default(), self.id().to_owned(), team.workspace)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::RunId;
    use super::*;
    use crate::kept::power_cut::survives;

    #[test]
    fn what_is_still_known_of_a_run_is_told() {
        let eisen_dir = tempfile::tempdir().unwrap();
        let run = RunFolder::create(eisen_dir.path(), RunId::generate()).unwrap();
        let lost = run.lost(7);
        assert_eq!((lost.status, lost.exit_code, lost.pid), (RunStatus::Lost, Some(1), 0));
        assert_eq!((&lost.id, &lost.team), (&run.id().to_owned(), &run.team()));
        let config = "[team]\nworkspace = \"/shop\"\n[[agents]]\ncommand = [\"codex-acp\"]\nprofile = \"codex\"";
        std::fs::write(run.config(), config).unwrap();
        std::fs::write(run.path().join("state.toml"), "status = \"run").unwrap();
        let lost = run.lost(7);
        assert_eq!((lost.workspace, lost.command), ("/shop".into(), vec!["codex-acp".to_owned()]));
        assert_eq!((lost.profile.as_deref(), lost.ended_at_ms), (Some("codex"), Some(7)));
        // It can be kept and read again.
        survives(&run.path().join("state.toml"), || run.keep(&run.lost(7)).unwrap());
        assert_eq!(run.state().unwrap().reason.as_deref(), Some("its state was lost"));
        // What a final state says stays.
        run.keep(&RunState { status: RunStatus::Succeeded, ..run.lost(7) }).unwrap();
        assert_eq!(run.lost(9).status, RunStatus::Succeeded);
    }

    #[test]
    fn one_process_holds_a_run() {
        let eisen_dir = tempfile::tempdir().unwrap();
        let run = RunFolder::create(eisen_dir.path(), RunId::generate()).unwrap();
        let held = run.try_hold().unwrap();
        assert!(held.is_some() && run.try_hold().unwrap().is_none());
        drop(held);
        assert!(run.try_hold().unwrap().is_some());
        assert!(run.set_aside().unwrap().is_dir());
        assert_eq!(super::super::set_aside(eisen_dir.path()).len(), 1);
        assert!(
            run.try_hold().is_err() && super::super::all_runs(eisen_dir.path()).unwrap().is_empty()
        );
    }
}
