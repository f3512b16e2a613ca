//! `gc`: announces and removes unused files below `$EISEN_DIR`.

use clap::Args;

use super::output::{note, plain, print};
use super::{Global, format};
use crate::app::{self, Failure};

/// Remove journals, contents, logs and sessions that are nobody's
///
/// Looks at the folder of all state, `EISEN_DIR`. Goes: what is of a team whose workspace is gone, what
/// a killed run left, and what a journal has past the `keep_days` and `max_mb` of its team; with
/// --max-age-days also what is older. Never goes: what is of a team that runs (its journal is kept
/// within its quotas while it runs), what is pinned, and files of a workspace. All that goes is
/// listed with its size and the reason before the first of it is removed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core gc --dry-run                 list what would go
  eisen-core gc --max-age-days 90
  eisen-core pin ui/s1                    keep a session in spite of all quotas

Exit codes: 0 done, 1 something could not be removed, 2 wrong usage.")]
pub(super) struct Gc {
    /// List what would go, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Remove also logs, and sessions and their events, that did not change for N days
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=36_500))]
    max_age_days: Option<u64>,
}

impl Gc {
    pub(super) async fn run(self, _global: &Global) -> Result<(), Failure> {
        let eisen_dir = app::eisen_dir().map_err(Failure::Usage)?;
        let all = app::garbage(&eisen_dir, self.max_age_days).await.map_err(Failure::Run)?;
        for garbage in &all {
            let (what, reason) = (plain(&garbage.what), plain(&garbage.reason));
            print(format_args!("{:>10}  {what}: {reason}", format::bytes(garbage.bytes)))?;
        }
        if all.is_empty() {
            note("nothing is to be removed");
            return Ok(());
        }
        let bytes = format::bytes(all.iter().map(|garbage| garbage.bytes).sum());
        if self.dry_run {
            note(format_args!("{bytes} would be removed; nothing was, by --dry-run"));
            return Ok(());
        }
        let mut failed = None;
        for garbage in all {
            if let Err(error) = garbage.remove(&eisen_dir).await {
                note(format_args!("error: {}", plain(&format!("{error:#}"))));
                failed = Some(error);
            }
        }
        note(format_args!(
            "{bytes} {} removed",
            if failed.is_some() { "were to be" } else { "were" }
        ));
        failed.map_or(Ok(()), |_| Err(Failure::Run(anyhow::anyhow!("not all could be removed"))))
    }
}
