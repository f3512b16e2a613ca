//! `check`: validates and explains a configuration.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::{help, in_folder, output};
use crate::app::{self, Failure};
use crate::config;

/// Validate a configuration and explain it, without starting anything
#[derive(Args, Debug)]
#[command(after_help = help::CHECK)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    file: ConfigFile,
}

#[derive(Args, Debug)]
pub(super) struct ConfigFile {
    /// The team's configuration; see docs/configuration.md
    #[arg(short, long, value_name = "FILE", default_value = "eisen.toml")]
    pub(super) config: PathBuf,
}

impl CheckArgs {
    pub(super) fn run(self, cwd: Option<PathBuf>) -> Result<(), Failure> {
        let file = in_folder(cwd, &self.file.config);
        let eisen_dir = app::eisen_dir().map_err(Failure::Usage)?;
        let layered = app::load(&file, &eisen_dir)?;
        let mut progress = progress();
        let limits = app::limit_enforcement();
        let mut hints = app::hints(&layered.config, &eisen_dir);
        hints.extend(app::journal_hint(&layered.config, &eisen_dir));
        let kernel = app::kernel();
        let mut report =
            config::check::check(&layered.config, &kernel, limits, hints, &mut progress);
        progress(0);
        report.add_kept(&layered);
        report.add_tools(&app::tool_lines(&layered.config, &eisen_dir));
        report.add_journal(app::journal_line(&layered.config, &eisen_dir));
        output::print(output::escape_controls(&report.to_string()))
    }
}

/// Shows the number of files seen on a terminal, after the first second; 0 clears the line.
fn progress() -> impl FnMut(u64) {
    use std::io::IsTerminal;
    let (start, terminal) = (std::time::Instant::now(), std::io::stderr().is_terminal());
    move |files| {
        if terminal && start.elapsed().as_secs() >= 1 {
            let count = if files == 0 { String::new() } else { format!("{files} files …") };
            let _ = write!(std::io::stderr(), "\r\x1b[K{count}");
        }
    }
}
