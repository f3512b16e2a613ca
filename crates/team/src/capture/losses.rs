//! Content that an agent is about to destroy and the journal can't keep: said once for each folder and turn,
//! before it is destroyed, and held for a decision if the configuration says so.

use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::room::Unkept;

/// The losses of one run of an agent.
pub(super) struct Losses {
    turn: Mutex<TurnLosses>,
    /// The last one that was said, while its turn runs.
    said: watch::Sender<Option<String>>,
}

/// Paths, each with all below it.
#[derive(Default)]
struct TurnLosses {
    said: Vec<PathBuf>,
    /// The paths in `said` that stand for what is below them.
    folders: Vec<PathBuf>,
    allowed: Vec<PathBuf>,
    refused: Vec<PathBuf>,
}

/// The content that a call would destroy for good.
#[derive(Clone, Debug)]
pub struct Loss {
    /// The file, or the folder with the files.
    pub(super) named: PathBuf,
    /// In words.
    pub what: String,
}

/// The decision on a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Allowed,
    Refused,
}

impl Losses {
    pub(super) fn new() -> Self {
        Self { turn: Mutex::default(), said: watch::Sender::new(None) }
    }

    /// The file or folder to name for a loss, or None if it was named. A folder stands for what is
    /// below it: if another one follows, the folder above both is named, so that a turn has one for
    /// each level at most.
    pub(super) fn note(&self, workspace: &Path, path: &Path, why: &Unkept) -> Option<PathBuf> {
        let mut turn = self.turn.lock();
        if covers(&turn.said, path) {
            return None;
        }
        if !matches!(why, Unkept::Full) {
            turn.said.push(path.to_owned());
            return Some(path.to_owned());
        }
        let named = named(&turn.folders, workspace, path);
        turn.folders.push(named.clone());
        turn.said.push(named.clone());
        Some(named)
    }

    /// The file or folder whose loss is to be decided.
    pub(super) fn to_decide(&self, workspace: &Path, path: &Path, why: &Unkept) -> PathBuf {
        match why {
            Unkept::Full => named(&self.turn.lock().allowed, workspace, path),
            _ => path.to_owned(),
        }
    }

    pub(super) fn say(&self, what: String) {
        self.said.send_replace(Some(what));
    }

    pub(super) fn said(&self) -> watch::Receiver<Option<String>> {
        self.said.subscribe()
    }

    /// Returns the decision of this turn for a path, or for a folder above it.
    pub(super) fn verdict(&self, path: &Path) -> Option<Verdict> {
        let turn = self.turn.lock();
        if covers(&turn.allowed, path) {
            return Some(Verdict::Allowed);
        }
        covers(&turn.refused, path).then_some(Verdict::Refused)
    }

    pub(super) fn decide(&self, path: PathBuf, verdict: Verdict) {
        let mut turn = self.turn.lock();
        match verdict {
            Verdict::Allowed => turn.allowed.push(path),
            Verdict::Refused => turn.refused.push(path),
        }
    }

    /// A turn begins.
    pub(super) fn begin(&self) {
        *self.turn.lock() = TurnLosses::default();
        self.said.send_if_modified(|said| said.take().is_some());
    }
}

/// The folder to name for a path, after others were: its own, or the one above it and the last.
fn named(before: &[PathBuf], workspace: &Path, path: &Path) -> PathBuf {
    let folder = path.parent().filter(|it| it.starts_with(workspace)).unwrap_or(workspace);
    let common = |last: &PathBuf| folder.ancestors().find(|above| last.starts_with(above));
    let common = before.last().and_then(common).filter(|it| it.starts_with(workspace));
    common.unwrap_or(folder).to_owned()
}

fn covers(paths: &[PathBuf], path: &Path) -> bool {
    paths.iter().any(|above| path.starts_with(above))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_names_one_folder_for_each_level_at_most() {
        let losses = Losses::new();
        let note = |path: &str| {
            let named = losses.note(Path::new("/w"), &Path::new("/w").join(path), &Unkept::Full);
            named.map(|named| named.display().to_string())
        };
        assert_eq!(note("big/a/b/1").as_deref(), Some("/w/big/a/b"));
        assert_eq!(note("big/a/b/2"), None);
        assert_eq!(note("big/a/c/1").as_deref(), Some("/w/big/a"));
        assert_eq!(note("big/a/d/1"), None);
        assert_eq!(note("big/x").as_deref(), Some("/w/big"));
        assert_eq!(note("top").as_deref(), Some("/w"));
        assert_eq!(note("other/1"), None);
        losses.begin();
        assert_eq!(note("other/1").as_deref(), Some("/w/other"));
        let large = |path: &str| losses.note(Path::new("/w"), Path::new(path), &Unkept::TooLarge);
        assert_eq!(large("/w/f"), Some("/w/f".into()));
        assert_eq!(large("/w/f"), None);
        assert_eq!(large("/w/g"), Some("/w/g".into()));
    }

    #[test]
    fn what_was_decided_holds_below_the_folder_until_the_next_turn() {
        let losses = Losses::new();
        losses.decide("/w/big".into(), Verdict::Allowed);
        losses.decide("/w/src".into(), Verdict::Refused);
        assert_eq!(losses.verdict(Path::new("/w/big/a")), Some(Verdict::Allowed));
        assert_eq!(losses.verdict(Path::new("/w/src/a")), Some(Verdict::Refused));
        assert_eq!(losses.verdict(Path::new("/w/a")), None);
        losses.begin();
        assert_eq!(losses.verdict(Path::new("/w/big/a")), None);
    }
}
