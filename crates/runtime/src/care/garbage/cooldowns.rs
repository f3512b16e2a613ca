//! Cool-downs of agents that are over, and a file of them that can't be read.

use std::io::ErrorKind;
use std::path::Path;

use crate::care::garbage::{Garbage, Removal, size};
use crate::model::now_ms;
use crate::tiers::Cooldowns;

/// The cool-downs that can be forgotten; a file that can't be read now is left alone.
pub(super) fn over(eisen_dir: &Path) -> Option<Garbage> {
    let kept = Cooldowns::new(eisen_dir);
    let (what, reason) = match kept.expired(now_ms()) {
        Ok(0) => return None,
        Ok(count) => (format!("{count} cool-downs in {}", kept.file().display()), "they are over"),
        Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::FileTooLarge) => {
            (format!("cool-downs {}", kept.file().display()), "the file can't be read")
        }
        Err(_) => return None,
    };
    let bytes = size(kept.file());
    let removal = Removal::Cooldowns;
    Some(Garbage { what, reason: reason.to_owned(), bytes, team: None, removal })
}

/// Forgets what is over by now. Those in effect stay.
pub(super) fn forget(eisen_dir: &Path) -> anyhow::Result<()> {
    Ok(Cooldowns::new(eisen_dir).tidy(now_ms())?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::tiers::{Cooldown, LoginId};

    #[test]
    fn cool_downs_go_once_they_are_over_or_make_no_sense() {
        let eisen_dir = tempfile::tempdir().unwrap();
        assert!(over(eisen_dir.path()).is_none());
        let kept = Cooldowns::new(eisen_dir.path());
        let begin = |profile, until| {
            let cooldown = Cooldown::new(profile, LoginId::default(), "rate limited", until);
            kept.begin(cooldown, 1).unwrap();
        };
        begin("codex", 2);
        begin("gemini", u64::MAX);
        let garbage = over(eisen_dir.path()).unwrap();
        assert!(garbage.what.starts_with("1 cool-downs in "), "{garbage:?}");
        forget(eisen_dir.path()).unwrap();
        assert!(over(eisen_dir.path()).is_none());
        let left = kept.read(0).unwrap();
        assert_eq!(left.iter().map(|it| &*it.profile).collect::<Vec<_>>(), ["gemini"]);

        std::fs::write(kept.file(), "{").unwrap();
        assert_eq!(over(eisen_dir.path()).unwrap().reason, "the file can't be read");
        forget(eisen_dir.path()).unwrap();
        assert!(over(eisen_dir.path()).is_none());
        assert!(kept.read(0).unwrap().is_empty());
    }
}
