//! One-shot runs on disk: their ids, their folders, and the state of each. Knows nothing of agents.

mod attachment;
mod bounds;
mod budget;
mod earlier;
mod folder;
mod recovered;
mod spec;
mod state;
mod team_runs;
pub mod tree;

use std::fmt;
use std::io;
use std::path::Path;

use ulid::Ulid;

pub use self::attachment::{Attachment, AttachmentError, MOST_FILES, Takes};
pub use self::bounds::{LONGEST_ZONE, MOST_PATTERNS, branch as check_branch};
pub use self::budget::RunBudget;
pub use self::earlier::{SessionError, find_session, session_among};
pub use self::folder::{RunFolder, RunHold, all_runs, set_aside};
pub use self::spec::{RunSpec, WantedSession};
pub use self::state::{
    ChangedFiles, EarlierSession, RefusedAccess, RunAttempt, RunState, RunStatus,
};
pub use self::team_runs::{EndedTeam, FoundRun, FoundRuns, RunZone, TeamRuns};
use crate::model::{KeptFiles, KeptForm};

/// One-shot runs: what they were told, and what came of it.
pub const KEPT: [KeptFiles; 3] = [
    KeptFiles::new("console of a run", KeptForm::Log, &["runs/*/console", "runs/*/console.*"]),
    KeptFiles::new("run", KeptForm::Json, &["runs/*/*.json"]),
    KeptFiles::new("run", KeptForm::Text, &["runs/*/*"]),
];

/// The name of a run: a ULID, so that names sort by the time of their making.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunId(Ulid);

impl RunId {
    pub fn generate() -> Self {
        Self(Ulid::generate())
    }

    /// The name of the team that has this run's agent.
    pub fn team(self) -> String {
        team_of(&self.to_string())
    }
}

const TEAM_PREFIX: &str = "run-";

/// The name of the team of a run, by the run's id.
pub fn team_of(id: &str) -> String {
    format!("{TEAM_PREFIX}{id}")
}

/// Whether a team is the one of a run.
pub fn is_of_run(team: &str) -> bool {
    run_of(team).is_some()
}

/// The run whose team this is; None: it is the team of a configuration.
pub fn run_of(team: &str) -> Option<&str> {
    team.strip_prefix(TEAM_PREFIX).filter(|id| Ulid::from_string(id).is_ok())
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a run is not found by the beginning of its id.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error("there is no run `{0}`: `eisen-core runs --all` lists them")]
    Unknown(String),
    #[error("`{wanted}` may be {}", .found.join(" or "))]
    Ambiguous { wanted: String, found: Vec<String> },
    #[error("cannot read the runs: {0}")]
    Io(#[from] io::Error),
}

/// Finds a run by its id, or by a beginning of it that no other has.
pub fn find_run(eisen_dir: &Path, wanted: &str) -> Result<RunFolder, FindError> {
    let begins = wanted.to_ascii_uppercase();
    let mut found = all_runs(eisen_dir)?;
    found.retain(|run| run.id().starts_with(&begins));
    match found.len() {
        0 => Err(FindError::Unknown(wanted.to_owned())),
        1 => Ok(found.remove(0)),
        _ => {
            let found = found.iter().map(|run| run.id().to_owned()).collect();
            Err(FindError::Ambiguous { wanted: wanted.to_owned(), found })
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn made(eisen_dir: &Path, id: &str) {
        let id = RunId(Ulid::from_string(id).unwrap());
        RunFolder::create(eisen_dir, id).unwrap();
    }

    #[test]
    fn a_run_is_found_by_a_beginning_that_no_other_has() {
        let eisen_dir = tempfile::tempdir().unwrap();
        let find = |wanted| find_run(eisen_dir.path(), wanted).map(|run| run.id().to_owned());
        assert!(matches!(find("01"), Err(FindError::Unknown(_))));
        let (one, other) = ("01M8CH144YK5GV0MWJCEK65NDH", "01M8CH147PVCQ4MWCTQM5PC9AN");
        made(eisen_dir.path(), one);
        made(eisen_dir.path(), other);
        // What is no run is no run.
        std::fs::create_dir(eisen_dir.path().join("runs/01M8-notes")).unwrap();
        assert_eq!(find("01m8ch144").unwrap(), one);
        assert_eq!(find(other).unwrap(), other);
        let error = find("01M8").unwrap_err().to_string();
        assert_eq!(error, format!("`01M8` may be {one} or {other}"));
    }
}
