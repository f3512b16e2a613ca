//! The parts of a run that its arguments ask for: prompt, files, a schema, the session of an earlier run.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, ensure};

use crate::home;
use crate::runs::{Attachment, EarlierSession, MOST_FILES, RunSpec, WantedSession, find_session};

/// Bytes of a schema.
const LONGEST_SCHEMA: u64 = 1 << 20;

/// The prompt; `-` is what standard input has.
pub(super) fn prompt(given: &str) -> anyhow::Result<String> {
    let mut prompt = given.to_owned();
    if given == "-" {
        prompt.clear();
        let read = std::io::stdin().read_to_string(&mut prompt);
        read.context("cannot read the prompt from standard input")?;
    }
    ensure!(!prompt.trim().is_empty(), "the prompt is empty");
    Ok(prompt)
}

pub(super) fn attachments(files: &[PathBuf]) -> anyhow::Result<Vec<Attachment>> {
    ensure!(files.len() <= MOST_FILES, "a prompt takes {MOST_FILES} files");
    files.iter().map(|file| Ok(Attachment::read(file)?)).collect()
}

/// Reads the file of --schema.
pub(super) fn schema(file: &Path) -> anyhow::Result<serde_json::Value> {
    let shown = file.display();
    let length = file.metadata().map(|file| file.len());
    let length = length.with_context(|| format!("cannot read the schema {shown}"))?;
    ensure!(length <= LONGEST_SCHEMA, "the schema {shown} is longer than {LONGEST_SCHEMA} bytes");
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read the schema {shown}"))?;
    serde_json::from_str(&text).with_context(|| format!("the schema {shown} is no JSON"))
}

/// Finds the session of an earlier run that is asked for. The run gets its agent.
pub(super) fn earlier(
    spec: &mut RunSpec,
    workspace: &Path,
) -> anyhow::Result<Option<EarlierSession>> {
    let Some(WantedSession { name, is_fork }) = spec.earlier() else { return Ok(None) };
    let (run, session_id) = find_session(&home::eisen_dir()?, &name, workspace)?;
    let other = |own: &str| anyhow!("the session {session_id} is of {own}: no other agent has it");
    match (&run.profile, &spec.profile) {
        (Some(own), Some(named)) if own != named => {
            return Err(other(&format!("the profile `{own}`")));
        }
        (None, Some(_)) => return Err(other(&run.command.join(" "))),
        _ => {}
    }
    let has_command = !spec.command.is_empty();
    spec.profile = run.profile.filter(|_| !has_command || spec.profile.is_some());
    if spec.profile.is_none() && !has_command {
        spec.command = run.command;
    }
    spec.model = spec.model.take().or(run.model);
    let (team, agent) = (Some(run.team), None);
    Ok(Some(EarlierSession { run: run.id, session_id, is_fork, team, agent }))
}
