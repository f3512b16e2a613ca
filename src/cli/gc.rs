//! `gc`: announces and removes unused files below `$EISEN_DIR`.

use clap::Args;
use serde_json::{Value, json};

use super::output::{note, plain, print};
use super::{Global, format};
use crate::care;
use crate::care::Garbage;
use crate::home;
use crate::program::Failure;

/// Remove runs, journals, contents, logs, sessions and locks that are nobody's
///
/// Looks at the folder of all state, `EISEN_DIR`. Goes: what is of a team whose workspace is gone,
/// what a killed team left, what a journal has past the `keep_days` and `max_mb` of its team, and
/// locks and drafts of files whose process is gone; with --max-age-days also what is older. Runs go
/// 30 days after their end, and those that have neither a state, an answer nor a journal; what a
/// killed run left is mended: it becomes `lost`, and keeps its answer. Never goes: what runs (the
/// journal of a team is kept within its quotas while it runs), what is pinned, and files of a
/// workspace. All that is done is listed with its size and the reason before the first of it is
/// done.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core journal gc --dry-run            list what would go
  eisen-core journal gc --max-age-days 90
  eisen-core journal gc --outside --dry-run  what agents wrote outside their workspaces
  eisen-core journal pin ui/s1               keep a session in spite of all quotas

Exit codes: 0 done, 1 something could not be removed, 2 wrong usage.")]
pub(super) struct Gc {
    /// List what would go, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Remove also logs, and sessions and their events, that did not change for N days, and runs that
    /// ended N days ago [default: 30 for runs, else never]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=36_500))]
    max_age_days: Option<u64>,
    /// Remove also the contents of files outside the workspaces that journals have, also while their
    /// teams run. Their changes then can't be undone
    #[arg(long)]
    outside: bool,
    /// Print a JSON object: what goes, each with its size and the reason, and whether it went
    #[arg(long)]
    json: bool,
}

impl Gc {
    pub(super) async fn run(self, _global: &Global) -> Result<(), Failure> {
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let mut all = care::garbage(&eisen_dir, self.max_age_days).await.map_err(Failure::Run)?;
        let mut failed = None;
        let outside = self.outside.then(|| care::outside_contents(&eisen_dir));
        for found in outside.into_iter().flatten() {
            match found {
                Ok(garbage) => all.push(garbage),
                Err(error) => failed = Some(failure(&error)),
            }
        }
        let total: u64 = all.iter().map(|garbage| garbage.bytes).sum();
        let listed = self.json.then(|| all.iter().map(json).collect::<Vec<_>>());
        for garbage in all.iter().filter(|_| !self.json) {
            let (what, reason) = (plain(&garbage.what), plain(&garbage.reason));
            let size = format::bytes(garbage.bytes);
            let size = if garbage.is_repair() { "mend" } else { &size };
            print(format_args!("{size:>10}  {what}: {reason}"))?;
        }
        if all.is_empty() && failed.is_none() && !self.json {
            note("nothing is to be removed");
            return Ok(());
        }
        let bytes = format::bytes(total);
        let repairs = all.iter().filter(|garbage| garbage.is_repair()).count();
        let mended = if repairs > 0 { format!(", {repairs} mended") } else { String::new() };
        if let (true, Some(listed)) = (self.dry_run, &listed) {
            print(json!({ "garbage": listed, "bytes": total, "removed": false }))?;
            return failed.map_or(Ok(()), Err);
        }
        if self.dry_run {
            note(format_args!("{bytes} would be removed{mended}; nothing was, by --dry-run"));
            return failed.map_or(Ok(()), Err);
        }
        for garbage in all {
            if let Err(error) = garbage.remove(&eisen_dir).await {
                failed = Some(failure(&error));
            }
        }
        if let Some(listed) = listed {
            let removed = failed.is_none();
            print(json!({ "garbage": listed, "bytes": total, "removed": removed }))?;
            return failed.map_or(Ok(()), Err);
        }
        note(format_args!(
            "{bytes} {} removed{mended}",
            if failed.is_some() { "were to be" } else { "were" }
        ));
        failed.map_or(Ok(()), Err)
    }
}

fn json(garbage: &Garbage) -> Value {
    let (what, reason, bytes) = (&garbage.what, &garbage.reason, garbage.bytes);
    json!({ "what": what, "reason": reason, "bytes": bytes, "is_repair": garbage.is_repair() })
}

/// Says what failed; returns how the command ends.
fn failure(error: &anyhow::Error) -> Failure {
    note(format_args!("error: {}", plain(&format!("{error:#}"))));
    Failure::Run(anyhow::anyhow!("not all could be done"))
}
