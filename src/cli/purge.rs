//! `purge`: removes a secret from journals, and from all else below `$EISEN_DIR`.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;

use super::Global;
use super::journal::WhichJournal;
use super::output::{note, plain, print};
use crate::care;
use crate::home;
use crate::journal::{self, Matches, Pattern};
use crate::program::Failure;

/// Take a text, such as a secret, out of everything that journals keep
///
/// Replaces it by `[purged]` in all events, also in what a search finds them by, in messages that
/// are being written, in tasks, runs, the registry of sessions, logs, and what streams could not deliver;
/// removes the contents of files that have it; and writes the journal anew, so that no byte of it is left
/// in its files. Names what has it and can't be cleaned. Later exports don't have it. Earlier exports,
/// and the files of the workspace, are not touched.
///
/// A purge can be done while the team runs. It may miss words that an agent is saying at that moment, so
/// repeat it after the turn.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core journal purge --matching hunter2 --dry-run
  eisen-core journal purge --matching hunter2 --team shop
  eisen-core journal purge --regex --matching 'sk-[A-Za-z0-9]{20,}'

Exit codes: 0 done, 1 something that has it, or may have it, could not be cleaned, 2 wrong usage.")]
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
        for path in self.journals(global)? {
            match self.purge(&path, &pattern) {
                Ok(found) => is_found |= found,
                Err(Failure::Run(error)) if !error.is::<super::output::Closed>() => {
                    failed = true;
                    note(format_args!("error: {}", plain(&format!("{error:#}"))));
                }
                Err(failure) => return Err(failure),
            }
        }
        if !self.which.is_file() {
            for purged in self.purge_files(global, &pattern)? {
                is_found = true;
                let path = plain(&purged.path.display().to_string());
                print(format_args!("{path}: {}", purged.what))?;
                if let Some(why) = purged.left {
                    failed = true;
                    note(format_args!("error: {path} is not purged: {}", plain(&why)));
                }
            }
        }
        if failed && !self.dry_run {
            return Err(Failure::Run(anyhow!("not all could be purged")));
        }
        if !is_found {
            let hint = if self.regex { "" } else { "; for a regular expression add --regex" };
            note(format_args!("nothing has it{hint}"));
        }
        Ok(())
    }

    /// The journals; without a name those of all teams.
    fn journals(&self, global: &Global) -> Result<Vec<PathBuf>, Failure> {
        if self.which.is_named() {
            return Ok(vec![self.which.path(global)?]);
        }
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let teams = home::teams_with_journals(&eisen_dir).into_iter();
        Ok(teams.map(|team| home::journal_place(&eisen_dir, &team)).collect())
    }

    /// Purges what is kept besides journals: of the team that is named, or of all.
    fn purge_files(
        &self,
        global: &Global,
        pattern: &Pattern,
    ) -> Result<Vec<care::PurgedFile>, Failure> {
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let team =
            self.which.is_named().then(|| self.which.team(global, &eisen_dir)).transpose()?;
        let purged = care::purge_files(&eisen_dir, team.as_deref(), pattern, self.dry_run);
        purged.map_err(|error| {
            let place = eisen_dir.display();
            Failure::Run(anyhow::Error::new(error).context(format!("cannot look through {place}")))
        })
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
    for id in &found.sessions {
        print(format_args!("{path}: id of the session {}", plain(id)))?;
    }
    if found.drafts > 0 {
        print(format_args!("{path}: messages that are being written: {}", found.drafts))?;
    }
    Ok(())
}
