//! What the options of `run` ask for besides a prompt: files, a schema, the session of an earlier run.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, ensure};

use crate::app;
use crate::runs::{Attachment, EarlierSession, MOST_FILES, find_session};

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

/// A session, and the agent that has it.
pub(super) struct Earlier {
    pub(super) session: EarlierSession,
    pub(super) profile: Option<String>,
    /// Empty: the profile's, or the one that was named.
    pub(super) command: Vec<String>,
    pub(super) model: Option<String>,
}

/// Finds the session of an earlier run; `profile` and whether a command was named besides.
pub(super) fn earlier(
    wanted: &str,
    (profile, has_command): (Option<&str>, bool),
    workspace: &Path,
) -> anyhow::Result<Earlier> {
    let (run, session_id) = find_session(&app::eisen_dir()?, wanted, workspace)?;
    let other = |own: &str| anyhow!("the session {session_id} is of {own}: no other agent has it");
    match (&run.profile, profile) {
        (Some(own), Some(named)) if own != named => {
            return Err(other(&format!("the profile `{own}`")));
        }
        (None, Some(_)) => return Err(other(&run.command.join(" "))),
        _ => {}
    }
    let profile = run.profile.filter(|_| !has_command || profile.is_some());
    let command = if profile.is_none() && !has_command { run.command } else { Vec::new() };
    let (team, agent) = (Some(run.team), None);
    let session = EarlierSession { run: run.id, session_id, is_fork: false, team, agent };
    Ok(Earlier { session, profile, command, model: run.model })
}
