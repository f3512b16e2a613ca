//! `purge`: removes a secret from journals and tasks.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;

use super::Global;
use super::journal::WhichJournal;
use super::output::{note, plain, print};
use crate::app::{self, Failure};
use crate::journal::{self, Matches, Pattern};

/// Take a text, such as a secret, out of everything that journals keep
///
/// Replaces it by `[purged]` in all events, also in what a search finds them by, in messages that
/// are being written, and in tasks with their results; removes the contents of files that have it; and writes the journal anew,
/// so that no byte of it is left in its files. Later exports don't have it. An earlier export, a
/// log, and the files of the workspace are not touched.
///
/// It can be done while the team runs; what an agent is saying at that moment may be missed, so
/// repeat it after the turn.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core purge --matching hunter2 --dry-run
  eisen-core purge --matching hunter2 --team shop
  eisen-core purge --regex --matching 'sk-[A-Za-z0-9]{20,}'

Exit codes: 0 done, 1 a journal could not be purged, 2 wrong usage.")]
pub(super) struct Purge {
    /// The text; with --regex a regular expression
    #[arg(long, value_name = "TEXT|REGEX")]
    matching: String,
    /// Take it for a regular expression. `(?i)` before it ignores case
    #[arg(long)]
    regex: bool,
    /// List what has it, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    which: WhichJournal,
}

impl Purge {
    pub(super) fn run(self, global: &Global) -> Result<(), Failure> {
        let made = if self.regex { Pattern::regex } else { Pattern::text };
        let pattern = made(&self.matching).map_err(|error| {
            Failure::Usage(anyhow::Error::new(error).context("--matching can't be used"))
        })?;
        let (mut is_found, mut failed) = (false, false);
        for (path, team) in self.journals(global)? {
            let found = self.purge(&path, &pattern);
            match found.and_then(|found| Ok(self.purge_tasks(team.as_deref(), &pattern)? || found))
            {
                Ok(found) => is_found |= found,
                Err(Failure::Run(error)) if !error.is::<super::output::Closed>() => {
                    failed = true;
                    note(format_args!("error: {}", plain(&format!("{error:#}"))));
                }
                Err(failure) => return Err(failure),
            }
        }
        if failed {
            return Err(Failure::Run(anyhow!("not all journals could be purged")));
        }
        if !is_found {
            let hint = if self.regex { "" } else { "; for a regular expression add --regex" };
            note(format_args!("nothing has it{hint}"));
        }
        Ok(())
    }

    /// The journals with their teams; without a name those of all teams. A file has no team.
    fn journals(&self, global: &Global) -> Result<Vec<(PathBuf, Option<String>)>, Failure> {
        if self.which.is_file() {
            return Ok(vec![(self.which.path(global)?, None)]);
        }
        let eisen_dir = app::eisen_dir().map_err(Failure::Usage)?;
        if self.which.is_named() {
            let team = self.which.team(global, &eisen_dir)?;
            return Ok(vec![(self.which.path(global)?, Some(team))]);
        }
        let teams = app::teams_with_journals(&eisen_dir).into_iter();
        Ok(teams.map(|team| (app::journal_place(&eisen_dir, &team), Some(team))).collect())
    }

    /// Purges the tasks that a team keeps; returns whether one had the text.
    fn purge_tasks(&self, team: Option<&str>, pattern: &Pattern) -> Result<bool, Failure> {
        let Some(team) = team else { return Ok(false) };
        let eisen_dir = app::eisen_dir().map_err(Failure::Usage)?;
        let found = app::purge_tasks(&eisen_dir, team, pattern, self.dry_run);
        let found = found.map_err(|error| {
            let error = anyhow::Error::new(error);
            Failure::Run(error.context(format!("cannot purge the tasks of the team `{team}`")))
        })?;
        for file in &found {
            print(format_args!("{}: task", plain(&file.display().to_string())))?;
        }
        Ok(!found.is_empty())
    }

    /// Purges one journal; returns whether it had the text.
    fn purge(&self, path: &Path, pattern: &Pattern) -> Result<bool, Failure> {
        let found = journal::find(path, pattern).map_err(|error| Failure::Run(error.into()))?;
        announce(path, &found)?;
        if !self.dry_run {
            // Also without matches: it may still be in pages of deleted rows.
            let purged = journal::purge(path, pattern);
            let purged = purged.map_err(|error| Failure::Run(error.into()))?;
            if !purged.is_empty() {
                note(format_args!("{} was purged", path.display()));
            }
        }
        for aside in journal::files_set_aside(path) {
            note(format_args!("{} is not purged: it was set aside; remove it", aside.display()));
        }
        Ok(!found.is_empty())
    }
}

/// Lists the places of the text, without the text.
fn announce(path: &Path, found: &Matches) -> Result<(), Failure> {
    let path = plain(&path.display().to_string());
    for id in &found.ids {
        print(format_args!("{path}: event {}", plain(id)))?;
    }
    for hash in &found.contents {
        print(format_args!("{path}: content {}", plain(hash)))?;
    }
    if found.drafts > 0 {
        print(format_args!("{path}: messages that are being written: {}", found.drafts))?;
    }
    Ok(())
}
