//! The session of an earlier run that another one goes on with, or begins beside.

use std::io;
use std::path::Path;

use super::{RunState, all_runs};

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("no run in {0} has had a session: begin one without --session")]
    None(String),
    #[error(
        "no run has had the session `{0}`: `eisen-core runs --all --json` has their `session_id`"
    )]
    Unknown(String),
    #[error("`{wanted}` may be {}", .found.join(" or "))]
    Ambiguous { wanted: String, found: Vec<String> },
    #[error("the session {session} is of {workspace}: run it there")]
    Elsewhere { session: String, workspace: String },
    #[error("the run {0} has not ended: wait for it")]
    Runs(String),
    #[error("cannot read the runs: {0}")]
    Io(#[from] io::Error),
}

/// The last run that had a session, which is named by the agent's id for it, by the id of a run, by the
/// beginning of either, or `last`, which is the last one in the workspace.
pub fn find_session(
    eisen_dir: &Path,
    wanted: &str,
    workspace: &Path,
) -> Result<(RunState, String), SessionError> {
    let runs = all_runs(eisen_dir)?;
    // What has no state is no run.
    let states = runs.iter().filter_map(|run| run.state().ok()).collect();
    session_among(states, wanted, workspace)
}

/// As [`find_session`], of these runs; the oldest comes first.
pub fn session_among(
    mut states: Vec<RunState>,
    wanted: &str,
    workspace: &Path,
) -> Result<(RunState, String), SessionError> {
    states.retain(|state| state.session_id.is_some());
    if wanted == "last" {
        states.retain(|state| state.workspace == workspace);
        let last = states.pop();
        return checked(
            last.ok_or_else(|| SessionError::None(workspace.display().to_string()))?,
            workspace,
        );
    }
    let (id, session) = (wanted.to_ascii_uppercase(), |state: &RunState| {
        state.session_id.clone().unwrap_or_default()
    });
    let exact = states.iter().any(|state| session(state) == wanted);
    states.retain(|state| {
        if exact {
            session(state) == wanted
        } else {
            state.id.starts_with(&id) || session(state).starts_with(wanted)
        }
    });
    let mut found: Vec<_> = states.iter().map(&session).collect();
    found.sort_unstable();
    found.dedup();
    match (found.len(), states.pop()) {
        (1, Some(state)) => checked(state, workspace),
        (0, _) | (_, None) => Err(SessionError::Unknown(wanted.to_owned())),
        _ => Err(SessionError::Ambiguous { wanted: wanted.to_owned(), found }),
    }
}

fn checked(state: RunState, workspace: &Path) -> Result<(RunState, String), SessionError> {
    let session = state.session_id.clone().unwrap_or_default();
    if state.workspace != workspace {
        let workspace = state.workspace.display().to_string();
        return Err(SessionError::Elsewhere { session, workspace });
    }
    if !state.status.is_final() {
        return Err(SessionError::Runs(state.id));
    }
    Ok((state, session))
}
