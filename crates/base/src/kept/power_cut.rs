//! Replays the steps of a change up to each point at which the power may go, and tells what is on the disk
//! then.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A step on the disk that has succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum DiskStep {
    Made(PathBuf),
    Wrote(PathBuf, Vec<u8>),
    SyncedFile(PathBuf),
    Renamed(PathBuf, PathBuf),
    Removed(PathBuf),
    SyncedFolder(PathBuf),
}

/// The content that is found at a path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum FoundContent {
    Nothing,
    /// Less than was written, or zeros.
    Torn,
    Content(Vec<u8>),
}

thread_local! {
    /// The steps of this thread; None: nobody asks for them.
    static STEPS: RefCell<Option<Vec<DiskStep>>> = const { RefCell::new(None) };
}

/// Notes a step, if somebody asks for those of this thread.
pub(super) fn record(step: impl FnOnce() -> DiskStep) {
    STEPS.with_borrow_mut(|steps| {
        if let Some(steps) = steps {
            steps.push(step());
        }
    });
}

/// Performs a change on this thread, and returns its steps with its result.
pub(super) fn recorded<T>(change: impl FnOnce() -> T) -> (T, Vec<DiskStep>) {
    STEPS.set(Some(Vec::new()));
    let result = change();
    (result, STEPS.take().unwrap_or_default())
}

/// Performs a change of a file on this thread, and asserts: whenever the power goes meanwhile, the file has
/// a content that was written, as a whole, or its old one; once the change has returned it has the last one.
#[track_caller]
pub fn survives<T>(path: &Path, change: impl FnOnce() -> T) -> T {
    let before = now(path);
    let (result, steps) = recorded(change);
    let after = now(path);
    assert_ne!(before, after, "nothing has changed");
    let written = steps.iter().filter_map(|step| match step {
        DiskStep::Wrote(_, content) => Some(FoundContent::Content(content.clone())),
        _ => None,
    });
    let mut allowed: BTreeSet<_> = written.collect();
    allowed.extend([before.clone(), after.clone()]);
    for done in 0..=steps.len() {
        let found = found_after(&before, &steps[..done], path);
        assert!(found.is_subset(&allowed), "{found:?} after {:?}", &steps[..done]);
    }
    assert_eq!(found_after(&before, &steps, path), BTreeSet::from([after]), "{steps:?}");
    result
}

/// All that may be found at a path if the power goes after these steps.
pub(super) fn found_after(
    before: &FoundContent,
    steps: &[DiskStep],
    path: &Path,
) -> BTreeSet<FoundContent> {
    let mut drafts: BTreeMap<&Path, (&[u8], bool)> = BTreeMap::new();
    // What the path has meant since its folder was last synced.
    let mut meant = vec![BTreeSet::from([before.clone()])];
    let mut made: BTreeSet<&Path> = BTreeSet::new();
    for step in steps {
        match step {
            DiskStep::Made(folder) => drop(made.insert(folder)),
            DiskStep::Wrote(draft, content) => drop(drafts.insert(draft, (content, false))),
            DiskStep::SyncedFile(draft) => {
                drafts.entry(draft).and_modify(|(_, is_synced)| *is_synced = true);
            }
            DiskStep::Renamed(draft, to) if to == path => {
                let (content, is_synced) = drafts[&**draft];
                let mut found = BTreeSet::from([FoundContent::Content(content.to_owned())]);
                found.extend((!is_synced).then_some(FoundContent::Torn));
                meant.push(found);
            }
            DiskStep::Removed(removed) if removed == path => {
                meant.push(BTreeSet::from([FoundContent::Nothing]));
            }
            DiskStep::SyncedFolder(folder) => {
                made.retain(|made| made.parent() != Some(folder));
                if path.parent() == Some(folder) {
                    meant.drain(..meant.len() - 1);
                }
            }
            DiskStep::Renamed(..) | DiskStep::Removed(_) => {}
        }
    }
    let mut found: BTreeSet<_> = meant.into_iter().flatten().collect();
    found.extend(made.iter().any(|made| path.starts_with(made)).then_some(FoundContent::Nothing));
    found
}

fn now(path: &Path) -> FoundContent {
    match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => FoundContent::Nothing,
        content => FoundContent::Content(content.unwrap_or_default()),
    }
}
