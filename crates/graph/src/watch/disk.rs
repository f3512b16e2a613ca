//! Receives the system's file change events. Each folder is watched by itself, so that ignored
//! folders, such as build output, cost nothing.

use std::path::{Path, PathBuf};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Config, ErrorKind, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

pub(super) struct Disk {
    watcher: RecommendedWatcher,
    /// Some folders are not watched, which was logged.
    is_partial: bool,
}

/// A change on the disk.
#[derive(Debug)]
pub(super) enum DiskChange {
    Paths {
        paths: Vec<PathBuf>,
        /// They were made.
        are_new: bool,
    },
    /// The system dropped events.
    Unknown,
}

impl Disk {
    /// `on_change` is called on the watcher's thread.
    pub(super) fn new(on_change: impl Fn(DiskChange) + Send + 'static) -> notify::Result<Self> {
        let on_event = move |event: notify::Result<notify::Event>| match event {
            Ok(event) if event.need_rescan() => on_change(DiskChange::Unknown),
            Ok(event) if is_change(event.kind) => {
                let are_new = matches!(event.kind, EventKind::Create(_));
                on_change(DiskChange::Paths { paths: event.paths, are_new });
            }
            Ok(_) => {}
            Err(_) => on_change(DiskChange::Unknown),
        };
        let config = Config::default().with_follow_symlinks(false);
        let watcher = RecommendedWatcher::new(on_event, config)?;
        Ok(Self { watcher, is_partial: false })
    }

    /// Watches folders, known ones too: a folder may have been removed and created again.
    pub(super) fn watch<'a>(&mut self, folders: impl Iterator<Item = &'a Path>) {
        let mut paths = self.watcher.paths_mut();
        for folder in folders {
            let Err(error) = paths.add(folder, RecursiveMode::NonRecursive) else { continue };
            // The removal of a folder is an event of its parent.
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

fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
        EventKind::Modify(ModifyKind::Metadata(_)) => false,
        _ => true,
    }
}
