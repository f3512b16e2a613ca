//! The workspace on disk: file types and texts, and the ignore files that keep paths off the map.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ignore::Match;
use ignore::gitignore::Gitignore;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;
use parking_lot::Mutex;

use super::{Entry, Workspace};
use crate::ignored::{self, Links};
use crate::model::{fold, within};

/// Folders that are never on the map, regardless of the ignore files.
const NEVER_SHOWN: [&str; 20] = [
    ".git",
    ".hg",
    ".svn",
    ".jj",
    "node_modules",
    "bower_components",
    "target",
    "dist",
    ".venv",
    "venv",
    "__pycache__",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".next",
    ".nuxt",
    ".gradle",
    ".cache",
    ".terraform",
];
/// Ignore files of one folder; later ones override earlier ones.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];
/// Folders with cached ignore files; when full, the cache is cleared.
const MOST_FOLDERS: usize = 4096;

/// A folder on disk, with a cache of its ignore files.
#[derive(Debug)]
pub struct DiskWorkspace {
    root: PathBuf,
    folders: Mutex<HashMap<PathBuf, Remembered>>,
}

/// The matcher of one folder, with the fingerprints of its ignore files.
#[derive(Debug)]
struct Remembered {
    states: [Fingerprint; 2],
    matcher: Arc<Gitignore>,
}

/// Modification time and length of a file; None if it does not exist.
type Fingerprint = Option<(Option<SystemTime>, u64)>;

impl DiskWorkspace {
    /// `root` is absolute.
    pub fn new(root: PathBuf) -> Self {
        Self { root, folders: Mutex::default() }
    }

    /// The matcher of the ignore files in `folder`, read again if they changed.
    fn matcher(&self, folder: &Path) -> Arc<Gitignore> {
        let states = IGNORE_FILES.map(|name| state(&folder.join(name)));
        let mut folders = self.folders.lock();
        if let Some(known) = folders.get(folder).filter(|known| known.states == states) {
            return Arc::clone(&known.matcher);
        }
        let files = IGNORE_FILES.map(|name| folder.join(name));
        let files = files.iter().map(|file| (&**file, Links::Refused));
        let matcher = Arc::new(ignored::rules(folder, files));
        if folders.len() >= MOST_FOLDERS {
            folders.clear();
        }
        folders.insert(folder.to_path_buf(), Remembered { states, matcher: Arc::clone(&matcher) });
        matcher
    }
}

/// Whether the ignore files of the folders above match `path` itself; the innermost decides.
fn is_named(matchers: &[Arc<Gitignore>], path: &Path, is_dir: bool) -> bool {
    for matcher in matchers.iter().rev() {
        match matcher.matched(path, is_dir) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => {}
        }
    }
    false
}

/// Reads a regular file below `root`. Follows no link: an agent could tell by what becomes known of
/// its edit whether a file outside its zone has a text. Never blocks on pipes.
fn read(root: &Path, path: &Path, longest: usize) -> std::io::Result<Option<String>> {
    let plain = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let folder = plain | OFlag::O_DIRECTORY;
    let mut at = open(root, OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    let mut names = path.iter().peekable();
    while let Some(name) = names.next() {
        let is_last = names.peek().is_none();
        let flags = if is_last { plain | OFlag::O_NONBLOCK | OFlag::O_NOCTTY } else { folder };
        at = openat(&at, name, flags, Mode::empty())?;
    }
    let file = File::from(at);
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > longest as u64 {
        return Ok(None);
    }
    // It may have grown meanwhile.
    let mut text = String::new();
    file.take(longest as u64 + 1).read_to_string(&mut text)?;
    Ok(Some(text).filter(|text| text.len() <= longest))
}

impl Workspace for DiskWorkspace {
    fn root(&self) -> &Path {
        &self.root
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        let found = fs::metadata(self.root.join(path)).ok()?;
        Some(if found.is_dir() { Entry::Folder } else { Entry::File })
    }

    fn text(&self, path: &Path, longest: usize) -> Option<String> {
        let path = fold(path);
        read(&self.root, within(&self.root, &path)?, longest).ok().flatten()
    }

    fn is_ignored(&self, path: &Path) -> bool {
        let Ok(inside) = path.strip_prefix(&self.root) else { return false };
        let mut at = self.root.clone();
        let mut components = inside.components().peekable();
        let mut matchers = Vec::new();
        // An ignored folder ignores all below it.
        while let Some(component) = components.next() {
            matchers.push(self.matcher(&at));
            at.push(component);
            let is_dir = components.peek().is_some() || at.is_dir();
            let never = || NEVER_SHOWN.iter().any(|name| component.as_os_str() == *name);
            if (is_dir && never()) || is_named(&matchers, &at, is_dir) {
                return true;
            }
        }
        false
    }
}

fn state(path: &Path) -> Fingerprint {
    let file = fs::symlink_metadata(path).ok().filter(Metadata::is_file)?;
    Some((file.modified().ok(), file.len()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn workspace(files: &[(&str, &str)]) -> (tempfile::TempDir, DiskWorkspace) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let workspace = DiskWorkspace::new(folder.path().to_path_buf());
        (folder, workspace)
    }

    #[test]
    fn ignore_files_and_well_known_folders_keep_paths_out() {
        let (_folder, disk) = workspace(&[
            (".gitignore", "*.log\n/out/\n!keep.log\n"),
            ("sub/.gitignore", "!deep.log\nlocal.txt\n"),
            ("sub/.ignore", "other.txt\n"),
            ("out/a.rs", ""),
            ("a.rs", ""),
        ]);
        let ignored = |path: &str| disk.is_ignored(&disk.root().join(path));
        for path in [
            "x.log",
            "sub/x.log",
            "out/a.rs",
            "out/deep/er.rs",
            "sub/local.txt",
            "sub/other.txt",
            "node_modules/x/y.js",
            "sub/target/debug/z",
            ".git/config",
        ] {
            assert!(ignored(path), "{path}");
        }
        for path in ["a.rs", "keep.log", "sub/deep.log", "local.txt", "targets/x", "target", ""] {
            assert!(!ignored(path), "{path}");
        }
        assert!(!disk.is_ignored(Path::new("/elsewhere/node_modules/x")));
    }

    #[test]
    fn a_changed_ignore_file_is_read_again() {
        let (_folder, disk) = workspace(&[(".gitignore", "a.rs\n")]);
        let path = disk.root().join("a.rs");
        assert!(disk.is_ignored(&path));
        fs::write(disk.root().join(".gitignore"), "other.rs\n").unwrap();
        assert!(!disk.is_ignored(&path));
    }

    #[test]
    fn texts_are_read_below_the_workspace_and_through_no_link() {
        let (folder, disk) = workspace(&[("sub/a.rs", "text"), ("b.rs", "text")]);
        let (outside, _) = workspace(&[("a.rs", "text")]);
        let link = |to: &Path, at: &str| {
            std::os::unix::fs::symlink(to, folder.path().join(at)).unwrap();
        };
        link(&outside.path().join("a.rs"), "file.rs");
        link(outside.path(), "folder");
        nix::unistd::mkfifo(&folder.path().join("pipe.rs"), Mode::S_IRWXU).unwrap();
        let text = |path: &str| disk.text(&disk.root().join(path), 100);
        for path in ["sub/a.rs", "b.rs", "./sub/../b.rs"] {
            assert_eq!(text(path).as_deref(), Some("text"), "{path}");
        }
        for path in ["file.rs", "folder/a.rs", "pipe.rs", "sub", "c.rs", "b.rs/x", ""] {
            assert_eq!(text(path), None, "{path}");
        }
        assert_eq!(disk.text(&outside.path().join("a.rs"), 100), None);
        assert_eq!(disk.text(&disk.root().join("b.rs"), 3), None);
    }

    #[test]
    fn files_and_folders_are_distinguished() {
        let (_folder, disk) = workspace(&[("sub/a.rs", "")]);
        let at = |path: &str| disk.root().join(path);
        assert!(disk.exists(&at("sub/a.rs")) && !disk.is_dir(&at("sub/a.rs")));
        assert!(disk.exists(&at("sub")) && disk.is_dir(&at("sub")));
        assert!(!disk.exists(&at("sub/b.rs")));
    }
}
