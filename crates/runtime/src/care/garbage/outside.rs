//! Contents of files outside the workspace, which journals have from before they were left out.

use std::path::Path;

use anyhow::Context as _;

use crate::care::garbage::{Garbage, Removal};
use crate::home::journals::{journal_place, teams_with_journals};
use crate::journal;

/// Finds them in the journals of all teams, also of those that run; names the journals that can't be
/// read.
pub fn outside_contents(eisen_dir: &Path) -> Vec<anyhow::Result<Garbage>> {
    let teams = teams_with_journals(eisen_dir).into_iter();
    teams.filter_map(|team| of_team(eisen_dir, &team).transpose()).collect()
}

fn of_team(eisen_dir: &Path, team: &str) -> anyhow::Result<Option<Garbage>> {
    let path = journal_place(eisen_dir, team);
    let found = journal::outside(&path)
        .with_context(|| format!("cannot look into the journal of the team `{team}`"))?;
    if found.count() == 0 {
        return Ok(None);
    }
    Ok(Some(Garbage {
        what: format!("in the journal of the team `{team}`"),
        reason: format!("contents of files outside its workspace: {}", found.count()),
        bytes: found.bytes,
        team: None,
        removal: Removal::Outside(path),
    }))
}
