//! What the system tells of changes on the disk. Each folder is watched by itself, so that what is
//! ignored, such as what builds leave behind, costs nothing.

use std::path::{Path, PathBuf};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Config, ErrorKind, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

pub(super) struct Disk {
    watcher: RecommendedWatcher,
    /// Some folders are not watched, which was told.
    is_partial: bool,
}

/// What changed.
#[derive(Debug)]
pub(super) enum DiskChange {
    Paths(Vec<PathBuf>),
    /// So much that the system lost count.
    Unknown,
}

impl Disk {
    /// `tell` is called on a thread of the watcher's.
    pub(super) fn new(tell: impl Fn(DiskChange) + Send + 'static) -> notify::Result<Self> {
        let hear = move |event: notify::Result<notify::Event>| match event {
            Ok(event) if event.need_rescan() => tell(DiskChange::Unknown),
            Ok(event) if changes(event.kind) => tell(DiskChange::Paths(event.paths)),
            Ok(_) => {}
            Err(_) => tell(DiskChange::Unknown),
        };
        let watcher = RecommendedWatcher::new(hear, Config::default().with_follow_symlinks(false))?;
        Ok(Self { watcher, is_partial: false })
    }

    /// Watches folders, also such as are watched already: one that was removed and made again is
    /// another.
    pub(super) fn watch<'a>(&mut self, folders: impl Iterator<Item = &'a Path>) {
        let mut paths = self.watcher.paths_mut();
        for folder in folders {
            let Err(error) = paths.add(folder, RecursiveMode::NonRecursive) else { continue };
            // One that is gone by now was told of as it went.
            if matches!(error.kind, ErrorKind::MaxFilesWatch) && !self.is_partial {
                self.is_partial = true;
                tracing::warn!(
                    folder = %folder.display(),
                    "the code graph is not live in all folders: the system watches no more of \
                     them (fs.inotify.max_user_watches)"
                );
            }
        }
        let _ = paths.commit();
    }
}

fn changes(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
        EventKind::Modify(ModifyKind::Metadata(_)) => false,
        _ => true,
    }
}
