//! `gc`: finds and removes unused files below `$EISEN_DIR`. A running team is never touched; it
//! keeps its own journal within its quotas. States of one-shot runs are mended where that can be done.
//!
//! Without a limit of age it removes files of a team whose workspace is gone, remains of killed
//! runs, and the excess over a journal's own quotas. With a limit, also older files.

mod batches;
mod cooldowns;
mod drafts;
mod files;
mod locks;
mod outside;
mod runs;
mod sessions;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};

pub(crate) use self::files::size;
use self::files::{age, names_of, remove};
pub use self::outside::outside_contents;
use self::runs::{OneShots, RunChange};
use crate::home::journals::{journal_place, team_folder, workspace_of};
use crate::home::leftovers;
use crate::journal::{self, ChangeError, Excess, OpenError, Store};
use crate::kept::remove_draft;
use crate::model::{SessionKey, rfc3339};
use crate::runs::{RunFolder, all_runs, is_of_run};
use crate::serve::{self, StaleRun};
use crate::slots::Slots;

/// Suffixes of the files of one journal, besides those that were set aside.
const OF_A_JOURNAL: [&str; 11] = [
    "",
    "-wal",
    "-shm",
    ".lock",
    ".undo",
    ".kept",
    ".drafts",
    ".import",
    ".import-wal",
    ".import-shm",
    ".import.lock",
];

/// A thing to remove.
#[derive(Debug)]
pub struct Garbage {
    /// A description for people.
    pub what: String,
    pub reason: String,
    pub bytes: u64,
    /// The team that must not run meanwhile.
    team: Option<String>,
    removal: Removal,
}

#[derive(Debug)]
enum Removal {
    Paths(Vec<PathBuf>),
    /// The oldest part of a journal.
    Prune(PathBuf, Excess),
    /// The contents of files outside the workspace in a journal.
    Outside(PathBuf),
    Run(Box<StaleRun>),
    /// Entries of the registry.
    Sessions(Vec<SessionKey>),
    /// A one-shot run, with all that it left.
    OneShot(Box<RunChange>),
    /// The state of a one-shot run that has none, or is not `lost` yet.
    MendRun(Box<RunChange>),
    /// A lock that nobody holds.
    Lock(PathBuf),
    /// The folders of places that nobody waits for.
    Places(Vec<PathBuf>),
    /// Cool-downs that are over.
    Cooldowns,
    /// A draft whose writer is gone.
    Draft(PathBuf),
}

/// Finds the things to remove; removes nothing.
pub async fn garbage(eisen_dir: &Path, max_age_days: Option<u64>) -> anyhow::Result<Vec<Garbage>> {
    let running = serve::live_teams(eisen_dir).context("cannot find out which teams run")?;
    let running: BTreeSet<_> = running.into_iter().map(|info| info.team).collect();
    let mut found: Vec<_> = serve::stale_runs(eisen_dir)?.into_iter().map(of_run).collect();
    let one_shots = OneShots::new(eisen_dir, max_age_days, &running).garbage()?;
    let going = one_shots.iter().filter_map(Garbage::removed_run);
    let mut closed: Vec<_> =
        going.clone().flat_map(|it| sessions::of_journal(&it.journal())).collect();
    let going: BTreeSet<_> = going.map(RunChange::team).collect();
    found.extend(one_shots);
    let runs: BTreeSet<_> = all_runs(eisen_dir)?.iter().map(RunFolder::team).collect();
    for team in teams(eisen_dir)? {
        let path = journal_place(eisen_dir, &team);
        if running.contains(&team) || going.contains(&team) || journal::is_written(&path) {
            continue;
        }
        match workspace_of(eisen_dir, &team) {
            // An imported journal has no workspace.
            Some(_) if is_of_run(&team) && !runs.contains(&team) => {
                closed.extend(sessions::of_journal(&path));
                found.extend(of_team(eisen_dir, &team, &path, "its run is gone")?);
            }
            Some(workspace) if workspace.try_exists().is_ok_and(|is_there| !is_there) => {
                let reason = format!("its workspace {} is gone", workspace.display());
                closed.extend(sessions::of_journal(&path));
                found.extend(of_team(eisen_dir, &team, &path, &reason)?);
            }
            _ => found.extend(by_age(eisen_dir, &team, &path, max_age_days)?),
        }
    }
    found.extend(locks::dead(eisen_dir));
    found.extend(locks::unused(eisen_dir));
    found.extend(cooldowns::over(eisen_dir));
    found.extend(drafts::dead(eisen_dir));
    found.extend(batches::forgotten(eisen_dir)?);
    found.extend(set_aside_registries(eisen_dir, max_age_days));
    found.extend(sessions::nobodys(eisen_dir, closed, max_age_days).await?);
    Ok(found)
}

/// The one-shot runs that ended without a final state.
pub(crate) fn unfinished_runs(eisen_dir: &Path) -> anyhow::Result<Vec<Garbage>> {
    let running = serve::live_teams(eisen_dir).context("cannot find out which teams run")?;
    let running = running.into_iter().map(|info| info.team).collect();
    let found = OneShots::new(eisen_dir, None, &running).garbage()?;
    Ok(found.into_iter().filter(Garbage::is_repair).collect())
}

impl Garbage {
    /// Whether it is what a killed run left.
    pub(crate) fn is_of_killed_run(&self) -> bool {
        matches!(self.removal, Removal::Run(_))
    }

    /// Whether nothing is removed by it.
    pub fn is_repair(&self) -> bool {
        matches!(self.removal, Removal::MendRun(_))
    }

    /// The one-shot run that is removed by it.
    fn removed_run(&self) -> Option<&RunChange> {
        match &self.removal {
            Removal::OneShot(change) => Some(change),
            _ => None,
        }
    }

    /// Removes it, or mends it.
    pub async fn remove(self, eisen_dir: &Path) -> anyhow::Result<()> {
        let held = match &self.team {
            Some(team) => match serve::hold(eisen_dir, team)? {
                Some(held) => Some(held),
                None => bail!("the team `{team}` runs now: {} stays", self.what),
            },
            None => None,
        };
        let removed = match self.removal {
            Removal::Paths(paths) => paths.iter().try_for_each(|path| remove(path)),
            Removal::Prune(path, excess) => journal::prune(&path, &excess)
                .map(drop)
                .map_err(|trouble| anyhow::anyhow!("{trouble}")),
            Removal::Outside(path) => match journal::remove_outside(&path) {
                // It went as a whole, just before.
                Ok(_) | Err(ChangeError::Open(OpenError::Missing(_))) => Ok(()),
                Err(error) => Err(error.into()),
            },
            Removal::Run(run) => {
                leftovers::clean_after(*run);
                Ok(())
            }
            Removal::Sessions(keys) => sessions::close(eisen_dir, keys).await,
            Removal::OneShot(change) | Removal::MendRun(change) => change.apply(),
            Removal::Lock(path) => locks::remove(&path),
            Removal::Places(folders) => {
                let mut removed = folders.iter().map(|folder| Slots::remove_unused(folder));
                removed.try_for_each(|removed| removed).map_err(Into::into)
            }
            Removal::Cooldowns => cooldowns::forget(eisen_dir),
            Removal::Draft(path) => remove_draft(&path).map_err(Into::into),
        };
        drop(held);
        removed.with_context(|| format!("cannot clean up {}", self.what))
    }
}

/// All teams that left something, in order.
fn teams(eisen_dir: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut teams = BTreeSet::new();
    for (folder, endings) in [("teams", [".json", ""]), ("logs", [".console", ".console.1"])] {
        for name in names_of(&eisen_dir.join(folder))? {
            let is_folder = eisen_dir.join(folder).join(&name).is_dir();
            let mut ending = endings.iter().filter(|ending| !ending.is_empty());
            let team = ending.find_map(|ending| name.strip_suffix(ending));
            let team = if is_folder { Some(name.as_str()) } else { team };
            teams.extend(team.filter(|team| crate::config::is_name(team)).map(str::to_owned));
        }
    }
    Ok(teams)
}

fn of_run(run: StaleRun) -> Garbage {
    let folders = &run.info.remains.folders;
    Garbage {
        what: format!("leftovers of the team `{}`", run.info.team),
        reason: format!("its run was killed: {} temporary folders", folders.len()),
        bytes: folders.iter().map(|folder| size(folder)).sum(),
        team: None,
        removal: Removal::Run(Box::new(run)),
    }
}

/// Everything of a team that is gone for good.
fn of_team(
    eisen_dir: &Path,
    team: &str,
    journal: &Path,
    reason: &str,
) -> anyhow::Result<Vec<Garbage>> {
    let garbage = |what: String, paths: Vec<PathBuf>| Garbage {
        what,
        reason: reason.to_owned(),
        bytes: paths.iter().map(|path| size(path)).sum(),
        team: Some(team.to_owned()),
        removal: Removal::Paths(paths),
    };
    let mut found = Vec::new();
    let is_pinned = Store::open(journal).and_then(|it| it.pins()).is_ok_and(|it| !it.is_empty());
    if !is_pinned {
        let mut paths = files_of_journal(journal)?;
        paths.extend(Some(team_folder(eisen_dir, team)).filter(|folder| folder.exists()));
        if !paths.is_empty() {
            found.push(garbage(format!("journal of the team `{team}`"), paths));
        }
    }
    let overlay = eisen_dir.join("teams").join(format!("{team}.json"));
    if overlay.exists() {
        found.push(garbage(format!("agents added to the team `{team}`"), vec![overlay]));
    }
    let logs = logs_of(eisen_dir, team);
    if !logs.is_empty() {
        found.push(garbage(format!("logs of the team `{team}`"), logs));
    }
    Ok(found)
}

/// The things past a limit of a team that may run again.
fn by_age(
    eisen_dir: &Path,
    team: &str,
    journal: &Path,
    max_age_days: Option<u64>,
) -> anyhow::Result<Vec<Garbage>> {
    let garbage = |what, reason, bytes, removal| Garbage {
        what,
        reason,
        bytes,
        team: Some(team.to_owned()),
        removal,
    };
    let mut found = Vec::new();
    // `gc` leaves a file alone that can't be read as a journal.
    if let Ok(Some(excess)) = journal::excess(journal, max_age_days) {
        let (what, reason) = (format!("in the journal of the team `{team}`"), excess.to_string());
        let removal = Removal::Prune(journal.to_owned(), excess.clone());
        found.push(garbage(what, reason, excess.bytes, removal));
    }
    let aside = files_of_journal(journal)?.into_iter().filter(|file| is_set_aside(file));
    for file in aside.chain(logs_of(eisen_dir, team)) {
        if let Some(reason) = too_old(&file, max_age_days) {
            let what = file.display().to_string();
            found.push(garbage(what, reason, size(&file), Removal::Paths(vec![file])));
        }
    }
    Ok(found)
}

fn set_aside_registries(eisen_dir: &Path, max_age_days: Option<u64>) -> Vec<Garbage> {
    let names = names_of(eisen_dir).unwrap_or_default();
    let aside = names.into_iter().filter(|name| name.starts_with("core_sessions.corrupt-"));
    let garbage = |file: PathBuf| {
        let reason = too_old(&file, max_age_days)?;
        let (what, bytes) = (file.display().to_string(), size(&file));
        Some(Garbage { what, reason, bytes, team: None, removal: Removal::Paths(vec![file]) })
    };
    aside.filter_map(|name| garbage(eisen_dir.join(name))).collect()
}

/// Why a file is too old.
fn too_old(file: &Path, max_age_days: Option<u64>) -> Option<String> {
    let days = max_age_days?;
    let age = age(file)?;
    let changed = SystemTime::now() - age;
    let changed = changed.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
    let limit = Duration::from_secs(days.saturating_mul(86_400));
    let day = &rfc3339(changed)[..10];
    (age >= limit).then(|| format!("last changed on {day}, `--max-age-days` is {days}"))
}

/// The files that belong to a journal, also those that were set aside.
fn files_of_journal(journal: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let (Some(folder), Some(name)) = (journal.parent(), journal.file_name()) else {
        return Ok(Vec::new());
    };
    let name = name.to_string_lossy().into_owned();
    let names = names_of(folder)?.into_iter().filter(|file| {
        file.strip_prefix(&name)
            .is_some_and(|rest| OF_A_JOURNAL.contains(&rest) || rest.starts_with(".corrupt-"))
    });
    Ok(names.map(|file| folder.join(file)).collect())
}

fn is_set_aside(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().contains(".corrupt-"))
}

/// The files and folders with the logs of a team.
fn logs_of(eisen_dir: &Path, team: &str) -> Vec<PathBuf> {
    let logs = eisen_dir.join("logs");
    let console = ["console", "console.1"].map(|ending| logs.join(format!("{team}.{ending}")));
    let folder = logs.join(team);
    let all = console.into_iter().chain([folder]);
    all.filter(|path| path.symlink_metadata().is_ok()).collect()
}
