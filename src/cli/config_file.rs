//! `-c FILE`: which configuration a command takes.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;

use super::{in_folder, output};
use crate::home;
use crate::program::Failure;
use crate::team_file;

#[derive(Args, Default, Debug)]
pub(super) struct ConfigFile {
    /// The team's configuration; see docs/configuration.md [default: eisen.toml of this folder, or
    /// above it up to the top of the git repository]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigFile {
    /// The file that is named, else the one of this folder or above it; that of this folder if there is
    /// none.
    pub(super) fn find(&self, cwd: Option<PathBuf>) -> PathBuf {
        let own = in_folder(cwd.clone(), Path::new(home::CONFIG));
        self.find_if_there(cwd).unwrap_or(own)
    }

    /// As [`ConfigFile::find`]. Without a file it is the one that the folder's team works by, if it has one.
    pub(super) fn find_or_kept(&self, cwd: Option<PathBuf>, eisen_dir: &Path) -> PathBuf {
        let folder = cwd.clone().unwrap_or_default();
        let kept = || {
            let teams = home::teams_of(eisen_dir, &folder);
            teams.iter().find_map(|team| team_file::kept_config(eisen_dir, team))
        };
        let own = in_folder(cwd.clone(), Path::new(home::CONFIG));
        self.find_if_there(cwd).or_else(kept).unwrap_or(own)
    }

    /// As [`ConfigFile::find`]. Without a file it is one with the agents that are found, or with those that
    /// are named; what it says is noted.
    pub(super) fn find_or_make(
        &self,
        cwd: Option<PathBuf>,
        eisen_dir: &Path,
        agents: &[String],
    ) -> Result<PathBuf, Failure> {
        if let Some(file) = self.find_if_there(cwd.clone()) {
            if agents.is_empty() {
                return Ok(file);
            }
            let file = file.display();
            let why =
                format!("{file} says which agents there are: --agents is for folders without it");
            return Err(Failure::Usage(anyhow!(why)));
        }
        let made = team_file::without_file(&cwd.unwrap_or_default(), eisen_dir, agents)?;
        for sentence in made.said {
            output::note(output::plain(&sentence));
        }
        Ok(made.file)
    }

    /// As [`ConfigFile::find`]; None if no file is named and there is none.
    pub(super) fn find_if_there(&self, cwd: Option<PathBuf>) -> Option<PathBuf> {
        if let Some(file) = &self.config {
            return Some(in_folder(cwd, file));
        }
        home::config_of(&cwd.unwrap_or_default()).unwrap_or_else(|why| {
            output::note(format_args!("note: {}", output::plain(&why)));
            None
        })
    }
}
