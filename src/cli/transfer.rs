//! `export` and `import`: a journal as lines of JSON.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use clap::Args;

use super::Global;
use super::journal::WhichJournal;
use super::output::{failure, note};
use crate::home;
use crate::journal::{self, PortError};
use crate::program::Failure;

/// Print a team's whole journal as lines of JSON
///
/// One line for each session, event and content (in base64); docs/journal.md describes them. It
/// has all that the journal has, so treat it as one.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core journal export > shop.ndjson
  eisen-core journal export --team shop | zstd > shop.ndjson.zst

Exit codes: 0 done, 1 no such journal, 2 wrong usage.")]
pub(super) struct Export {
    #[command(flatten)]
    which: WhichJournal,
}

impl Export {
    pub(super) fn run(self, global: &Global) -> Result<(), Failure> {
        let path = self.which.path(global)?;
        let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        journal::export(&path, &mut out).map_err(|error| match error {
            PortError::Io(error) => failure(error),
            error => Failure::Run(error.into()),
        })
    }
}

/// Make a journal of an export
///
/// The team must have no journal yet.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core journal import shop.ndjson
  eisen-core journal import shop.ndjson --team shop-of-monday

Exit codes: 0 done, 1 it can't be imported (nothing is changed), 2 wrong usage.")]
pub(super) struct Import {
    /// The export
    file: PathBuf,
    /// The team that gets the journal [default: the export's]
    #[arg(long, value_name = "NAME")]
    team: Option<String>,
}

impl Import {
    pub(super) fn run(self, global: &Global) -> Result<(), Failure> {
        let file = global.cwd.clone().unwrap_or_default().join(&self.file);
        let read = || {
            let opened = File::open(&file).map(BufReader::new);
            let opened = opened.with_context(|| format!("cannot read {}", file.display()));
            opened.map_err(Failure::Run)
        };
        let named = self.team.clone().or(journal::team_of(&mut read()?));
        let team = named.filter(|team| crate::config::is_name(team)).ok_or_else(|| {
            let why = "which team gets the journal? Name it with --team NAME";
            Failure::Usage(anyhow!(why))
        })?;
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let path = home::journal_place(&eisen_dir, &team);
        journal::import(&mut read()?, &path, self.team.as_deref()).map_err(|error| {
            let error = anyhow::Error::new(error);
            Failure::Run(error.context(format!("cannot import {}", file.display())))
        })?;
        note(format_args!("the journal of the team `{team}` is {}", path.display()));
        Ok(())
    }
}
