//! Paths on the wire: relative to the workspace, folded by name, without disk access.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Returns the path as the wire shows it: relative to the workspace with forward slashes (`.` for
/// the workspace itself), absolute if outside. A relative `path` resolves against `cwd`; `.` and
/// `..` are folded by name. Invalid UTF-8 becomes U+FFFD.
pub fn wire_path(workspace: &Path, cwd: &Path, path: &Path) -> String {
    wire_real(workspace, &fold(&cwd.join(path)))
}

/// [`wire_path`] of an absolute, folded path.
pub fn wire_real(workspace: &Path, real: &Path) -> String {
    match within(workspace, real) {
        Some(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Some(inside) => inside.to_string_lossy().into_owned(),
        None => real.to_string_lossy().into_owned(),
    }
}

/// Adds the names of a path to those that are still to be walked, the next of which is the last.
pub fn walk_first(path: &Path, ahead: &mut Vec<OsString>) {
    let names = path.components().rev().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    ahead.extend(names);
}

/// Whether a path, as the wire shows it, is none of the team's work: outside the workspace, or git's own.
pub fn is_aside(path: &str) -> bool {
    let path = Path::new(path);
    path.is_absolute() || path.components().any(|part| part.as_os_str() == ".git")
}

/// The part of a path below a folder: empty for the folder itself, None outside. Both paths are
/// absolute and folded, so comparing bytes is enough, and many times faster than components.
pub fn within<'a>(folder: &Path, path: &'a Path) -> Option<&'a Path> {
    let folder = folder.as_os_str().as_bytes();
    let rest = path.as_os_str().as_bytes().strip_prefix(folder)?;
    let inside = if rest.is_empty() || folder == b"/" { rest } else { rest.strip_prefix(b"/")? };
    Some(Path::new(OsStr::from_bytes(inside)))
}

/// Folds `.` and `..` by name, without disk access.
pub fn fold(path: &Path) -> PathBuf {
    if is_folded(path) {
        return path.to_path_buf();
    }
    let mut folded = PathBuf::with_capacity(path.as_os_str().len());
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                folded.pop();
            }
            other => folded.push(other),
        }
    }
    folded
}

/// Whether a path has a `..` component.
pub fn goes_up(path: &Path) -> bool {
    !is_folded(path) && path.components().any(|name| name == Component::ParentDir)
}

/// Whether a path is folded already, as most are; a fast check of its bytes.
fn is_folded(path: &Path) -> bool {
    let Some(names) = path.as_os_str().as_bytes().strip_prefix(b"/") else { return false };
    !names.split(|byte| *byte == b'/').any(|name| matches!(name, b"" | b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_workspace_or_absolute() {
        let wire =
            |cwd: &str, path: &str| wire_path(Path::new("/w"), Path::new(cwd), Path::new(path));
        assert_eq!(wire("/w", "a/b.rs"), "a/b.rs");
        assert_eq!(wire("/w/a", "../b.rs"), "b.rs");
        assert_eq!(wire("/w", "/w/./a/../b"), "b");
        assert_eq!(wire("/w", "/w"), ".");
        assert_eq!(wire("/w", "../x"), "/x");
        assert_eq!(wire("/w", "/../../etc/passwd"), "/etc/passwd");
        assert_eq!(wire("/w", "/www"), "/www");
    }

    #[test]
    fn folding_leaves_what_a_path_would_be_spelled_as() {
        for (path, folded) in [
            ("/", "/"),
            ("/a/b", "/a/b"),
            ("/a/b/", "/a/b"),
            ("/a//b", "/a/b"),
            ("/a/./b/.", "/a/b"),
            ("/a/../.b/..c", "/.b/..c"),
            ("/.a/..b/...", "/.a/..b/..."),
            ("/a/b/..", "/a"),
            ("/a/b/.", "/a/b"),
            ("/../a", "/a"),
            ("a/../b", "b"),
            ("", ""),
        ] {
            assert_eq!(fold(Path::new(path)).as_os_str(), folded, "{path}");
        }
    }

    #[test]
    fn paths_below_a_folder_match_whole_names() {
        let within = |folder: &str, path: &str| {
            within(Path::new(folder), Path::new(path)).map(|inside| inside.display().to_string())
        };
        assert_eq!(within("/a/b", "/a/b/c/d").as_deref(), Some("c/d"));
        assert_eq!(within("/a/b", "/a/b").as_deref(), Some(""));
        assert_eq!(within("/a/b", "/a/bc"), None);
        assert_eq!(within("/a/b", "/a"), None);
        assert_eq!(within("/", "/a").as_deref(), Some("a"));
        assert_eq!(within("/", "/").as_deref(), Some(""));
    }
}
