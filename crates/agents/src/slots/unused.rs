//! Folders of places to which nobody comes back by the same name: sessions, and turns of helpers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::queue::Queue;
use super::{BELOW, SESSION, Slots};

/// Folders that are looked into.
const MOST: usize = 100_000;

impl Slots {
    /// The folders of sessions and helpers in which nobody has a ticket.
    pub fn unused(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().take(MOST).flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()));
        let mut unused: Vec<_> = folders
            .filter(|folder| folder.file_name().to_str().is_some_and(is_of_one))
            .map(|folder| folder.path())
            .filter(|folder| Queue::new(folder.clone()).is_unused().unwrap_or(false))
            .collect();
        unused.sort();
        unused
    }

    /// Removes such a folder, unless somebody has a ticket of it by now.
    pub fn remove_unused(folder: &Path) -> io::Result<()> {
        Queue::new(folder.to_owned()).remove_unused()
    }
}

fn is_of_one(name: &str) -> bool {
    [BELOW, SESSION].iter().any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::slots::{SlotPlace, SlotRequest, TakenSlot, Wait};

    async fn take(slots: &Slots, place: &SlotPlace) -> TakenSlot {
        let request = SlotRequest {
            tool_name: "test".to_owned(),
            reason: String::new(),
            run: None,
            team: None,
            agent: None,
        };
        slots.acquire(place, 1, request, Wait::No, |_| ()).await.unwrap()
    }

    #[tokio::test]
    async fn what_nobody_comes_back_to_goes_once_nobody_is_there() {
        let eisen_dir = tempfile::tempdir().unwrap();
        let slots = Slots::new(eisen_dir.path());
        assert_eq!(slots.unused(), Vec::<PathBuf>::new());
        let session = |id: &str| SlotPlace::Session(id.to_owned());
        let (base, team, agent) = ("codex".to_owned(), "shop".to_owned(), "lead".to_owned());
        let below = SlotPlace::Below { base: base.clone(), team, agent };
        // That of a profile stays.
        for place in [&session("over"), &session("again"), &below, &SlotPlace::Base(base)] {
            drop(take(&slots, place).await);
        }
        let _held = take(&slots, &session("held")).await;
        let unused = slots.unused();
        assert_eq!(unused.len(), 3, "{unused:?}");
        // One may be wanted again meanwhile.
        let again = take(&slots, &session("again")).await;
        for folder in &unused {
            Slots::remove_unused(folder).unwrap();
            // It is gone already.
            Slots::remove_unused(folder).unwrap();
        }
        let left = unused.iter().filter(|folder| folder.exists());
        let folder = slots.folder.join(session("again").folder());
        assert_eq!(left.collect::<Vec<_>>(), [&folder]);
        drop(again);
        // The place is as good as before.
        take(&slots, &session("over")).await;
        assert_eq!(slots.unused().len(), 2);
    }
}
